//! What is asked of a runner, and what comes of it.

use super::error::{ErrorCode, ExecboxFailure};
use super::options::Options;
use super::provider::ResolvedProvider;
use lifecycle::Json;
use protocols::execbox::wire;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A program with the tools it may call.
#[derive(Debug, Clone)]
pub struct ExecboxProgram {
    /// The guest's text.
    pub code: String,
    /// The namespaces it finds.
    pub providers: Vec<Arc<ResolvedProvider>>,
    /// Limits of this run.
    pub options: Options,
    /// Ends the run as if its time were up.
    pub cancel: CancellationToken,
}

impl ExecboxProgram {
    /// A program without tools, with the executor's limits.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            providers: vec![],
            options: Options::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// The same with one more namespace.
    #[must_use]
    pub fn provider(mut self, provider: Arc<ResolvedProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// The same with these limits.
    #[must_use]
    pub const fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The same, ended by `cancel`.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteResult {
    /// The value, `None` for undefined, or why there is none.
    pub outcome: Result<Option<Json>, ExecboxFailure>,
    /// What the guest printed; empty when the host had to end the run.
    pub logs: Vec<String>,
    /// What it handed out with `emit`, where the runner is Airlock's; empty when the host had to end the run.
    pub emitted: Vec<Json>,
    /// How long it took.
    pub duration_ms: u64,
}

impl ExecuteResult {
    /// Whether the program has a value.
    pub const fn ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Whether the runner is fit for another program: one that was cut off or broke is not.
    pub(super) fn leaves_runner_fit(&self) -> bool {
        match &self.outcome {
            Ok(_) => true,
            Err(failure) => !matches!(failure.code, ErrorCode::Timeout | ErrorCode::Internal),
        }
    }

    /// A run that the host itself had to end.
    pub(super) const fn failed(failure: ExecboxFailure, duration_ms: u64) -> Self {
        Self { outcome: Err(failure), logs: vec![], emitted: vec![], duration_ms }
    }
}

impl From<wire::Done<'_>> for ExecuteResult {
    fn from(done: wire::Done<'_>) -> Self {
        let outcome = done.outcome.map(|value| value.map(wire::RawJson::to_json));
        Self {
            outcome: outcome.map_err(|failed| ExecboxFailure {
                code: ErrorCode::from(failed.code.as_ref()),
                message: failed.message.into_owned(),
            }),
            logs: done.logs.into_iter().map(wire::WireText::into_owned).collect(),
            emitted: done.emitted.into_iter().map(wire::RawJson::to_json).collect(),
            duration_ms: done.duration_ms,
        }
    }
}
