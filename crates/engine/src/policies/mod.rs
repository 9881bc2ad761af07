//! Policies: rules that people store, and the combined policy that every decision reads.
//!
//! Rules are records, changed by compare-and-set. Every decision reads the policy that this process
//! loaded last: at its start and after each change made through it. Changes of the same records by another
//! process apply here after the next [`PolicySet::reload`].

mod explain;
mod position;
mod rule;

pub use explain::{IgnoredApproval, PolicyDecision};
pub use position::{BadPosition, RulePosition};
pub use rule::{KeptRule, ManagementOrigin, NewRule, PolicyOwner, RuleChange};

use crate::fault::Fault;
use lifecycle::{Policy, Timestamp};
use std::sync::{Arc, PoisonError, RwLock};
use store::{RecordStore, StoreError, StoredRecord};
use uuid::Uuid;

/// The kind of record that a rule is.
pub const KIND: &str = "policy";

/// Maximum number of stored rules. Each call evaluates all of them.
const RULES_MAX: usize = 1_000;

/// Maximum number of attempts of a change that conflicts with concurrent changes of the same rule.
const ATTEMPTS_MAX: usize = 4;

/// The rules, and the combined policy.
pub struct PolicySet {
    records: Option<Arc<dyn RecordStore>>,
    /// The rules of the embedding program or of configuration files; they cannot be changed over HTTP.
    configured: RwLock<Policy>,
    live: RwLock<Arc<Policy>>,
    /// The stored rules as this process last read them.
    loaded: RwLock<Arc<Vec<KeptRule>>>,
}

/// Why a rule was not changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PolicyError {
    /// This policy set has no store.
    #[error("this engine keeps no rules")]
    NotKept,
    /// No such rule, or another owner's.
    #[error("there is no policy {0}")]
    Unknown(String),
    /// The limit on stored rules is reached.
    #[error("there are {RULES_MAX} policies, the most there can be; remove one first")]
    TooMany,
    /// Concurrent changes continued to conflict.
    #[error("this policy is being changed concurrently; try again")]
    Contested,
    /// An internal error.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for PolicyError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

impl PolicySet {
    /// Only the configured rules; without a store.
    pub fn fixed(configured: Policy) -> Self {
        let live = RwLock::new(Arc::new(configured.clone()));
        Self { records: None, configured: RwLock::new(configured), live, loaded: RwLock::default() }
    }

    /// Loads the stored rules, and combines them with the configured ones.
    pub async fn open(records: Arc<dyn RecordStore>, configured: Policy) -> Result<Self, Fault> {
        let policies = Self { records: Some(records), ..Self::fixed(configured) };
        policies.reload().await?;
        Ok(policies)
    }

    /// The combined policy of a data directory's rules, for read-only access.
    pub fn adding_up(records: &[StoredRecord]) -> Result<Policy, Fault> {
        let mut rules = records.iter().map(KeptRule::read).collect::<Result<Vec<_>, _>>()?;
        rules.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(policy(&rules))
    }

    /// Ids of the rules among records that an administrator has not confirmed.
    pub fn unconfirmed_among(records: &[StoredRecord]) -> Vec<String> {
        let rules = records.iter().filter_map(|record| KeptRule::read(record).ok());
        rules.filter(|rule| rule.unconfirmed.is_some()).map(|rule| rule.id).collect()
    }

    /// The policy in effect. Cheap: every decision reads it.
    pub fn live(&self) -> Arc<Policy> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configured rules. Takes effect immediately, beside the stored rules.
    pub async fn configure(&self, configured: Policy) -> Result<(), Fault> {
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = configured;
        self.reload().await
    }

    /// Every stored rule by owner, in evaluation order.
    pub async fn list_rules(&self) -> Result<Vec<KeptRule>, Fault> {
        let Some(records) = &self.records else { return Ok(vec![]) };
        let mut rules = vec![];
        for record in records.all(KIND).await? {
            rules.push(KeptRule::read(&record)?);
        }
        rules.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(rules)
    }

