//! A stored rule: its owner, its position, and its record format.

use super::RulePosition;
use lifecycle::{PolicyAction, PolicyRule, Timestamp, ToolPattern};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use store::{StoreError, StoredRecord};

/// The owner of rules. Each owner's list is evaluated; the most restrictive result wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOwner {
    /// Applies to all callers.
    Org,
    /// The rules of one user; they can tighten the organisation's rules, never loosen them.
    User,
}

impl PolicyOwner {
    /// All owners.
    pub const ALL: [Self; 2] = [Self::Org, Self::User];

    /// The name in records and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Org => "org",
            Self::User => "user",
        }
    }
}

impl FromStr for PolicyOwner {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let found = Self::ALL.into_iter().find(|owner| owner.name() == text);
        found.ok_or("an owner is org or user")
    }
}

/// A rule to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Its owner.
    pub owner: PolicyOwner,
    /// The tools that it applies to.
    pub pattern: ToolPattern,
    /// What happens to their calls.
    pub action: PolicyAction,
    /// For `require_approval`: whether the answer may change the arguments.
    pub editable: bool,
    /// Its position in its owner's list; at the top by default.
    pub position: Option<RulePosition>,
}

/// A change of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleChange {
    /// The expected owner; any if none is given.
    pub owner: Option<PolicyOwner>,
    /// The tools that it applies to.
    pub pattern: Option<ToolPattern>,
    /// What happens to their calls.
    pub action: Option<PolicyAction>,
    /// Whether the answer may change the arguments.
    pub editable: Option<bool>,
    /// Its position.
    pub position: Option<RulePosition>,
}

/// A stored rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRule {
    /// `policy_…`.
    pub id: String,
    /// Its owner.
    pub owner: PolicyOwner,
    /// The tools that it applies to.
    pub pattern: ToolPattern,
    /// What happens to their calls.
    pub action: PolicyAction,
    /// For `require_approval`: whether the answer may change the arguments.
    pub editable: bool,
    /// Its position in its owner's list.
    pub position: RulePosition,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
    /// When its pattern or action was last confirmed: an approval covers the tools that existed then.
    pub said: Timestamp,
    /// The management call that made it, if the answer to that call came from a token that could not answer. Such a
    /// rule approves nothing until an administrator confirms it.
    pub unconfirmed: Option<ManagementOrigin>,
}

/// A management call that changed something, and who answered its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagementOrigin {
    /// The execution that made the call.
    pub execution: String,
    /// The tool that it called.
    pub tool: String,
    /// Who answered; none if the call did not ask.
    pub answered_by: Option<String>,
}

/// The record's value.
#[derive(Serialize, Deserialize)]
struct RuleRecord {
    owner: PolicyOwner,
    pattern: String,
    action: PolicyAction,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    editable: bool,
    position: RulePosition,
    created: Timestamp,
    updated: Timestamp,
    /// Earlier versions did not write it.
    said: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unconfirmed: Option<ManagementOrigin>,
}

impl KeptRule {
    /// The evaluation order.
    pub(super) fn order(&self) -> (PolicyOwner, &RulePosition, &str) {
        (self.owner, &self.position, &self.id)
    }

    pub(super) fn take(&mut self, change: &RuleChange, now: Timestamp) {
        let RuleChange { owner: _, pattern, action, editable, position } = change;
        if let Some(pattern) = pattern {
            self.pattern = pattern.clone();
        }
        if let Some(action) = action {
            self.action = *action;
        }
        if let Some(editable) = editable {
            self.editable = *editable;
        }
        if let Some(position) = position {
            self.position = position.clone();
        }
        self.updated = now;
        // Moving a rule does not confirm tools that were added since.
        if pattern.is_some() || action.is_some() {
            self.said = now;
            self.unconfirmed = None;
        }
    }

    /// Whether it would approve a call and is not in effect yet.
    pub fn is_suspended(&self) -> bool {
        self.action == PolicyAction::Approve && self.unconfirmed.is_some()
    }

    /// The rule as decisions read it.
    pub(super) fn rule(&self) -> PolicyRule {
        let (pattern, action, editable) = (self.pattern.clone(), self.action, self.editable);
        PolicyRule { pattern, action, said: Some(self.said), editable }
    }

    pub(super) fn written(&self) -> String {
        let written = RuleRecord {
            owner: self.owner,
            pattern: self.pattern.to_string(),
            action: self.action,
            editable: self.editable,
            position: self.position.clone(),
            created: self.created,
            updated: self.updated,
            said: Some(self.said),
            unconfirmed: self.unconfirmed.clone(),
        };
        serde_json::to_string(&written).expect("names and numbers can be written")
    }

    /// A rule that cannot be read is an error and not skipped: it may be the one that blocks.
    pub(super) fn read(record: &StoredRecord) -> Result<Self, StoreError> {
        let damaged = || StoreError::Damaged(format!("the policy {} cannot be read", record.key));
        let written: RuleRecord = serde_json::from_str(&record.value).map_err(|_| damaged())?;
        Ok(Self {
            id: record.key.clone(),
            owner: written.owner,
            pattern: ToolPattern::parse(&written.pattern).map_err(|_| damaged())?,
            action: written.action,
            editable: written.editable,
            position: written.position,
            created: written.created,
            updated: written.updated,
            said: written.said.unwrap_or(written.updated),
            unconfirmed: written.unconfirmed,
        })
    }
}
