//! exec-server, the client's side: spawn and steer processes of another program or machine.
//!
//! ```no_run
//! use client::exec_server::{ExecServerClient, ExecServerEvent, RemoteExecServerConnectArgs, exec_params};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let args = RemoteExecServerConnectArgs::new("ws://127.0.0.1:9000", "example");
//! let client = ExecServerClient::connect_websocket(args).await?;
//! let mut events = client.events();
//! client.exec(exec_params("job", &["echo", "hello"], "/tmp")).await?;
//! while let Some(event) = events.next().await {
//!     match event {
//!         ExecServerEvent::OutputDelta(output) => assert_eq!(output.chunk.0, b"hello\n"),
//!         ExecServerEvent::Exited(exited) => assert_eq!(exited.exit_code, 0),
//!         ExecServerEvent::Lost { bytes, .. } => panic!("{bytes} bytes came too late"),
//!         ExecServerEvent::Closed(_) => break,
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A client over a WebSocket reconnects when the connection breaks, reads what it missed, and continues: events arrive
//! once each and in order. Unanswered requests are repeated where that is safe.

mod api;
mod driver;
mod error;
mod events;
mod link;
mod spawn;

#[cfg(test)]
mod tests;

pub use api::{
    ExecServerClient, ExecServerClientConnectOptions, RemoteExecServerConnectArgs, exec_params,
};
pub use error::ExecServerError;
pub use events::{ExecServerEvent, ProcessEvents};
pub use protocols::exec_server::{
    AttachParams, AttachResponse, ByteChunk, EnvPolicy, EnvironmentBase, EnvironmentInfo,
    ExecClosedNotification, ExecExitedNotification, ExecOutputDeltaNotification, ExecOutputStream,
    ExecParams, ExecResponse, ListResponse, OutputMode, ProcessSignal, ReadParams, ReadResponse,
    ScreenParams, ScreenResponse, TerminalSize, TerminalsResponse, TerminateParams,
    TerminateResponse, WaitForParams, WaitForReason, WaitForResponse, WaitResponse, WriteParams,
    WriteResponse, WriteStatus,
};
pub use spawn::{ExecServerLaunchCommand, SpawnedExecServer, spawn_local_exec_server};
