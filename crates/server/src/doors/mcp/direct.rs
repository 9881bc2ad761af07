//! The catalogue's tools beside `execute`, for small catalogues and for clients that request them. A direct call is a
//! small program: limits, policies, questions and the journal are the same.

use engine::Engine;
use lifecycle::{Program, ValueConvention};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tools::FoundTool;

/// Maximum number of listed tools: each costs a conversation some hundred tokens. A larger catalogue lists none.
const DIRECT_MAX: usize = 40;

/// The sources of tools by which programs find and manage others. They are not listed, because `execute` offers them.
const NOT_LISTED: [&str; 2] = ["executor", "management"];

/// Maximum name length that every client accepts.
const NAME_CHARS_MAX: usize = 64;

/// Tools by the name under which they are listed; none if the catalogue is too large.
fn direct_name(engine: &Engine) -> BTreeMap<String, FoundTool> {
    let snapshot = engine.catalogue().snapshot();
    let mut named = BTreeMap::new();
    for tool in snapshot.tools() {
        if NOT_LISTED.contains(&tool.card().name.as_str()) {
            continue;
        }
        let name: String = tool.path().chars().map(|c| if is_fine(c) { c } else { '_' }).collect();
        if name.len() <= NAME_CHARS_MAX {
            named.entry(name).or_insert(tool);
        }
        if named.len() > DIRECT_MAX {
            return BTreeMap::new();
        }
    }
    named
}

const fn is_fine(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// The tools in MCP's format.
pub(super) fn tools(engine: &Engine) -> Vec<Tool> {
    let tool = |(name, found): (String, FoundTool)| {
        let spec = found.spec();
        let schema = spec.input.as_ref().map(|schema| schema.whole().clone());
        let schema = match schema {
            Some(Value::Object(members)) if members.get("type") == Some(&json!("object")) => {
                members
            }
            // MCP requires an object schema; the call is validated against the tool's own schema anyway.
            Some(_) | None => JsonObject::from_iter([("type".to_owned(), "object".into())]),
        };
        Tool::new(name, spec.description.clone(), schema)
            .annotate(ToolAnnotations::new().read_only(found.nature().read_only))
    };
    direct_name(engine).into_iter().map(tool).collect()
}

/// The program that performs a call of a listed tool. Its own name is sufficient if only one tool has it.
pub(super) fn program(engine: &Engine, name: &str, args: &JsonObject) -> Option<Program> {
    let mut tools = direct_name(engine);
    let path = match tools.remove(name) {
        Some(tool) => tool.path(),
        None => path_by_leaf(tools.values().map(FoundTool::path), name)?,
    };
    let names: String = path.split('.').map(|name| format!("[{}]", Value::from(name))).collect();
    // Passed as text instead of a literal: in a literal, `__proto__` would not be an ordinary member.
    let args = Value::from(Value::Object(args.clone()).to_string());
    let source = format!("const result = await tools{names}(JSON.parse({args}));\n{HAND_ON}");
    Some(Program { source, convention: ValueConvention::ExplicitReturn })
}

/// Returns a tool's result in the form that a client expects: a refusal as an error, and content blocks of another
/// MCP server unchanged.
const HAND_ON: &str = "\
if (result?.ok === false) {
  const { code, message, details } = result.error;
  throw new Error(details && code !== 'mcp_tool_error' ? `${message} ${JSON.stringify(details)}` : message);
}
const content = result?.ok === true ? result.data?.content : undefined;
if (!Array.isArray(content) || !content.every((block) => typeof block?.type === 'string')) return result;
content.forEach((block) => emit(block));
return result.data.structuredContent;";

/// The only path whose last name is this one.
fn path_by_leaf(paths: impl Iterator<Item = String>, leaf: &str) -> Option<String> {
    let mut found = paths.filter(|path| path.rsplit('.').next() == Some(leaf));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_its_last_name_where_only_one_has_it() {
        let paths = ["a.org.main.list", "b.org.main.list", "b.org.main.send", "add"];
        let find = |leaf: &str| path_by_leaf(paths.iter().map(ToString::to_string), leaf);
        assert_eq!(find("send").as_deref(), Some("b.org.main.send"));
        assert_eq!(find("add").as_deref(), Some("add"));
        assert_eq!((find("list"), find("main"), find("nope")), (None, None, None));
    }
}
