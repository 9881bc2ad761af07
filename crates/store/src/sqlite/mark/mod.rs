//! The mark: a small file beside the database that says how far the store had come when it last acknowledged something.
//!
//! SQLite ignores everything behind a damaged frame of its log, without a word. So the position is also written here,
//! after each commit and before anyone is told of it. The next start compares: less than that is damage, unless a power
//! cut explains it. There are two slots, written in turn, each with a checksum.

mod file;
mod found;
mod log_marker;
mod slot;
mod verdict;

#[cfg(test)]
mod tests;

pub(super) use file::{StoreMark, now_ms};
pub(super) use found::{FoundMark, find_files, read_mark};
pub(super) use log_marker::{LogMarker, WalCommit};
pub use slot::BootId;
pub(super) use slot::{LogPosition, MarkState, TailPosition};
pub(super) use verdict::{FoundFiles, FoundLog, FoundTail, StoreShortfall, shortfalls};

/// The mark's name within the data directory.
pub(super) const FILE: &str = "store.mark";
