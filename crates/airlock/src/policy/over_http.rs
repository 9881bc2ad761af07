//! Through the server that owns the data directory, or one that is named.

use super::{Verb, action_word, verdict_line};
use crate::{Exit, print};
use client::{Error, HttpClient, NewPolicy, Policy};

pub(super) async fn perform(client: &HttpClient, verb: &Verb) -> Result<Exit, Error> {
    match verb {
        Verb::Add { pattern, action, owner, position } => {
            let (pattern, position) =
                (pattern.to_string(), position.as_ref().map(|p| p.to_string()));
            let new = NewPolicy {
                owner: owner.name(),
                pattern: &pattern,
                action: (*action).into(),
                position: position.as_deref(),
            };
            print::report(&print::tamed(&client.add_policy(&new).await?.id));
        }
        Verb::List => {
            for policy in client.policies().await? {
                print::report(&line(&policy));
            }
        }
        Verb::Remove { id } => client.remove_policy(id).await?,
        Verb::Test { tool } => {
            let said = client.explain_policy(tool.as_str()).await?;
            let rule = said.policy.as_ref().map(|policy| policy.id.as_str());
            print::report(&print::tamed(&verdict_line(
                &said.verdict,
                said.pattern.as_deref(),
                rule,
            )));
            if let Some(Policy { id, pattern, .. }) = &said.outdated_policy {
                print::note(&print::tamed(&format!(
                    "{pattern} ({id}) does not count: the tool is newer than that approval, or has grown since"
                )));
            }
            if !said.tool_exists {
                print::note(&format!("there is no tool {tool} now"));
            }
        }
    }
    Ok(Exit::Good)
}

fn line(policy: &Policy) -> String {
    let Policy { id, owner, pattern, action, position } = policy;
    print::tamed(&format!("{id}\t{owner}\t{pattern}\t{}\t{position}", action_word(*action)))
}
