//! Decides who answers the queries that programs send to their terminal.

use crate::output::ProcessOutput;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A client that has its own terminal. While it exists, the server answers no queries of the program.
#[derive(Debug)]
pub struct TerminalAnswerer(Arc<ProcessOutput>);

impl TerminalAnswerer {
    pub(crate) fn new(output: &Arc<ProcessOutput>) -> Self {
        output.n_answerers.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(output))
    }
}

impl Drop for TerminalAnswerer {
    fn drop(&mut self) {
        self.0.n_answerers.fetch_sub(1, Ordering::AcqRel);
    }
}
