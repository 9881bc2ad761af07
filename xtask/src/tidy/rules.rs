//! The rules for a Rust file.

use super::TidyFinding;
use super::rust_text::{RustText, words};
use super::tree::SourceFile;

/// From this size on, the finding asks for the file's second topic.
const FILE_LINES_ASKED: usize = 500;
/// The largest size of a file.
const FILE_LINES_MAX: usize = 800;
/// The largest size of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// Postponed work. A known wrong behaviour is asserted as the present one, with a note.
const PUT_OFF: [&str; 3] = ["#[ignore", "todo!", "unimplemented!"];

/// Crates of pure functions, and the words that would make them impure.
const PURE: [&str; 2] = ["crates/lifecycle/src/", "crates/protocols/src/"];
const IMPURE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant",
    "async",
];

/// The crates and files where a type may be serialized and parsed.
const BORDERS: [&str; 3] = ["crates/lifecycle/", "crates/protocols/", "crates/tools/src/source"];
const BORDER_FILES: [&str; 4] = ["/wire.rs", "/config.rs", "/rows.rs", "/row.rs"];

/// Runs all rules on one file.
pub(super) fn check_file(file: &SourceFile) -> Vec<TidyFinding> {
    let rust = RustText::new(&file.text);
    let mut findings = vec![];
    findings.extend(length(file, &rust));
    findings.extend(functions(file, &rust));
    findings.extend(put_off(file, &rust));
    findings.extend(impure(file, &rust));
    findings.extend(serde(file, &rust));
    findings.extend(senders(file, &rust));
    findings.extend(wildcards(file, &rust));
    findings
}

fn length(file: &SourceFile, rust: &RustText) -> Option<TidyFinding> {
    let n_lines = rust.n_production_lines();
    if is_test(&file.path) || n_lines <= FILE_LINES_ASKED {
        return None;
    }
    Some(if n_lines <= FILE_LINES_MAX {
        TidyFinding::inform(&file.path, format!("{n_lines} lines; what is its second topic?"))
    } else {
        let what =
            format!("{n_lines} lines, {FILE_LINES_MAX} at most; give its second topic a file");
        TidyFinding::insist(&file.path, what)
    })
}

fn functions(file: &SourceFile, rust: &RustText) -> Vec<TidyFinding> {
    let long = rust.functions().into_iter().filter(|f| f.n_lines > FUNCTION_LINES_MAX);
    long.map(|function| {
        let what = format!(
            "{} has {} lines, {FUNCTION_LINES_MAX} at most",
            function.name, function.n_lines
        );
        TidyFinding::insist(place(file, function.line), what)
    })
    .collect()
}

fn put_off(file: &SourceFile, rust: &RustText) -> Vec<TidyFinding> {
    let mut findings = vec![];
    for (line, text) in rust.lines() {
        for word in PUT_OFF.iter().filter(|word| text.contains(**word)) {
            findings
                .push(TidyFinding::insist(place(file, line), format!("{word} is work put off")));
        }
    }
    findings
}

fn impure(file: &SourceFile, rust: &RustText) -> Vec<TidyFinding> {
    if !PURE.iter().any(|folder| file.path.starts_with(folder)) {
        return vec![];
    }
    let mut findings = vec![];
    for (line, text) in rust.production() {
        for word in IMPURE.iter().filter(|word| words(text, word).next().is_some()) {
            let what = format!("{word}: this crate has no I/O, no clock and no async");
            findings.push(TidyFinding::insist(place(file, line), what));
        }
    }
    findings
}

fn serde(file: &SourceFile, rust: &RustText) -> Option<TidyFinding> {
    let is_border = BORDERS.iter().any(|folder| file.path.starts_with(folder))
        || BORDER_FILES.iter().any(|name| file.path.ends_with(name));
    if is_border || is_test(&file.path) {
        return None;
    }
    let is_serde = |list: &str| {
        ["Serialize", "Deserialize"].iter().any(|word| words(list, word).next().is_some())
    };
    let lines: Vec<_> = rust
        .derives()
        .into_iter()
        .filter(|(_, list)| is_serde(list))
        .map(|(line, _)| line)
        .collect();
    let first = lines.first()?;
    let what = format!("{} serde derives inside the house; is this a border?", lines.len());
    Some(TidyFinding::inform(place(file, *first), what))
}

