//! JSON-RPC in the dialect of exec-servers: without the member `jsonrpc`, one object per message.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The id that relates an answer to its request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RpcId {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// A message, identified by its members.
#[derive(Debug, Clone)]
pub enum RpcMessage<'a> {
    /// A request, which requires an answer.
    Request {
        /// The id, which the answer repeats.
        id: RpcId,
        /// The method's name.
        method: String,
        /// The method's parameters.
        params: Option<&'a RawValue>,
    },
    /// A notification, which has no answer.
    Notification {
        /// The method's name.
        method: String,
        /// The method's parameters.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request.
    Response {
        /// The request's id.
        id: RpcId,
        /// The result or the error.
        result: Result<&'a RawValue, ErrorObject>,
    },
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The error code, for programs.
    pub code: i64,
    /// The message, for people.
    pub message: String,
}

/// The message cannot be parsed.
pub const PARSE_ERROR: i64 = -32_700;
/// The request is not valid in the present state.
pub const INVALID_REQUEST: i64 = -32_600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The method's parameters are invalid.
pub const INVALID_PARAMS: i64 = -32_602;
/// The method failed.
pub const INTERNAL: i64 = -32_603;

impl ErrorObject {
    /// Creates an error.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

/// Distinguishes null from an absent member.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Parses one message; the error is a text.
pub fn read(text: &str) -> Result<RpcMessage<'_>, String> {
    if !text.trim_start().starts_with('{') {
        let is_json = serde_json::from_str::<&RawValue>(text);
        return Err(is_json.err().map_or("expected a JSON-RPC object".into(), |e| e.to_string()));
    }
    let envelope: RpcEnvelope<'_> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let id = match envelope.id {
        None => None,
        Some(raw) => {
            Some(serde_json::from_str(raw.get()).map_err(|_| "an id is a text or a whole number")?)
        }
    };
    match (envelope.method, id, envelope.result, envelope.error) {
        (Some(method), Some(id), ..) => {
            Ok(RpcMessage::Request { id, method, params: envelope.params })
        }
        (Some(method), None, ..) => {
            Ok(RpcMessage::Notification { method, params: envelope.params })
        }
        (None, Some(id), Some(result), _) => Ok(RpcMessage::Response { id, result: Ok(result) }),
        (None, Some(id), None, Some(error)) => Ok(RpcMessage::Response { id, result: Err(error) }),
        (None, ..) => {
            Err("neither a request nor an answer: `method`, `result` and `error` are missing"
                .into())
        }
    }
}

#[derive(Serialize)]
struct RpcAnswer<'a, T> {
    id: &'a RpcId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObject>,
}

/// The text of an answer.
pub fn response_line<T: Serialize>(id: &RpcId, result: Result<&T, &ErrorObject>) -> String {
    let answer = RpcAnswer { id, result: result.ok(), error: result.err() };
    serde_json::to_string(&answer).expect("answers have texts as keys")
}

#[derive(Serialize)]
struct RpcCall<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RpcId>,
    method: &'a str,
    params: T,
}

/// The text of a request.
pub fn request<T: Serialize>(id: &RpcId, method: &str, params: &T) -> String {
    serde_json::to_string(&RpcCall { id: Some(id), method, params })
        .expect("params have texts as keys")
}

/// The text of a notification.
pub fn notification<T: Serialize>(method: &str, params: &T) -> String {
    serde_json::to_string(&RpcCall { id: None, method, params }).expect("params have texts as keys")
}

