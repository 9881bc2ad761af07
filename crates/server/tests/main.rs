//! The server in this process, on a real engine, a real store and in real jails. What needs the binary `airlock` is in its
//! crate.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

mod extending;
mod stories;
mod story_player;
