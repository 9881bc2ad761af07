//! Decides whether a directory holds everything that was acknowledged. Pure: a function of the mark, the files, and the
//! boot.
//!
//! Within one run of the kernel everything *written* must be present: it was at least in the page cache. After another
//! boot only what was *synced* must be: of what was only written, any blocks may have reached the disk, in any order.

use super::slot::{BootId, LogPosition, MarkState, TailPosition};
use crate::sqlite::wal::WalGeneration;
use std::fmt;

/// The extent of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct FoundFiles {
    pub(in crate::sqlite) log: FoundLog,
    pub(in crate::sqlite) main_bytes: u64,
    pub(in crate::sqlite) tails: [FoundTail; 2],
}

/// The log as SQLite will read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum FoundLog {
    /// There is none, or its header is damaged, or it contains no complete transaction.
    Empty,
    /// The log of this generation, with complete transactions up to this frame.
    Frames(WalGeneration, u32),
}

/// The executions at the beginning of an append file: its generation, and their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sqlite) struct FoundTail {
    pub(in crate::sqlite) time: Option<u64>,
    pub(in crate::sqlite) end: u64,
}

/// Something acknowledged that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum StoreShortfall {
    /// The log ends too early.
    Log { found: u32, needed: u32 },
    /// The log is missing, or was replaced by another one.
    LogGone { needed: u32 },
    /// The database is shorter than it was.
    Main { found: u64, needed: u64 },
    /// An append file ends too early.
    Tail { which: usize, found: u64, needed: u64 },
}

impl fmt::Display for StoreShortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log { found, needed } => {
                write!(f, "store.db-wal is readable up to frame {found} of {needed}")
            }
            Self::LogGone { needed } => {
                write!(f, "store.db-wal does not hold the {needed} frames that it had")
            }
            Self::Main { found, needed } => {
                write!(f, "store.db has {found} of {needed} bytes")
            }
            Self::Tail { which, found, needed } => {
                write!(f, "store.tail-{which} is readable up to byte {found} of {needed}")
            }
        }
    }
}

/// Everything that was acknowledged and is missing.
pub(in crate::sqlite) fn shortfalls(
    mark: &MarkState,
    found: &FoundFiles,
    boot: BootId,
) -> Vec<StoreShortfall> {
    let is_same_boot = mark.boot.is_same_as(boot);
    let log = mark.log.and_then(|log| log_shortfall(log, found.log, is_same_boot));
    let main = (found.main_bytes < mark.main_bytes)
        .then_some(StoreShortfall::Main { found: found.main_bytes, needed: mark.main_bytes });
    let tails = (0..2).filter(|_| is_same_boot);
    let tails =
        tails.filter_map(|which| tail_shortfall(which, mark.tails[which], found.tails[which]));
    log.into_iter().chain(main).chain(tails).collect()
}

fn log_shortfall(log: LogPosition, found: FoundLog, is_same_boot: bool) -> Option<StoreShortfall> {
    let needed = if is_same_boot { log.written } else { log.synced };
    match found {
        // A partially readable log hides newer pages of the database, even if it was copied.
        FoundLog::Frames(generation, frames) if generation == log.generation => {
            (frames < needed).then_some(StoreShortfall::Log { found: frames, needed })
        }
        FoundLog::Frames(generation, _) if generation.follows(log.generation) => None,
        FoundLog::Frames(..) | FoundLog::Empty => {
            (log.checkpointed < needed).then_some(StoreShortfall::LogGone { needed })
        }
    }
}

fn tail_shortfall(which: usize, tail: TailPosition, found: FoundTail) -> Option<StoreShortfall> {
    let end = if found.time == Some(tail.time) { found.end } else { 0 };
    (end < tail.end).then_some(StoreShortfall::Tail { which, found: end, needed: tail.end })
}
