//! The events of a process.

use bytes::Bytes;

/// The number of a process's event. The first is 1.
pub type OutputSeq = u64;

/// The stream of a piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A terminal, which merges both.
    Terminal,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// The piece's number.
    pub seq: OutputSeq,
    /// The stream that it was read from.
    pub stream: OutputStream,
    /// The bytes of the piece.
    pub bytes: Bytes,
}

/// An event of a process, in the order of delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It wrote output.
    Output(OutputChunk),
    /// It ended; 128 + n for signal n. All its earlier output was delivered before.
    Exited {
        /// The event's number.
        seq: OutputSeq,
        /// The exit code.
        code: i32,
    },
    /// No further output follows.
    Closed {
        /// The event's number.
        seq: OutputSeq,
    },
}

impl ProcessEvent {
    /// The event's number.
    pub const fn seq(&self) -> OutputSeq {
        match self {
            Self::Output(chunk) => chunk.seq,
            Self::Exited { seq, .. } | Self::Closed { seq } => *seq,
        }
    }
}

/// Output after a given number, and the present state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// Whole pieces.
    pub chunks: Vec<OutputChunk>,
    /// The number after the last returned one, or after the last event if all were returned.
    pub next_seq: OutputSeq,
    /// The number of the exit event, and the exit code.
    pub exited: Option<(OutputSeq, i32)>,
    /// The number of the event that closed the output.
    pub closed: Option<OutputSeq>,
    /// Bytes after the requested number that are no longer retained.
    pub dropped_bytes: u64,
    /// The first piece that is still retained.
    pub first_seq: Option<OutputSeq>,
}
