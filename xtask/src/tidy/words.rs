//! Checks for words that do not belong in the tree, and for names without meaning.

use super::TidyFinding;
use super::rust_text::words;
use super::tree::SourceFile;

/// Notes of unfinished work: future work belongs in an issue, finished work in a commit.
const UNFINISHED: [&str; 5] = ["FIXME", "XXX", "HACK", "WIP", "TODO"];

/// Places outside the tree: a reader of the tree cannot follow them.
const ELSEWHERE: [&str; 6] =
    ["/work/main", "/work/shared", "DESIGN.md", "MEASURED.md", "FIELD.md", "STYLE.md"];

/// File and folder names that could contain anything.
const EMPTY_NAMES: [&str; 10] =
    ["common", "core", "helper", "helpers", "kernel", "manager", "misc", "model", "util", "utils"];

/// A benchmark's folder has the name of its command.
const TYPED_NAMES: &str = "benches/src/core/";

/// Data of CLDR, in which XXX is the code of an unknown currency.
const CLDR_DATA: &str = "crates/intl/data/patterns.txt";

/// This file lists the words that it searches for.
const HERE: &str = "xtask/src/tidy/words.rs";

/// Runs all checks of the words of one file and of its path.
pub(super) fn check_file(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = vec![];
    findings.extend(empty_name(file));
    if file.path == HERE || file.path == CLDR_DATA {
        return findings;
    }
    for (line_idx, line) in file.text.lines().enumerate() {
        let unfinished = UNFINISHED.iter().filter(|word| words(line, word).next().is_some());
        let elsewhere = ELSEWHERE.iter().filter(|word| line.contains(**word));
        for word in unfinished.chain(elsewhere) {
            let place = format!("{}:{}", file.path, line_idx + 1);
            findings
                .push(TidyFinding::insist(place, format!("{word} does not belong in the tree")));
        }
    }
    findings
}

fn empty_name(file: &SourceFile) -> Option<TidyFinding> {
    let path = file.path.strip_suffix(".rs")?;
    let path = path.strip_prefix(TYPED_NAMES).unwrap_or(path);
    let name = path.split('/').find(|name| EMPTY_NAMES.contains(name))?;
    Some(TidyFinding::insist(&file.path, format!("\"{name}\" does not say what is in it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_at(path: &str, text: &str, expected: &[&str]) {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let shown: Vec<_> = check_file(&file).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn notes_of_the_moment_are_refused_as_whole_words() {
        check_at("a.md", "SWIPE\n", &[]);
        check_at(
            "a.md",
            "\n// FIXME: later\n",
            &["error  a.md:2: FIXME does not belong in the tree"],
        );
    }

    #[test]
    fn a_name_that_says_nothing_is_refused() {
        check_at("crates/engine/src/recover.rs", "", &[]);
        check_at(
            "crates/engine/src/utils/time.rs",
            "",
            &["error  crates/engine/src/utils/time.rs: \"utils\" does not say what is in it"],
        );
    }
}
