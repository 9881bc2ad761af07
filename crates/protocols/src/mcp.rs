//! The JSON-RPC error for a body that rmcp cannot read as a message.

use crate::json_rpc::{self, RpcId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Why a body cannot be parsed as a message, for the error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableMessage {
    /// The id of the request, if it can be read.
    pub id: Option<RpcId>,
    /// The JSON-RPC error code.
    pub code: i64,
    /// What is wrong, and what to send instead.
    pub message: String,
}

impl UnreadableMessage {
    /// The JSON-RPC error that answers it.
    pub fn error_response(&self) -> String {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": { "code": self.code, "message": self.message },
        })
        .to_string()
    }
}

/// The id, ignoring all other members.
#[derive(Deserialize)]
struct MessageId {
    id: Option<RpcId>,
}

/// Explains why a body could not be parsed as a message. The id is found even if another member is nested
/// too deep.
pub fn unreadable_message(body: &[u8]) -> UnreadableMessage {
    let id = serde_json::from_slice::<MessageId>(body).ok().and_then(|message| message.id);
    let is_json = serde_json::from_slice::<IgnoredAny>(body).is_ok();
    let why = serde_json::from_slice::<Value>(body).err().map(|error| error.to_string());
    let (code, message) = match (is_json, why) {
        (true, Some(why)) => {
            let message =
                format!("the message has half a surrogate pair or is nested too deep: {why}");
            (json_rpc::PARSE_ERROR, message)
        }
        (true, None) => {
            let message = "this is no message of MCP: one JSON object with jsonrpc, method, id and the params that \
                           the method takes";
            (json_rpc::INVALID_REQUEST, message.to_owned())
        }
        (false, why) => {
            (json_rpc::PARSE_ERROR, format!("this is not JSON: {}", why.unwrap_or_default()))
        }
    };
    UnreadableMessage { id, code, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_no_message_is_answered_under_its_id() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let cases = [
            (format!(r#"{{"id":7,"params":{deep}}}"#), Some(RpcId::Number(7)), -32_700, "too deep"),
            (
                r#"{"params":"\ud83d","id":"a"}"#.into(),
                Some(RpcId::Text("a".into())),
                -32_700,
                "half",
            ),
            ("{".into(), None, -32_700, "not JSON"),
            (r#"{"id":1}"#.into(), Some(RpcId::Number(1)), -32_600, "no message"),
            ("[]".into(), None, -32_600, "no message"),
        ];
        for (body, id, code, why) in cases {
            let unreadable = unreadable_message(body.as_bytes());
            assert_eq!((unreadable.id, unreadable.code), (id, code), "{body}");
            assert!(unreadable.message.contains(why), "{}", unreadable.message);
        }
    }
}
