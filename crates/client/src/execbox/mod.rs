//! execbox, the host's side: run guest programs in a runner and let them call tools of this process.
//!
//! ```no_run
//! use client::execbox::{ExecboxProgram, OneShot, ProvidedTool, RunnerCommand, ToolProvider, value};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = ProvidedTool::new("greet", |name, _context| async move {
//!     let name: String = client::execbox::read(&name)?;
//!     value(&format!("Hello, {name}!"))
//! });
//! let tools = ToolProvider::new("tools").tool(greet.input_schema(json!({"type": "string"}))).resolve()?;
//!
//! let executor = OneShot::new(RunnerCommand::new("airlock").arg("runner"));
//! let result = executor.execute(ExecboxProgram::new("await tools.greet('Ann')").provider(tools)).await;
//! assert_eq!(result.outcome?.unwrap().as_text(), "\"Hello, Ann!\"");
//! # Ok(())
//! # }
//! ```
//!
//! A runner is reached over a [`RunnerTransport`]: a child process, a socket, a WebSocket, or a future of this
//! process. [`OneShot`] opens one for each program, [`PooledRunners`] reuses them. [`HostSession`] is one program
//! over one of them, for hosts that manage runners themselves.

mod calls;
mod channels;
mod error;
mod execution;
mod executor;
mod names;
mod options;
mod pool;
mod provider;
mod schema;
mod session;
mod spawn;
mod types;
mod wire;

pub use channels::{
    ConnectRunner, InProcess, MessageChannel, NdjsonChannel, RunnerCommand, RunnerTransport,
    TcpRunner, UnixRunner, WebSocket,
};
pub use error::{BadProvider, ErrorCode, ExecboxFailure, ExecboxToolError};
pub use execution::{ExecboxProgram, ExecuteResult};
pub use executor::OneShot;
pub use names::sanitize;
pub use options::Options;
pub use pool::{PoolSize, PooledRunners};
pub use provider::{
    ProvidedTool, ResolvedProvider, TOOLS_MAX, ToolContext, ToolProvider, ToolReturn, TypesOnWire,
};
pub use session::HostSession;
pub use tokio_util::sync::CancellationToken;
pub use transport::{
    CloseReason, IncomingMessage, MessageReader, MessageWriter, ReceiveError, UnsentAmount,
};

use lifecycle::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Deserializes a tool's argument; a mismatch becomes the tool's error.
pub fn read<T: DeserializeOwned>(input: &Json) -> Result<T, ExecboxToolError> {
    Ok(serde_json::from_str(input.as_text())?)
}

/// Serializes a tool's result.
pub fn value<T: Serialize + ?Sized>(value: &T) -> ToolReturn {
    Json::from_value(&value).map(Some).map_err(|_| ExecboxToolError::NotSerializable)
}
