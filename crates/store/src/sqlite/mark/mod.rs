//! The mark: a small file beside the database that records how far the store had come at its last acknowledgement.
//!
//! SQLite silently ignores everything behind a damaged frame of its log. So the position is also written here, after
//! each commit and before it is acknowledged. The next start compares: if less is there, the store is damaged, unless a
//! power cut explains it. There are two slots, written alternately, each with a checksum.

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
