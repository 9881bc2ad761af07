//! Completion of tool names and their arguments, which the guest's global scope does not contain.

use serde_json::Value;
use tools::{CatalogueSnapshot, FoundTool};

/// Maximum number of names in one answer.
const NAMES_MAX: usize = 500;

/// How many bytes before the cursor are examined.
const LOOKED_AT_BYTES_MAX: usize = 4 << 10;

/// Returns the text before the cursor, which counts UTF-16 units. If the cursor is invalid, returns the whole text.
pub(super) fn before(code: &str, cursor: Option<f64>) -> &str {
    let Some(cursor) = cursor.filter(|cursor| *cursor >= 0.0) else { return code };
    let (mut units, wanted) = (0.0, cursor.floor());
    for (at, char) in code.char_indices() {
        if units >= wanted {
            return &code[..at];
        }
        units += char.len_utf16() as f64;
    }
    code
}

/// Returns the completions if the text ends in a tool path or in an argument of a tool.
pub(super) fn tools(
    code: &str,
    snapshot: &CatalogueSnapshot,
    shows: impl Fn(&FoundTool) -> bool,
) -> Option<CompletionCandidates> {
    let start = code.ceil_char_boundary(code.len().saturating_sub(LOOKED_AT_BYTES_MAX));
    let text = &code[start..];
    let path = trailing_path(text);
    if let Some(rest) = path.strip_prefix("tools.") {
        return Some(names_below(rest, snapshot, shows));
    }
    if path.contains('.') {
        return None;
    }
    let tool = called_tool(&text[..text.len() - path.len()])?;
    let input = snapshot.tools().find(|found| found.path() == tool && shows(found))?;
    let schema = input.spec().input.as_ref()?.whole();
    let Some(Value::Object(members)) = schema.get("properties") else {
        return Some(CompletionCandidates::default());
    };
    Some(CompletionCandidates::from_names(
        members.keys().filter(|name| name.starts_with(path)).cloned().collect(),
    ))
}

fn names_below(
    typed: &str,
    snapshot: &CatalogueSnapshot,
    shows: impl Fn(&FoundTool) -> bool,
) -> CompletionCandidates {
    let at = typed.rfind('.').map_or(0, |dot| dot + 1);
    let names = snapshot.tools().filter(|found| shows(found)).map(|found| found.path());
    let next = |path: String| {
        path.strip_prefix(typed)?;
        path[at..].split('.').next().map(str::to_owned)
    };
    CompletionCandidates::from_names(names.filter_map(next).collect())
}

/// Matching names, as many as fit into one answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CompletionCandidates {
    pub(super) names: Vec<String>,
    /// Whether more names match.
    pub(super) more: bool,
}

impl CompletionCandidates {
    /// Sorts and deduplicates the names.
    pub(super) fn from_names(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        let more = names.len() > NAMES_MAX;
        names.truncate(NAMES_MAX);
        Self { names, more }
    }
}

fn trailing_path(text: &str) -> &str {
    let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let begins = text.char_indices().rev().take_while(|(_, c)| belongs(*c)).last();
    begins.map_or("", |(at, _)| &text[at..])
}

/// Returns the tool in whose outermost argument object the text ends, if a member name is expected there.
fn called_tool(text: &str) -> Option<String> {
    let last = text.trim_end().chars().next_back()?;
    if !matches!(last, '{' | ',') {
        return None;
    }
    let mut depth = 0_i32;
    for (at, char) in text.char_indices().rev() {
        match char {
            '}' | ')' | ']' => depth += 1,
            '{' | '(' | '[' if depth > 0 => depth -= 1,
            '{' => {
                let before = text[..at].trim_end().strip_suffix('(')?;
                return trailing_path(before.trim_end()).strip_prefix("tools.").map(str::to_owned);
            }
            '(' | '[' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tools::Catalogue;
    use ::tools::demo::DemoTools;
    use std::sync::Arc;

    #[test]
    fn tools_and_their_arguments_are_named() {
        let catalogue = Catalogue::new(vec![Arc::new(DemoTools::new("/nowhere"))]).unwrap();
        let snapshot = catalogue.snapshot();
        let found = |code| tools(code, &snapshot, |_| true).map(|found| found.names.join(" "));
        assert_eq!(found("await tools.").as_deref(), Some("demo"));
        assert_eq!(found("tools.demo.a").as_deref(), Some("add append ask"));
        assert_eq!(found("tools.demo.add({ ").as_deref(), Some("a b"));
        assert_eq!(found("tools.demo.add({ a: [1, {x: 2}], ").as_deref(), Some("a b"));
        assert_eq!(found("tools.demo.sleep({m").as_deref(), Some("ms"));
        assert_eq!(found("tools.demo.add({ a: "), None);
        assert_eq!(found("JSON."), None);
        assert_eq!(
            tools("tools.demo.", &snapshot, |found| found.path() == "demo.add"),
            Some(CompletionCandidates { names: vec!["add".into()], more: false })
        );
    }

    #[test]
    fn an_answer_with_as_many_names_as_fit_says_that_there_are_more() {
        let names =
            |n: usize| CompletionCandidates::from_names((0..n).map(|n| format!("n{n}")).collect());
        let counted = |n| (names(n).names.len(), names(n).more);
        assert_eq!(counted(NAMES_MAX), (NAMES_MAX, false));
        assert_eq!(counted(NAMES_MAX + 1), (NAMES_MAX, true));
    }

    #[test]
    fn a_cursor_counts_units_of_utf_16() {
        assert_eq!(before("a\u{1F600}b.c", Some(3.0)), "a\u{1F600}");
        assert_eq!(before("JSON. + 1", Some(5.0)), "JSON.");
        for odd in [None, Some(-3.0), Some(999.0), Some(f64::NAN)] {
            assert_eq!(before("JSON.", odd), "JSON.");
        }
        assert_eq!(before("JSON.", Some(2.5)), "JS");
    }
}
