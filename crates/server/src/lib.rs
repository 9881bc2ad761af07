//! The server: transports, routes, who may do what, and one folder per door. Knows no guest and no
//! journal format; everything it does, it asks of the engine.

mod answering;
mod app;
pub mod auth;
mod body;
mod config;
mod connection_service;
mod discreet;
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

pub use config::{Auth, Config, Doors};
pub use doors::hotrepl::Settings as ReplSettings;
#[doc(hidden)]
pub use doors::mcp::mcp_with;
pub use doors::{exec_server, execbox};
pub use edge::ConnectionLimits;
pub use listen::{Server, StartError, bind};
pub use routes::router;
