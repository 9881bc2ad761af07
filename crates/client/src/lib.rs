//! Rust clients of Airlock's protocols. They know the wire formats and nothing of the engine.
//!
//! | Client | Protocol |
//! |---|---|
//! | [`AirlockClient`] | Airlock's HTTP API: executions, questions, tools, policies, sources |
//! | [`McpClient`] | MCP over HTTP |
//! | [`enclave::EnclaveClient`] | sessions of EnclaveJS's streaming protocol |
//! | [`exec_server`] | processes of an exec-server |
//! | [`execbox`] | a host of execbox runners |
//! | [`repl`] | sessions of HotRepl's protocol |
//!
//! ```no_run
//! use client::AirlockClient;
//!
//! # async fn example() -> Result<(), client::Error> {
//! let client = AirlockClient::new("http://127.0.0.1:4788", Some("the secret of a token"))?;
//! let reply = client.execute("return await tools.demo.add({ a: 40, b: 2 })").await?;
//! println!("{:?}", reply.standing);
//! # Ok(())
//! # }
//! ```
//!
//! It uses hyper and not reqwest: the server links hyper already, it streams bodies, and nothing else of reqwest is needed.

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
