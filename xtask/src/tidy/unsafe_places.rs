//! Checks where `unsafe` code may be. A file that needs it and is not in the list does not land without a reviewer.

use super::TidyFinding;
use super::rust_text::{RustText, words};
use super::tree::SourceFile;

/// Folders (they end with a slash) and files with `unsafe` code, each with its purpose.
const UNSAFE_PLACES: [(&str, &str); 12] = [
    ("benches/src/apart.rs", "pins floors to processors"),
    ("benches/src/exec_server/floor.rs", "opens a PTY"),
    ("benches/src/floor_process.rs", "forks"),
    ("crates/processes/src/fork_server/", "fork, clone, namespaces, mounts and limits"),
    ("crates/processes/src/streams.rs", "sets the size of a terminal"),
    ("crates/processes/src/subreaper_link.rs", "passes descriptors"),
    ("crates/runner/src/heap.rs", "the allocator of the JavaScript engine"),
    ("crates/runner/src/heap/", "the allocator of the JavaScript engine"),
    ("crates/runner/src/kinds.rs", "asks the engine what a value is"),
    ("crates/runner/src/prelude/bytecode.rs", "reads bytecode that this process wrote"),
    ("crates/runner/src/unseen.rs", "marks an object of the engine"),
    ("crates/runner/src/guest_world.rs", "restores the heap of a session that has ended"),
];

/// The jail itself: all of it is reviewed with every change.
const JAIL: &str = "crates/sandbox/src/";

/// Runs all checks of `unsafe` code.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let sources = files.iter().filter(|file| file.path.ends_with(".rs") && !is_test(&file.path));
    let uses: Vec<_> = sources.filter_map(|file| Some((&*file.path, first_use(file)?))).collect();
    let is_in = |path: &str, place: &str| match place.ends_with('/') {
        true => path.starts_with(place),
        false => path == place,
    };
    let mut findings = vec![];
    for (path, line) in &uses {
        let is_listed = UNSAFE_PLACES.iter().any(|(place, _)| is_in(path, place));
        if !is_listed && !path.starts_with(JAIL) {
            let what =
                "unsafe code, and the list in xtask/src/tidy/unsafe_places.rs has no such place";
            findings.push(TidyFinding::insist(format!("{path}:{line}"), what));
        }
    }
    for (place, _) in UNSAFE_PLACES {
        if !uses.iter().any(|(path, _)| is_in(path, place)) {
            let what = "no unsafe code any more; take it off the list of tidy";
            findings.push(TidyFinding::insist(place, what));
        }
    }
    findings
}

/// The line of the first block, function or implementation that is unsafe.
fn first_use(file: &SourceFile) -> Option<usize> {
    let rust = RustText::new(&file.text);
    let line = rust.production().find(|(_, text)| {
        words(text, "unsafe").any(|at| {
            let rest = text[at + "unsafe".len()..].trim_start();
            ["{", "fn ", "impl", "extern", "("].iter().any(|start| rest.starts_with(start))
                || rest.is_empty()
        })
    })?;
    Some(line.0)
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let findings = check_files(&[file]);
        let about = findings.iter().map(ToString::to_string);
        about.filter(|shown| !shown.contains("any more")).collect()
    }

    #[test]
    fn unsafe_code_is_where_the_list_says() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(shown("crates/runner/src/kinds.rs", text), [""; 0]);
        assert_eq!(shown("crates/sandbox/src/zygote/mod.rs", text), [""; 0]);
        assert_eq!(shown("crates/engine/tests/a.rs", text), [""; 0]);
        assert_eq!(
            shown("crates/engine/src/a.rs", "// unsafe {\nlet unsafe_code = \"unsafe {\";\n"),
            [""; 0]
        );
        let found = shown("crates/engine/src/a.rs", text);
        assert_eq!(
            found,
            [
                "error  crates/engine/src/a.rs:2: unsafe code, and the list in xtask/src/tidy/unsafe_places.rs has no such place"
            ]
        );
    }

    #[test]
    fn a_place_without_unsafe_code_leaves_the_list() {
        let what = "no unsafe code any more; take it off the list of tidy";
        let found: Vec<_> = check_files(&[]).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), UNSAFE_PLACES.len());
        assert_eq!(found[0], format!("error  benches/src/apart.rs: {what}"));
    }
}
