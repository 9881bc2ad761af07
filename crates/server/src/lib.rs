//! The server: transports, routes, permissions, and one folder per door. It knows no guest and no journal format; it
//! performs everything through the engine.

// A door in this crate refers to its items by the same paths as an external door.
extern crate self as server;

mod answering;
mod app;
pub mod auth;
mod body;
mod config;
mod connection_service;
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
mod redact;
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
