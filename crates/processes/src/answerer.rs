//! Who answers what programs ask their terminal.

use crate::output::ProcessOutput;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A client with a terminal of its own. While it is there, nobody else answers what the program asks its terminal.
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
