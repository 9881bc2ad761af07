//! Checks that the integration tests of a crate are modules of one binary, which is linked once, and that it includes every
//! file.

use super::TidyFinding;
use super::tree::SourceFile;
use std::collections::BTreeMap;

/// The root of a crate's integration tests, if they have several files.
const ROOT: &str = "main.rs";

/// Separate binaries, for tests that count the resources of their process.
const ALONE: &[&str] = &[
    "crates/airlock/tests/leaks.rs",
    "crates/processes/tests/leaks.rs",
    "crates/sandbox/tests/leaks.rs",
];

/// Runs all checks of the tests of all crates.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files {
        let Some((folder, name)) = file.path.split_once("/tests/") else { continue };
        // Unit tests may be in folders of that name, too.
        if folder.ends_with("/src") || folder.contains("/src/") {
            continue;
        }
        if !name.contains('/') && name.ends_with(".rs") && !ALONE.contains(&file.path.as_str()) {
            crates.entry(folder).or_default().push(file);
        }
    }
    crates
        .into_values()
        .filter(|tests| tests.len() > 1)
        .flat_map(|tests| left_out(&tests))
        .collect()
}

/// Files beside the root that it does not declare.
fn left_out(tests: &[&SourceFile]) -> Vec<TidyFinding> {
    let root = tests.iter().find(|file| file.path.ends_with(&format!("/{ROOT}")));
    let is_named = |file: &SourceFile| {
        let name = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        let line = format!("mod {};", name.unwrap_or_default());
        root.is_some_and(|root| root.text.lines().any(|other| other == line))
    };
    tests
        .iter()
        .filter(|file| Some(**file) != root.copied() && !is_named(file))
        .map(|file| TidyFinding::insist(&file.path, format!("is no module of tests/{ROOT}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tests(texts: &[(&str, &str)], expected: &[&str]) {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        let files: Vec<_> = texts.iter().map(file).collect();
        let shown: Vec<_> = check_files(&files).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_file_that_no_binary_has_is_refused() {
        let one = ("crates/a/tests/one.rs", "");
        check_tests(&[one, ("crates/a/tests/fixture/mod.rs", "")], &[]);
        check_tests(
            &[one, ("crates/a/tests/two.rs", ""), ("crates/a/tests/main.rs", "mod two;\n")],
            &["error  crates/a/tests/one.rs: is no module of tests/main.rs"],
        );
        check_tests(
            &[one, ("crates/a/tests/two.rs", "")],
            &[
                "error  crates/a/tests/one.rs: is no module of tests/main.rs",
                "error  crates/a/tests/two.rs: is no module of tests/main.rs",
            ],
        );
        check_tests(
            &[("crates/airlock/tests/leaks.rs", ""), ("crates/airlock/tests/main.rs", "")],
            &[],
        );
    }
}
