//! The two messages of MCP that pass without rmcp: a call of a tool that wishes for nothing else, and the answer that is
//! nothing but a value.

use crate::json_rpc::{self, Id};
use lifecycle::{ExecutionId, Json};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A call of a tool, and nothing besides: neither progress nor a task is wished for, no answers come with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainCall {
    /// Goes back with the answer.
    pub id: Id,
    /// Which tool.
    pub tool: String,
    /// With what.
    pub arguments: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: Id,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Reads such a call. None for every other message, also for those that make no sense: whoever knows all of MCP says
/// what is wrong with them.
pub fn plain_call(body: &[u8]) -> Option<PlainCall> {
    let message: Message<'_> = serde_json::from_slice(body).ok()?;
    let is_call = message.jsonrpc == "2.0" && message.method == "tools/call";
    let Params { name: tool, arguments } = message.params;
    is_call.then_some(PlainCall { id: message.id, tool, arguments })
}

/// Why a body is no message, for the error that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableMessage {
    /// The id of the request, where it can be read.
    pub id: Option<Id>,
    /// JSON-RPC's code.
    pub code: i64,
    /// What is wrong, and what to send instead.
    pub message: String,
}

impl UnreadableMessage {
    /// The JSON-RPC error that answers it.
    pub fn answer(&self) -> String {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": { "code": self.code, "message": self.message },
        })
        .to_string()
    }
}

/// The id beside whatever else a message has.
#[derive(Deserialize)]
struct MessageId {
    id: Option<Id>,
}

/// Says why a body was taken for no message. The id is found also where another member is nested too deep.
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

/// Deeper values are not for everybody: many who read JSON stop at 128.
const DEPTH_MAX: usize = 64;

/// What a program is worth that ended well, and neither printed nor handed out anything.
#[derive(Debug, Clone)]
pub struct PlainAnswer {
    /// Which execution ended.
    pub execution: ExecutionId,
    /// What the model reads.
    pub text: String,
    /// The value, as JSON that everybody can read.
    result: Json,
}

impl PlainAnswer {
    /// None where the value cannot be read by everybody.
    pub fn new(execution: ExecutionId, text: String, result: Json) -> Option<Self> {
        is_for_everybody(result.text()).then_some(Self { execution, text, result })
    }

    /// The value, which can be read.
    pub fn result(&self) -> Value {
        serde_json::from_str(self.result.text()).unwrap_or_default()
    }

