//! Regular expressions as JSON Schema means them, which is as JavaScript does with its `u` flag:
//! rewritten into those of `fancy-regex`, which takes linear time without look-around and back-references.

use fancy_regex::{Regex, RegexBuilder};
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::OnceLock;

/// A match that backtracks more often than this is given up: texts come from hostile programs.
const BACKTRACKS_MAX: usize = 100_000;

/// Most matches need fewer. One that needs more counts as many steps as it may take: a value with many
/// such texts is not worth the time.
const BACKTRACKS_QUICK_MAX: usize = 1_000;

/// How many bytes of text a step is worth.
const STEP_BYTES: usize = 64;

const DIGITS: &str = "0-9";
const WORDS: &str = "0-9A-Za-z_";
const SPACES: &str = r"\x{9}-\x{D}\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const LINE_ENDS: &str = r"\x{A}\x{D}\x{2028}\x{2029}";
const ALL: &str = r"\x{0}-\x{10FFFF}";

/// A compiled pattern, and its source.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    source: String,
    rewritten: String,
    quick: Regex,
    /// The same with more patience, made when it is first needed.
    patient: OnceLock<Option<Regex>>,
}

/// The result of matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchOutcome {
    /// `None` if matching takes too long.
    pub(crate) is_match: Option<bool>,
    /// The cost of the match in steps.
    pub(crate) n_steps: usize,
}

impl CompiledPattern {
    /// Compiles a pattern; what is wrong with it otherwise.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let rewritten = rewritten(source)?.text;
        let quick = built(&rewritten, BACKTRACKS_QUICK_MAX).map_err(|error| error.to_string())?;
        Ok(Self { source: source.to_owned(), rewritten, quick, patient: OnceLock::new() })
    }

    /// Whether some part of `text` matches.
    pub(crate) fn verdict(&self, text: &str) -> MatchOutcome {
        let n_steps = text.len() / STEP_BYTES;
        if let Ok(is_match) = self.quick.is_match(text) {
            return MatchOutcome { is_match: Some(is_match), n_steps };
        }
        let patient = self.patient.get_or_init(|| built(&self.rewritten, BACKTRACKS_MAX).ok());
        let is_match = patient.as_ref().and_then(|regex| regex.is_match(text).ok());
        MatchOutcome { is_match, n_steps: n_steps + BACKTRACKS_MAX }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

fn built(rewritten: &str, backtracks_max: usize) -> Result<Regex, Box<fancy_regex::Error>> {
    RegexBuilder::new(rewritten).backtrack_limit(backtracks_max).build().map_err(Box::new)
}

/// Whether `text` is a pattern by JavaScript's rules alone.
pub(crate) fn is_pattern(text: &str) -> bool {
    rewritten(text).is_ok_and(|rewritten| !rewritten.is_foreign)
        && CompiledPattern::new(text).is_ok()
}

/// A pattern for `fancy-regex`, and whether it has what JavaScript does not know. Such patterns are
/// taken: many who write schemas think of another language.
struct RewrittenPattern {
    text: String,
    is_foreign: bool,
}

fn rewritten(source: &str) -> Result<RewrittenPattern, String> {
    let mut rewriter =
        PatternRewriter { rest: source.chars().peekable(), text: String::new(), is_foreign: false };
    while let Some(c) = rewriter.rest.next() {
        rewriter.token(c)?;
    }
    Ok(RewrittenPattern { text: rewriter.text, is_foreign: rewriter.is_foreign })
}

struct PatternRewriter<'a> {
    rest: Peekable<Chars<'a>>,
    text: String,
    is_foreign: bool,
}

/// What an escape means.
enum PatternEscape {
    Char(char),
    /// The inside of a class, and whether it is what the class leaves out.
    Class {
        set: &'static str,
        is_negated: bool,
    },
    /// `\p{…}`, unchanged.
    Property(String),
    /// Half of a surrogate pair: no text has it.
    Nothing,
    Other(char),
}