fn senders(file: &SourceFile, rust: &RustText) -> Vec<TidyFinding> {
    let is_shown = |text: &str| {
        let public = text.find("pub ");
        public.is_some_and(|at| text[at..].contains("Sender<"))
    };
    rust.production()
        .filter(|(_, text)| is_shown(text))
        .map(|(line, _)| {
            TidyFinding::inform(
                place(file, line),
                "a channel in public; would a handle read better?",
            )
        })
        .collect()
}

fn wildcards(file: &SourceFile, rust: &RustText) -> Vec<TidyFinding> {
    if !file.path.ends_with("outbound.rs") {
        return vec![];
    }
    let is_wild = |text: &str| {
        words(text, "_").any(|at| {
            let rest = text[at + 1..].trim_start();
            rest.starts_with("=>") || rest.starts_with("if ")
        })
    };
    rust.production()
        .filter(|(_, text)| is_wild(text))
        .map(|(line, _)| {
            TidyFinding::insist(
                place(file, line),
                "`_ =>` would leave a new event untold; name them",
            )
        })
        .collect()
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn place(file: &SourceFile, line: usize) -> String {
    format!("{}:{line}", file.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_at(path: &str, text: &str, expected: &[&str]) {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let shown: Vec<_> = check_file(&file).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_file_is_asked_and_a_longer_one_refused() {
        check_at("a.rs", &"\n".repeat(500), &[]);
        check_at("a.rs", &"\n".repeat(501), &["look   a.rs: 501 lines; what is its second topic?"]);
        check_at(
            "a.rs",
            &"\n".repeat(801),
            &["error  a.rs: 801 lines, 800 at most; give its second topic a file"],
        );
        check_at("crates/store/tests/main.rs", &"\n".repeat(801), &[]);
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_more_does_not() {
        let function =
            |n_lines: usize| format!("fn long() {{\n{}}}\n", "    step();\n".repeat(n_lines));
        check_at("a.rs", &function(70), &[]);
        check_at("a.rs", &function(71), &["error  a.rs:1: long has 71 lines, 70 at most"]);
    }

    #[test]
    fn work_put_off_is_seen_in_code_only() {
        let text = "#[ignore]\nfn a() { todo!() }\n// todo!()\nlet b = \"unimplemented!\";\n";
        check_at(
            "a.rs",
            text,
            &["error  a.rs:1: #[ignore is work put off", "error  a.rs:2: todo! is work put off"],
        );
    }

    #[test]
    fn a_pure_crate_does_nothing_but_think() {
        let text =
            "use std::fs::File;\nlet instantly = 1;\n#[cfg(test)]\nmod tests { async fn a() {} }\n";
        let expected = "error  crates/lifecycle/src/a.rs:1: std::fs: this crate has no I/O, no clock and no async";
        check_at("crates/lifecycle/src/a.rs", text, &[expected]);
        check_at("crates/engine/src/a.rs", text, &[]);
    }

    #[test]
    fn serde_is_asked_about_inside_the_house_only() {
        let text = "#[derive(Debug, Serialize)]\nstruct A;\n#[derive(Debug)]\nstruct B;\n";
        let expected =
            "look   crates/engine/src/a.rs:1: 1 serde derives inside the house; is this a border?";
        check_at("crates/engine/src/a.rs", text, &[expected]);
        check_at("crates/engine/src/config.rs", text, &[]);
        check_at("crates/store/src/rows.rs", text, &[]);
        check_at("crates/protocols/src/execbox/inbound.rs", text, &[]);
    }

    #[test]
    fn a_public_channel_is_asked_about() {
        let text = "pub fn requests(&self) -> mpsc::Sender<Request> {}\nfn own(s: Sender<u8>) {}\n";
        check_at(
            "a.rs",
            text,
            &["look   a.rs:1: a channel in public; would a handle read better?"],
        );
    }

    #[test]
    fn a_wildcard_arm_is_refused_where_events_are_told() {
        let text =
            "match e {\n    Some(_) => 1,\n    (_, _) => 2,\n    \"_\" => 3,\n    _ => 4,\n}\n";
        let expected = "error  b/outbound.rs:5: `_ =>` would leave a new event untold; name them";
        check_at("b/outbound.rs", text, &[expected]);
        check_at("b/inbound.rs", text, &[]);
    }
}
