//! exec-server: processes that a client controls. `/exec` of the server if it is enabled, and stand-alone over stdio
//! or its own WebSocket. The crate `exec_server` does the work for clients.

mod listen;
mod routes;
mod run;

pub use listen::{ExecListenError, ExecListener, listen};
pub(super) use routes::open_door;
pub use run::{
    BadTransport, ExecServerTransport, Options, RunError, WebSocketAccess, run_main,
    run_main_with_transport, run_with,
};
