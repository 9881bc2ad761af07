//! Mutants that may survive, each with its reason: `xtask/mutants/accepted.txt`.

use crate::cargo::root;
use anyhow::{Context, Result, bail};
use std::fs;

/// A mutant that no test can detect, or none should.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AcceptedMutant {
    /// Its name in cargo-mutants, without line and column.
    pub(super) mutant: String,
    /// The line of code that it changes.
    pub(super) code: String,
    pub(super) reason: String,
}

/// Reads the file's entries.
pub(super) fn read() -> Result<Vec<AcceptedMutant>> {
    let path = root().join("xtask/mutants/accepted.txt");
    parsed(&fs::read_to_string(path).context("read the accepted mutants")?)
}

/// Paragraphs of a mutant, its line of code, and a reason of one or more lines. Lines that begin with `#` are comments.
fn parsed(text: &str) -> Result<Vec<AcceptedMutant>> {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(entry).collect()
}

fn entry(lines: &[&str]) -> Result<AcceptedMutant> {
    let [mutant, code, reason @ ..] = lines else {
        bail!("{lines:?} has no line of code");
    };
    let reason = reason.join(" ");
    if !reason.ends_with('.') {
        bail!("the reason for {mutant} is no sentence");
    }
    Ok(AcceptedMutant { mutant: (*mutant).to_owned(), code: (*code).to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_paragraphs_of_mutant_code_and_reason() {
        let text = "# About.\n\na.rs: x\n  a + b\n  It is\n  the same.\n\nb.rs: y\n  c\n  So.\n";
        let entry = |mutant: &str, code: &str, reason: &str| AcceptedMutant {
            mutant: mutant.into(),
            code: code.into(),
            reason: reason.into(),
        };
        let expected = [entry("a.rs: x", "a + b", "It is the same."), entry("b.rs: y", "c", "So.")];
        assert_eq!(parsed(text).unwrap(), expected);
        for wrong in ["a.rs: x", "a.rs: x\na + b", "a.rs: x\na + b\nno sentence"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_accepted_mutant_is_of_a_line_that_is_there_and_listed_once() {
        let mut entries = read().unwrap();
        for AcceptedMutant { mutant, code, .. } in &entries {
            let (file, what) = mutant.split_once(": ").unwrap();
            assert!(!what.is_empty() && !what.starts_with(char::is_numeric), "{mutant}");
            let source = fs::read_to_string(root().join(file)).unwrap();
            assert!(source.lines().any(|line| line.trim() == code), "{mutant}: {code}");
        }
        let n_entries = entries.len();
        entries.sort_unstable();
        entries.dedup_by(|a, b| (&a.mutant, &a.code) == (&b.mutant, &b.code));
        assert_eq!(entries.len(), n_entries, "an entry is there twice");
    }
}