/// Parses params; absent ones are null. The error describes what is wrong, without the position.
pub fn params<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("null", RawValue::get);
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        ErrorObject::new(INVALID_PARAMS, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(text: &str) -> &'static str {
        match read(text) {
            Ok(RpcMessage::Request { .. }) => "request",
            Ok(RpcMessage::Notification { .. }) => "notification",
            Ok(RpcMessage::Response { .. }) => "response",
            Err(_) => "malformed",
        }
    }

    #[test]
    fn a_message_is_what_its_shape_says() {
        let cases = [
            (r#"{"id":1,"method":"a"}"#, "request"),
            (r#"{"id":"x","method":"a","params":{}}"#, "request"),
            (r#"{"jsonrpc":"2.0","id":-5,"method":"a"}"#, "request"),
            (r#"{"id":1,"method":"a","trace":{"traceparent":"x"}}"#, "request"),
            (r#"{"method":"a"}"#, "notification"),
            (r#"{"id":1,"result":null}"#, "response"),
            (r#"{"id":1,"error":{"code":1,"message":"x"}}"#, "response"),
            (r#"{"id":1.5,"method":"a"}"#, "malformed"),
            (r#"{"id":null,"method":"a"}"#, "malformed"),
            (r#"{"id":1}"#, "malformed"),
            ("{}", "malformed"),
            ("[]", "malformed"),
            (r#"[{"id":1,"method":"a"}]"#, "malformed"),
            (r#""text""#, "malformed"),
            ("42", "malformed"),
            ("{not json", "malformed"),
            (r#"{"id":1,"id":2,"method":"a"}"#, "malformed"),
        ];
        for (text, expected) in cases {
            assert_eq!((text, shape(text)), (text, expected));
        }
    }

    #[test]
    fn answers_have_a_result_or_an_error() {
        let id = RpcId::Text("a".into());
        assert_eq!(response_line(&id, Ok(&1)), r#"{"id":"a","result":1}"#);
        let error = ErrorObject::new(INTERNAL, "no");
        let expected = r#"{"id":"a","error":{"code":-32603,"message":"no"}}"#;
        assert_eq!(response_line::<()>(&id, Err(&error)), expected);
    }

    #[test]
    fn requests_and_notifications_are_written_as_they_are_read() {
        let written = request(&RpcId::Number(7), "a/b", &[1]);
        assert_eq!(written, r#"{"id":7,"method":"a/b","params":[1]}"#);
        assert_eq!(notification("c", &"x"), r#"{"method":"c","params":"x"}"#);
    }

    #[test]
    fn what_is_read_keeps_its_members() {
        let Ok(RpcMessage::Request { id, method, params: Some(given) }) =
            read(r#" {"id":"x","method":"a","params":{"n":1}}"#)
        else {
            panic!("a request")
        };
        assert_eq!(
            (id, method.as_str(), given.get()),
            (RpcId::Text("x".into()), "a", r#"{"n":1}"#)
        );
        let Ok(RpcMessage::Response { id, result: Err(error) }) =
            read(r#"{"id":-5,"error":{"code":1,"message":"no"}}"#)
        else {
            panic!("a response")
        };
        assert_eq!((id, error), (RpcId::Number(-5), ErrorObject::new(1, "no")));
        let Ok(RpcMessage::Response { result: Ok(result), .. }) = read(r#"{"id":1,"result":null}"#)
        else {
            panic!("a response")
        };
        assert_eq!(result.get(), "null");
        for (text, why) in [
            ("[]", "expected a JSON-RPC object"),
            (r#"{"id":1.5,"method":"a"}"#, "an id is a text or a whole number"),
            ("{}", "neither a request nor an answer: `method`, `result` and `error` are missing"),
        ] {
            assert_eq!(read(text).unwrap_err(), why);
        }
        assert!(read("[").unwrap_err().starts_with("EOF"), "what is no JSON is told by the parser");
    }

    #[test]
    fn params_are_read_and_what_is_wrong_is_told_without_its_place() {
        let given = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(params::<Vec<u8>>(Some(&given("[1,2]"))), Ok(vec![1, 2]));
        assert_eq!(params::<Option<u8>>(None), Ok(None));
        let expected = ErrorObject::new(INVALID_PARAMS, "invalid type: null, expected u8");
        assert_eq!(params::<u8>(None), Err(expected));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            let _ = read(&text);
        }
    }
}
