//! The configuration of an engine, and its default times.

use crate::policies::PolicySet;
use crate::{Clock, QuotaSettings, RetentionPolicy};
use lifecycle::{ExecutionLimits, Policy};
use std::sync::Arc;
use store::{Journal, RecordStore};
use tools::Catalogue;

/// How long a call waits for a source that is not available.
pub const SOURCE_WAIT_MS: u64 = 30_000;

/// The configuration of an engine.
#[derive(Clone)]
pub struct Config {
    /// Stores everything that happens.
    pub journal: Arc<dyn Journal>,
    /// What programs can call.
    pub catalogue: Catalogue,
    /// The policies for calls.
    pub policies: Arc<PolicySet>,
    /// Default limits of programs.
    pub limits: ExecutionLimits,
    /// The sandbox that runs programs.
    pub sandbox: sandbox::Config,
    /// The source of time.
    pub clock: Clock,
    /// How long a program that waits for people retains its runner.
    pub warm_pause_ms: u64,
    /// How long a call waits for a source that is not available before it fails.
    pub source_wait_ms: u64,
    /// How long finished executions stay readable.
    pub retention: RetentionPolicy,
    /// Quotas of callers.
    pub quotas: QuotaSettings,
    /// Records the state of the clock and the callers' processor time. Without it, each start
    /// trusts the wall clock and counts processor time from 0.
    pub records: Option<Arc<dyn RecordStore>>,
}

impl Config {
    /// The default configuration with this journal and catalogue.
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
