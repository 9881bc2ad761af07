//! The server: transports, routes, who may do what, and one folder per door. Knows no guest and no
//! journal format; everything it does, it asks of the engine.

// A door names the items of this crate as a door outside of it does.
extern crate self as server;

mod answering;
mod app;
pub mod auth;
mod body;
mod config;
mod connection_service;
mod discreet;
mod door;
mod doors;
mod edge;
mod error;
mod guard;
mod journal_views;
mod listen;
mod metrics;
mod pages;
mod query;
mod render_thread;
mod routes;
pub mod settings;
mod socket;
mod tasks;
mod turns;

pub use app::AppState;
pub use auth::Caller;
pub use config::{AuthMode, Config, DoorSelection, ServerStores};
pub use door::{Door, DoorState, ResponseRewrite};
#[doc(hidden)]
pub use doors::mcp::mcp_with;
pub use doors::{DoorSettings, exec_server, execbox};
pub use edge::ConnectionLimits;
pub use error::RequestError;
pub use listen::{RunningServer, ServerStartError, bind};
pub use routes::router;
