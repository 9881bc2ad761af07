//! What an engine is made of, and the times it keeps.

use crate::policies::PolicySet;
use crate::{Clock, QuotaSettings, RetentionPolicy};
use lifecycle::{ExecutionLimits, Policy};
use std::sync::Arc;
use store::{Journal, RecordStore};
use tools::Catalogue;

/// How long a call waits for a source that is not available.
pub const SOURCE_WAIT_MS: u64 = 30_000;

/// What an engine is made of.
#[derive(Clone)]
pub struct Config {
    /// Where everything is written down.
    pub journal: Arc<dyn Journal>,
    /// What programs can call.
    pub catalogue: Catalogue,
    /// Who may call what.
    pub policies: Arc<PolicySet>,
    /// What programs may use where nobody says otherwise.
    pub limits: ExecutionLimits,
    /// Where programs run.
    pub sandbox: sandbox::Config,
    /// What time it is.
    pub clock: Clock,
    /// How long a program that waits for people keeps its runner.
    pub warm_pause_ms: u64,
    /// How long a call waits for a source that is not available before it fails.
    pub source_wait_ms: u64,
    /// How long finished executions stay readable.
    pub retention: RetentionPolicy,
    /// What each caller may use at a time.
    pub quotas: QuotaSettings,
    /// Where the engine notes what it saw of the clock and how much processor time callers used. Without it, each start
    /// takes the wall clock as it is and counts processor time from 0.
    pub records: Option<Arc<dyn RecordStore>>,
}

impl Config {
    /// The usual engine on this journal and catalogue.
    pub fn new(journal: impl Journal + 'static, catalogue: Catalogue) -> Self {
        Self {
            journal: Arc::new(journal),
            catalogue,
            policies: Arc::new(PolicySet::fixed(Policy::default())),
            limits: ExecutionLimits::default(),
            sandbox: sandbox::Config::default(),
            clock: Clock::system(),
            warm_pause_ms: 10_000,
            source_wait_ms: SOURCE_WAIT_MS,
            retention: RetentionPolicy::default(),
            quotas: QuotaSettings::default(),
            records: None,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("warm_pause_ms", &self.warm_pause_ms).finish_non_exhaustive()
    }
}
