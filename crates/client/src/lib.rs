//! Rust clients of Airlock's protocols. They know the wire formats and nothing of the engine.
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
pub use event::{EventKind, EventOutcome, ExecutionEvent};
pub use http::{AirlockClient, ExecutionFilter};
pub use id::{ExecutionRef, InvalidExecutionRef};
pub use mcp::{McpClient, McpHead, McpSaid};
pub use policies::{NewPolicy, PolicyExplanation, StoredPolicy};
pub use proof::{ProofError, ServerToken};
pub use reply::{
    ExecutionPage, ExecutionReply, ExecutionRow, ExecutionStanding, ExecutionStatus, OpenQuestion,
};
pub use sign_in::{BrowserSessionLine, SignInCode};
pub use sources::{SourceChange, SourceLine};
pub use tools::{ToolDescription, ToolLine};
