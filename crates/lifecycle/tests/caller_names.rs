//! Every caller that is not a token is in the list of built-in callers: no other code writes a caller's name.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            // Tests may invent callers.
            if !path.ends_with("tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_names_of_built_in_callers_are_written_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = vec![];
    for member in std::fs::read_dir(crates).unwrap().flatten() {
        sources(&member.path().join("src"), &mut found);
    }
    assert!(found.len() > 100, "{}", found.len());
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        assert!(!code.contains("CallerName(\""), "{} names a caller itself", path.display());
    }
}
