//! Reads Rust well enough to count: without comments and strings, braces match and words can be searched.

use std::ops::Range;

/// A Rust file, prepared for queries.
pub(super) struct RustText {
    /// The text with comments blanked and the insides of literals replaced by `x`, line for line.
    masked: String,
    /// Byte ranges of items that exist only in tests.
    tests: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionText {
    pub(super) name: String,
    /// Where it begins, counted from 1.
    pub(super) line: usize,
    /// Lines of its body that hold code.
    pub(super) n_lines: usize,
}

impl RustText {
    pub(super) fn new(text: &str) -> Self {
        let masked = mask(text);
        let item = |(at, _)| at..item_end(&masked, at);
        let tests = masked.match_indices("#[cfg(test)]").map(item).collect();
        Self { masked, tests }
    }

    /// Lines outside tests, blank and comment lines included: what a reader scrolls through.
    pub(super) fn n_production_lines(&self) -> usize {
        self.production().count()
    }

    /// Lines outside tests, masked, with their numbers.
    pub(super) fn production(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        self.masked.split_inclusive('\n').enumerate().filter_map(move |(line_idx, line)| {
            let is_test = self.is_test(at);
            at += line.len();
            (!is_test).then_some((line_idx + 1, line))
        })
    }

    /// All lines, masked, with their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.masked.lines().enumerate().map(|(line_idx, line)| (line_idx + 1, line))
    }

    /// The content of the parentheses of each `derive`, with its line.
    pub(super) fn derives(&self) -> Vec<(usize, &str)> {
        let list = |(at, word): (usize, &str)| {
            let from = at + word.len();
            let to = self.masked[from..].find(')')?;
            Some((self.line(at), &self.masked[from..from + to]))
        };
        self.masked.match_indices("derive(").filter_map(list).collect()
    }

    /// Every function that has a body.
    pub(super) fn functions(&self) -> Vec<FunctionText> {
        words(&self.masked, "fn").filter_map(|at| self.function(at)).collect()
    }

    /// Every type that is defined outside tests: struct, enum, union, trait, or alias at the top of its file.
    pub(super) fn type_definitions(&self) -> Vec<(usize, String)> {
        let definition = |(line, text): (usize, &str)| Some((line, type_name(text)?));
        self.production().filter_map(definition).collect()
    }

    /// Every item that is `pub` without a restriction, as its kind and name. Items of private modules count too.
    pub(super) fn public_items(&self) -> impl Iterator<Item = String> {
        self.production().filter_map(|(_, line)| public_item(line))
    }

    /// Every function that is defined outside tests and outside of trait implementations, whose names are the trait's.
    pub(super) fn function_definitions(&self) -> Vec<(usize, String)> {
        let implementations = self.trait_implementations();
        let is_own = |at: &usize| {
            !self.is_test(*at) && !implementations.iter().any(|range| range.contains(at))
        };
        let definition = |at: usize| {
            let name = first_word(self.masked[at + 2..].trim_start());
            (!name.is_empty()).then(|| (self.line(at), name))
        };
        words(&self.masked, "fn").filter(is_own).filter_map(definition).collect()
    }

    /// The bodies of `impl Trait for Type`.
    fn trait_implementations(&self) -> Vec<Range<usize>> {
        let of_trait = |at: usize| {
            let body = body(&self.masked, at)?;
            let header = &self.masked[at..body.start];
            let header = header.split(" where").next().unwrap_or(header);
            let names_trait = words(header, "for").any(|at| !header[at + 3..].starts_with('<'));
            names_trait.then_some(body)
        };
        let begins_item = |at: &usize| {
            let line = self.masked[..*at].rsplit('\n').next().unwrap_or_default().trim();
            line.is_empty() || line == "unsafe"
        };
        words(&self.masked, "impl").filter(begins_item).filter_map(of_trait).collect()
    }

