//! The catalogue's tools beside `execute`, for small catalogues and those who ask for it. A direct call
//! is a program of one line: limits, policies, questions and the journal are the same.

use engine::Engine;
use lifecycle::{Convention, Program};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tools::Found;

/// Tools listed at most: each costs a conversation some hundred tokens. A larger catalogue has none.
const DIRECT_MAX: usize = 40;

/// Longest name that every client takes.
const NAME_CHARS_MAX: usize = 64;

/// Tools by the name under which they are listed; none of a catalogue that is too large.
fn named(engine: &Engine) -> BTreeMap<String, Found> {
    let snapshot = engine.catalogue().snapshot();
    let mut named = BTreeMap::new();
    for tool in snapshot.tools() {
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

/// The tools as MCP lists them.
pub(super) fn tools(engine: &Engine) -> Vec<Tool> {
    let tool = |(name, found): (String, Found)| {
        let spec = found.spec();
        let schema = spec.input.as_ref().map(|schema| schema.whole().clone());
        let schema = match schema {
            Some(Value::Object(members)) if members.get("type") == Some(&json!("object")) => {
                members
            }
            // A tool must take an object; whatever the schema says beyond, the call is checked anyway.
            Some(_) | None => JsonObject::from_iter([("type".to_owned(), "object".into())]),
        };
        Tool::new(name, spec.description.clone(), schema)
            .annotate(ToolAnnotations::new().read_only(found.nature().read_only))
    };
    named(engine).into_iter().map(tool).collect()
}

/// The program that a call of a listed tool is.
pub(super) fn program(engine: &Engine, name: &str, args: &JsonObject) -> Option<Program> {
    let path = named(engine).get(name)?.path();
    let names: String = path.split('.').map(|name| format!("[{}]", Value::from(name))).collect();
    // Not a literal: in one, `__proto__` would not be a member like any other.
    let args = Value::from(Value::Object(args.clone()).to_string());
    let source = format!("return await tools{names}(JSON.parse({args}))");
    Some(Program { source, convention: Convention::ExplicitReturn })
}
