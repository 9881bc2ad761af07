//! The host beside what Node answered, and what it does not have.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod against_node;
mod missing;