    fn function(&self, at: usize) -> Option<FunctionText> {
        let name = first_word(self.masked[at + 2..].trim_start());
        if name.is_empty() {
            return None; // a function pointer's type
        }
        let body = body(&self.masked, at)?;
        let inside = &self.masked[body];
        let n_lines = inside.lines().filter(|line| !line.trim().is_empty()).count();
        // The lines of the two braces belong to the signature.
        Some(FunctionText { name, line: self.line(at), n_lines: n_lines.saturating_sub(2) })
    }

    fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    fn line(&self, at: usize) -> usize {
        self.masked[..at].matches('\n').count() + 1
    }
}

/// The positions of `word` as a whole word.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c)).collect()
}

/// The kind and the name of the item that a line makes public.
fn public_item(line: &str) -> Option<String> {
    let words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let mut words = words.skip_while(|word| ["async", "const", "unsafe"].contains(word));
    let kind = words.next()?;
    if !["fn", "struct", "enum", "trait", "type", "mod"].contains(&kind) {
        return None;
    }
    let name = first_word(words.next()?);
    (!name.is_empty()).then(|| format!("{kind} {name}"))
}

/// The name of the type that a line defines.
fn type_name(line: &str) -> Option<String> {
    let item = without_visibility(line.trim_start());
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let is_alias = item.starts_with("type ");
    if is_alias && line.starts_with(char::is_whitespace) {
        return None; // of an implementation or a trait
    }
    let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
    let name = first_word(kinds.iter().find_map(|kind| item.strip_prefix(kind))?);
    name.starts_with(char::is_uppercase).then_some(name)
}

