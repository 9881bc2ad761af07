//! The decoders of stored bytes as plain functions, for tests that pass them bytes of any kind.

use super::append_log::{self, FinishedExecution};
use super::{row, trouble};
use crate::StoreError;
use lifecycle::{Entry, Seq, Timestamp};

/// Decodes the text of a stored event.
pub fn decode_event(text: &str) -> Result<Entry, StoreError> {
    row::understood(Seq(1), Timestamp(0), text)
}

/// Decodes the content of an append file and its events; returns the number of events.
pub fn decode_append_file(bytes: &[u8]) -> Result<usize, StoreError> {
    append_log::decode(bytes).iter().map(decode_execution).sum()
}

/// Decodes one execution of an append file, without its header; returns the number of events.
pub fn decode_append_record(payload: &[u8]) -> Result<usize, StoreError> {
    let execution = append_log::whole(payload);
    decode_execution(&execution.ok_or_else(|| trouble::damaged("no execution"))?)
}

fn decode_execution(execution: &FinishedExecution) -> Result<usize, StoreError> {
    let mut n_events = 0;
    for (_, text) in execution.entries.iter().flatten() {
        decode_event(text)?;
        n_events += 1;
    }
    Ok(n_events)
}
