//! Redacts known secrets from what sessions show and store: a guest may assemble a secret that no tool returned in
//! one piece. A text is redacted before it is truncated, because truncation could leave half a secret.

use lifecycle::Json;
use protocols::hotrepl::RESULT_BYTES_MAX;
use protocols::hotrepl::outbound::cut;
use protocols::hotrepl::wire::{FromServer, JournalEntry};
use sandbox::{TaskFailure, TaskResult};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tools::scrub;

/// Members that identify a frame and the request it answers: the client's own values, without which it would wait for
/// ever.
const TOLD_AS_THEY_ARE: [&str; 2] = ["type", "id"];

/// The text of a frame, redacted.
pub(super) fn frame(frame: &FromServer) -> String {
    let text = frame.encode();
    if scrub::knows_nothing() {
        return text;
    }
    let whole = Json::parse(text).expect("a frame is JSON");
    let told = scrub::json(whole.clone());
    if told.as_text() == whole.as_text() {
        return whole.as_text().to_owned();
    }
    addressed(told.as_text(), whole.as_text()).unwrap_or_else(|| told.as_text().to_owned())
}

fn addressed(told: &str, whole: &str) -> Option<String> {
    let mut told: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(told).ok()?;
    let whole: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(whole).ok()?;
    let kept = whole.into_iter().filter(|(name, _)| TOLD_AS_THEY_ARE.contains(&name.as_ref()));
    told.extend(kept);
    serde_json::to_string(&told).ok()
}

/// Redacts the result of a task.
pub(super) fn redact_result(result: &mut TaskResult) {
    if scrub::knows_nothing() {
        return;
    }
    match result {
        TaskResult::Value { type_name, json, bytes } => {
            *type_name = redacted_text(type_name);
            *json = value(json);
            // A result that was too long remains too long, however much of it was redacted.
            *bytes = if *bytes > RESULT_BYTES_MAX { (*bytes).max(json.len()) } else { json.len() };
        }
        TaskResult::Nothing => {}
        TaskResult::Output(json) => *json = value(json),
        TaskResult::Failed(TaskFailure { message, stack, code, details, why: _, kind: _ }) => {
            *message = redacted_text(message);
            for part in [stack, code].into_iter().flatten() {
                *part = redacted_text(part);
            }
            if let Some(details) = details {
                *details = value(details);
            }
        }
    }
}

/// Redacts a value given as JSON text; the result is JSON too.
pub(super) fn value(json: &str) -> String {
    match Json::parse(json.to_owned()) {
        Ok(whole) => scrub::json(whole).as_text().to_owned(),
        // A text that was too long and was cut before its end.
        Err(_) => redacted_text(json),
    }
}

/// Redacts printed output and truncates it to the reported length.
pub(super) fn printed(printed: &str) -> String {
    if printed.len() <= RESULT_BYTES_MAX {
        return shortened(printed, RESULT_BYTES_MAX);
    }
    // The runner truncated the output, perhaps in the middle of a secret: a possible beginning of one is omitted.
    let told = scrub::StreamScrubber::default().pass(printed.trim_end_matches('\n').as_bytes());
    cut(&String::from_utf8_lossy(&told), printed.len(), RESULT_BYTES_MAX)
}

/// As much of a text as fits.
pub(super) fn shortened(text: &str, bytes_max: usize) -> String {
    let told = scrub::scrub_text(text);
    cut(&told, told.len(), bytes_max)
}

/// Redacts an entry of the journal before it is written.
pub(super) fn entry(entry: &JournalEntry) -> JournalEntry {
    JournalEntry {
        id: redacted_text(&entry.id),
        name: entry.name.as_deref().map(redacted_text),
        code: entry.code.as_deref().map(redacted_text),
        ..entry.clone()
    }
}

/// Redacts any other text.
pub(super) fn redacted_text(text: &str) -> String {
    scrub::scrub_text(text).into_owned()
}

/// Redacts any bytes.
pub(super) fn bytes(bytes: Vec<u8>) -> Vec<u8> {
    match scrub::bytes(&bytes) {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(blotted) => blotted,
    }
}
