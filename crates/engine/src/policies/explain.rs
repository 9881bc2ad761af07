//! Why a call would run, ask or find nothing.

use super::{KeptRule, Policies};
use crate::fault::Fault;
use lifecycle::{ToolPath, Traits, Verdict};

/// What happens to calls of a tool, and which kept rule says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What happens.
    pub verdict: Verdict,
    /// The kept rule that decides; none where a configured one does, or the tool itself.
    pub rule: Option<KeptRule>,
    /// A kept rule that would approve it, and does not count: the tool is newer, or not what it was.
    pub outdated: Option<KeptRule>,
}

impl Policies {
    /// What happens to calls of `tool`.
    pub async fn explain(&self, tool: &ToolPath, traits: Traits) -> Result<Explained, Fault> {
        let verdict = self.live().verdict(tool, traits);
        let rules = self.list().await?;
        let matching = rules.into_iter().filter(|rule| rule.pattern.matches(tool));
        let (outdated, covering): (Vec<_>, Vec<_>) =
            matching.partition(|rule| rule.rule().is_outdated(traits));
        let mut first_of_each: Vec<KeptRule> = vec![];
        for rule in covering {
            if first_of_each.iter().all(|other| other.owner != rule.owner) {
                first_of_each.push(rule);
            }
        }
        let strictest = first_of_each.into_iter().max_by_key(|rule| rule.action);
        let decides = |rule: &KeptRule| match &verdict {
            Verdict::Allow => true,
            Verdict::Ask { pattern: None, .. } => false,
            Verdict::Ask { pattern: Some(pattern), .. } | Verdict::Refuse { pattern } => {
                rule.pattern.to_string() == *pattern
            }
        };
        let rule = strictest.filter(decides);
        Ok(Explained { verdict, rule, outdated: outdated.into_iter().next() })
    }
}
