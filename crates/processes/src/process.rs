//! The handle of a process, running or ended.

use crate::answerer::TerminalAnswerer;
use crate::error::WriteRefusal;
use crate::output::ProcessOutput;
use crate::spawn_order::FamilySignal;
use crate::spec::PtySize;
use crate::streams::PtyHandle;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::DropGuard;

/// Limit of queued input for a program that does not read.
const INPUT_BYTES_MAX: usize = 8 << 20;

/// The least that a write counts, which limits the number of small writes.
const WRITE_BYTES_MIN: usize = 256;

/// Capacity of the queue of requests to a pump, which never blocks: not reached in practice.
pub(crate) const WISHES_MAX: usize = 1_024;

/// How to end a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMode {
    /// Immediately, with all its descendants.
    Kill,
    /// Its group gets a signal; what still runs after the grace period is killed.
    Ask {
        /// The signal to send.
        signal: FamilySignal,
        /// The grace period.
        grace: Duration,
    },
}

/// A process. Dropping the last clone kills it and all its descendants.
#[derive(Debug, Clone)]
pub struct Process {
    pid: i32,
    output: Arc<ProcessOutput>,
    wishes: mpsc::Sender<PumpRequest>,
    terminal: Option<PtyHandle>,
    input: Arc<InputState>,
    /// Notifies the pump when the last clone is dropped.
    _wanted: Arc<DropGuard>,
}

#[derive(Debug)]
struct InputState {
    room: Arc<Semaphore>,
    is_open: AtomicBool,
}

/// A request to a pump.
#[derive(Debug)]
pub(crate) enum PumpRequest {
    /// Bytes for the program, and the queue space that they take.
    Write(Bytes, OwnedSemaphorePermit),
    /// Close the input.
    CloseInput,
    Signal(FamilySignal),
    End(EndMode),
}

/// The pump's side of a process.
pub(crate) struct PumpHold {
    pub(crate) wishes: mpsc::Sender<PumpRequest>,
    /// Dropped when the last handle of the process is dropped.
    pub(crate) wanted: DropGuard,
}

/// Reserved queue space for bytes that are about to be written.
#[derive(Debug)]
pub struct InputRoom(OwnedSemaphorePermit);

impl Process {
    pub(crate) fn new(
        pid: i32,
        output: Arc<ProcessOutput>,
        PumpHold { wishes, wanted }: PumpHold,
        terminal: Option<PtyHandle>,
        has_input: bool,
    ) -> Self {
        let room = Arc::new(Semaphore::new(INPUT_BYTES_MAX));
        let input = Arc::new(InputState { room, is_open: AtomicBool::new(has_input) });
        Self { pid, output, wishes, terminal, input, _wanted: Arc::new(wanted) }
    }

    /// Its process number; meaningful while it lives.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Its output.
    pub const fn output(&self) -> &Arc<ProcessOutput> {
        &self.output
    }

    /// Whether it has a terminal.
    pub const fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether its input is open.
    pub fn has_input(&self) -> bool {
        self.input.is_open.load(Ordering::Acquire)
    }

    /// Reserves space for `n_bytes` if it is available now.
    pub fn try_input_room(&self, n_bytes: usize) -> Option<InputRoom> {
        let room = Arc::clone(&self.input.room);
        room.try_acquire_many_owned(permits(n_bytes)).ok().map(InputRoom)
    }

    /// Waits for space for `n_bytes`. Waiting tasks are served in order.
    pub async fn input_room(&self, n_bytes: usize) -> InputRoom {
        let room = Arc::clone(&self.input.room);
        InputRoom(room.acquire_many_owned(permits(n_bytes)).await.expect("nobody closes it"))
    }

    /// Writes bytes for which space is reserved. Has no effect on a program that has ended.
    pub fn write(&self, bytes: Bytes, room: InputRoom) -> Result<(), WriteRefusal> {
        if !self.has_input() {
            return Err(WriteRefusal::Closed);
        }
        match self.wishes.try_send(PumpRequest::Write(bytes, room.0)) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(WriteRefusal::Full),
        }
    }

    /// Closes the program's input after the bytes that were written. For a terminal, this sends Ctrl-D,
    /// twice if a line was begun.
    pub fn close_input(&self) -> Result<(), WriteRefusal> {
        if !self.has_input() {
            return Err(WriteRefusal::Closed);
        }
        if self.terminal.is_none() {
            self.input.is_open.store(false, Ordering::Release);
        }
        self.wish(PumpRequest::CloseInput);
        Ok(())
    }

    /// Declares that a client's own terminal answers the program's queries, until the result is dropped.
    pub fn answered_elsewhere(&self) -> TerminalAnswerer {
        TerminalAnswerer::new(&self.output)
    }

    /// Changes the size of its terminal.
    pub fn resize(&self, size: PtySize) -> Result<(), WriteRefusal> {
        let terminal = self.terminal.as_ref().ok_or(WriteRefusal::NoTerminal)?;
        // Earlier output belongs on the screen of the old size; later output may be for either size.
        self.output.screen(|screen| screen.resize(size));
        // It only fails if the terminal is closed, which may equally happen a moment later.
        let _ = terminal.resize(size);
        Ok(())
    }

    /// Signals it and its group. Has no effect if it has ended.
    pub fn signal(&self, signal: FamilySignal) {
        self.wish(PumpRequest::Signal(signal));
    }

    /// Ends it and all its descendants, including those that remained after it ended itself.
    pub fn end_with(&self, how: EndMode) {
        self.wish(PumpRequest::End(how));
    }

    /// Waits until the process and all its descendants have ended.
    pub async fn gone(&self) {
        self.wishes.closed().await;
    }

    /// Whether the process and all its descendants have ended.
    pub fn is_gone(&self) -> bool {
        self.wishes.is_closed()
    }

    fn wish(&self, wanted: PumpRequest) {
        if let Err(mpsc::error::TrySendError::Full(wanted)) = self.wishes.try_send(wanted) {
            tracing::warn!(?wanted, "the request queue of a process is full");
        }
    }
}

fn permits(n_bytes: usize) -> u32 {
    // One write may be larger than the whole queue: it then waits until the queue is empty.
    u32::try_from(n_bytes.clamp(WRITE_BYTES_MIN, INPUT_BYTES_MAX)).unwrap_or(u32::MAX)
}
