//! Processes, their families and their cages. `leaks` is a binary of its own: it counts what its process holds.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod blocked_writers;
mod cages;
mod families;
mod limits;
mod programs;
mod protected;
mod suite;
