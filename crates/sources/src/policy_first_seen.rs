//! When each policy of the configuration files was first seen: an approval covers the tools that existed then.

use crate::config::PolicyConfig;
use credentials::records;
use lifecycle::{Policy, PolicyRule, Timestamp, ToolPattern, ToolRevision};
use std::collections::BTreeMap;
use store::{RecordStore, StoreError};

/// The record kind, and the key of its only record.
const KIND: &str = "file-policies";
const KEY: &str = "said";

/// The policy of the files, each rule with the time when it was first seen. Times of deleted rules are dropped.
pub(crate) async fn policy(
    records: &dyn RecordStore,
    lists: &[Vec<PolicyConfig>],
    now: Timestamp,
) -> Result<Policy, StoreError> {
    let before: BTreeMap<String, Timestamp> = match records.get(KIND, KEY).await? {
        Some(record) => serde_json::from_str(&record.value).map_err(|_| {
            StoreError::Damaged("since when the files' policies hold cannot be read".into())
        })?,
        None => BTreeMap::new(),
    };
    let mut seen = BTreeMap::new();
    let mut rules = |list: &Vec<PolicyConfig>| {
        let rule = |written: &PolicyConfig| {
            let key = serde_json::to_string(written).unwrap_or_default();
            let key = ToolRevision::from_text(&key).to_string();
            let at = before.get(&key).copied().unwrap_or(now);
            seen.insert(key, at);
            let pattern = ToolPattern::parse(&written.pattern).ok()?;
            let PolicyConfig { action, editable, .. } = *written;
            Some(PolicyRule { pattern, action, said: Some(at), editable })
        };
        list.iter().filter_map(rule).collect()
    };
    let policy = Policy::new(lists.iter().map(&mut rules).collect());
    if seen != before {
        records::put(records, KIND, KEY, &seen).await?;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{PolicyAction, PolicyVerdict, ToolPath, ToolTraits};
    use store::sqlite::SqliteStore;

    #[tokio::test]
    async fn a_rule_of_a_file_is_as_old_as_its_first_sight_and_a_new_note_says_it_anew() {
        let store = SqliteStore::temporary().unwrap();
        let rule = |note: Option<&str>| {
            let note = note.map(str::to_owned);
            let (pattern, action) = ("a.*".into(), PolicyAction::Approve);
            vec![vec![PolicyConfig { pattern, action, editable: false, note }]]
        };
        let newer = ToolTraits { since: Timestamp(2), ..ToolTraits::lasting(true) };
        let tool = ToolPath::parse("a.b").unwrap();
        let cases = [
            (None, 1, PolicyVerdict::Ask { pattern: None, editable: false }),
            (None, 3, PolicyVerdict::Ask { pattern: None, editable: false }),
            (Some("reviewed"), 3, PolicyVerdict::Allow),
        ];
        for (note, now, expected) in cases {
            let policy = policy(&store, &rule(note), Timestamp(now)).await.unwrap();
            assert_eq!(policy.verdict(&tool, newer), expected, "{note:?} {now}");
        }
    }
}
