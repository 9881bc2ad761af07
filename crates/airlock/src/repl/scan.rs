//! A scanner for JavaScript as it is typed: syntax colours, and whether the text continues in the next line.

/// The kind of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Plain,
    Keyword,
    Number,
    Text,
    Comment,
}

/// A piece of text with its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPiece<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
}

const KEYWORDS: [&str; 41] = [
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "of",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "var",
    "while",
    "yield",
];

/// The text in pieces; their concatenation is the text.
pub(super) fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut pieces = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            '/' if rest.starts_with("//") => {
                (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()))
            }
            '/' if rest.starts_with("/*") => {
                (TokenKind::Comment, rest[2..].find("*/").map_or(rest.len(), |at| at + 4))
            }
            quote @ ('"' | '\'' | '`') => {
                (TokenKind::Text, quoted(rest, quote).unwrap_or(rest.len()))
            }
            c if c.is_ascii_digit() => (TokenKind::Number, word(rest)),
            c if begins_word(c) => {
                let length = word(rest);
                let is_keyword = KEYWORDS.contains(&&rest[..length]);
                (if is_keyword { TokenKind::Keyword } else { TokenKind::Plain }, length)
            }
            c => (TokenKind::Plain, c.len_utf8()),
        };
        let (text, after) = rest.split_at(length.max(1));
        pieces.push(TextPiece { kind, text });
        rest = after;
    }
    pieces
}

/// Whether a bracket, a template or a comment is still open: then the text continues.
pub(super) fn is_open(text: &str) -> bool {
    let mut depth = 0_i64;
    for TextPiece { kind, text } in pieces(text) {
        match kind {
            TokenKind::Plain if matches!(text, "(" | "[" | "{") => depth += 1,
            TokenKind::Plain if matches!(text, ")" | "]" | "}") => depth -= 1,
            TokenKind::Text if text.starts_with('`') && quoted(text, '`').is_none() => return true,
            TokenKind::Comment
                if text.starts_with("/*") && !(text.len() > 3 && text.ends_with("*/")) =>
            {
                return true;
            }
            TokenKind::Plain
            | TokenKind::Keyword
            | TokenKind::Number
            | TokenKind::Text
            | TokenKind::Comment => {}
        }
    }
    depth > 0
}

/// The length of the quoted text at the beginning; `None` where it is not terminated.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '\n' if quote != '`' => return Some(at),
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

fn word(text: &str) -> usize {
    let belongs = |c: char| begins_word(c) || c.is_ascii_digit();
    text.find(|c: char| !belongs(c)).unwrap_or(text.len())
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_text() {
        for text in ["let a = 'b' // c", "`${x}` /* d", "é🙂 = \"", "1_000n + 0xff", "'a\\'b'"] {
            let joined: String = pieces(text).iter().map(|piece| piece.text).collect();
            assert_eq!(joined, text);
        }
        let kinds: Vec<_> = pieces("let n = 12 // x").iter().map(|piece| piece.kind).collect();
        assert_eq!((kinds[0], *kinds.last().unwrap()), (TokenKind::Keyword, TokenKind::Comment));
    }

    #[test]
    fn a_text_goes_on_while_something_is_open() {
        for open in ["function f() {", "[1,", "f(", "`a", "/* a", "({ a: ')' "] {
            assert!(is_open(open), "{open}");
        }
        for whole in ["1 + 1", "f()", "'('", "`(`", "// (", "/* ( */", "}", "'it"] {
            assert!(!is_open(whole), "{whole}");
        }
    }
}
