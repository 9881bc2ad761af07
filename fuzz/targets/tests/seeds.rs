//! Replays the stored seeds without libFuzzer.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use fuzz_targets::TARGETS;
use std::fs;
use std::path::{Path, PathBuf};

fn seeds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds")
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn no_stored_seed_makes_its_decoder_panic() {
    for (name, target) in TARGETS {
        let folder = seeds().join(name);
        let files = fs::read_dir(&folder).unwrap();
        for file in files {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let outcome = std::panic::catch_unwind(|| target(&bytes));
            assert!(outcome.is_ok(), "{}", path.display());
        }
    }
}

#[test]
fn every_target_has_seeds_and_an_entry_for_libfuzzer() {
    let expected: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&seeds()), expected);
    assert_eq!(names(&seeds().join("../fuzz_targets")), expected);
    for name in &expected {
        assert!(!names(&seeds().join(name)).is_empty(), "{name}");
    }
}
