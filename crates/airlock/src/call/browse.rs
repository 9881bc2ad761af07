//! Browses callable tools: below a path, segment by segment, down to the input and output of one tool.

use crate::print::{self, tamed};
use crate::{VerbExit, table};
use client::{AirlockClient, Error, ToolDescription, ToolLine};
use serde_json::json;
use std::collections::BTreeMap;

/// The default number of lines.
pub(super) const LISTED_USUALLY: usize = 50;

/// Longest description in a list.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// The filter of the listing.
#[derive(Debug)]
pub(super) struct CallBrowseFilter<'a> {
    pub(super) segments: &'a [String],
    pub(super) matching: Option<&'a str>,
    pub(super) limit: usize,
}

/// Prints the listing.
pub(super) async fn browse(
    client: &AirlockClient,
    wish: &CallBrowseFilter<'_>,
    json: bool,
) -> Result<VerbExit, Error> {
    let path = wish.segments.join(".");
    if !path.is_empty()
        && let Some(tool) = client.describe_tool(&path).await?
    {
        match json {
            true => print::report(&as_json(&tool).to_string()),
            false => print::report(&described(&path, &tool)),
        }
        return Ok(VerbExit::Good);
    }
    let tools = client.tools().await?;
    let branches = tools_below(&tools, wish).unwrap_or_else(|| branches(&tools, wish));
    if branches.is_empty() {
        print::error(&nothing(&path, wish.matching));
        return Ok(VerbExit::Failed);
    }
    let n_more = branches.len().saturating_sub(wish.limit);
    let shown = branches.iter().take(wish.limit);
    if json {
        shown.for_each(|(name, branch)| print::report(&branch.json(name, &path).to_string()));
    } else {
        let rows: Vec<_> = shown.map(|(name, branch)| branch.row(name)).collect();
        table::print(&["PATH", "KIND", "DESCRIPTION"], &rows, "There are no tools.");
    }
    if n_more > 0 {
        print::print_note(&format!("{n_more} more: raise --limit, or narrow it down with --match"));
    }
    Ok(VerbExit::Good)
}

fn nothing(path: &str, matching: Option<&str>) -> String {
    let below = if path.is_empty() { String::new() } else { format!(" below {path}") };
    match matching {
        Some(text) => format!("no tool{below} contains {}", tamed(text)),
        None => format!("there is no tool{below}"),
    }
}

/// An entry one segment further down.
#[derive(Debug, Default, PartialEq, Eq)]
struct CatalogueBranch {
    n_tools: usize,
    /// The tool's description, where this entry is a tool.
    description: Option<String>,
}

/// Returns the tools below a path, each with the remaining path; `None` where they are too many for a list.
fn tools_below(
    tools: &[ToolLine],
    wish: &CallBrowseFilter<'_>,
) -> Option<BTreeMap<String, CatalogueBranch>> {
    let tools: Vec<_> = matching(tools, wish).collect();
    let is_short = !wish.segments.is_empty() && tools.len() <= wish.limit;
    let branch = |description: &str| CatalogueBranch {
        n_tools: 1,
        description: Some(description.to_owned()),
    };
    let lines = tools.iter().map(|(rest, tool)| (rest.join("."), branch(&tool.description)));
    is_short.then(|| lines.collect())
}

/// The tools below the path that contain the searched text, each with the segments that follow the path.
fn matching<'t>(
    tools: &'t [ToolLine],
    wish: &CallBrowseFilter<'_>,
) -> impl Iterator<Item = (Vec<&'t str>, &'t ToolLine)> {
    let text = wish.matching.map(str::to_lowercase);
    let fits = move |path: &str, tool: &ToolLine| {
        text.as_ref().is_none_or(|text| {
            path.to_lowercase().contains(text) || tool.description.to_lowercase().contains(text)
        })
    };
    tools.iter().filter_map(move |tool| {
        let path = tool.address.strip_prefix("tools.").unwrap_or(&tool.address);
        let mut segments = path.split('.');
        let is_below = wish.segments.iter().all(|wanted| segments.next() == Some(wanted));
        let rest: Vec<_> = segments.collect();
        (is_below && !rest.is_empty() && fits(path, tool)).then_some((rest, tool))
    })
}

fn branches(tools: &[ToolLine], wish: &CallBrowseFilter<'_>) -> BTreeMap<String, CatalogueBranch> {
    let mut branches = BTreeMap::<String, CatalogueBranch>::new();
    for (rest, tool) in matching(tools, wish) {
        let mut segments = rest.into_iter();
        let Some(next) = segments.next() else { continue };
        let branch = branches.entry(next.to_owned()).or_default();
        branch.n_tools += 1;
        if segments.next().is_none() {
            branch.description = Some(tool.description.clone());
        }
    }
    branches
}

