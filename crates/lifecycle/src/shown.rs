//! Text that is truncated at a maximum, and JSON formatted for people.

/// Stores the first characters and counts the rest, so that the cost of hostile input is proportional to
/// its length.
#[derive(Debug)]
pub struct TruncatedText {
    kept: String,
    n_chars: usize,
    n_max: usize,
}

impl TruncatedText {
    /// Stores at most `n_max` characters.
    pub const fn with_chars_max(n_max: usize) -> Self {
        Self { kept: String::new(), n_chars: 0, n_max }
    }

    /// Adds one character.
    pub fn push(&mut self, c: char) {
        if self.n_chars < self.n_max {
            self.kept.push(c);
        }
        self.n_chars += 1;
    }

    /// Adds a text.
    pub fn push_str(&mut self, text: &str) {
        let room = self.n_max.saturating_sub(self.n_chars);
        let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
        self.kept.push_str(&text[..end]);
        self.n_chars = self.n_chars.saturating_add(text.chars().count());
    }

    /// The stored part, and a note if something is missing.
    pub fn done(mut self) -> String {
        let n_missing = self.n_chars.saturating_sub(self.n_max);
        if n_missing > 0 {
            self.kept.push_str(&format!("\n... [truncated {n_missing} chars]"));
        }
        self.kept
    }

    fn line(&mut self, depth: usize) {
        self.push('\n');
        let (n_spaces, room) = (2 * depth, self.n_max.saturating_sub(self.n_chars));
        self.kept.extend(std::iter::repeat_n(' ', n_spaces.min(room)));
        self.n_chars = self.n_chars.saturating_add(n_spaces);
    }
}

/// Indents by two spaces, as `JSON.stringify(value, null, 2)` does. Never parses: the order of members,
/// numbers, lone surrogates and deep nesting are preserved.
pub fn pretty(json: &str, out: &mut TruncatedText) {
    let mut depth = 0usize;
    let mut chars = json.chars().filter(significant()).peekable();
    let mut in_string = false;
    let mut escaped = false;
    while let Some(c) = chars.next() {
        if in_string {
            match is_deceptive(c) {
                true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                false => out.push(c),
            }
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match (c, chars.peek()) {
            ('{', Some('}')) | ('[', Some(']')) => {
                out.push(c);
                chars.next().into_iter().for_each(|close| out.push(close));
            }
            ('{' | '[', _) => {
                depth += 1;
                out.push(c);
                out.line(depth);
            }
            ('}' | ']', _) => {
                depth = depth.saturating_sub(1);
                out.line(depth);
                out.push(c);
            }
            (',', _) => {
                out.push(c);
                out.line(depth);
            }
            (':', _) => out.push_str(": "),
            (c, _) => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
}

/// Whether an invisible character changes how the text around it looks: it could disguise arguments. It is
/// shown as an escape, which means the same in JSON.
const fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Drops the white space between tokens.
fn significant() -> impl FnMut(&char) -> bool {
    let mut in_string = false;
    let mut escaped = false;
    move |&c| {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            return true;
        }
        in_string = c == '"';
        !c.is_ascii_whitespace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let mut out = TruncatedText::with_chars_max(1_000);
        pretty(json, &mut out);
        assert_eq!(out.done(), expected);
    }

    #[test]
    fn json_is_indented_as_javascript_does_it() {
        check("1", "1");
        check(r#"{"b":[1, {}],"a" : [ ]}"#, "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": []\n}");
        check(r#"{"q\"{":"a, b\\"}"#, "{\n  \"q\\\"{\": \"a, b\\\\\"\n}");
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_shown_as_escapes() {
        check("\"a\u{202e}b\u{2028}\u{200b}\u{85}ä👍\"", "\"a\\u202eb\\u2028\\u200b\\u0085ä👍\"");
    }

    #[test]
    fn deep_nesting_costs_no_more_than_its_length() {
        let deep = "[".repeat(1_000_000) + "1" + &"]".repeat(1_000_000);
        let mut out = TruncatedText::with_chars_max(100);
        pretty(&deep, &mut out);
        let text = out.done();
        assert!(text.starts_with("[\n  [\n    ["), "{text}");
        assert!(text.len() < 200, "{text}");
    }

    #[test]
    fn what_is_cut_is_counted() {
        let mut out = TruncatedText::with_chars_max(2);
        out.push_str("äöü€");
        out.push_str("ä");
        assert_eq!(out.done(), "äö\n... [truncated 3 chars]");
        let mut out = TruncatedText::with_chars_max(3);
        ["ä", "", "ö€"].into_iter().for_each(|text| out.push_str(text));
        assert_eq!(out.done(), "äö€");
    }
}
