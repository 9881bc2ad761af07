//! On the data directory itself, while no server owns it.

use super::{Verb, action_word};
use anyhow::Context as _;
use engine::policies::{KeptRule, NewRule, Policies};
use lifecycle::{Policy, Traits, Verdict};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use store::sqlite::SqliteStore;

/// What to tell, one value each.
pub(super) fn perform(verb: &Verb, data_dir: &Path) -> anyhow::Result<Vec<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(data_dir)
            .with_context(|| format!("could not open {}", data_dir.display()))?;
        let done = on_store(verb, &store).await;
        store.close().await;
        done
    })
}

async fn on_store(verb: &Verb, store: &SqliteStore) -> anyhow::Result<Vec<Value>> {
    let policies = Policies::open(Arc::new(store.clone()), Policy::default()).await?;
    match verb {
        Verb::Add { pattern, action, owner, editable, position } => {
            let new = NewRule {
                owner: *owner,
                pattern: pattern.clone(),
                action: (*action).into(),
                editable: *editable,
                position: position.clone(),
            };
            let rule = policies.add(new, engine::Clock::system().now()).await?;
            Ok(vec![shown(&rule)])
        }
        Verb::List => Ok(policies.list().await?.iter().map(shown).collect()),
        Verb::Remove { id } => {
            policies.remove(id, None).await?;
            Ok(vec![json!({ "removed": true })])
        }
        Verb::Test { tool } => {
            let explained = policies.explain(tool, Traits::lasting(false)).await?;
            let (verdict, pattern) = match &explained.verdict {
                Verdict::Allow if explained.rule.is_none() => ("as the tool says", None),
                Verdict::Allow => ("allow", None),
                Verdict::Ask { pattern, .. } => ("ask", pattern.as_deref()),
                Verdict::Refuse { pattern } => ("refuse", Some(pattern.as_str())),
            };
            let rule = explained.rule.as_ref().map(|rule| rule.id.as_str());
            Ok(vec![json!({ "verdict": verdict, "pattern": pattern, "id": rule })])
        }
    }
}

fn shown(rule: &KeptRule) -> Value {
    let KeptRule { id, owner, pattern, action, editable, position, .. } = rule;
    json!({ "id": id, "owner": owner.name(), "pattern": pattern.to_string(),
            "action": action_word(*action), "editable": editable, "position": position.to_string() })
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
        let told = perform(verb, dir).map_err(|error| error.to_string())?;
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
