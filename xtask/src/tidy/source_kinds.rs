//! Checks that kinds of sources are named only in their folders and in the registry.

use super::TidyFinding;
use super::rust_text::RustText;
use super::tree::SourceFile;

/// The parent folder of the kinds. A folder is that of a kind if it has a `kind.rs`.
const FOLDER: &str = "crates/tools/src/";

/// The crates that could compare the names of kinds.
const CRATES: [&str; 6] = ["tools", "sources", "credentials", "server", "airlock", "client"];

/// Lines outside the folders of the kinds that name a kind by its literal.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let names: Vec<&str> = files.iter().filter_map(kind_of_file).collect();
    let is_checked = |file: &&SourceFile| {
        let path = &file.path;
        let is_source = |name: &&str| path.starts_with(&format!("crates/{name}/src/"));
        let is_in_kind = |name: &&str| path.starts_with(&format!("{FOLDER}{name}/"));
        path.ends_with(".rs")
            && !path.ends_with("/tests.rs")
            && CRATES.iter().any(is_source)
            && !names.iter().any(is_in_kind)
    };
    files.iter().filter(is_checked).flat_map(|file| lines_with_kinds(file, &names)).collect()
}

/// The name of the kind whose `kind.rs` this file is.
fn kind_of_file(file: &SourceFile) -> Option<&str> {
    let name = file.path.strip_prefix(FOLDER)?.strip_suffix("/kind.rs")?;
    (!name.contains('/')).then_some(name)
}

fn lines_with_kinds(file: &SourceFile, names: &[&str]) -> Vec<TidyFinding> {
    let rust = RustText::new(&file.text);
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = vec![];
    for (line, masked) in rust.production() {
        let text = lines.get(line - 1).copied().unwrap_or_default();
        // Literals are masked by as many bytes of `x`, comments by spaces.
        let is_literal = |at: usize| masked.as_bytes().get(at) == Some(&b'x');
        let is_named = |name: &&&str| {
            let literal = format!("\"{name}\"");
            text.contains("kind") && text.match_indices(&literal).any(|(at, _)| is_literal(at))
        };
        for name in names.iter().filter(is_named) {
            let what = format!("names the source kind {name}; ask its SourceKind instead");
            findings.push(TidyFinding::insist(format!("{}:{line}", file.path), what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_at(path: &str, text: &str, expected: &[&str]) {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let kind = file("crates/tools/src/openapi/kind.rs", "fn name() { \"openapi\" }\n");
        let shown: Vec<_> =
            check_files(&[kind, file(path, text)]).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_name_of_a_kind_is_refused_outside_its_folder() {
        let text = "if card.kind == \"openapi\" {}\nlet word = \"openapi\";\n// kind \"openapi\"\n\
                    #[cfg(test)]\nmod tests { fn kind() { \"openapi\"; } }\n";
        let expected = "error  crates/server/src/a.rs:1: names the source kind openapi; ask its SourceKind instead";
        check_at("crates/server/src/a.rs", text, &[expected]);
        check_at("crates/tools/src/openapi/import.rs", text, &[]);
        check_at("crates/engine/src/a.rs", text, &[]);
    }
}
