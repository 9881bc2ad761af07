//! One event, before it is serialized for a reader.

use super::EnclaveSessionId;
use lifecycle::Timestamp;
use serde::Serialize;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub enum EnclaveEventKind {
    SessionInit,
    Stdout,
    Log,
    ToolCall,
    ToolProgress,
    ToolResultApplied,
    PartialResult,
    DeadlineExceeded,
    CatalogChanged,
    Heartbeat,
    Error,
    Final,
}

impl EnclaveEventKind {
    /// All event types.
    pub const ALL: [Self; 12] = [
        Self::SessionInit,
        Self::Stdout,
        Self::Log,
        Self::ToolCall,
        Self::ToolProgress,
        Self::ToolResultApplied,
        Self::PartialResult,
        Self::DeadlineExceeded,
        Self::CatalogChanged,
        Self::Heartbeat,
        Self::Error,
        Self::Final,
    ];

    /// The type on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionInit => "session_init",
            Self::Stdout => "stdout",
            Self::Log => "log",
            Self::ToolCall => "tool_call",
            Self::ToolProgress => "tool_progress",
            Self::ToolResultApplied => "tool_result_applied",
            Self::PartialResult => "partial_result",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::CatalogChanged => "catalog_changed",
            Self::Heartbeat => "heartbeat",
            Self::Error => "error",
            Self::Final => "final",
        }
    }
}

/// One event, before it is serialized for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclaveEvent {
    /// Its number. An event that is not in the journal, such as a heartbeat, carries the previous number.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The type and payload of the event.
    pub kind: EnclaveEventKind,
    payload: String,
}

impl EnclaveEvent {
    pub(super) fn new(
        seq: u64,
        at: Timestamp,
        kind: EnclaveEventKind,
        payload: &impl Serialize,
    ) -> Self {
        let payload = serde_json::to_string(payload).expect("payloads have a JSON form");
        Self { seq, at, kind, payload }
    }

    /// Appends the event as one JSON object, without a line break.
    pub fn write(&self, session: &EnclaveSessionId, to: &mut Vec<u8>) {
        let Self { seq, at, kind, payload } = self;
        let kind = kind.name();
        // A session's name needs no escaping.
        let head = format!(
            "{{\"protocolVersion\":2,\"sessionId\":\"{session}\",\"seq\":{seq},\"type\":\"{kind}\",\"timestamp\":{at},\"payload\":"
        );
        to.reserve(head.len() + payload.len() + 2);
        to.extend_from_slice(head.as_bytes());
        let start = to.len();
        to.extend_from_slice(payload.as_bytes());
        // In JSON, line breaks occur between values only, where a space is equivalent.
        for byte in &mut to[start..] {
            *byte = if matches!(*byte, b'\n' | b'\r') { b' ' } else { *byte };
        }
        to.push(b'}');
    }
}
