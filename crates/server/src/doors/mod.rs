//! One folder per protocol, and the administrator's door.

pub(crate) mod catalogue;
pub(crate) mod enclave;
pub mod exec_server;
pub mod execbox;
pub(crate) mod executor;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod policies;
pub(crate) mod sign_in;
pub(crate) mod tokens;
