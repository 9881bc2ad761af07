//! The events of processes, delivered once each and in order, also across connections.

use protocols::exec_server::{
    ExecClosedNotification, ExecExitedNotification, ExecOutputDeltaNotification, ReadResponse,
};
use std::collections::{BTreeMap, HashMap};
use tokio::sync::mpsc;

/// An event of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecServerEvent {
    /// It wrote output.
    OutputDelta(ExecOutputDeltaNotification),
    /// It exited.
    Exited(ExecExitedNotification),
    /// No more output follows.
    Closed(ExecClosedNotification),
    /// It wrote output that the server no longer retained for a client that was disconnected too long.
    Lost {
        /// The process.
        process_id: String,
        /// The number of bytes lost.
        bytes: u64,
    },
}

impl ExecServerEvent {
    /// The process that the event belongs to.
    pub fn process_id(&self) -> &str {
        match self {
            Self::OutputDelta(output) => &output.process_id,
            Self::Exited(exited) => &exited.process_id,
            Self::Closed(closed) => &closed.process_id,
            Self::Lost { process_id, .. } => process_id,
        }
    }

    const fn is_repaint(&self) -> bool {
        match self {
            Self::OutputDelta(output) => output.repaint,
            Self::Exited(_) | Self::Closed(_) | Self::Lost { .. } => false,
        }
    }

    fn seq(&self) -> Option<u64> {
        match self {
            Self::OutputDelta(output) => output.seq,
            Self::Exited(exited) => exited.seq,
            Self::Closed(closed) => Some(closed.seq),
            Self::Lost { .. } => None,
        }
    }
}

/// Every event from now on. A receiver that does not take them slows the processes down.
#[derive(Debug)]
pub struct ProcessEvents(pub(super) mpsc::Receiver<ExecServerEvent>);

impl ProcessEvents {
    /// Returns the next event; `None` when the connection is lost permanently.
    pub async fn next(&mut self) -> Option<ExecServerEvent> {
        self.0.recv().await
    }
}

/// How many events may wait for one that is missing; a server that leaves out more is not waited for.
const HELD_MAX: usize = 256;

/// The events received so far, per process.
#[derive(Debug, Default)]
pub(super) struct ReceivedOutput(HashMap<String, ProcessTrack>);

#[derive(Debug, Default)]
struct ProcessTrack {
    last: u64,
    held: BTreeMap<u64, ExecServerEvent>,
}

impl ReceivedOutput {
    /// Registers a process whose events start at the beginning.
    pub(super) fn begin_process(&mut self, process_id: &str) {
        self.0.insert(process_id.to_owned(), ProcessTrack::default());
    }

    /// Registers a process whose events start after a sequence number.
    pub(super) fn begin_after(&mut self, process_id: &str, seq: u64) {
        self.0.insert(process_id.to_owned(), ProcessTrack { last: seq, held: BTreeMap::new() });
    }

    /// The processes that are not closed, with the last sequence number received of each.
    pub(super) fn open(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|(id, track)| (id.clone(), track.last)).collect()
    }

    /// Takes an event and returns the events that are due.
    pub(super) fn handle_event(&mut self, event: ExecServerEvent) -> Vec<ExecServerEvent> {
        let Some(seq) = event.seq() else { return vec![event] };
        let id = event.process_id().to_owned();
        let Some(track) = self.0.get_mut(&id) else { return vec![event] };
        if event.is_repaint() {
            // A repaint covers all earlier output; later output follows it.
            track.last = seq;
            track.held.retain(|held, _| *held > seq);
            return vec![event];
        }
        if seq > track.last {
            track.held.insert(seq, event);
        }
        let mut due = vec![];
        let is_stuck = track.held.len() > HELD_MAX;
        while let Some(next) = track.held.first_entry() {
            if *next.key() != track.last + 1 && !(is_stuck && due.is_empty()) {
                break;
            }
            track.last = *next.key();
            due.push(next.remove());
        }
        if due.iter().any(|event| matches!(event, ExecServerEvent::Closed(_))) {
            self.0.remove(&id);
        }
        due
    }

    /// Applies the output that a reconnected client has read.
    pub(super) fn catch_up(
        &mut self,
        process_id: &str,
        read: ReadResponse,
    ) -> Vec<ExecServerEvent> {
        let Some(track) = self.0.get_mut(process_id) else { return vec![] };
        let mut due = vec![];
        let first_kept = read.first_seq.unwrap_or(read.next_seq);
        if read.dropped_bytes > 0 && first_kept > track.last + 1 {
            let process_id = process_id.to_owned();
            due.push(ExecServerEvent::Lost { process_id, bytes: read.dropped_bytes });
            track.last = first_kept - 1;
        }
        let last = track.last;
        let seqs: Vec<u64> = read.chunks.iter().map(|chunk| chunk.seq).collect();
        let closed = read.closed.then(|| read.next_seq - 1);
        let is_exit = |seq: &u64| !seqs.contains(seq) && closed != Some(*seq);
        let first = read.first_seq.unwrap_or(last + 1).max(last + 1);
        let exit = (first..read.next_seq).find(is_exit).filter(|_| read.exited);
        for chunk in read.chunks {
            due.append(&mut self.handle_event(ExecServerEvent::OutputDelta(
                ExecOutputDeltaNotification {
                    process_id: process_id.to_owned(),
                    seq: Some(chunk.seq),
                    stream: chunk.stream,
                    chunk: chunk.chunk,
                    repaint: false,
                },
            )));
        }
        if let (Some(seq), Some(exit_code)) = (exit, read.exit_code) {
            due.append(&mut self.handle_event(ExecServerEvent::Exited(ExecExitedNotification {
                process_id: process_id.to_owned(),
                seq: Some(seq),
                exit_code,
                sandbox_denied: Some(read.sandbox_denied),
                denied: read.denied,
            })));
        }
        if let Some(seq) = closed {
            let process_id = process_id.to_owned();
            let closed = ExecClosedNotification { process_id, seq };
            due.append(&mut self.handle_event(ExecServerEvent::Closed(closed)));
        }
        due
    }
}