impl PatternRewriter<'_> {
    fn token(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => return self.escape_outside(),
            '[' => return self.class(),
            // With no `m` flag, the very end: not also before a last line end.
            '$' => self.text += r"\z",
            '.' => {
                let _ = write!(self.text, "[^{LINE_ENDS}]");
            }
            '{' if !self.begins_quantifier() => push_literal(&mut self.text, '{'),
            '{' => self.quantifier(),
            '}' | ']' => push_literal(&mut self.text, c),
            '(' => self.group(),
            c => self.text.push(c),
        }
        Ok(())
    }

    /// `(?<name>`, `(?=` and their like mean the same in both; flags are another language's.
    fn group(&mut self) {
        self.text.push('(');
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('?') {
            self.is_foreign |= !matches!(ahead.next(), Some(':' | '=' | '!' | '<'));
        }
    }

    /// Whether `2}`, `2,}` or `2,3}` follows.
    fn begins_quantifier(&self) -> bool {
        let mut ahead = self.rest.clone();
        let mut n_digits = 0;
        let mut n_commas = 0;
        loop {
            match ahead.next() {
                Some('0'..='9') => n_digits += 1,
                Some(',') if n_digits > 0 && n_commas == 0 => n_commas += 1,
                Some('}') => return n_digits > 0,
                Some(_) | None => return false,
            }
        }
    }

    fn quantifier(&mut self) {
        self.text.push('{');
        for c in self.rest.by_ref() {
            self.text.push(c);
            if c == '}' {
                break;
            }
        }
    }

    fn escape_outside(&mut self) -> Result<(), String> {
        match self.escape()? {
            PatternEscape::Char(c) => push_literal(&mut self.text, c),
            PatternEscape::Class { set, is_negated } => push_class(&mut self.text, set, is_negated),
            PatternEscape::Property(property) => self.text += &property,
            PatternEscape::Nothing => push_class(&mut self.text, ALL, true),
            // The word boundary is Unicode's here. JavaScript's differs beside letters that are not ASCII,
            // and would need twice as many look-arounds.
            PatternEscape::Other(c @ ('b' | 'B' | 'k' | '1'..='9')) => {
                self.text.push('\\');
                self.text.push(c);
            }
            PatternEscape::Other(c) => {
                self.is_foreign = true;
                self.text.push('\\');
                self.text.push(c);
            }
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<PatternEscape, String> {
        let class = |set, is_negated| Ok(PatternEscape::Class { set, is_negated });
        let c = self.rest.next().ok_or("ends in a backslash")?;
        match c {
            'd' => class(DIGITS, false),
            'D' => class(DIGITS, true),
            'w' => class(WORDS, false),
            'W' => class(WORDS, true),
            's' => class(SPACES, false),
            'S' => class(SPACES, true),
            't' => Ok(PatternEscape::Char('\t')),
            'n' => Ok(PatternEscape::Char('\n')),
            'v' => Ok(PatternEscape::Char('\u{B}')),
            'f' => Ok(PatternEscape::Char('\u{C}')),
            'r' => Ok(PatternEscape::Char('\r')),
            '0' => Ok(PatternEscape::Char('\0')),
            'c' => match self.rest.next() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    Ok(PatternEscape::Char(char::from(letter as u8 % 32)))
                }
                Some(_) | None => Err(r"has \c without a letter".to_owned()),
            },
            'x' | 'u' => self.code_point(c),
            'p' | 'P' => self.property(c),
            c if c.is_ascii_alphanumeric() => Ok(PatternEscape::Other(c)),
            c => Ok(PatternEscape::Char(c)),
        }
    }

    /// `\xHH`, `\uHHHH`, two of which may be one character, and `\u{H…}`.
    fn code_point(&mut self, kind: char) -> Result<PatternEscape, String> {
        let bad = || format!("has \\{kind} without its digits");
        if self.rest.next_if_eq(&'{').is_some() {
            let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
            let code = u32::from_str_radix(&digits, 16).map_err(|_| bad())?;
            return Ok(char::from_u32(code).map_or(PatternEscape::Nothing, PatternEscape::Char));
        }
        let n_digits = if kind == 'x' { 2 } else { 4 };
        let unit = self.hex(n_digits).ok_or_else(bad)?;
        if let Some(c) = char::from_u32(unit) {
            return Ok(PatternEscape::Char(c));
        }
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('\\') && ahead.next() == Some('u') && unit < 0xDC00 {
            let mut after = PatternRewriter { rest: ahead, text: String::new(), is_foreign: false };
            if let Some(low @ 0xDC00..=0xDFFF) = after.hex(4) {
                let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                self.rest.by_ref().take(6).for_each(drop);
                return Ok(char::from_u32(code).map_or(PatternEscape::Nothing, PatternEscape::Char));
            }
        }
        Ok(PatternEscape::Nothing)
    }

    fn hex(&mut self, n_digits: usize) -> Option<u32> {
        (0..n_digits).try_fold(0, |code, _| Some(code * 16 + self.rest.next()?.to_digit(16)?))
    }

    fn property(&mut self, kind: char) -> Result<PatternEscape, String> {
        if self.rest.next_if_eq(&'{').is_none() {
            // One letter without braces is another language's.
            self.is_foreign = true;
            let name = self.rest.next().ok_or_else(|| format!("ends in \\{kind}"))?;
            return Ok(PatternEscape::Property(format!("\\{kind}{name}")));
        }
        let name: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
        Ok(PatternEscape::Property(format!("\\{kind}{{{name}}}")))
    }

    /// `[…]`. Everything inside is rewritten: `[`, `&&`, `--` and `~~` have more meanings in `fancy-regex`.
    fn class(&mut self) -> Result<(), String> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut set = String::new();
        loop {
            let c = self.rest.next().ok_or("has [ without ]")?;
            if c == ']' {
                break;
            }
            let from = self.class_atom(c, &mut set)?;
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && !matches!(ahead.next(), Some(']') | None);
            if !is_range {
                from.into_iter().for_each(|c| push_literal(&mut set, c));
                continue;
            }
            self.rest.next();
            let c = self.rest.next().ok_or("has [ without ]")?;
            let to = self.class_atom(c, &mut set)?;
            push_range(&mut set, from, to)?;
        }
        match (set.is_empty(), is_negated) {
            (true, is_negated) => push_class(&mut self.text, ALL, !is_negated),
            (false, is_negated) => push_class(&mut self.text, &set, is_negated),
        }
        Ok(())
    }

    /// The character at this place, or none after whole sets, which are added to `set` directly.
    fn class_atom(&mut self, c: char, set: &mut String) -> Result<Option<char>, String> {
        if c != '\\' {
            return Ok(Some(c));
        }
        match self.escape()? {
            PatternEscape::Char(c) => return Ok(Some(c)),
            PatternEscape::Other('b') => return Ok(Some('\u{8}')),
            PatternEscape::Class { set: inner, is_negated: false } => *set += inner,
            PatternEscape::Class { set: inner, is_negated: true } => push_class(set, inner, true),
            PatternEscape::Property(property) => *set += &property,
            PatternEscape::Nothing => push_class(set, ALL, true),
            PatternEscape::Other(c) => {
                self.is_foreign = true;
                set.push('\\');
                set.push(c);
            }
        }
        Ok(None)
    }
}

