//! A rule that somebody keeps: whose it is, where it stands, and how it is written down.

use super::RulePosition;
use lifecycle::{PolicyAction, PolicyRule, Timestamp, ToolPattern};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use store::{StoreError, StoredRecord};

/// Whose rules. Each owner's list has its say; the most restrictive counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOwner {
    /// Everybody's.
    Org,
    /// One person's own; it can tighten what the organisation says, never loosen it.
    User,
}

impl PolicyOwner {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Org, Self::User];

    /// As it is written.
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

/// A rule to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Whose.
    pub owner: PolicyOwner,
    /// Which tools.
    pub pattern: ToolPattern,
    /// What about them.
    pub action: PolicyAction,
    /// Where it asks: whether whoever answers may change the arguments.
    pub editable: bool,
    /// Where it stands in its owner's list; at the top if none is given.
    pub position: Option<RulePosition>,
}

/// What shall be different about a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleChange {
    /// Whose rule it must be; anybody's if none is given.
    pub owner: Option<PolicyOwner>,
    /// Which tools.
    pub pattern: Option<ToolPattern>,
    /// What about them.
    pub action: Option<PolicyAction>,
    /// Whether whoever answers may change the arguments.
    pub editable: Option<bool>,
    /// Where it stands.
    pub position: Option<RulePosition>,
}

/// A rule as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRule {
    /// `policy_…`.
    pub id: String,
    /// Whose.
    pub owner: PolicyOwner,
    /// Which tools.
    pub pattern: ToolPattern,
    /// What about them.
    pub action: PolicyAction,
    /// Where it asks: whether whoever answers may change the arguments.
    pub editable: bool,
    /// Where it stands in its owner's list.
    pub position: RulePosition,
    /// When it was made.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
    /// When somebody last said what it says: an approval covers tools as they were then.
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
    /// Who answered; none where the call was not asked about.
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
    /// What comes first is looked at first.
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
        // Moving a rule says nothing about tools that have come since.
        if pattern.is_some() || action.is_some() {
            self.said = now;
            self.unconfirmed = None;
        }
    }

    /// Whether it would approve something and does not count yet.
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

    /// A rule that cannot be read is not skipped: it may be the one that blocks.
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
