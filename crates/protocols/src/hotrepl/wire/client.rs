//! The frames of clients.

use super::JournalKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A frame of a client, as our own clients write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum FromClient {
    Eval {
        id: String,
        code: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    Complete {
        id: String,
        code: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<u64>,
    },
    Reset {
        id: String,
    },
    Subscribe {
        id: String,
        code: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval_frames: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
    Cancel {
        id: String,
        target_id: String,
    },
    CommandsList {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
    },
    CommandDescribe {
        id: String,
        name: String,
    },
    CommandCall {
        id: String,
        name: String,
        args: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    JobStatus {
        id: String,
        job_id: String,
    },
    JobCancel {
        id: String,
        job_id: String,
    },
    JournalQuery {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<JournalKind>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
    },
}
