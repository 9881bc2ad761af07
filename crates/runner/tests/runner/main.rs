//! Tests the runner through its public interface: a socket with messages in and messages out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod again;
mod boundary;
mod capacity;
mod clock;
mod errors;
mod failures;
mod guest;
mod hosted;
mod limits;
mod loops;
mod rejections;
mod replay;
mod round_trips;
mod session_values;
mod sessions;
mod tampering;
mod timers;
mod tools;
mod typescript;
mod units;
mod values;
mod world_clone;
mod world_console;
mod world_events;
mod world_globals;
mod world_intl;
mod world_text;
mod world_url;
