//! Data that the store reads from its files. Rows carry a checksum; these targets begin after it, because a valid checksum
//! does not make the bytes well-formed.

use crate::text;
use store::sqlite::decoders::{decode_append_file, decode_append_record, decode_event};

/// The text of an event in a row. A decoded event encodes to a text that decodes to the same event.
pub fn journal_row(bytes: &[u8]) {
    let Some(Ok(entry)) = text(bytes).map(decode_event) else { return };
    let encoded = serde_json::to_string(&entry.event).expect("an event has a text");
    assert_eq!(decode_event(&encoded).expect("our own text is an event").event, entry.event);
}

/// An append file, or one execution of it without header and checksum.
pub fn append_file(bytes: &[u8]) {
    let _ = decode_append_file(bytes);
    let _ = decode_append_record(bytes);
}
