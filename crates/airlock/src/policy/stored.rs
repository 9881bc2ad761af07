//! Policies on the data directory itself, while no server owns it.

use super::{PolicyVerb, action_word};
use crate::print;
use anyhow::Context as _;
use engine::policies::{KeptRule, NewRule, PolicySet};
use lifecycle::{Policy, PolicyVerdict, ToolPath, ToolTraits};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use store::sqlite::SqliteStore;

/// The results to print, one value each.
pub(super) fn perform_on_directory(
    verb: &PolicyVerb,
    data_dir: &Path,
) -> anyhow::Result<Vec<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(data_dir)
            .with_context(|| format!("could not open {}", data_dir.display()))?;
        let done = on_store(verb, &store).await;
        store.close().await;
        done
    })
}

async fn on_store(verb: &PolicyVerb, store: &SqliteStore) -> anyhow::Result<Vec<Value>> {
    let policies = PolicySet::open(Arc::new(store.clone()), Policy::default()).await?;
    match verb {
        PolicyVerb::Add { pattern, action, owner, editable, position } => {
            let new = NewRule {
                owner: *owner,
                pattern: pattern.clone(),
                action: (*action).into(),
                editable: *editable,
                position: position.clone(),
            };
            let rule = policies.add(new, engine::Clock::system().now()).await?;
            Ok(vec![format_rule(&rule)])
        }
        PolicyVerb::List => {
            let rules = policies.list_rules().await?;
            if rules.iter().any(|rule| rule.unconfirmed.is_some()) {
                print::print_note(super::UNCONFIRMED);
            }
            Ok(rules.iter().map(format_rule).collect())
        }
        PolicyVerb::Confirm { id } => {
            let rule = policies.confirm(id, engine::Clock::system().now()).await?;
            Ok(vec![format_rule(&rule)])
        }
        PolicyVerb::Remove { id } => {
            policies.remove(id, None).await?;
            Ok(vec![json!({ "removed": true })])
        }
        PolicyVerb::Test { tool } => {
            let explained = policies.explain(tool, traits(tool)).await?;
            let verdict = match &explained.verdict {
                PolicyVerdict::Allow if explained.rule.is_none() => "as the tool says",
                PolicyVerdict::Allow => "allow",
                PolicyVerdict::Ask { .. } => "ask",
                PolicyVerdict::Refuse { .. } => "refuse",
            };
            let rule = explained.rule.as_ref().map(|rule| rule.id.as_str());
            Ok(vec![json!({ "verdict": verdict, "pattern": explained.pattern, "id": rule })])
        }
    }
}

/// The traits of a tool that are known without a server: which tools need an answer, and nothing about sources.
fn traits(tool: &ToolPath) -> ToolTraits {
    let needs_answer = |(path, answer_only): (&str, bool)| answer_only && path == tool.as_str();
    let answer_only = sources::management_tools().any(needs_answer);
    ToolTraits { answer_only, ..ToolTraits::lasting(false) }
}

fn format_rule(rule: &KeptRule) -> Value {
    let KeptRule { id, owner, pattern, action, editable, position, unconfirmed, .. } = rule;
    let mut shown = json!({ "id": id, "owner": owner.name(), "pattern": pattern.to_string(),
        "action": action_word(*action), "editable": editable, "position": position.to_string() });
    if let Some(origin) = unconfirmed {
        shown["unconfirmed"] = json!(origin);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: super::super::Args,
    }

    fn done(dir: &Path, words: &str) -> Result<Vec<String>, String> {
        let words = std::iter::once("policy").chain(words.split_whitespace());
        let wrapper = Wrapper::try_parse_from(words).map_err(|error| error.to_string())?;
        let verb = &wrapper.args.verb;
        let told = perform_on_directory(verb, dir).map_err(|error| error.to_string())?;
        Ok(told.iter().flat_map(|told| super::super::lines(verb, told)).collect())
    }

    #[test]
    fn rules_are_added_listed_tried_and_removed_without_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let low = done(dir, "add mail.* require_approval --editable").unwrap().remove(0);
        let high = done(dir, "add mail.send block --owner user").unwrap().remove(0);
        let expected = [
            format!("{low}\torg\tmail.*\trequire_approval\ta0\teditable"),
            format!("{high}\tuser\tmail.send\tblock\ta0"),
        ];
        assert_eq!(done(dir, "list").unwrap(), expected);
        assert_eq!(
            done(dir, "test tools.mail.send").unwrap(),
            [format!("refuse\tmail.send\t{high}")]
        );
        assert_eq!(done(dir, "test mail.list").unwrap(), [format!("ask\tmail.*\t{low}")]);
        assert_eq!(done(dir, "test file.read").unwrap(), ["as the tool says"]);
        let approves = done(dir, "add file.* approve").unwrap().remove(0);
        assert_eq!(done(dir, "test file.read").unwrap(), [format!("allow\tfile.*\t{approves}")]);
        let manages = "executor.coreTools.policies.create";
        done(dir, &format!("add {manages} approve")).unwrap();
        assert_eq!(done(dir, &format!("test {manages}")).unwrap(), ["ask"]);
        assert_eq!(done(dir, &format!("remove {high}")).unwrap(), [""; 0]);
        let gone = format!("there is no policy {high}");
        assert_eq!(done(dir, &format!("remove {high}")), Err(gone));
    }

    #[test]
    fn a_bad_pattern_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let refused = done(dir.path(), "add mail.se* block").unwrap_err();
        assert!(refused.contains("* stands for whole names only"), "{refused}");
    }
}
