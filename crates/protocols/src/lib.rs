//! Every byte format that crosses a process boundary. Pure: no I/O, no clock, no async.

pub mod enclave;
pub mod exec_server;
pub mod execbox;
pub mod executor;
pub mod hotrepl;
pub mod json_rpc;
pub mod mcp;
pub mod ndjson;
pub mod server_proof;
/// The protocol of the door that `docs/extending.md` adds.
#[cfg(feature = "example")]
#[path = "../../../examples/extending/tally/protocol/mod.rs"]
pub mod tally;
pub mod typescript;
