//! Scans the text before a parser recurses into it: ten thousand nested brackets would overflow the parser's
//! stack.
//!
//! The scan is cheap and approximate: it may find too little (a quote in a regular expression hides what
//! follows on its line), which costs this process; it never finds fifteen hundred levels in a legitimate
//! program.

/// Deepest nesting of brackets and arrows that is passed to the parser.
const DEPTH_MAX: usize = 1_500;

/// Longest run of operators and dots without a comma, semicolon or bracket between: their trees are as deep.
const OPERATORS_MAX: usize = 8_000;

/// Where the text becomes too deep, if it does.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut scan = DepthScan::default();
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            quote @ (b'"' | b'\'') => string_end(bytes, at + 1, quote),
            b'`' => template_text_end(bytes, at + 1, &mut scan),
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_end(bytes, at + 2),
            b'}' if scan.closes_template() => template_text_end(bytes, at + 1, &mut scan),
            byte => {
                scan.see(byte, bytes.get(at + 1).copied());
                at + 1
            }
        };
        if scan.depth.len() + scan.arrows > DEPTH_MAX || scan.operators > OPERATORS_MAX {
            return Some(at.min(bytes.len()));
        }
    }
    None
}

#[derive(Default)]
struct DepthScan {
    /// One entry per open bracket; `true` for the `${` of a template.
    depth: Vec<bool>,
    /// Arrows, unary and binary operators since the last separator: each may be a level.
    arrows: usize,
    operators: usize,
}

impl DepthScan {
    fn see(&mut self, byte: u8, next: Option<u8>) {
        match byte {
            b'(' | b'[' | b'{' => self.depth.push(false),
            b')' | b']' | b'}' => {
                self.depth.pop();
                self.separate();
            }
            b',' | b';' => self.separate(),
            b'=' if next == Some(b'>') => self.arrows += 1,
            b'!' | b'~' | b'?' => self.arrows += 1,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'=' | b'.' => {
                self.operators += 1;
            }
            _ => {}
        }
    }

    fn separate(&mut self) {
        self.arrows = 0;
        self.operators = 0;
    }

    fn closes_template(&mut self) -> bool {
        let closes = self.depth.last() == Some(&true);
        if closes {
            self.depth.pop();
        }
        closes
    }
}

fn string_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Up to the closing backtick, or into a substitution.
fn template_text_end(bytes: &[u8], mut at: usize, scan: &mut DepthScan) -> usize {
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 1,
            b'`' => return at + 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                scan.depth.push(true);
                return at + 2;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n)
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.windows(2).position(|pair| pair == b"*/").map_or(bytes.len(), |n| at + n + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_is_seen_in_every_bracket_and_in_arrows() {
        for unit in ["(", "[", "{", "a=>", "!", "`${", "x?", "(a, [{"] {
            assert!(too_deep(&unit.repeat(10_000)).is_some(), "{unit}");
        }
        for unit in ["1+", "a."] {
            assert!(too_deep(&unit.repeat(100_000)).is_some(), "{unit}");
        }
    }

    #[test]
    fn honest_programs_pass() {
        let long_list = format!("[{}]", "{a: [1, (2)], b: x => !x},".repeat(10_000));
        let long_text = format!(
            "const s = '{}'; // {}\n/* {} */",
            "(".repeat(9_000),
            "[".repeat(9_000),
            "{".repeat(9_000)
        );
        let long_sum = format!("return {}1", "a + ".repeat(2_000));
        for text in [long_list, long_text, long_sum, "`${`${1}`}`".repeat(2_000)] {
            assert_eq!(too_deep(&text), None);
        }
    }
}
