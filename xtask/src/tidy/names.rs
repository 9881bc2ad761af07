//! Names of types and functions: whether a search for one finds one thing.

use super::TidyFinding;
use super::rust_text::RustText;
use super::sample::draw;
use super::tree::SourceFile;
use std::collections::BTreeMap;

/// Names that may be shared: every reader knows their meaning, and each is used within its module.
const SHARED_TYPE_NAMES: [&str; 4] = ["Args", "Config", "Error", "Options"];

/// Here a protocol names the types: the messages of two protocols may share a name.
const WIRE_FOLDER: &str = "crates/protocols/src/";

/// Participles and adjectives that mean nothing alone.
const BARE_TYPE_NAMES: [&str; 72] = [
    "Absent",
    "Accepted",
    "Allowed",
    "Answered",
    "Asked",
    "Asking",
    "Blocked",
    "Bound",
    "Built",
    "Caught",
    "Checked",
    "Chosen",
    "Closed",
    "Compiled",
    "Configured",
    "Declared",
    "Declined",
    "Deferred",
    "Done",
    "Due",
    "Empty",
    "Ended",
    "Ending",
    "Expired",
    "Failed",
    "Finished",
    "Found",
    "Fresh",
    "Full",
    "Given",
    "Gone",
    "Heard",
    "Held",
    "Hidden",
    "Joined",
    "Kept",
    "Known",
    "Late",
    "Learnt",
    "Left",
    "Limited",
    "Listed",
    "Listening",
    "Looking",
    "Made",
    "Missing",
    "Named",
    "Opened",
    "Owed",
    "Parsed",
    "Paused",
    "Pending",
    "Planned",
    "Prepared",
    "Read",
    "Reading",
    "Ready",
    "Received",
    "Refused",
    "Rendered",
    "Running",
    "Said",
    "Sealed",
    "Seen",
    "Sent",
    "Shared",
    "Shown",
    "Standing",
    "Started",
    "Stored",
    "Taken",
    "Told",
];

/// The largest number of definitions of one function name.
const FUNCTION_PLACES_MAX: usize = 12;

/// Names of methods of the standard library, and conventional ones for well-known meanings on a well-named type.
const IDIOMATIC_FUNCTIONS: [&str; 40] = [
    "add",
    "as_str",
    "build",
    "call",
    "cancel",
    "clone",
    "close",
    "connect",
    "default",
    "drop",
    "entry",
    "eq",
    "find",
    "finish",
    "fmt",
    "from",
    "from_str",
    "get",
    "id",
    "insert",
    "into_inner",
    "is_empty",
    "iter",
    "kind",
    "len",
    "line",
    "lock",
    "main",
    "name",
    "new",
    "next",
    "open",
    "parse",
    "read",
    "remove",
    "run",
    "send",
    "start",
    "take",
    "write",
];

/// The largest wanted percentage of type names of one word.
const ONE_WORD_PERCENT_WANTED: usize = 25;

/// The number of names in a sample.
const N_DRAWN: usize = 50;

/// All definitions of types and functions in production code.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    /// The places of the definitions of each name.
    types: BTreeMap<String, Vec<String>>,
    functions: BTreeMap<String, Vec<String>>,
}

impl NameIndex {
    pub(super) fn new(files: &[SourceFile]) -> Self {
        let mut index = Self::default();
        for file in files.iter().filter(|file| is_production(&file.path)) {
            index.add(file);
        }
        index
    }

    fn add(&mut self, file: &SourceFile) {
        let rust = RustText::new(&file.text);
        if !is_wire(&file.path) {
            for (line, name) in rust.type_definitions() {
                let place = format!("{}:{line}", file.path);
                self.types.entry(name).or_default().push(place);
            }
        }
        for (line, name) in rust.function_definitions() {
            let place = format!("{}:{line}", file.path);
            self.functions.entry(name).or_default().push(place);
        }
    }

    /// The errors.
    pub(super) fn check_names(&self) -> Vec<TidyFinding> {
        let mut findings = vec![];
        for (name, places) in &self.types {
            if places.len() > 1 && !SHARED_TYPE_NAMES.contains(&name.as_str()) {
                let what =
                    format!("the type name {name} is also defined at {}", places[1..].join(", "));
                findings.push(TidyFinding::insist(&places[0], what));
            }
            if BARE_TYPE_NAMES.contains(&name.as_str()) {
                let what = format!("{name} is a participle or an adjective; name the thing");
                findings.push(TidyFinding::insist(&places[0], what));
            }
        }
        for (name, places) in &self.functions {
            if places.len() > FUNCTION_PLACES_MAX && !IDIOMATIC_FUNCTIONS.contains(&name.as_str()) {
                let what = format!(
                    "{} functions have the name {name}, {FUNCTION_PLACES_MAX} at most; say what changes or what is returned",
                    places.len()
                );
                findings.push(TidyFinding::insist(&places[0], what));
            }
        }
        findings
    }

