//! Leases, zygotes, escapes and whole servers. `leaks` is a separate binary: it counts the descriptors of its process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod callers;
mod escapes;
mod guests;
mod hosts;
mod leases;
mod suite;
mod zygotes;
