//! exec-server: processes that a client steers. `/exec` of the server where it is enabled, and stand-alone over stdio or a
//! WebSocket of its own. What is done for clients is in the crate `exec_server`.

mod listen;
mod routes;
mod run;

pub use listen::{ExecListenError, ExecListener, listen};
pub(super) use routes::open_door;
pub use run::{
    BadTransport, ExecServerTransport, Options, RunError, WebSocketAccess, run_main,
    run_main_with_transport, run_with,
};
