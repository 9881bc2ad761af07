//! Tests the execbox host through its public interface, against runners that the tests simulate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod broken;
mod played;
mod pool;
mod session;
mod tools;
mod transports;
mod types;
