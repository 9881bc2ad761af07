//! What a reviewer would ask, asked by a program. It informs; on a few points it insists.

mod dependencies;
mod map;
mod rules;
mod rust_text;
mod tree;
mod words;

use crate::cargo::root;
use crate::print::say;
use anyhow::{Result, bail};
use std::fmt;

/// Something worth a reviewer's question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    weight: Weight,
    /// A path, with a line where there is one.
    place: String,
    what: String,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Worth a look.
    Inform,
    /// Does not land.
    Insist,
}

impl Finding {
    fn inform(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { weight: Weight::Inform, place: place.to_string(), what: what.into() }
    }

    fn insist(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { weight: Weight::Insist, place: place.to_string(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.weight {
            Weight::Inform => "look ",
            Weight::Insist => "error",
        };
        write!(f, "{word}  {}: {}", self.place, self.what)
    }
}

/// Looks at the whole tree and prints what it finds; fails where it insists.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let files = tree::read(&root)?;
    let mut findings = vec![];
    for file in &files {
        if file.path.ends_with(".rs") {
            findings.append(&mut rules::check(file));
        }
        findings.append(&mut words::check(file));
        findings.append(&mut map::check(file, &|path| root.join(path).exists()));
    }
    findings.append(&mut dependencies::check(&files)?);
    // What does not land comes last, next to the prompt.
    findings.sort_by_key(|finding| finding.weight);
    for finding in &findings {
        say(&finding.to_string());
    }
    let n_insisted = findings.iter().filter(|finding| finding.weight == Weight::Insist).count();
    let n_informed = findings.len() - n_insisted;
    say(&format!("tidy: {} files, {n_informed} to look at, {n_insisted} errors", files.len()));
    if n_insisted > 0 {
        bail!("tidy found {n_insisted} errors");
    }
    Ok(())
}
