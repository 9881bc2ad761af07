//! Automates checks of a review. Most findings only inform; errors fail the run.

mod crate_order;
mod dependencies;
mod doors;
mod map;
mod names;
mod prose;
pub(crate) mod public_api;
mod rules;
mod rust_text;
mod sample;
mod source_kinds;
mod test_binaries;
mod tree;
mod unsafe_places;
mod walks;
mod words;

use self::names::NameIndex;
use self::prose::ProseIndex;
use crate::cargo::root;
use crate::print::print_line;
use anyhow::{Result, bail};
use std::fmt;

/// A finding for a reviewer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TidyFinding {
    weight: FindingWeight,
    /// A path, with a line where there is one.
    place: String,
    what: String,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FindingWeight {
    /// For information.
    Inform,
    /// An error.
    Insist,
}

impl TidyFinding {
    fn inform(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { weight: FindingWeight::Inform, place: place.to_string(), what: what.into() }
    }

    fn insist(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { weight: FindingWeight::Insist, place: place.to_string(), what: what.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.weight {
            FindingWeight::Inform => "look ",
            FindingWeight::Insist => "error",
        };
        write!(f, "{word}  {}: {}", self.place, self.what)
    }
}

/// What `tidy` prints besides its findings.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TidyOptions {
    /// Also prints fifty names and fifty comments, drawn with a fixed seed, for a person to judge.
    #[arg(long)]
    sample: bool,
    /// Also prints the places of the idioms that the figures count.
    #[arg(long)]
    idioms: bool,
}

/// Checks the whole tree and prints the findings; fails if one of them is an error.
pub(crate) fn run(options: TidyOptions) -> Result<()> {
    let root = root();
    let files = tree::read(&root)?;
    let mut findings = vec![];
    for file in &files {
        if file.path.ends_with(".rs") {
            findings.append(&mut rules::check_file(file));
        }
        findings.append(&mut words::check_file(file));
        findings.append(&mut map::check_file(file, &|path| root.join(path).exists()));
    }
    findings.append(&mut source_kinds::check_files(&files));
    findings.append(&mut test_binaries::check_files(&files));
    findings.append(&mut public_api::check_listings(&files));
    findings.append(&mut crate_order::check_files(&files));
    findings.append(&mut unsafe_places::check_files(&files));
    findings.append(&mut walks::check_files(&files));
    findings.append(&mut doors::check_files(&files));
    findings.append(&mut dependencies::check_files(&files)?);
    let names = NameIndex::new(&files);
    findings.append(&mut names.check_names());
    let prose = ProseIndex::new(&files);
    print_samples(options, &names, &prose);
    // Errors come last, next to the prompt.
    findings.sort_by_key(|finding| finding.weight);
    for finding in &findings {
        print_line(&finding.to_string());
    }
    print_line(&names.summary());
    prose.summary().iter().for_each(|line| print_line(line));
    let n_insisted =
        findings.iter().filter(|finding| finding.weight == FindingWeight::Insist).count();
    let n_informed = findings.len() - n_insisted;
    print_line(&format!(
        "tidy: {} files, {n_informed} to look at, {n_insisted} errors",
        files.len()
    ));
    if n_insisted > 0 {
        bail!("tidy found {n_insisted} errors");
    }
    Ok(())
}

fn print_samples(options: TidyOptions, names: &NameIndex, prose: &ProseIndex) {
    if options.sample {
        names.sample().iter().chain(&prose.sample()).for_each(|item| print_line(item));
    }
    if options.idioms {
        prose.places().for_each(|place| print_line(place));
    }
}
