//! The execbox host through its public face, against runners that the tests play.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod broken;
mod played;
mod pool;
mod session;
mod tools;
mod transports;
mod types;
