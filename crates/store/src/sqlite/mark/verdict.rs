//! Whether a directory holds everything that was acknowledged. Pure: the mark, what was found, and the boot go in.
//!
//! Within one run of the kernel everything *written* must be there: it was in the page cache at least. After another boot
//! only what was *synced* must be: of what was only written, any blocks may have reached the disk, in any order.

use super::slot::{BootId, LogPosition, MarkState, TailPosition};
use crate::sqlite::wal::WalGeneration;
use std::fmt;

/// What the files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct FoundFiles {
    pub(in crate::sqlite) log: FoundLog,
    pub(in crate::sqlite) main_bytes: u64,
    pub(in crate::sqlite) tails: [FoundTail; 2],
}

/// What SQLite will find in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum FoundLog {
    /// There is none, or its header is damaged, or not one transaction in it is whole.
    Empty,
    /// The log of this generation, with whole transactions up to this frame.
    Frames(WalGeneration, u32),
}

/// The executions that a file of the tail begins with: of which time, and where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sqlite) struct FoundTail {
    pub(in crate::sqlite) time: Option<u64>,
    pub(in crate::sqlite) end: u64,
}

/// Something acknowledged that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum StoreShortfall {
    /// The log ends too early.
    Log { found: u32, needed: u32 },
    /// The log is missing, or another one is in its place.
    LogGone { needed: u32 },
    /// The database is shorter than it was.
    Main { found: u64, needed: u64 },
    /// A file of the tail ends too early.
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
        // A log that is readable in part hides what the database has: that it was copied does not help.
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