    /// The message that answers the call `id`, as rmcp would write it, but that the value stays as it is.
    pub fn message(&self, id: &Id) -> Vec<u8> {
        let quoted = |body: &mut Vec<u8>, text: &str| {
            serde_json::to_writer(body, text).expect("a text can be written");
        };
        let result = self.result.text();
        let mut body = Vec::with_capacity(2 * self.text.len() + result.len() + 200);
        body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        match id {
            Id::Number(number) => body.extend_from_slice(number.to_string().as_bytes()),
            Id::Text(text) => quoted(&mut body, text),
        }
        body.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
        quoted(&mut body, &self.text);
        body.extend_from_slice(br#"}],"structuredContent":{"executionId":"#);
        quoted(&mut body, &self.execution.to_string());
        body.extend_from_slice(br#","logs":[],"result":"#);
        body.extend_from_slice(result.as_bytes());
        body.extend_from_slice(br#","status":"completed"}}}"#);
        body
    }
}

/// Whether a value is neither nested too deep nor has half of a character in it, which not everybody takes.
fn is_for_everybody(json: &str) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match (is_text, byte) {
            _ if is_escaped => {
                // Such an escape may be half of a pair.
                if byte == b'u' {
                    return false;
                }
                is_escaped = false;
            }
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_text = !is_text,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_message_and_its_value_stays_as_it_is() {
        let run = "run_00000000-0000-4000-8000-000000000000";
        let answer = |text: &str, result: &str| {
            let result = Json::parse(result.into()).unwrap();
            PlainAnswer::new(run.parse().unwrap(), text.into(), result).unwrap()
        };
        let told = answer("a \"b\"", r#"{"z":1.0,"a":[]}"#);
        let message = String::from_utf8(told.message(&Id::Text("é".into()))).unwrap();
        let expected = concat!(
            r#"{"jsonrpc":"2.0","id":"é","result":{"content":[{"type":"text","text":"a \"b\""}],"#,
            r#""structuredContent":{"executionId":"run_00000000-0000-4000-8000-000000000000","#,
            r#""logs":[],"result":{"z":1.0,"a":[]},"status":"completed"}}}"#,
        );
        assert_eq!(message, expected);
        assert_eq!(told.result(), serde_json::json!({ "a": [], "z": 1.0 }));
        let message = answer("x", "null").message(&Id::Number(-7));
        let read: Value = serde_json::from_slice(&message).unwrap();
        let structured = serde_json::json!(
            { "executionId": run, "logs": [], "result": null, "status": "completed" }
        );
        assert_eq!(
            (&read["id"], &read["result"]["structuredContent"]),
            (&(-7).into(), &structured)
        );
    }

    #[test]
    fn a_value_that_not_everybody_can_read_is_no_plain_answer() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let cases = [
            (nested(DEPTH_MAX), true),
            (nested(DEPTH_MAX + 1), false),
            ("[[],[],{}]".into(), true),
            (format!("\"{}\"", "[".repeat(500)), true),
            (r#"["\\","[\"{",{"a":"b"}]"#.into(), true),
            (r#""\ud800""#.into(), false),
            (r#""\\ud800""#.into(), true),
        ];
        for (json, expected) in cases {
            assert_eq!((json.as_str(), is_for_everybody(&json)), (json.as_str(), expected));
        }
    }

    #[test]
    fn a_body_that_is_no_message_is_answered_under_its_id() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let cases = [
            (format!(r#"{{"id":7,"params":{deep}}}"#), Some(Id::Number(7)), -32_700, "too deep"),
            (r#"{"params":"\ud83d","id":"a"}"#.into(), Some(Id::Text("a".into())), -32_700, "half"),
            ("{".into(), None, -32_700, "not JSON"),
            (r#"{"id":1}"#.into(), Some(Id::Number(1)), -32_600, "no message"),
            ("[]".into(), None, -32_600, "no message"),
        ];
        for (body, id, code, why) in cases {
            let unreadable = unreadable_message(body.as_bytes());
            assert_eq!((unreadable.id, unreadable.code), (id, code), "{body}");
            assert!(unreadable.message.contains(why), "{}", unreadable.message);
        }
    }

    fn read(params: &str) -> Option<PlainCall> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        plain_call(body.as_bytes())
    }

    #[test]
    fn a_call_is_read_whole() {
        let call = read(r#"{"name":"execute","arguments":{"code":"return \"ä\""}}"#).unwrap();
        let code = ("code".to_owned(), Value::from("return \"ä\""));
        let (id, tool) = (Id::Number(7), "execute".to_owned());
        assert_eq!(call, PlainCall { id, tool, arguments: Map::from_iter([code]) });
        assert_eq!(read(r#"{"name":"skills"}"#).unwrap().arguments, Map::new());
        let text =
            br#"{"id":"a\u0062","method":"tools\/call","params":{"name":"x"},"jsonrpc":"2.0"}"#;
        assert_eq!(plain_call(text).unwrap().id, Id::Text("ab".into()));
    }

    #[test]
    fn whatever_wishes_for_more_or_makes_no_sense_is_left_to_others() {
        for params in [
            r#"{"name":"execute","arguments":{},"_meta":{"progressToken":1}}"#,
            r#"{"name":"execute","task":{}}"#,
            r#"{"name":"execute","requestState":"x"}"#,
            r#"{"name":"execute","arguments":null}"#,
            r#"{"name":"execute","arguments":[]}"#,
            r#"{"name":1}"#,
            "{}",
            "[]",
        ] {
            assert_eq!(read(params), None, "{params}");
        }
        for body in [
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"x"}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}} x"#,
            "{",
        ] {
            assert_eq!(plain_call(body.as_bytes()), None, "{body}");
        }
    }
}
