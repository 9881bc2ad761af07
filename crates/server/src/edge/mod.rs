//! The edge: how many connections there may be, whose they are, and which give way when places run out. Counts; reads and
//! answers nothing itself.

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
