//! Checks the documents against the tree: what they name must exist.

use super::TidyFinding;
use super::tree::SourceFile;

/// The map of the repository.
const MAP: &str = "ARCHITECTURE.md";
/// A longer map would not be read to the end.
const MAP_LINES_MAX: usize = 250;

/// Runs all checks of one document. `exists` resolves paths from the root.
pub(super) fn check_file(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    if !file.path.ends_with(".md") {
        return vec![];
    }
    let mut findings = broken_links(file, exists);
    if file.path == MAP {
        let n_lines = file.text.lines().count();
        if n_lines > MAP_LINES_MAX {
            let what = format!("{n_lines} lines, {MAP_LINES_MAX} at most");
            findings.push(TidyFinding::insist(&file.path, what));
        }
        findings.extend(missing_paths(file, exists));
    }
    findings
}

fn missing_paths(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    let mut findings = vec![];
    for (line_idx, line) in file.text.lines().enumerate() {
        // Every second segment between backticks is quoted.
        for path in line.split('`').skip(1).step_by(2).filter(|text| is_path(text)) {
            if !exists(path) {
                let place = format!("{}:{}", file.path, line_idx + 1);
                findings.push(TidyFinding::insist(place, format!("there is no {path}")));
            }
        }
    }
    findings
}

/// Whether a quoted text is a path in the tree, and not a route such as `/mcp` or a phrase.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_file = [".md", ".toml", ".lock"].iter().any(|ending| text.ends_with(ending));
    text.chars().all(plain) && !text.starts_with('/') && (text.contains('/') || is_file)
}

fn broken_links(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<TidyFinding> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = vec![];
    for (line_idx, line) in file.text.lines().enumerate() {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (target, _) in targets {
            let path = target.split('#').next().unwrap_or_default();
            let is_foreign = path.is_empty() || path.contains(':') || path.contains(' ');
            if !is_foreign && !exists(&joined(folder, path)) {
                let place = format!("{}:{}", file.path, line_idx + 1);
                findings.push(TidyFinding::insist(place, format!("the link to {path} is broken")));
            }
        }
    }
    findings
}

/// Joins `path` to `folder`, and resolves dots.
fn joined(folder: &str, path: &str) -> String {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_at(path: &str, text: &str, expected: &[&str]) {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let exists =
            |path: &str| ["crates/store/", "README.md", "docs/glossary.md"].contains(&path);
        let shown: Vec<_> = check_file(&file, &exists).iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_place_on_the_map_must_exist() {
        let text = "`crates/store/` and `crates/shop/`, `/mcp`, `a -> b/c`, `decide`, `NEWS.md`";
        check_at(
            "ARCHITECTURE.md",
            text,
            &[
                "error  ARCHITECTURE.md:1: there is no crates/shop/",
                "error  ARCHITECTURE.md:1: there is no NEWS.md",
            ],
        );
        check_at("README.md", text, &[]);
    }

    #[test]
    fn the_map_stays_short() {
        check_at("ARCHITECTURE.md", &"\n".repeat(250), &[]);
        check_at(
            "ARCHITECTURE.md",
            &"\n".repeat(251),
            &["error  ARCHITECTURE.md: 251 lines, 250 at most"],
        );
    }

    #[test]
    fn links_are_followed_from_where_they_stand() {
        let text = "[a](../README.md) [b](glossary.md#word) [c](https://example.org/x) [d](#here)";
        check_at("docs/index.md", text, &[]);
        check_at(
            "docs/index.md",
            "\n[e](decisions/0099.md)",
            &["error  docs/index.md:2: the link to decisions/0099.md is broken"],
        );
    }
}
