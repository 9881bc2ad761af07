//! Replies to requests that are decided and not yet sufficiently durable.

use super::ReplySender;
use super::journal_writer::{AppendGate, JournalWriter};
use crate::fault::Fault;
use std::collections::VecDeque;

/// Replies in the order of their gates.
#[derive(Default)]
pub(super) struct PendingReplies(VecDeque<(AppendGate, ReplySender)>);

impl PendingReplies {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a reply once everything before `gate` is durable.
    pub(super) fn push(&mut self, gate: AppendGate, reply: ReplySender) {
        self.0.push_back((gate, reply));
    }

    /// Sends the replies whose gates are open.
    pub(super) fn send_kept(&mut self, journal: &JournalWriter) {
        while let Some((gate, reply)) = self.0.pop_front() {
            if !journal.is_open(gate) {
                self.0.push_front((gate, reply));
                return;
            }
            let _ = reply.send(Ok(()));
        }
    }

    /// The journal failed: which entries are durable is unknown.
    pub(super) fn fail(&mut self, fault: &Fault) {
        for (_, reply) in self.0.drain(..) {
            let _ = reply.send(Err(fault.clone().into()));
        }
    }
}
