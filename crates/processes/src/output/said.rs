//! What a process says and does, as it is told.

use bytes::Bytes;

/// The number of an event of a process. The first is 1.
pub type OutputSeq = u64;

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A terminal, which has only one.
    Terminal,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Its number.
    pub seq: OutputSeq,
    /// Where it came from.
    pub stream: OutputStream,
    /// What it says.
    pub bytes: Bytes,
}

/// What a process did, in the order in which it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It said something.
    Output(OutputChunk),
    /// It ended, 128 + n for signal n. What it said before has been told.
    Exited {
        /// Its number.
        seq: OutputSeq,
        /// How.
        code: i32,
    },
    /// Nothing more comes.
    Closed {
        /// Its number.
        seq: OutputSeq,
    },
}

impl ProcessEvent {
    /// Its number.
    pub const fn seq(&self) -> OutputSeq {
        match self {
            Self::Output(chunk) => chunk.seq,
            Self::Exited { seq, .. } | Self::Closed { seq } => *seq,
        }
    }
}

/// Output after some number, and how things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// Whole pieces.
    pub chunks: Vec<OutputChunk>,
    /// The number after the last one given, or after the last event where all was given.
    pub next_seq: OutputSeq,
    /// When the process ended, and how.
    pub exited: Option<(OutputSeq, i32)>,
    /// When everything was said.
    pub closed: Option<OutputSeq>,
    /// Bytes that came after the number asked for and are kept no more.
    pub dropped_bytes: u64,
    /// The first piece that is still kept.
    pub first_seq: Option<OutputSeq>,
}
