//! Checks the folders of doors: each has the same file names, and the server names none of them.

use super::TidyFinding;
use super::rust_text::{RustText, words};
use super::tree::SourceFile;
use std::collections::BTreeSet;

/// The folder of the doors.
const DOORS: &str = "crates/server/src/doors/";

/// The state that every request can reach. A door with a field here could not be added or removed as a folder.
const APP: &str = "crates/server/src/app.rs";

/// The files that every door has.
const IN_EVERY_DOOR: [&str; 2] = ["mod.rs", "routes.rs"];

/// The name of the file that follows an execution's journal.
const FOLLOW: &str = "follow.rs";

/// Runs all checks of the doors.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let in_doors =
        |file: &SourceFile| Some(file.path.strip_prefix(DOORS)?.split_once('/')?.0.to_owned());
    let doors: BTreeSet<String> = files.iter().filter_map(in_doors).collect();
    let mut findings = vec![];
    for door in &doors {
        for name in IN_EVERY_DOOR {
            let path = format!("{DOORS}{door}/{name}");
            if !files.iter().any(|file| file.path == path) {
                findings.push(TidyFinding::insist(path, "every door has a file of this name"));
            }
        }
    }
    for file in files {
        if file.path == APP {
            findings.extend(named_doors(file, &doors));
        }
        if in_doors(file).is_some() && file.path.ends_with(".rs") {
            findings.extend(follows_elsewhere(file));
        }
    }
    findings
}

fn named_doors(file: &SourceFile, doors: &BTreeSet<String>) -> Vec<TidyFinding> {
    let rust = RustText::new(&file.text);
    let mut findings = vec![];
    for (line, text) in rust.production() {
        for door in doors.iter().filter(|door| words(text, door).next().is_some()) {
            let what = format!("names the door {door}; its state belongs into its routes");
            findings.push(TidyFinding::insist(format!("{}:{line}", file.path), what));
        }
    }
    findings
}

fn follows_elsewhere(file: &SourceFile) -> Vec<TidyFinding> {
    if file.path.ends_with(FOLLOW) {
        return vec![];
    }
    let rust = RustText::new(&file.text);
    let followed = rust.production().filter(|(_, text)| text.contains("engine.follow("));
    followed
        .map(|(line, _)| {
            let what = format!("follows an execution; in a door that is in {FOLLOW}");
            TidyFinding::inform(format!("{}:{line}", file.path), what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[track_caller]
    fn check_text(files: &[SourceFile], expected: &[&str]) {
        let shown: Vec<_> = check_files(files).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_door_without_routes_is_refused() {
        let doors = "crates/server/src/doors/";
        let files = [
            file(&format!("{doors}mod.rs"), ""),
            file(&format!("{doors}mcp/mod.rs"), ""),
            file(&format!("{doors}mcp/routes.rs"), ""),
            file(&format!("{doors}tally/mod.rs"), ""),
        ];
        let missing =
            "error  crates/server/src/doors/tally/routes.rs: every door has a file of this name";
        check_text(&files, &[missing]);
    }

    #[test]
    fn an_app_that_names_a_door_is_refused() {
        let text = "//! mcp\nstruct AppState {\n    doors: Doors,\n    mcp: Mcp,\n}\n";
        let files = [
            file(APP, text),
            file("crates/server/src/doors/mcp/mod.rs", ""),
            file("crates/server/src/doors/mcp/routes.rs", ""),
        ];
        let named = "error  crates/server/src/app.rs:4: names the door mcp; its state belongs into its routes";
        check_text(&files, &[named]);
    }

    #[test]
    fn a_journal_is_followed_in_the_file_of_that_name() {
        let text = "let mut entries = app.engine.follow(execution, Seq(0));\n";
        let files = [
            file("crates/server/src/doors/mcp/call.rs", text),
            file("crates/server/src/doors/mcp/follow.rs", text),
            file("crates/server/src/doors/mcp/mod.rs", ""),
            file("crates/server/src/doors/mcp/routes.rs", ""),
        ];
        let asked = "look   crates/server/src/doors/mcp/call.rs:1: follows an execution; in a door that is in follow.rs";
        check_text(&files, &[asked]);
    }
}
