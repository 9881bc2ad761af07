//! What sessions show and keep, without known secrets: a guest may put together what no tool said in one piece. What is
//! cut is looked through before, or half a secret would be left.

use lifecycle::Json;
use protocols::hotrepl::RESULT_BYTES_MAX;
use protocols::hotrepl::outbound::cut;
use protocols::hotrepl::wire::{FromServer, JournalEntry};
use sandbox::{TaskFailure, TaskResult};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tools::scrub;

/// What a frame is and whom it answers: the client's own words, without which it would wait for ever.
const TOLD_AS_THEY_ARE: [&str; 2] = ["type", "id"];

/// A frame's text.
pub(super) fn frame(frame: &FromServer) -> String {
    let text = frame.encode();
    if scrub::knows_nothing() {
        return text;
    }
    let whole = Json::parse(text).expect("a frame is JSON");
    let told = scrub::json(whole.clone());
    if told.text() == whole.text() {
        return whole.text().to_owned();
    }
    addressed(told.text(), whole.text()).unwrap_or_else(|| told.text().to_owned())
}

fn addressed(told: &str, whole: &str) -> Option<String> {
    let mut told: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(told).ok()?;
    let whole: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(whole).ok()?;
    let kept = whole.into_iter().filter(|(name, _)| TOLD_AS_THEY_ARE.contains(&name.as_ref()));
    told.extend(kept);
    serde_json::to_string(&told).ok()
}

/// Redacts what a task came to.
pub(super) fn redact_result(result: &mut TaskResult) {
    if scrub::knows_nothing() {
        return;
    }
    match result {
        TaskResult::Value { type_name, json, bytes } => {
            *type_name = text(type_name);
            *json = value(json);
            // One that is too long stays so, however much of it was blotted out.
            *bytes = if *bytes > RESULT_BYTES_MAX { (*bytes).max(json.len()) } else { json.len() };
        }
        TaskResult::Nothing => {}
        TaskResult::Output(json) => *json = value(json),
        TaskResult::Failed(TaskFailure { message, stack, code, details, why: _, kind: _ }) => {
            *message = text(message);
            for part in [stack, code].into_iter().flatten() {
                *part = text(part);
            }
            if let Some(details) = details {
                *details = value(details);
            }
        }
    }
}

/// A value as JSON text, which it stays.
pub(super) fn value(json: &str) -> String {
    match Json::parse(json.to_owned()) {
        Ok(whole) => scrub::json(whole).text().to_owned(),
        // A text that was too long to be written to its end.
        Err(_) => text(json),
    }
}

/// What was printed, as much as is told of it.
pub(super) fn printed(printed: &str) -> String {
    if printed.len() <= RESULT_BYTES_MAX {
        return shortened(printed, RESULT_BYTES_MAX);
    }
    // The runner cut it, perhaps in the middle of a secret: what may be the beginning of one is left out.
    let told = scrub::StreamScrubber::default().pass(printed.trim_end_matches('\n').as_bytes());
    cut(&String::from_utf8_lossy(&told), printed.len(), RESULT_BYTES_MAX)
}

/// As much of a text as fits.
pub(super) fn shortened(text: &str, bytes_max: usize) -> String {
    let told = scrub::text(text);
    cut(&told, told.len(), bytes_max)
}

/// An entry of the journal as it is written down.
pub(super) fn entry(entry: &JournalEntry) -> JournalEntry {
    JournalEntry {
        id: text(&entry.id),
        name: entry.name.as_deref().map(text),
        code: entry.code.as_deref().map(text),
        ..entry.clone()
    }
}

/// Any other text.
pub(super) fn text(text: &str) -> String {
    scrub::text(text).into_owned()
}

/// Any bytes.
pub(super) fn bytes(bytes: Vec<u8>) -> Vec<u8> {
    match scrub::bytes(&bytes) {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(blotted) => blotted,
    }
}
