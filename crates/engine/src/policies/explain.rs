//! Explains why a call would run, ask or be blocked.

use super::{KeptRule, PolicySet};
use crate::fault::Fault;
use lifecycle::{PolicyAction, PolicyVerdict, ToolPath, ToolTraits};

/// What happens to calls of a tool, and which rules decide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// What happens.
    pub verdict: PolicyVerdict,
    /// The pattern of the rule that decides, stored or configured; none if the tool itself decides.
    pub pattern: Option<String>,
    /// The stored rule that decides; none if a configured one does, or the tool itself.
    pub rule: Option<KeptRule>,
    /// A stored rule that would approve it and does not apply, with the reason.
    pub ignored: Option<(KeptRule, IgnoredApproval)>,
}

/// Why an approval does not apply to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredApproval {
    /// The tool is newer than the approval, or has grown since.
    Outdated,
    /// Only an answer approves a call of this tool.
    AnswerOnly,
    /// A management call made it, and no administrator has confirmed it.
    Unconfirmed,
}

impl PolicySet {
    /// What happens to calls of `tool`.
    pub async fn explain(
        &self,
        tool: &ToolPath,
        traits: ToolTraits,
    ) -> Result<PolicyDecision, Fault> {
        let live = self.live();
        let verdict = live.verdict(tool, traits);
        let pattern = live.deciding_rule(tool, traits).map(|rule| rule.pattern.to_string());
        let rules = self.list_rules().await?;
        let matching = rules.into_iter().filter(|rule| rule.pattern.matches(tool));
        let mut ignored = None;
        let mut first_of_each: Vec<KeptRule> = vec![];
        for rule in matching {
            if let Some(why) = ignored_approval(&rule, traits) {
                ignored.get_or_insert((rule, why));
            } else if first_of_each.iter().all(|other| other.owner != rule.owner) {
                first_of_each.push(rule);
            }
        }
        let strictest = first_of_each.into_iter().max_by_key(|rule| rule.action);
        let rule = strictest.filter(|rule| Some(rule.pattern.to_string()) == pattern);
        Ok(PolicyDecision { verdict, pattern, rule, ignored })
    }
}

/// Why an approving rule does not apply to a tool; none if it does.
fn ignored_approval(rule: &KeptRule, traits: ToolTraits) -> Option<IgnoredApproval> {
    match rule.action {
        PolicyAction::Approve if rule.is_suspended() => Some(IgnoredApproval::Unconfirmed),
        PolicyAction::Approve if traits.answer_only => Some(IgnoredApproval::AnswerOnly),
        PolicyAction::Approve if rule.rule().is_outdated(traits) => Some(IgnoredApproval::Outdated),
        PolicyAction::Approve | PolicyAction::RequireApproval | PolicyAction::Block => None,
    }
}
