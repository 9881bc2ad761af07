//! The only durable state: journal, records, notes, blobs. A trait each, implemented with SQLite.
//!
//! Nothing outside this crate may assume that a single process is authoritative: with the same traits on a
//! replicated engine, any node could resume any execution.
//!
//! A write takes one of two paths. Both are acknowledged when the bytes are in a file, or on the disk if the write
//! requires it.
//!
//! ```text
//! append of a whole execution, at most 64 KiB, that need not be synced
//!   └─> tail file, one write by the caller ──> acknowledged ──> (50 ms later at most) ─┐
//!                                                                                      v
//! every other write                                                   one transaction for all that waits
//!   └─> queue ──────────────────> writer thread ─────────────────────────> tables ──> acknowledged
//! ```

mod blobs;
mod error;
mod journal;
mod loss;
mod notes;
mod records;
mod search;
pub mod sqlite;

pub use blobs::BlobStore;
pub use error::StoreError;
pub use journal::{
    ExecutionOverview, FinishedTimes, Journal, JournalAppend, ListFilter, ListedExecution,
};
pub use loss::{DataLoss, LossCause};
pub use notes::NoteStore;
pub use records::{RecordStore, StoredRecord};
pub use search::{
    ExecutionDetails, ExecutionSearch, OutcomeFilter, OutcomeKind, SearchHit, SearchPage,
};