    /// Stores a new rule, above all others of its owner unless a position is given. Takes effect immediately.
    pub async fn add(&self, new: NewRule, now: Timestamp) -> Result<KeptRule, PolicyError> {
        let records = self.records()?;
        let rules = self.list_rules().await?;
        if rules.len() >= RULES_MAX {
            return Err(PolicyError::TooMany);
        }
        let first = rules.iter().find(|rule| rule.owner == new.owner).map(|rule| &rule.position);
        let position = new.position.unwrap_or_else(|| RulePosition::above(first));
        let NewRule { owner, pattern, action, editable, .. } = new;
        let id = format!("policy_{}", Uuid::now_v7().simple());
        let (created, updated, said, unconfirmed) = (now, now, now, None);
        let rule = KeptRule {
            id,
            owner,
            pattern,
            action,
            editable,
            position,
            created,
            updated,
            said,
            unconfirmed,
        };
        records.put(KIND, &rule.id, rule.written(), 0).await?;
        self.reload().await?;
        Ok(rule)
    }

    /// Changes a rule. Takes effect immediately.
    pub async fn change(
        &self,
        id: &str,
        change: RuleChange,
        now: Timestamp,
    ) -> Result<KeptRule, PolicyError> {
        self.rewrite(id, change.owner, |rule| rule.take(&change, now)).await
    }

    /// Puts a rule into effect that a management call made without an answer of a token that could answer.
    pub async fn confirm(&self, id: &str, now: Timestamp) -> Result<KeptRule, PolicyError> {
        let confirmed = |rule: &mut KeptRule| {
            if rule.unconfirmed.take().is_some() {
                rule.updated = now;
            }
        };
        self.rewrite(id, None, confirmed).await
    }

    /// Marks a rule as made by a management call that was not answered by a token with that right.
    pub async fn suspend(&self, id: &str, origin: &ManagementOrigin) -> Result<(), PolicyError> {
        self.rewrite(id, None, |rule| rule.unconfirmed = Some(origin.clone())).await.map(drop)
    }

    /// The rule of this id as this process last read it. Cheap; never blocks.
    pub fn current(&self, id: &str) -> Option<KeptRule> {
        let loaded = Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner));
        loaded.iter().find(|rule| rule.id == id).cloned()
    }

    async fn rewrite(
        &self,
        id: &str,
        owner: Option<PolicyOwner>,
        edit: impl Fn(&mut KeptRule),
    ) -> Result<KeptRule, PolicyError> {
        let records = self.records()?;
        for _ in 0..ATTEMPTS_MAX {
            let (mut rule, version) = self.find(id, owner).await?;
            edit(&mut rule);
            match records.put(KIND, id, rule.written(), version).await {
                Ok(_) => {
                    self.reload().await?;
                    return Ok(rule);
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PolicyError::Contested)
    }

    /// Removes a rule; if an owner is named, only one of this owner. Takes effect immediately.
    pub async fn remove(&self, id: &str, owner: Option<PolicyOwner>) -> Result<(), PolicyError> {
        let records = self.records()?;
        for _ in 0..ATTEMPTS_MAX {
            let (_, version) = self.find(id, owner).await?;
            match records.remove(KIND, id, version).await {
                Ok(()) => return Ok(self.reload().await?),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PolicyError::Contested)
    }

    /// Reads the rules again.
    pub async fn reload(&self) -> Result<(), Fault> {
        let rules = self.list_rules().await?;
        let kept = policy(&rules);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        let configured = self.configured.read().unwrap_or_else(PoisonError::into_inner).clone();
        let live = Arc::new(configured.and(kept));
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
        Ok(())
    }

    fn records(&self) -> Result<&Arc<dyn RecordStore>, PolicyError> {
        self.records.as_ref().ok_or(PolicyError::NotKept)
    }

    async fn find(
        &self,
        id: &str,
        owner: Option<PolicyOwner>,
    ) -> Result<(KeptRule, u64), PolicyError> {
        let unknown = || PolicyError::Unknown(id.to_owned());
        let record = self.records()?.get(KIND, id).await?.ok_or_else(unknown)?;
        let rule = KeptRule::read(&record)?;
        match owner {
            Some(owner) if owner != rule.owner => Err(unknown()),
            Some(_) | None => Ok((rule, record.version)),
        }
    }
}

/// The combined policy of ordered rules.
fn policy(rules: &[KeptRule]) -> Policy {
    let of = |owner| {
        let its = rules.iter().filter(|rule| rule.owner == owner && !rule.is_suspended());
        its.map(KeptRule::rule).collect()
    };
    Policy::new(PolicyOwner::ALL.map(of).into())
}

impl std::fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies").field("live", &self.live()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
