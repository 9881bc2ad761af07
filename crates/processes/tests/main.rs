//! Processes, their descendants and their cages. `leaks` is a separate binary: it counts the descriptors of its process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod blocked_writers;
mod cages;
mod families;
mod limits;
mod programs;
mod protected;
mod suite;
