//! Checks the walks in ARCHITECTURE.md: the files that a reader opens, in order, to follow one thing from end to end. A
//! walk that grows too long means that one thing has been spread over too many files.

use super::TidyFinding;
use super::tree::SourceFile;
use std::collections::BTreeSet;

const MAP: &str = "ARCHITECTURE.md";

/// The heading of each walk, and how many files it may have.
const WALKS: [(&str, usize); 3] = [
    ("### A program with approval", 35),
    ("### A process with a PTY", 30),
    ("### execbox over stdio", 20),
];

/// A walk with fewer steps omits what it should show.
const FILES_MIN: usize = 8;

/// Runs all checks of the walks.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else { return vec![] };
    WALKS.iter().filter_map(|(heading, files_max)| walk(&map.text, heading, *files_max)).collect()
}

fn walk(map: &str, heading: &str, files_max: usize) -> Option<TidyFinding> {
    let mut lines = map.lines().skip_while(|line| *line != heading);
    if lines.next().is_none() {
        return Some(TidyFinding::insist(MAP, format!("there is no walk \"{heading}\"")));
    }
    let section = lines.take_while(|line| !line.starts_with('#'));
    // Every second segment between backticks is quoted.
    let quoted = section.flat_map(|line| line.split('`').skip(1).step_by(2));
    let n_files = quoted.filter(|text| text.ends_with(".rs")).collect::<BTreeSet<_>>().len();
    let what = match n_files {
        n_files if n_files > files_max => format!("{n_files} files, {files_max} at most"),
        n_files if n_files < FILES_MIN => format!("{n_files} files; it leaves steps out"),
        _ => return None,
    };
    Some(TidyFinding::insist(MAP, format!("\"{heading}\" has {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_walk_are_counted_once_each() {
        let step =
            |n: usize| format!("1. `crates/a/src/{n}.rs` and `crates/a/src/{n}.rs`, `word`\n");
        let map = |n_files| {
            let steps: String = (0..n_files).map(step).collect();
            format!("## Walks\n\n### A\n\n{steps}\n### B\n\n`b.rs`\n")
        };
        assert_eq!(walk(&map(20), "### A", 20), None);
        let found = |text: &str, heading| walk(text, heading, 20).unwrap().to_string();
        let long = "error  ARCHITECTURE.md: \"### A\" has 21 files, 20 at most";
        assert_eq!(found(&map(21), "### A"), long);
        let short = "error  ARCHITECTURE.md: \"### B\" has 1 files; it leaves steps out";
        assert_eq!(found(&map(20), "### B"), short);
        assert_eq!(found("", "### C"), "error  ARCHITECTURE.md: there is no walk \"### C\"");
    }
}
