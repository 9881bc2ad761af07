//! `call --help`: lists the entries below a path.

use super::target::sentence;
use crate::VerbExit;
use crate::print::{self, tamed};
use client::{AirlockClient, ToolLine};
use std::collections::BTreeMap;

/// The filter of the listing.
pub(super) struct ExecutorBrowseFilter {
    pub(super) path: Vec<String>,
    pub(super) matching: Option<String>,
    pub(super) limit: Option<usize>,
}

/// An entry below a path.
#[derive(Debug, Default, PartialEq, Eq)]
struct PathBranch {
    is_tool: bool,
    is_group: bool,
    n_tools: usize,
}

pub(super) async fn browse(
    client: &AirlockClient,
    wish: &ExecutorBrowseFilter,
) -> Result<VerbExit, String> {
    let tools = client.tools().await.map_err(|error| sentence(&error))?;
    let prefix = wish.path.join(".");
    let exact = tools.iter().find(|tool| bare(tool) == bare_path(&prefix));
    let branches = branches(&tools, bare_path(&prefix));
    if let Some(tool) = exact.filter(|_| branches.is_empty()) {
        return leaf(client, tool).await;
    }
    if !branches.is_empty() {
        print::report(&listing(wish, &branches, exact));
        return Ok(VerbExit::Good);
    }
    print::bare_note(&match prefix.as_str() {
        "" => "No tools are currently registered in this scope.".to_owned(),
        prefix => format!("No tool path starts with \"{}\".", tamed(prefix)),
    });
    let path = known_part(&tools, &wish.path);
    let known = ExecutorBrowseFilter { path: path.to_vec(), matching: None, limit: None };
    print::report(&listing(&known, &self::branches(&tools, bare_path(&path.join("."))), None));
    Ok(VerbExit::Failed)
}

/// The longest prefix of a path at which there is a tool, or tools below it.
fn known_part<'a>(tools: &[ToolLine], path: &'a [String]) -> &'a [String] {
    let is_known = |part: &[String]| {
        let prefix = part.join(".");
        let prefix = bare_path(&prefix);
        let below = |tool: &ToolLine| {
            bare(tool).strip_prefix(prefix).is_some_and(|it| it.is_empty() || it.starts_with('.'))
        };
        prefix == "tools" || tools.iter().any(below)
    };
    let known = (1..path.len()).rev().map(|n_names| &path[..n_names]).find(|part| is_known(part));
    known.unwrap_or_default()
}

/// A tool's path without the optional prefix `tools`.
fn bare(tool: &ToolLine) -> &str {
    bare_path(&tool.address)
}

fn bare_path(path: &str) -> &str {
    path.strip_prefix("tools.").unwrap_or(path)
}

fn branches(tools: &[ToolLine], prefix: &str) -> BTreeMap<String, PathBranch> {
    let mut branches = BTreeMap::<String, PathBranch>::new();
    for tool in tools {
        let below = match prefix {
            "" | "tools" => Some(bare(tool)),
            prefix => bare(tool).strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')),
        };
        let Some(below) = below else { continue };
        let (name, rest) = below.split_once('.').map_or((below, None), |(a, b)| (a, Some(b)));
        let branch = branches.entry(name.to_owned()).or_default();
        branch.n_tools += 1;
        branch.is_tool |= rest.is_none();
        branch.is_group |= rest.is_some();
    }
    branches
}

fn listing(
    wish: &ExecutorBrowseFilter,
    branches: &BTreeMap<String, PathBranch>,
    exact: Option<&ToolLine>,
) -> String {
    let path = wish.path.join(" ");
    let call = format!("executor call{}{path}", if path.is_empty() { "" } else { " " });
    let next = if path.is_empty() { "<namespace>" } else { "<subcommand>" };
    let mut text = format!(
        "Usage:\n  {call} {next} [<subcommand> ...] ['{{\"k\":\"v\"}}']\n  {call} --help\n  {call} --help [--match text] [--limit integer]"
    );
    if let Some(tool) = exact {
        text.push_str(&format!(
            "\n  {call} ['{{\"k\":\"v\"}}']\n\nCallable path: {}",
            tool.address
        ));
        text.push_str(&format!("\n{}", tamed(&tool.description)));
    }
    let words = wish.matching.as_deref().unwrap_or_default().to_lowercase();
    let fits = |name: &&String| words.split_whitespace().all(|it| name.to_lowercase().contains(it));
    let fitting: Vec<_> = branches.keys().filter(fits).collect();
    let shown = wish.limit.map_or(fitting.len(), |limit| limit.min(fitting.len()));
    if shown == 0 {
        return text + "\n\nNo subcommands at this level.";
    }
    if !words.is_empty() {
        text.push_str(&format!("\n\nFiltered by: {}", tamed(&words)));
    }
    if shown < branches.len() {
        let limit = wish.limit.map(|limit| format!(" (limit {limit})")).unwrap_or_default();
        text.push_str(&format!("\nShowing {shown} of {} subcommands{limit}.", branches.len()));
    }
    text.push_str("\n\nSubcommands:");
    let width = fitting[..shown].iter().map(|name| name.len()).max().unwrap_or_default();
    for name in &fitting[..shown] {
        let branch = &branches[*name];
        let kind = match (branch.is_tool, branch.is_group) {
            (true, true) => "tool+group",
            (true, false) => "tool",
            (false, _) => "group",
        };
        let plural = if branch.n_tools == 1 { "" } else { "s" };
        text.push_str(&format!("\n  {name:width$}  {kind}, {} path{plural}", branch.n_tools));
    }
    text + &format!("\n\nDrill down: {call} {next} --help")
}

async fn leaf(client: &AirlockClient, tool: &ToolLine) -> Result<VerbExit, String> {
    let described = client.describe_tool(bare(tool)).await.map_err(|error| sentence(&error))?;
    let call = format!("executor call {}", bare(tool).replace('.', " "));
    let mut text =
        format!("Usage:\n  {call}\n  {call} '{{\"k\":\"v\"}}'\n\nTool: {}", tool.address);
    if !tool.description.is_empty() {
        text.push_str(&format!("\n{}", tamed(&tool.description)));
    }
    if let Some(described) = described {
        let types =
            [("Input", described.input_type_script), ("Output", described.output_type_script)];
        for (title, types) in types {
            if let Some(types) = types {
                text.push_str(&format!("\n\n{title}:\n{}", tamed(&types)));
            }
        }
    }
    print::report(&text);
    Ok(VerbExit::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_a_path_are_tools_or_groups() {
        let tool = |address: &str| ToolLine { address: address.into(), description: String::new() };
        let tools = [tool("demo.add"), tool("tools.api.org.main.get"), tool("demo.add.more")];
        let all = branches(&tools, "");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["api", "demo"]);
        let below = branches(&tools, "demo");
        assert_eq!(below["add"], PathBranch { is_tool: true, is_group: true, n_tools: 2 });
        let wish = ExecutorBrowseFilter { path: vec!["demo".into()], matching: None, limit: None };
        let text = listing(&wish, &below, None);
        assert!(text.contains("Subcommands:\n  add  tool+group, 2 paths\n"), "{text}");
    }
}
