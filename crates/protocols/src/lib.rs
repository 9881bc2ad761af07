//! Every byte format that crosses a process boundary. Pure: no I/O, no clock, no async.

pub mod enclave;
pub mod execbox;
pub mod executor;
pub mod ndjson;
pub mod typescript;