fn without_visibility(item: &str) -> &str {
    let Some(rest) = item.strip_prefix("pub") else { return item };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest.trim_start(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The end of the item that starts at `from`.
fn item_end(masked: &str, from: usize) -> usize {
    let semicolon = || masked[from..].find(';').map(|offset| from + offset + 1);
    body(masked, from).map(|body| body.end).or_else(semicolon).unwrap_or(masked.len())
}

/// The range of the braces of the item that starts at `from`; `None` if it ends in `;`.
fn body(masked: &str, from: usize) -> Option<Range<usize>> {
    let mut n_open = 0_usize;
    let mut opened = None;
    for (offset, c) in masked[from..].char_indices() {
        match (c, opened) {
            (';', None) if n_open == 0 => return None,
            ('{', None) if n_open == 0 => {
                opened = Some(from + offset);
                n_open = 1;
            }
            ('(' | '[', None) | ('{', _) => n_open += 1,
            (')' | ']' | '}', None) => n_open = n_open.saturating_sub(1),
            ('}', Some(start)) => {
                n_open -= 1;
                if n_open == 0 {
                    return Some(start..from + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn mask(text: &str) -> String {
    let mut masking = MaskedText { rest: text, masked: String::with_capacity(text.len()) };
    while let Some(c) = masking.rest.chars().next() {
        let before = masking.masked.chars().next_back();
        let in_word = before.is_some_and(is_word);
        match c {
            '/' if masking.rest.starts_with("//") => {
                let length = masking.rest.find('\n').unwrap_or(masking.rest.len());
                masking.blank(length, ' ');
            }
            '/' if masking.rest.starts_with("/*") => {
                masking.blank(comment_length(masking.rest), ' ');
            }
            '"' => masking.blank(string_length(masking.rest), 'x'),
            'r' | 'b' | 'c' if !in_word => match raw_string_length(masking.rest) {
                Some(length) => masking.blank(length, 'x'),
                None => masking.keep_char(c),
            },
            '\'' => match char_length(masking.rest) {
                Some(length) => masking.blank(length, 'x'),
                None => masking.keep_char(c), // a lifetime
            },
            c => masking.keep_char(c),
        }
    }
    masking.masked
}

struct MaskedText<'a> {
    rest: &'a str,
    masked: String,
}

impl MaskedText<'_> {
    fn keep_char(&mut self, c: char) {
        self.masked.push(c);
        self.rest = &self.rest[c.len_utf8()..];
    }

    /// Replaces the next `length` bytes; line breaks and spaces stay, so that line numbers remain valid.
    fn blank(&mut self, length: usize, with: char) {
        let (gone, rest) = self.rest.split_at(length);
        self.masked.extend(gone.chars().map(|c| if c.is_whitespace() { c } else { with }));
        self.rest = rest;
    }
}

fn comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `r"…"`, `br#"…"#` and the like; `None` for a word such as `r#type` or `break`.
fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].chars().take_while(|&c| c == '#').count();
    let open = prefix.len() + hashes;
    if !rest[open..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let inside = &rest[open + 1..];
    Some(inside.find(&close).map_or(rest.len(), |at| open + 1 + at + close.len()))
}

/// The length of `'x'` and `'\n'`; `None` for a lifetime.
fn char_length(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (at, second) = chars.next()?;
    if first == '\\' {
        let close = rest[at + second.len_utf8()..].find('\'')?;
        return Some(at + second.len_utf8() + close + 1);
    }
    (second == '\'').then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_masked_and_lines_stay() {
        let cases = [
            ("let a = \"{ \\\" }\"; // {", "let a = xx xx xx;     "),
            ("let b = r#\"{ \" {\"#;", "let b = xxxx x xxx;"),
            ("let c = '{'; let d = '\\'';", "let c = xxx; let d = xxxx;"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("a /* { /* { */ \n } */ b", "a              \n      b"),
            ("r#type + break_", "r#type + break_"),
            ("\"never closed {", "xxxxxx xxxxxx x"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask(text), expected, "{text}");
        }
    }

    #[test]
    fn a_function_is_as_long_as_its_code() {
        let text = "fn one(a: [u8; 2]) -> u8 {\n    // why\n\n    let b = \"}\";\n    1\n}\n\
                    trait T {\n    fn none(&self);\n    fn two(&self) {}\n}\n\
                    type F = fn(u8) -> u8;\n";
        let shape: Vec<_> = RustText::new(text)
            .functions()
            .into_iter()
            .map(|function| (function.name, function.line, function.n_lines))
            .collect();
        assert_eq!(shape, [("one".to_owned(), 1, 2), ("two".to_owned(), 9, 0)]);
    }

    #[test]
    fn lines_of_tests_are_not_production() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
        let rust = RustText::new(text);
        assert_eq!(rust.n_production_lines(), 2);
        let lines: Vec<_> = rust.production().map(|(line, text)| (line, text.trim())).collect();
        assert_eq!(lines, [(1, "fn a() {}"), (6, "fn c() {}")]);
    }

    #[test]
    fn a_test_module_elsewhere_hides_nothing_here() {
        let rust = RustText::new("#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert_eq!(rust.n_production_lines(), 1);
    }

    #[test]
    fn derives_are_found_across_lines() {
        let rust = RustText::new("#[derive(\n    Debug,\n    Serialize,\n)]\nstruct A;\n");
        assert_eq!(rust.derives(), [(1, "\n    Debug,\n    Serialize,\n")]);
    }

    #[test]
    fn definitions_of_types_are_found_with_any_visibility() {
        let text = "pub(crate) struct A;\nenum B {}\npub trait C {\n    type D;\n}\ntype E = u8;\n\
                    impl C for A {\n    type D = u8;\n}\n#[cfg(test)]\nmod tests {\n    struct F;\n}\n";
        let names: Vec<_> = RustText::new(text).type_definitions();
        let names: Vec<_> = names.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(names, [(1, "A"), (2, "B"), (3, "C"), (6, "E")]);
    }

    #[test]
    fn functions_of_implemented_traits_are_not_ours_to_name() {
        let text = "impl<T> From<T> for A\nwhere\n    T: Into<u8>,\n{\n    fn from(t: T) -> Self {}\n}\n\
                    impl<F: for<'a> Fn(&'a u8)> B<F> {\n    fn call(&self) {}\n}\nfn free(f: fn(u8)) {}\n";
        let names = RustText::new(text).function_definitions();
        let names: Vec<_> = names.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(names, [(8, "call"), (10, "free")]);
    }

    #[test]
    fn only_whole_words_are_words() {
        let found: Vec<_> = words("fn fnord a_fn fn", "fn").collect();
        assert_eq!(found, [0, 14]);
    }
}
