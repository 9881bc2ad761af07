//! The tools' descriptions for a model, short because every conversation pays for them, and their annotations, by
//! which clients decide whether to ask before a call.

use super::visit::QuestionChannel;
use engine::Engine;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tools::CatalogueSnapshot;

/// Maximum number of prefixes in a description.
const PREFIXES_MAX: usize = 50;

/// Maximum size of the prefixes: a thousand bytes of even the oddest names are some 500 tokens.
const PREFIX_BYTES_MAX: usize = 1_000;

/// The description of `execute`, before the prefixes.
const EXECUTE: &str = "\
Execute TypeScript in a sandboxed runtime with the user's tools, and get back what it returns.

1. Find: `const { items } = await tools.search({ query: \"<intent and nouns>\" })`
2. Read: `await tools.describe.tool({ path: items[0].path })`
3. Call: `const r = await tools.<path>(args)`; `r` is `{ ok: true, data }` or `{ ok: false, error }`

Return a value; `emit(x)` shows something to the user. `skills({ name: \"execute\" })` has the details.";

const RESUME_MODEL: &str = "\
Continues a paused execution after the user has decided, or waits for one that is still running. Ask the \
user first; never decide for them.";

const RESUME_BROWSER: &str = "\
Waits for the user's decision on the approval page, or for an execution that is still running. First give \
the user the approvalUrl.";

const WAIT: &str = "Waits for an execution that is still running and gives back how it ended.";

const SKILLS: &str = "Reads a how-to. `skills({ name: \"execute\" })` explains writing code for `execute`; no name lists all.";

/// The tools that every catalogue has.
pub(super) fn tools(engine: &Engine, manner: QuestionChannel) -> Vec<Tool> {
    listed_tools(&engine.catalogue().snapshot(), manner)
}

fn listed_tools(catalogue: &CatalogueSnapshot, manner: QuestionChannel) -> Vec<Tool> {
    let code = json!({ "type": "string", "minLength": 1, "description": "TypeScript; top-level await and return" });
    let mut tools = vec![
        tool("execute", described(catalogue), json!({ "code": code }), &["code"]).annotate(acts()),
        tool("skills", SKILLS.into(), json!({ "name": { "type": "string" } }), &[])
            .annotate(reads()),
    ];
    let id = json!({ "type": "string", "description": "as given by execute" });
    tools.push(match manner {
        QuestionChannel::Model => tool(
            "resume",
            RESUME_MODEL.into(),
            json!({
                "executionId": id,
                "action": {
                    "type": "string",
                    "enum": ["accept", "decline", "cancel"],
                    "description": "what the user decided; left out for a running execution",
                },
                "content": {
                    "type": "string",
                    "default": "{}",
                    "description": "with accept: JSON object that fits requestedSchema",
                },
            }),
            &["executionId"],
        )
        // An answer permits the call that waits for it; repeating the same answer changes nothing.
        .annotate(acts().idempotent(true)),
        QuestionChannel::Browser => {
            tool("resume", RESUME_BROWSER.into(), json!({ "executionId": id }), &["executionId"])
                .annotate(reads())
        }
        QuestionChannel::Form(_) | QuestionChannel::Retry(_) => {
            tool("wait", WAIT.into(), json!({ "executionId": id }), &["executionId"])
                .annotate(reads())
        }
    });
    tools
}

/// A program can do what the user's tools can do, so its effects are not bounded.
fn acts() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
}

/// A tool that waits or reads, within Airlock.
fn reads() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}

fn tool(name: &'static str, description: String, properties: Value, required: &[&str]) -> Tool {
    Tool::new(name, description, schema(properties, required))
}

fn schema(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}

fn described(catalogue: &CatalogueSnapshot) -> String {
    let prefixes = prefixes(catalogue.tools().map(|tool| tool.path()));
    match listed(&prefixes) {
        None => EXECUTE.into(),
        Some(list) => format!("{EXECUTE}\n\nTools start with: {list}"),
    }
}

/// As many prefixes as fit, and the number of omitted ones.
fn listed(prefixes: &BTreeSet<String>) -> Option<String> {
    let mut list = String::new();
    let mut n_listed = 0;
    for prefix in prefixes.iter().take(PREFIXES_MAX) {
        if list.len() + prefix.len() > PREFIX_BYTES_MAX {
            break;
        }
        if n_listed > 0 {
            list.push_str(", ");
        }
        list.push_str(prefix);
        n_listed += 1;
    }
    match prefixes.len() - n_listed {
        0 if n_listed == 0 => None,
        0 => Some(list),
        n => Some(format!("{list} and {n} more; search finds them")),
    }
}

/// The prefixes of tools: the integration and, if there is one, its owner and connection.
fn prefixes(paths: impl Iterator<Item = String>) -> BTreeSet<String> {
    let prefix = |path: String| {
        let mut names = path.split('.');
        match (names.next(), names.next(), names.next(), names.next()) {
            (Some(integration), Some(owner @ ("org" | "user")), Some(connection), Some(_)) => {
                format!("{integration}.{owner}.{connection}")
            }
            (first, _, _, _) => first.unwrap_or_default().to_owned(),
        }
    };
    paths.map(prefix).collect()
}

#[cfg(test)]
mod tests {
    use super::super::visit::FormSupport;
    use super::*;

    #[test]
    fn annotations_are_true() {
        let catalogue = tools::Catalogue::new(vec![]).unwrap();
        let forms = FormSupport { form: true, url: true, counts: true };
        for manner in
            [QuestionChannel::Model, QuestionChannel::Browser, QuestionChannel::Form(forms)]
        {
            let hints: Vec<_> = listed_tools(&catalogue.snapshot(), manner)
                .into_iter()
                .map(|tool| {
                    let hints = tool.annotations.unwrap();
                    (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint)
                })
                .collect();
            let (acts, reads) =
                ((Some(false), Some(true), Some(true)), (Some(true), None, Some(false)));
            let third = if manner == QuestionChannel::Model { acts } else { reads };
            assert_eq!(hints, [acts, reads, third]);
        }
    }

    #[test]
    fn a_prefix_is_an_integration_or_one_of_its_connections() {
        let paths = ["demo.add", "demo.echo", "mail.org.main.send", "mail.user.me.box.list", "one"]
            .map(str::to_owned);
        let expected = ["demo", "mail.org.main", "mail.user.me", "one"].map(str::to_owned);
        assert_eq!(prefixes(paths.into_iter()), BTreeSet::from(expected));
    }

    #[test]
    fn prefixes_are_bounded_in_number_and_bytes_and_the_rest_is_counted() {
        assert_eq!(listed(&BTreeSet::new()), None);
        let short: BTreeSet<String> = (0..60).map(|n| format!("p{n:02}")).collect();
        let list = listed(&short).unwrap();
        assert!(
            list.starts_with("p00, p01") && list.ends_with("p49 and 10 more; search finds them")
        );
        let long: BTreeSet<String> = (0..60).map(|n| format!("{n:0>100}")).collect();
        assert!(listed(&long).unwrap().len() < PREFIX_BYTES_MAX + 100);
    }
}
