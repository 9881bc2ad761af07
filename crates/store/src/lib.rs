//! The only durable state: journal, records, notes, blobs. A trait each, SQLite inside.
//!
//! Nothing outside this crate may assume that one process holds the truth: the same traits on a
//! replicated engine make any node able to resume any execution.

mod blobs;
mod error;
mod journal;
mod loss;
mod notes;
mod records;
mod search;
pub mod sqlite;

pub use blobs::Blobs;
pub use error::StoreError;
pub use journal::{Append, ExecutionOverview, Finished, Journal, ListFilter, Listed};
pub use loss::{DataLoss, LossCause};
pub use notes::Notes;
pub use records::{Record, Records};
pub use search::{
    ExecutionDetails, ExecutionSearch, OutcomeFilter, OutcomeKind, SearchHit, SearchPage,
};
