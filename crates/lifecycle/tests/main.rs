//! Tests the rules through the public functions: properties for any order of intents, and single cases.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

mod answer_batches;
mod caller_names;
mod deferred;
mod edited;
mod lost_entries;
mod rules;
mod wishes;
