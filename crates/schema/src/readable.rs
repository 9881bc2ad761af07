//! Reads any JSON text into a value for the validator, also texts that JavaScript writes and
//! `serde_json` refuses. Only validation uses the result; tools get the unchanged text.

use serde_json::Value;

/// Containers nested deeper than this are taken for empty: below the 127 levels that `serde_json`
/// reads, and far below what would overflow the stack of a recursive validator.
pub const NESTING_MAX: usize = 100;

/// A value for validators, and whether it differs from the text it was read from.
#[derive(Debug, PartialEq)]
pub struct ReadableValue {
    /// The value, or as much of it as can be read.
    pub value: Value,
    /// Whether anything was replaced or cut.
    pub is_tamed: bool,
}

/// Reads `text`, which is one JSON value: lone surrogates become U+FFFD, numbers beyond `f64` its
/// largest, and containers at [`NESTING_MAX`] empty.
pub fn read(text: &str) -> Option<ReadableValue> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(ReadableValue { value, is_tamed: false });
    }
    let value = serde_json::from_str(&tamed(text)).ok()?;
    Some(ReadableValue { value, is_tamed: true })
}

fn tamed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let token;
        (token, rest) = rest.split_at(token_len(rest, first));
        let opens = matches!(first, '{' | '[');
        let closes = matches!(first, '}' | ']');
        depth += usize::from(opens);
        // The brackets of the deepest container that is read lie on the border.
        if depth < NESTING_MAX || (depth == NESTING_MAX && (opens || closes)) {
            match first {
                '"' => push_text(&mut out, token),
                '-' | '0'..='9' => push_number(&mut out, token),
                _ => out.push_str(token),
            }
        }
        depth = depth.saturating_sub(usize::from(closes));
    }
    out
}

/// How long the text, number or single character is that `rest` begins with.
fn token_len(rest: &str, first: char) -> usize {
    match first {
        '"' => {
            let mut bytes = rest.bytes().enumerate().skip(1);
            while let Some((at, byte)) = bytes.next() {
                match byte {
                    b'\\' => drop(bytes.next()),
                    b'"' => return at + 1,
                    _ => {}
                }
            }
            rest.len()
        }
        '-' | '0'..='9' => {
            rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(rest.len())
        }
        other => other.len_utf8(),
    }
}

fn push_number(out: &mut String, token: &str) {
    match token.parse::<f64>() {
        Ok(number) if number.is_infinite() => {
            out.push_str(&f64::MAX.copysign(number).to_string());
        }
        Ok(_) | Err(_) => out.push_str(token),
    }
}

/// Copies a text and replaces each escape that is half of a surrogate pair.
fn push_text(out: &mut String, mut rest: &str) {
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (kept, n_taken) = match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (&rest[..12], 12),
            (Some(0xD800..=0xDFFF), _) => ("\\ufffd", 6),
            // The escaped character is skipped, too: `\\` does not begin two escapes.
            (_, _) => {
                let n_taken = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
                (&rest[..n_taken], n_taken)
            }
        };
        out.push_str(kept);
        rest = &rest[n_taken..];
    }
    out.push_str(rest);
}

fn escaped_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, value: Value) {
        assert_eq!(read(text), Some(ReadableValue { value, is_tamed: true }));
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        check(r#""a\ud800b""#, json!("a\u{fffd}b"));
        let odd = r#"["\ud83d\ude00\ud800", "\\ud800", "\udc00\\", {"\uDFFF\"é": "\ud800\u0041"}]"#;
        let expected = json!(["😀\u{fffd}", "\\ud800", "\u{fffd}\\", {"\u{fffd}\"é": "\u{fffd}A"}]);
        check(odd, expected);
        check(
            r#"["\ud800\\", "\"\uDFFF\"", "\udc00\ud800"]"#,
            json!(["\u{fffd}\\", "\"\u{fffd}\"", "\u{fffd}\u{fffd}"]),
        );
    }

    #[test]
    fn numbers_beyond_f64_become_its_largest() {
        check("[1e999, -1e999, 3]", json!([f64::MAX, f64::MIN, 3]));
    }

    #[test]
    fn deep_nesting_is_cut_and_what_surrounds_it_is_kept() {
        let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
        let value = read(&format!(r#"{{"a":{open}"]"{close},"b":{{"c":1}}}}"#)).unwrap().value;
        assert_eq!(value["b"], json!({"c": 1}));
        let inside = std::iter::successors(Some(&value["a"]), |inner| inner.get(0));
        assert_eq!(inside.count(), NESTING_MAX - 1);
    }

    #[test]
    fn what_can_be_read_is_not_touched() {
        let readable = read(r#"{"a": [1, "\ud83d\ude00"]}"#);
        let value = json!({"a": [1, "😀"]});
        assert_eq!(readable, Some(ReadableValue { value, is_tamed: false }));
        assert_eq!(read("{"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in r#"([\[\]{}",:0-9e+.-]|\\|\\u|d8|dc|é){0,40}"#) {
            drop(read(&text));
        }
    }
}
