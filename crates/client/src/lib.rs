//! Rust clients of Airlock's doors. They know what crosses the wire and nothing of the engine.
//!
//! hyper and not reqwest: the server links it already, it streams bodies, and nothing else of reqwest is needed.

mod address;
mod connections;
mod connector;
pub mod enclave;
mod error;
mod event;
pub mod exec_server;
pub mod execbox;
mod follow;
mod http;
mod id;
mod mcp;
mod policies;
mod proof;
pub mod repl;
mod reply;
mod running;
mod sign_in;
mod sources;
mod sse;
mod tools;
mod web_socket;
mod wire;

#[cfg(test)]
mod tests;

pub use connections::{ConnectionLine, NewConnection};
pub use error::Error;
pub use event::{Ended, Event, Happened};
pub use http::{HttpClient, Which};
pub use id::{BadId, Id};
pub use mcp::{McpClient, McpHead, McpSaid};
pub use policies::{Explained, NewPolicy, Policy};
pub use proof::{ProofError, ServerToken};
pub use reply::{Asks, Listed, Page, Reply, Standing, Status};
pub use sign_in::{BrowserSessionLine, SignInCode};
pub use sources::{SourceChange, SourceLine};
pub use tools::{Described, ToolLine};
