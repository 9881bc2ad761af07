//! Policies through the server that owns the data directory, or one that is named.

use super::PolicyVerb;
use crate::print;
use client::{AirlockClient, Error, NewPolicy, PolicyExplanation, StoredPolicy};
use lifecycle::ToolPath;
use serde_json::{Value, json};

/// The results to print, one value each.
pub(super) async fn perform_over_http(
    client: &AirlockClient,
    verb: &PolicyVerb,
) -> Result<Vec<Value>, Error> {
    Ok(match verb {
        PolicyVerb::Add { pattern, action, owner, editable, position } => {
            let (pattern, position) =
                (pattern.to_string(), position.as_ref().map(|p| p.to_string()));
            let new = NewPolicy {
                owner: owner.name(),
                pattern: &pattern,
                action: (*action).into(),
                editable: *editable,
                position: position.as_deref(),
            };
            vec![json!(client.add_policy(&new).await?)]
        }
        PolicyVerb::List => {
            let policies = client.policies().await?;
            if policies.iter().any(|policy| policy.unconfirmed.is_some()) {
                print::print_note(super::UNCONFIRMED);
            }
            policies.iter().map(|policy| json!(policy)).collect()
        }
        PolicyVerb::Confirm { id } => vec![json!(client.confirm_policy(id).await?)],
        PolicyVerb::Remove { id } => {
            client.remove_policy(id).await?;
            vec![json!({ "removed": true })]
        }
        PolicyVerb::Test { tool } => {
            let said = client.explain_policy(tool.as_str()).await?;
            explain(tool, &said);
            let id = said.policy.as_ref().map(|policy| policy.id.as_str());
            vec![json!({ "verdict": said.verdict, "pattern": said.pattern, "id": id,
                         "toolExists": said.tool_exists, "answerOnly": said.answer_only,
                         "answerScope": said.answer_scope })]
        }
    })
}

/// Prints the details that the verdict alone does not show.
fn explain(tool: &ToolPath, said: &PolicyExplanation) {
    if let Some(StoredPolicy { id, pattern, .. }) = &said.ignored_policy {
        let why = match said.ignored_because.as_deref() {
            Some("answer_only") => {
                "each call of this tool needs an answer, which no policy replaces"
            }
            Some("unconfirmed") => {
                "a program added it, and no administrator has confirmed it (airlock policy confirm ID)"
            }
            _ => "the tool is newer than that approval, or has grown since",
        };
        print::print_note(&print::tamed(&format!("{pattern} ({id}) does not count: {why}")));
    }
    if let (true, Some(scope)) = (said.answer_only, &said.answer_scope) {
        print::print_note(&print::tamed(&format!(
            "each call needs an answer by a token with the scope {scope}"
        )));
    }
    if !said.tool_exists {
        print::error(&format!("there is no tool {tool} now"));
    }
}
