//! What a process says and does, as it is told.

use bytes::Bytes;

/// The number of an event of a process. The first is 1.
pub type Seq = u64;

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A terminal, which has only one.
    Terminal,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its number.
    pub seq: Seq,
    /// Where it came from.
    pub stream: Stream,
    /// What it says.
    pub bytes: Bytes,
}

/// What a process did, in the order in which it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It said something.
    Output(Chunk),
    /// It ended, 128 + n for signal n. What it said before has been told.
    Exited {
        /// Its number.
        seq: Seq,
        /// How.
        code: i32,
    },
    /// Nothing more comes.
    Closed {
        /// Its number.
        seq: Seq,
    },
}

impl Event {
    /// Its number.
    pub const fn seq(&self) -> Seq {
        match self {
            Self::Output(chunk) => chunk.seq,
            Self::Exited { seq, .. } | Self::Closed { seq } => *seq,
        }
    }
}

/// Output after some number, and how things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Whole pieces.
    pub chunks: Vec<Chunk>,
    /// The number after the last one given, or after the last event where all was given.
    pub next_seq: Seq,
    /// When the process ended, and how.
    pub exited: Option<(Seq, i32)>,
    /// When everything was said.
    pub closed: Option<Seq>,
    /// Bytes that came after the number asked for and are kept no more.
    pub dropped_bytes: u64,
    /// The first piece that is still kept.
    pub first_seq: Option<Seq>,
}
