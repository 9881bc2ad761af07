//! The state of a session's guest: its open tasks, and how much output each of them may still produce.

use super::mailbox::LineQueue;
use crate::link::{LinkReader, LinkWriter};
use protocols::execbox::session::{
    CommandProgress, FromSession, GuestCall, GuestPrint, GuestTimer, OpenSession, WrittenFile,
    encode,
};
use protocols::execbox::wire::RawJson;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Limit of the files that one command may write.
const FILES_MAX: u32 = 64;

/// Longest name, and longest content type, of a file that a command writes.
const FILE_NAME_BYTES_MAX: usize = 128;

/// The state of one session.
pub(crate) struct EvaluatorState {
    pub(super) mailbox: LineQueue,
    /// The task that currently runs; 0 for none.
    pub(super) current: Cell<u64>,
    /// The guest must stop.
    pub(super) stopped: Cell<bool>,
    /// Open tasks, and what each may still print.
    pub(super) open: RefCell<BTreeMap<u64, OutputAllowance>>,
    pub(super) calls: RefCell<BTreeMap<u32, u64>>,
    pub(super) timers: RefCell<BTreeMap<u32, u64>>,
    /// The prelude's description of the last value it was shown.
    pub(super) shown: RefCell<Option<(String, String, u64)>>,
    /// The prelude's description of the last error of a command.
    pub(super) claimed: RefCell<Option<(String, String, String)>>,
    printed_bytes_max: usize,
}

/// How much an open task may still print.
pub(super) struct OutputAllowance {
    printed_bytes: usize,
    files: u32,
}

impl EvaluatorState {
    pub(super) fn new(inbox: LinkReader, open: &OpenSession) -> Rc<Self> {
        Rc::new(Self {
            mailbox: LineQueue::new(inbox),
            current: Cell::default(),
            stopped: Cell::default(),
            open: RefCell::default(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            shown: RefCell::default(),
            claimed: RefCell::default(),
            printed_bytes_max: open.printed_bytes_max as usize,
        })
    }

    /// Opens a task and makes it the current one.
    pub(super) fn begin_task(&self, task: u64) {
        let room = OutputAllowance { printed_bytes: self.printed_bytes_max, files: FILES_MAX };
        self.open.borrow_mut().insert(task, room);
        self.current.set(task);
    }

    /// Makes `task` the current one, or the oldest open task if `task` has ended.
    pub(super) fn turn_of(&self, task: u64) {
        let open = self.open.borrow();
        let heir = if open.contains_key(&task) { task } else { *open.keys().next().unwrap_or(&0) };
        self.current.set(heir);
    }

    /// Whether an open task receives what is printed now.
    pub(super) fn has_open_task(&self) -> bool {
        self.open.borrow().contains_key(&self.current.get())
    }

    /// Stops the guest.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    /// Called while the guest is busy. Returns whether it must stop.
    pub(crate) fn poll(&self) -> bool {
        self.mailbox.poll_lines();
        if self.mailbox.is_stopped(self.current.get()) {
            self.stopped.set(true);
        }
        self.stopped.get()
    }

    pub(crate) fn call(&self, outbox: &LinkWriter, call: u32, tool: &str, args: RawJson<'_>) {
        let task = self.current.get();
        self.calls.borrow_mut().insert(call, task);
        send_message(
            outbox,
            &FromSession::Called(GuestCall { task, call, tool: tool.into(), args }),
        );
    }

    pub(crate) fn print(&self, outbox: &LinkWriter, line: &str) {
        let task = self.current.get();
        let mut open = self.open.borrow_mut();
        let Some(room) = open.get_mut(&task).filter(|room| room.printed_bytes > 0) else { return };
        let end = line.floor_char_boundary(room.printed_bytes);
        room.printed_bytes = room.printed_bytes.saturating_sub(end + 1);
        send_message(outbox, &FromSession::Printed(GuestPrint { task, line: line[..end].into() }));
        // Flush immediately: the next thing the guest does may be a loop that never lets us write again.
        outbox.flush();
    }

    pub(crate) fn timer_set(&self, outbox: &LinkWriter, timer: u32, delay_ms: u64) {
        let task = self.current.get();
        self.timers.borrow_mut().insert(timer, task);
        send_message(outbox, &FromSession::TimerSet(GuestTimer { timer, task, delay_ms }));
    }

    pub(crate) fn timer_cleared(&self, outbox: &LinkWriter, timer: u32) {
        self.timers.borrow_mut().remove(&timer);
        send_message(outbox, &FromSession::TimerCleared(timer));
    }

    pub(crate) fn progress(&self, outbox: &LinkWriter, task: u64, value: RawJson<'_>) {
        if self.open.borrow().contains_key(&task) {
            send_message(outbox, &FromSession::Progressed(CommandProgress { task, value }));
            outbox.flush();
        }
    }

    pub(crate) fn set_display(&self, type_name: String, json: String, bytes: u64) {
        *self.shown.borrow_mut() = Some((type_name, json, bytes));
    }

    pub(crate) fn claim(&self, kind: String, code: String, details: String) {
        *self.claimed.borrow_mut() = Some((kind, code, details));
    }

    /// Returns whether the file was accepted.
    pub(crate) fn write(&self, outbox: &LinkWriter, task: u64, file: &CommandFile<'_>) -> bool {
        let mut open = self.open.borrow_mut();
        let Some(room) = open.get_mut(&task).filter(|room| room.files > 0) else { return false };
        let CommandFile { name, content_type, base64 } = *file;
        if [name, content_type].iter().any(|name| name.len() > FILE_NAME_BYTES_MAX) {
            return false;
        }
        room.files -= 1;
        let (name, content_type, base64) = (name.into(), content_type.into(), base64.into());
        send_message(outbox, &FromSession::Wrote(WrittenFile { task, name, content_type, base64 }));
        true
    }
}

/// A file that a command writes.
pub(crate) struct CommandFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) base64: &'a str,
}

pub(crate) fn send_message(outbox: &LinkWriter, message: &FromSession<'_>) {
    outbox.send_with(|line| encode(message, line));
}
