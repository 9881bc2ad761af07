//! A run of a program, and its result.

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
    /// The source text of the guest.
    pub code: String,
    /// The namespaces that the guest can use.
    pub providers: Vec<Arc<ResolvedProvider>>,
    /// Limits of this run.
    pub options: Options,
    /// Ends the run as a timeout would.
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

    /// Adds a namespace.
    #[must_use]
    pub fn provider(mut self, provider: Arc<ResolvedProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub const fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the token that ends the run.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteResult {
    /// The value, `None` for undefined, or the error.
    pub outcome: Result<Option<Json>, ExecboxFailure>,
    /// What the guest printed; empty when the host had to end the run.
    pub logs: Vec<String>,
    /// What it emitted with `emit`, where the runner is Airlock's; empty when the host had to end the run.
    pub emitted: Vec<Json>,
    /// The duration of the run.
    pub duration_ms: u64,
}

impl ExecuteResult {
    /// Whether the program has a value.
    pub const fn ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Whether the runner can run another program: one that was cut off or broke cannot.
    pub(super) fn leaves_runner_fit(&self) -> bool {
        match &self.outcome {
            Ok(_) => true,
            Err(failure) => !matches!(failure.code, ErrorCode::Timeout | ErrorCode::Internal),
        }
    }

    /// The result of a run that the host itself had to end.
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
