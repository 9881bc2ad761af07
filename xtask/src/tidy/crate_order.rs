//! Checks the dependencies between crates. The table of crates in ARCHITECTURE.md is the order: a crate may depend only on
//! crates below it, and every crate is in the table.

use super::TidyFinding;
use super::tree::SourceFile;

const MAP: &str = "ARCHITECTURE.md";

/// How a row of the table begins; the name of the crate follows.
const ROW: &str = "| `crates/";

/// Runs all checks of dependencies between crates.
pub(super) fn check_files(files: &[SourceFile]) -> Vec<TidyFinding> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else { return vec![] };
    let order: Vec<&str> = map.text.lines().filter_map(row_name).collect();
    let mut findings = vec![];
    for file in files {
        let Some(name) = crate_name(&file.path) else { continue };
        let Some(place) = order.iter().position(|known| *known == name) else {
            let what = format!("the table of crates in {MAP} has no row for it");
            findings.push(TidyFinding::insist(&file.path, what));
            continue;
        };
        let above = dependencies(&file.text).filter(|dependency| {
            order.iter().position(|known| known == dependency).is_some_and(|other| other <= place)
        });
        findings.extend(above.map(|dependency| {
            let what = format!("depends on {dependency}, which is not below it in {MAP}");
            TidyFinding::insist(&file.path, what)
        }));
    }
    findings
}

fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix(ROW)?.split_once('`').map(|(name, _)| name)
}

/// The name of the crate, if the path is that of its manifest.
fn crate_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// The dependencies that the crate itself links. Tests may link anything.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let end = line.find(['.', ' ', '='])?;
        Some(&line[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_crate_depends_on_crates_below_it_only() {
        let map = "| Crate | Purpose |\n| `crates/engine` | x |\n| `crates/store` | y |\n";
        let engine = "[package]\n[dependencies]\nstore.workspace = true\nserde = \"1\"\n";
        let store =
            "[dependencies]\nengine = { workspace = true }\n[dev-dependencies]\nshop = \"1\"\n";
        let files = [
            file("ARCHITECTURE.md", map),
            file("crates/engine/Cargo.toml", engine),
            file("crates/shop/Cargo.toml", ""),
            file("crates/store/Cargo.toml", store),
            file("crates/store/fuzz/Cargo.toml", engine),
        ];
        let shown: Vec<_> = check_files(&files).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "error  crates/shop/Cargo.toml: the table of crates in ARCHITECTURE.md has no row for it",
                "error  crates/store/Cargo.toml: depends on engine, which is not below it in ARCHITECTURE.md",
            ]
        );
    }
}
