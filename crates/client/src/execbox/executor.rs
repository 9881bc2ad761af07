//! Starts a new runner for every program.

use super::channels::ConnectRunner;
use super::error::ExecboxFailure;
use super::execution::{ExecboxProgram, ExecuteResult};
use super::options::Options;
use super::session::HostSession;
use std::fmt;
use std::sync::Arc;

/// Runs each program on a channel of its own. Clones share nothing but their settings.
#[derive(Clone)]
pub struct OneShot {
    connect: Arc<dyn ConnectRunner>,
    options: Options,
}

impl OneShot {
    /// Opens channels with `connect`.
    pub fn new(connect: impl ConnectRunner) -> Self {
        Self { connect: Arc::new(connect), options: Options::default() }
    }

    /// Sets the limits for programs that bring none.
    #[must_use]
    pub const fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Runs a program and releases its runner. Dropping the future ends both.
    pub async fn execute(&self, execution: ExecboxProgram) -> ExecuteResult {
        let execution = ExecboxProgram { options: execution.options.or(self.options), ..execution };
        if execution.cancel.is_cancelled() {
            return ExecuteResult::failed(ExecboxFailure::timeout(), 0);
        }
        let mut transport = match self.connect.connect().await {
            Ok(transport) => transport,
            Err(error) => {
                return ExecuteResult::failed(ExecboxFailure::internal(error.to_string()), 0);
            }
        };
        let result = HostSession::new(&mut *transport).run(&execution).await;
        transport.dispose().await;
        result
    }
}

impl fmt::Debug for OneShot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneShot").field("options", &self.options).finish_non_exhaustive()
    }
}