/// `a-z`; beside a whole set, the hyphen is only a hyphen.
fn push_range(set: &mut String, from: Option<char>, to: Option<char>) -> Result<(), String> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => Err(format!("has the range {from}-{to} backwards")),
        (Some(from), Some(to)) => {
            push_literal(set, from);
            set.push('-');
            push_literal(set, to);
            Ok(())
        }
        (from, to) => {
            let singles = [from, Some('-'), to].into_iter().flatten();
            singles.for_each(|c| push_literal(set, c));
            Ok(())
        }
    }
}

fn push_class(text: &mut String, set: &str, is_negated: bool) {
    let _ = write!(text, "[{}{set}]", if is_negated { "^" } else { "" });
}

/// A character that means itself at every place.
fn push_literal(text: &mut String, c: char) {
    match c.is_ascii() && !c.is_ascii_alphanumeric() {
        true => {
            let _ = write!(text, "\\x{{{:X}}}", u32::from(c));
        }
        false => text.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let compiled = CompiledPattern::new(pattern).unwrap();
        for text in matching {
            assert_eq!(compiled.verdict(text).is_match, Some(true), "{pattern} {text:?}");
        }
        for text in others {
            assert_eq!(compiled.verdict(text).is_match, Some(false), "{pattern} {text:?}");
        }
    }

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        check("b", &["abc"], &["ac"]);
        check("^a$", &["a"], &["a\n", "ba", "ab"]);
        check(r"^\d\w\s$", &["1a ", "9_\u{FEFF}", "0Z\u{3000}"], &["١a ", "1é ", "1a\u{85}"]);
        check(r"^\D\W\S$", &["١éx", "a-."], &["1-.", "aa.", "a- "]);
        check("^.$", &["é", "😀", "\u{85}"], &["\n", "\r", "\u{2028}"]);
        check(r"^\cA\x41\u0042\u{43}\0\/\-$", &["\u{1}ABC\0/-"], &["\u{1}ABC0/-"]);
        check(r"^\uD83D\uDE00\t\v$", &["😀\t\u{B}"], &["😀"]);
        check(r"\uD800", &[], &["", "\u{FFFD}"]);
        check(r"^(?<word>a+)-\k<word>$", &["aa-aa"], &["aa-a"]);
        check(r"^(a)\1(?=b)(?!bc)(?<=aa)(?<!x)b", &["aab"], &["aabc", "abb"]);
        check(r"^\p{Lu}\P{Lu}\p{Script=Greek}$", &["Aaα"], &["aAα", "Aaa"]);
        check(r"\bcat\b", &["a cat.", "(cat)"], &["cats", "_cat"]);
        check(r"a\Bb", &["ab"], &["a b"]);
    }

    #[test]
    fn classes_are_javascripts_too() {
        check("^[^]$", &["a", "\n"], &[""]);
        check("^a[]$", &[], &["a", "a]"]);
        check(r"^[\d\s-]+$", &["1 -"], &["a"]);
        check(r"^[\w-.]+$", &["a-."], &["+", ","]);
        check(r"^[a-c-e]+$", &["ab-e"], &["d"]);
        check("^[a&&b]+$", &["a&b"], &["c"]);
        check("^[[a]+$", &["[a"], &["b"]);
        check("^[+--]+$", &["+,-"], &["."]);
        check(r"^[\b\]\^\\-]$", &["\u{8}", "]", "^", "\\", "-"], &["b"]);
        check(r"^[^\S\n]$", &[" ", "\t"], &["\n", "a"]);
        check(r"^[\p{L}\u0030-\u0032]+$", &["é012"], &["3"]);
        check("^[~~#]$", &["~", "#"], &["a"]);
    }

    #[test]
    fn braces_that_count_nothing_are_braces() {
        check("^a{2}$", &["aa"], &["a"]);
        check("^a{1,2}b{1,}$", &["abb", "aab"], &["aaab"]);
        check("^a{,2}$", &["a{,2}"], &["aa"]);
        check("^{a}]$", &["{a}]"], &["a"]);
        check("^${a}$", &[], &["a"]);
    }

    #[test]
    fn patterns_of_other_languages_are_taken_but_are_no_javascript() {
        check(r"(?i)^a\z", &["A"], &["b"]);
        check(r"\Aa\Z", &["a"], &["ba"]);
        for text in
            [r"^\S(|(.|\n)*\S)\Z", r"(?i)a", r"\a", "(", "[b-a]", "[a", "\\", "a**", r"\u12"]
        {
            assert!(!is_pattern(text), "{text}");
        }
        for text in ["", "a|b", r"([abc])+\s+$", r"(?<a>\p{L})\k<a>", "^[^]{2,}?$"] {
            assert!(is_pattern(text), "{text}");
        }
    }

    #[test]
    fn what_looks_nowhere_takes_no_longer_than_its_text() {
        let text = format!("{}b", "a".repeat(200_000));
        check("^(a+)+$", &[], &[&text]);
        check(r"^(\w+\s?)*$", &[&text], &["-"]);
        check(r"^(a|a)*[^\d]?x$", &[], &[&text]);
    }

    #[test]
    fn nesting_without_end_is_refused_or_taken_but_does_no_harm() {
        for (open, close) in
            [("(", ")"), ("(?:", ")*"), ("(?=", ")"), ("[", "]"), ("{", "}"), ("a|", "")]
        {
            for n in [100, 50_000] {
                drop(CompiledPattern::new(&format!("{}{}", open.repeat(n), close.repeat(n))));
                drop(CompiledPattern::new(&open.repeat(n)));
            }
        }
    }

    proptest! {
        #[test]
        fn no_pattern_makes_us_panic(source in r"([\[\](){}^$.|*+?\\,:=!<>a-c0-9-]|\\[pPuxckdDwWbB]|é|😀){0,20}", text in ".{0,8}") {
            if let Ok(pattern) = CompiledPattern::new(&source) {
                pattern.verdict(&text);
            }
            is_pattern(&source);
        }
    }

    #[test]
    fn a_match_that_explodes_is_given_up() {
        let exploding = CompiledPattern::new(r"^(a|aa|b)+\1c?$").unwrap();
        let verdict = exploding.verdict(&format!("{}bac", "a".repeat(5_000)));
        assert_eq!(
            verdict,
            MatchOutcome { is_match: None, n_steps: BACKTRACKS_MAX + 5_003 / STEP_BYTES }
        );
    }
}