impl CatalogueBranch {
    fn row(&self, name: &str) -> [String; 3] {
        let about = self.description.as_deref().map(first_line).unwrap_or_default();
        let below = self.n_tools - usize::from(self.description.is_some());
        let below = match below {
            0 => "tool".to_owned(),
            1 => "1 tool".to_owned(),
            n => format!("{n} tools"),
        };
        [tamed(name), below, about]
    }

    fn json(&self, name: &str, path: &str) -> serde_json::Value {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        json!({ "path": path, "isTool": self.description.is_some(), "tools": self.n_tools,
                "description": self.description })
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut chars = line.chars();
    let kept: String = chars.by_ref().take(DESCRIPTION_CHARS_MAX).collect();
    tamed(&kept) + if chars.next().is_some() { "…" } else { "" }
}

/// Formats a tool for a person who is about to call it.
pub(crate) fn described(path: &str, tool: &ToolDescription) -> String {
    let mut text = tamed(path);
    if let Some(description) = tool.description.as_deref().filter(|text| !text.is_empty()) {
        text.push_str(&format!("\n\n{}", tamed(description)));
    }
    let input = tool.input_type_script.as_deref().unwrap_or("unknown");
    let output = tool.output_type_script.as_deref().unwrap_or("unknown");
    text.push_str(&format!("\n\nInput:\n  {}\n\nOutput:\n  {}", tamed(input), tamed(output)));
    let definitions = tool.type_script_definitions.iter().flatten();
    let definitions: Vec<_> =
        definitions.map(|(name, text)| format!("  {} = {}", tamed(name), tamed(text))).collect();
    if !definitions.is_empty() {
        text.push_str(&format!("\n\nTypes:\n{}", definitions.join("\n")));
    }
    text + &format!("\n\nairlock call {} '{{…}}'", tamed(path))
}

/// Formats a tool for a program.
pub(crate) fn as_json(tool: &ToolDescription) -> serde_json::Value {
    json!({
        "address": tool.address,
        "description": tool.description,
        "inputTypeScript": tool.input_type_script,
        "outputTypeScript": tool.output_type_script,
        "typeScriptDefinitions": tool.type_script_definitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ToolLine> {
        let tool = |path: &str, description: &str| ToolLine {
            address: format!("tools.{path}"),
            description: description.into(),
        };
        vec![
            tool("search", "Finds tools."),
            tool("git.issues", "Lists issues.\nAll of them."),
            tool("git.issues.create", "Makes one."),
            tool("git.repos.get", "Reads one."),
        ]
    }

    #[track_caller]
    fn check(segments: &[&str], matching: Option<&str>, expected: &[[&str; 3]]) {
        let segments: Vec<_> = segments.iter().map(|segment| (*segment).to_owned()).collect();
        let wish = CallBrowseFilter { segments: &segments, matching, limit: 9 };
        let found = branches(&tools(), &wish);
        let rows: Vec<_> = found.iter().map(|(name, branch)| branch.row(name)).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_catalogue_is_walked_segment_by_segment() {
        check(&[], None, &[["git", "3 tools", ""], ["search", "tool", "Finds tools."]]);
        check(&["git"], None, &[["issues", "1 tool", "Lists issues."], ["repos", "1 tool", ""]]);
        check(&["git", "repos"], None, &[["get", "tool", "Reads one."]]);
        check(&["git"], Some("READS"), &[["repos", "1 tool", ""]]);
        check(&["gi"], None, &[]);
        check(&[], Some("nowhere"), &[]);
    }

    #[test]
    fn a_short_list_below_a_path_names_the_tools_themselves() {
        let tool = |path: &str| ToolLine {
            address: format!("tools.{path}"),
            description: "Does it.".into(),
        };
        let tools = ["todo.org.main.items.add", "todo.org.main.items.list", "git.x"].map(tool);
        let rows = |segments: &[&str], limit| {
            let segments: Vec<_> = segments.iter().map(|text| (*text).to_owned()).collect();
            let wish = CallBrowseFilter { segments: &segments, matching: None, limit };
            let found = tools_below(&tools, &wish)?;
            Some(found.iter().map(|(name, branch)| branch.row(name)).collect::<Vec<_>>())
        };
        let row = |name: &str| [name.to_owned(), "tool".to_owned(), "Does it.".to_owned()];
        let expected = [row("org.main.items.add"), row("org.main.items.list")];
        assert_eq!(rows(&["todo"], 2).as_deref(), Some(&expected[..]));
        assert_eq!(rows(&["todo"], 1), None, "too many: level by level");
        assert_eq!(rows(&[], 9), None, "without a path, the sources");
    }

    #[test]
    fn where_nothing_is_there_is_said_what_was_looked_for() {
        assert_eq!(nothing("git", Some("x")), "no tool below git contains x");
        assert_eq!(nothing("", None), "there is no tool");
    }
}
