//! The messages of a session that its runner has received and not yet processed. The queue is polled while
//! the guest is busy, too: a request to stop must not wait behind the task that it should stop.

use crate::link::LinkReader;
use protocols::execbox::session::{InterruptTask, ToSession};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Lines that are read ahead while the guest is busy. Later lines stay in the socket.
const AHEAD_MAX: usize = 4_096;

/// The queue of unprocessed lines.
pub(super) struct LineQueue {
    inbox: RefCell<LinkReader>,
    ahead: RefCell<VecDeque<Vec<u8>>>,
    stopped: RefCell<BTreeSet<u64>>,
}

impl LineQueue {
    pub(super) fn new(inbox: LinkReader) -> Self {
        let inbox = RefCell::new(inbox);
        Self { inbox, ahead: RefCell::default(), stopped: RefCell::default() }
    }

    /// The next line; `None` once the other side has closed. `before_waiting` runs if no line has arrived
    /// yet.
    pub(super) fn next(&self, before_waiting: impl FnOnce()) -> io::Result<Option<Vec<u8>>> {
        if let Some(line) = self.ahead.borrow_mut().pop_front() {
            return Ok(Some(line));
        }
        Ok(self.inbox.borrow_mut().line(before_waiting)?.map(<[u8]>::to_vec))
    }

    /// Reads the lines that have arrived, without waiting for more.
    pub(super) fn poll_lines(&self) {
        let mut ahead = self.ahead.borrow_mut();
        if ahead.len() >= AHEAD_MAX {
            return;
        }
        let mut inbox = self.inbox.borrow_mut();
        inbox.read_now();
        while let Some(line) = inbox.take() {
            match serde_json::from_slice(line) {
                Ok(ToSession::Interrupt(InterruptTask { task })) => {
                    self.stopped.borrow_mut().insert(task);
                    // This line is acknowledged now, and queued again so that it also counts as processed.
                    ahead.push_back(line.to_vec());
                }
                Ok(_) | Err(_) => ahead.push_back(line.to_vec()),
            }
        }
    }

    /// Whether a queued message requests that this task stops, or that any task stops.
    pub(super) fn is_stopped(&self, task: u64) -> bool {
        let stopped = self.stopped.borrow();
        !stopped.is_empty() && (stopped.contains(&task) || stopped.contains(&0))
    }

    /// Removes the request to stop, which has been fulfilled.
    pub(super) fn drop_task(&self, task: u64) {
        self.stopped.borrow_mut().remove(&task);
    }
}
