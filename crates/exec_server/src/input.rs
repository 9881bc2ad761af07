//! The input of one process, in request order: writes that wait until the program reads, and the end of input behind
//! them.

use super::outbox::RequestReply;
use bytes::Bytes;
use processes::{InputRoom, Process, WriteRefusal};
use protocols::exec_server::{WriteParams, WriteResponse, WriteStatus};
use protocols::json_rpc::{ErrorObject, INVALID_REQUEST};
use serde_json::json;
use std::collections::{HashSet, VecDeque};

/// Number of write ids that are remembered, to detect repeated writes.
const WRITE_IDS_MAX: usize = 4_096;

/// Maximum number of writes that wait for a program that does not read: far fewer than a connection has requests.
const WRITES_MAX: usize = 128;

/// Another write may wait while the waiting ones have fewer bytes than this.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The queued input of one process.
#[derive(Debug)]
pub(super) struct ProcessInput {
    process_id: String,
    process: Process,
    waiting: VecDeque<QueuedInput>,
    waiting_bytes: usize,
    /// Whether the queue contains the end of input; a terminal stays open after it.
    has_end: bool,
    ids: VecDeque<String>,
    known: HashSet<String>,
}

#[derive(Debug)]
enum QueuedInput {
    Write(InputWrite, RequestReply),
    End(RequestReply),
}

#[derive(Debug)]
struct InputWrite {
    bytes: Bytes,
    /// Clients of the first protocol version send none.
    id: Option<String>,
}

impl ProcessInput {
    pub(super) fn new(process_id: String, process: Process) -> Self {
        Self {
            process_id,
            process,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            has_end: false,
            ids: VecDeque::new(),
            known: HashSet::new(),
        }
    }

    /// `process/write`. It is answered when the bytes have been passed to the program.
    pub(super) fn write(&mut self, params: WriteParams, reply: RequestReply) {
        let write = InputWrite { bytes: params.chunk.0.into(), id: params.write_id };
        if write.id.as_ref().is_some_and(|id| self.knows(id)) {
            return reply.send(&accepted(&write));
        }
        if self.has_end || !self.process.has_input() {
            return match write.id {
                None => reply.fail(&write_refusal(&self.process_id, WriteRefusal::Closed)),
                Some(_) => reply.send(&status(WriteStatus::StdinClosed)),
            };
        }
        // If the pipe has capacity, the write need not wait.
        if self.waiting.is_empty()
            && let Some(room) = self.process.try_input_room(write.bytes.len())
        {
            return self.enqueue_write(write, reply, room);
        }
        if self.waiting.len() >= WRITES_MAX || self.waiting_bytes >= WAITING_BYTES_MAX {
            return reply.fail(&self.full());
        }
        if let Some(reply) = reply.waiting() {
            self.waiting_bytes += write.bytes.len();
            self.waiting.push_back(QueuedInput::Write(write, reply));
        }
    }

    /// `process/closeStdin`. It is answered when all earlier writes have been passed on.
    pub(super) fn close(&mut self, reply: RequestReply) {
        if self.has_end || !self.process.has_input() {
            return reply.fail(&write_refusal(&self.process_id, WriteRefusal::Closed));
        }
        if self.waiting.is_empty() {
            return self.end_of_input(reply);
        }
        // However many writes wait, one end of input still fits.
        if self.waiting.len() > WRITES_MAX {
            return reply.fail(&self.full());
        }
        if let Some(reply) = reply.waiting() {
            self.has_end = !self.process.has_terminal();
            self.waiting.push_back(QueuedInput::End(reply));
        }
    }

    /// Waits for capacity for the first queued write; pending forever if none is queued.
    pub(super) async fn room(&self) -> InputRoom {
        match self.waiting.front() {
            Some(QueuedInput::Write(write, _)) => self.process.input_room(write.bytes.len()).await,
            // An end of input needs no capacity and is never at the front of the queue.
            Some(QueuedInput::End(_)) | None => std::future::pending().await,
        }
    }

    /// Capacity for the first queued write is available; performs everything else that can be done now as well.
    pub(super) fn go_on(&mut self, room: InputRoom) {
        let mut room = Some(room);
        while let Some(next) = self.waiting.pop_front() {
            match next {
                QueuedInput::End(reply) => self.end_of_input(reply),
                QueuedInput::Write(write, reply) => {
                    let now = || self.process.try_input_room(write.bytes.len());
                    let Some(room) = room.take().or_else(now) else {
                        return self.waiting.push_front(QueuedInput::Write(write, reply));
                    };
                    self.waiting_bytes -= write.bytes.len();
                    self.enqueue_write(write, reply, room);
                }
            }
        }
    }

    fn enqueue_write(&mut self, write: InputWrite, reply: RequestReply, room: InputRoom) {
        match self.process.write(write.bytes.clone(), room) {
            Ok(()) => {
                reply.send(&accepted(&write));
                // Only now: a write that was refused may be retried.
                self.remember(write.id);
            }
            Err(why) => reply.fail(&write_refusal(&self.process_id, why)),
        }
    }

    fn end_of_input(&self, reply: RequestReply) {
        let closed = self.process.close_input();
        reply.give(closed.map(|()| json!({})).map_err(|why| write_refusal(&self.process_id, why)));
    }

    /// Whether a write with this id was already performed or queued.
    fn knows(&self, id: &String) -> bool {
        let is_it = |waiting: &QueuedInput| match waiting {
            QueuedInput::Write(write, _) => write.id.as_ref() == Some(id),
            QueuedInput::End(_) => false,
        };
        self.known.contains(id) || self.waiting.iter().any(is_it)
    }

    fn remember(&mut self, id: Option<String>) {
        let Some(id) = id else { return };
        self.known.insert(id.clone());
        self.ids.push_back(id);
        if self.ids.len() > WRITE_IDS_MAX
            && let Some(oldest) = self.ids.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn full(&self) -> ErrorObject {
        write_refusal(&self.process_id, WriteRefusal::Full)
    }
}

/// Describes why an input or terminal request was refused.
pub(super) fn write_refusal(process_id: &str, why: WriteRefusal) -> ErrorObject {
    let message = match why {
        WriteRefusal::Closed => format!("stdin is closed for process {process_id}"),
        WriteRefusal::Full => format!(
            "too much is waiting to be read by process {process_id}: {WRITES_MAX} writes or {} MiB; \
             wait for an answer",
            WAITING_BYTES_MAX >> 20
        ),
        WriteRefusal::NoTerminal => format!("process {process_id} has no terminal"),
    };
    ErrorObject::new(INVALID_REQUEST, message)
}

const fn accepted(write: &InputWrite) -> WriteResponse {
    let accepted = if write.id.is_none() { Some(true) } else { None };
    WriteResponse { accepted, status: Some(WriteStatus::Accepted) }
}

pub(super) const fn status(status: WriteStatus) -> WriteResponse {
    WriteResponse { accepted: None, status: Some(status) }
}
