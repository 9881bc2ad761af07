//! Through the server that owns the data directory, or one that is named.

use super::Verb;
use crate::print;
use client::{Error, HttpClient, NewPolicy, Policy};
use serde_json::{Value, json};

/// What to tell, one value each.
pub(super) async fn perform(client: &HttpClient, verb: &Verb) -> Result<Vec<Value>, Error> {
    Ok(match verb {
        Verb::Add { pattern, action, owner, editable, position } => {
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
        Verb::List => client.policies().await?.iter().map(|policy| json!(policy)).collect(),
        Verb::Remove { id } => {
            client.remove_policy(id).await?;
            vec![json!({ "removed": true })]
        }
        Verb::Test { tool } => {
            let said = client.explain_policy(tool.as_str()).await?;
            if let Some(Policy { id, pattern, .. }) = &said.outdated_policy {
                print::note(&print::tamed(&format!(
                    "{pattern} ({id}) does not count: the tool is newer than that approval, or has grown since"
                )));
            }
            if !said.tool_exists {
                print::note(&format!("there is no tool {tool} now"));
            }
            let id = said.policy.as_ref().map(|policy| policy.id.as_str());
            vec![json!({ "verdict": said.verdict, "pattern": said.pattern, "id": id,
                         "toolExists": said.tool_exists })]
        }
    })
}
