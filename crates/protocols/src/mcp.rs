//! The one message of MCP that is read without rmcp: a call of a tool that wishes for nothing else.

use crate::json_rpc::Id;
use serde::Deserialize;
use serde_json::{Map, Value};
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

#[cfg(test)]
mod tests {
    use super::*;

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
