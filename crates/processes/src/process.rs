//! A process that runs, or ran: what a caller can do with it.

use crate::answerer::TerminalAnswerer;
use crate::error::WriteRefusal;
use crate::order::FamilySignal;
use crate::output::ProcessOutput;
use crate::spec::PtySize;
use crate::streams::PtyHandle;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::DropGuard;

/// What may wait for a program that does not read.
const INPUT_BYTES_MAX: usize = 8 << 20;

/// What the smallest write counts as, so that there are not too many of them.
const WRITE_BYTES_MIN: usize = 256;

/// Wishes that may wait for a pump, which never waits for anybody: never reached.
pub(crate) const WISHES_MAX: usize = 1_024;

/// How a process shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMode {
    /// At once, with all it has started.
    Kill,
    /// Its group gets a signal; what is left after the grace is killed.
    Ask {
        /// What it gets.
        signal: FamilySignal,
        /// How long it may take.
        grace: Duration,
    },
}

/// A process. The last clone that is dropped kills it and all that it has started.
#[derive(Debug, Clone)]
pub struct Process {
    pid: i32,
    output: Arc<ProcessOutput>,
    wishes: mpsc::Sender<PumpRequest>,
    terminal: Option<PtyHandle>,
    input: Arc<InputState>,
    /// Tells the pump when the last clone is gone.
    _wanted: Arc<DropGuard>,
}

#[derive(Debug)]
struct InputState {
    room: Arc<Semaphore>,
    is_open: AtomicBool,
}

/// What is wanted of a pump.
#[derive(Debug)]
pub(crate) enum PumpRequest {
    /// Bytes for the program, and the room they take.
    Write(Bytes, OwnedSemaphorePermit),
    /// No more bytes.
    CloseInput,
    Signal(FamilySignal),
    End(EndMode),
}

/// What a pump is held by.
pub(crate) struct PumpHold {
    pub(crate) wishes: mpsc::Sender<PumpRequest>,
    /// Dropped when nobody wants the process any more.
    pub(crate) wanted: DropGuard,
}

/// Room for bytes that are about to be written.
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

    /// Its number, while it lives.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// What it says.
    pub const fn output(&self) -> &Arc<ProcessOutput> {
        &self.output
    }

    /// Whether it has a terminal.
    pub const fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether it can be written to, read or not.
    pub fn has_input(&self) -> bool {
        self.input.is_open.load(Ordering::Acquire)
    }

    /// Room for `n_bytes`, now or never.
    pub fn try_input_room(&self, n_bytes: usize) -> Option<InputRoom> {
        let room = Arc::clone(&self.input.room);
        room.try_acquire_many_owned(permits(n_bytes)).ok().map(InputRoom)
    }

    /// Waits for room for `n_bytes`. Those who wait are served in order.
    pub async fn input_room(&self, n_bytes: usize) -> InputRoom {
        let room = Arc::clone(&self.input.room);
        InputRoom(room.acquire_many_owned(permits(n_bytes)).await.expect("nobody closes it"))
    }

    /// Writes bytes that there is room for. A program that has ended does not mind.
    pub fn write(&self, bytes: Bytes, room: InputRoom) -> Result<(), WriteRefusal> {
        if !self.has_input() {
            return Err(WriteRefusal::Closed);
        }
        match self.wishes.try_send(PumpRequest::Write(bytes, room.0)) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(WriteRefusal::Full),
        }
    }

    /// Lets the program see the end of its input, after what was written. A terminal is sent Ctrl-D, twice
    /// where a line was begun.
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

    /// Says that a client's own terminal answers what the program asks, for as long as the result lives.
    pub fn answered_elsewhere(&self) -> TerminalAnswerer {
        TerminalAnswerer::new(&self.output)
    }

    /// Changes the size of its terminal.
    pub fn resize(&self, size: PtySize) -> Result<(), WriteRefusal> {
        let terminal = self.terminal.as_ref().ok_or(WriteRefusal::NoTerminal)?;
        // What was said before belongs on the screen as it was; what follows may come for either size.
        self.output.screen(|screen| screen.resize(size));
        // It fails only where the terminal is gone, as it would a moment later.
        let _ = terminal.resize(size);
        Ok(())
    }

    /// Signals it and its group. One that has ended does not mind.
    pub fn signal(&self, signal: FamilySignal) {
        self.wish(PumpRequest::Signal(signal));
    }

    /// Ends it and all that it has started, also what it left behind when it ended itself.
    pub fn end_with(&self, how: EndMode) {
        self.wish(PumpRequest::End(how));
    }

    /// Waits until everybody is gone: the process and all that it has started.
    pub async fn gone(&self) {
        self.wishes.closed().await;
    }

    /// Whether anybody is left: the process, or something that it has started.
    pub fn is_gone(&self) -> bool {
        self.wishes.is_closed()
    }

    fn wish(&self, wanted: PumpRequest) {
        if let Err(mpsc::error::TrySendError::Full(wanted)) = self.wishes.try_send(wanted) {
            tracing::warn!(?wanted, "a pump does not keep up");
        }
    }
}

fn permits(n_bytes: usize) -> u32 {
    // One write may be larger than all room: it then waits for all of it.
    u32::try_from(n_bytes.clamp(WRITE_BYTES_MIN, INPUT_BYTES_MAX)).unwrap_or(u32::MAX)
}
