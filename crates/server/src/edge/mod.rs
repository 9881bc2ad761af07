//! The edge: how many connections there may be, who owns them, and which are displaced when slots run out. It only
//! counts, and neither reads nor answers requests.

mod entry;
mod limits;
mod peer;
mod refusal;
mod streams;
mod table;

pub(crate) use entry::{ConnectionEntry, ConnectionGuard, ConnectionHandle, ConnectionPhase};
pub use limits::ConnectionLimits;
pub(crate) use limits::descriptors_max;
pub(crate) use refusal::ConnectionRefusal;
pub(crate) use streams::opens_stream;
pub(crate) use table::ConnectionTable;