    /// The figures, in one line.
    pub(super) fn summary(&self) -> String {
        let n_types: usize = self.types.values().map(Vec::len).sum();
        let n_shared: usize = self.types.values().map(Vec::len).filter(|n| *n > 1).sum();
        let one_word = self.types.iter().filter(|(name, _)| is_one_word(name));
        let n_one_word: usize = one_word.map(|(_, places)| places.len()).sum();
        format!(
            "names: {n_types} types, {} % share their name, {} % are one word (wanted: {ONE_WORD_PERCENT_WANTED} % at most)",
            percent(n_shared, n_types),
            percent(n_one_word, n_types)
        )
    }

    /// A sample of names for a reader to judge, the same in each run.
    pub(super) fn sample(&self) -> Vec<String> {
        let of = |kind: &str, names: &BTreeMap<String, Vec<String>>| -> Vec<String> {
            let all = names.iter().flat_map(|(name, places)| {
                places.iter().map(move |place| format!("{kind} {name} ({place})"))
            });
            all.collect()
        };
        let mut all = of("type", &self.types);
        all.extend(of("fn", &self.functions));
        draw(all, N_DRAWN)
    }
}

fn percent(part: usize, whole: usize) -> usize {
    (100 * part).checked_div(whole).unwrap_or(0)
}

/// Whether a type's name has no capital after a small letter or digit.
fn is_one_word(name: &str) -> bool {
    let mut before_was_small = false;
    for c in name.chars() {
        if c.is_uppercase() && before_was_small {
            return false;
        }
        before_was_small = c.is_lowercase() || c.is_ascii_digit();
    }
    true
}

fn is_production(path: &str) -> bool {
    let in_sources =
        (path.starts_with("crates/") && path.contains("/src/")) || path.starts_with("xtask/src/");
    in_sources && path.ends_with(".rs") && !path.contains("/tests/") && !path.ends_with("tests.rs")
}

fn is_wire(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(WIRE_FOLDER) else { return false };
    rest.split('/').nth(1).is_some_and(|name| name.starts_with("wire"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(files: &[(&str, &str)]) -> NameIndex {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        NameIndex::new(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let shown: Vec<_> = index(files).check_names().iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_name_that_two_types_share_is_refused() {
        let files = [
            ("crates/a/src/lib.rs", "struct Lease;\nstruct Args;\n"),
            ("crates/b/src/lib.rs", "pub enum Lease { A }\nstruct Args;\n"),
            ("crates/b/tests/b/main.rs", "struct Lease;\n"),
            ("crates/protocols/src/hotrepl/wire.rs", "pub struct Lease;\n"),
            ("crates/protocols/src/hotrepl/wire/eval.rs", "pub struct Lease;\n"),
        ];
        check_files(
            &files,
            &[
                "error  crates/a/src/lib.rs:1: the type name Lease is also defined at crates/b/src/lib.rs:1",
            ],
        );
    }

    #[test]
    fn a_bare_participle_is_refused() {
        check_files(
            &[("crates/a/src/lib.rs", "struct Said(u8);\nstruct SaidTwice;\n")],
            &["error  crates/a/src/lib.rs:1: Said is a participle or an adjective; name the thing"],
        );
    }

    #[test]
    fn a_function_name_of_thirteen_places_is_refused_outside_of_traits() {
        let text = "fn hear() {}\n".repeat(13);
        let expected = "error  crates/a/src/lib.rs:1: 13 functions have the name hear, 12 at most; say what changes or what is returned";
        check_files(&[("crates/a/src/lib.rs", &text)], &[expected]);
        check_files(&[("crates/a/src/lib.rs", &"fn hear() {}\n".repeat(12))], &[]);
        let text = "impl Hearing for Ear {\n    fn hear(&self) {}\n}\n".repeat(13);
        check_files(&[("crates/a/src/lib.rs", &text)], &[]);
    }

    #[test]
    fn the_summary_counts_words_and_twins() {
        let files =
            [("crates/a/src/lib.rs", "struct A;\nstruct A;\nstruct WalMark;\nstruct HTTP;\n")];
        let expected =
            "names: 4 types, 50 % share their name, 75 % are one word (wanted: 25 % at most)";
        assert_eq!(index(&files).summary(), expected);
    }

    #[test]
    fn the_same_names_are_drawn_each_time() {
        let text = (0..200).fold(String::new(), |text, n| format!("{text}struct Type{n};\n"));
        let files = [("crates/a/src/lib.rs", text.as_str())];
        let drawn = index(&files).sample();
        assert_eq!(drawn.len(), N_DRAWN);
        assert_eq!(drawn, index(&files).sample());
    }
}
