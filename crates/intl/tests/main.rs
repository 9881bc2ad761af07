//! Compares the host with recorded results of Node, and tests the features that it lacks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod against_node;
mod missing;
