//! Parses lines of stdin as messages. A line that cannot be forwarded is answered here, under its id where that can be
//! read:
//! a client must never wait for an answer that will not come.

use lifecycle::Json;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// Longest message from a client: the server's limit, with a reserve for the JSON around it.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// How much of an overlong line is searched for an id. Clients write it at the beginning or at the end.
const SKIMMED_BYTES_MAX: u64 = 64 << 20;

/// JSON-RPC's codes for errors of a client.
const NOT_JSON: i64 = -32_700;
pub(super) const NO_REQUEST: i64 = -32_600;

/// A line of stdin.
#[derive(Debug, PartialEq)]
pub(super) enum BridgeLine {
    Whole(String),
    /// A line that cannot be forwarded, with the reason.
    Odd(MessageHead, String),
}

/// A message that can be forwarded.
#[derive(Debug, PartialEq)]
pub(super) struct BridgeMessage {
    pub(super) text: Json,
    pub(super) head: MessageHead,
    /// The request that it cancels.
    pub(super) called_off: Option<Value>,
}

/// The id and method of a message, in JSON-RPC's terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MessageHead {
    /// Null where it is missing or null.
    pub(super) id: Value,
    /// Empty where it is missing: an answer.
    pub(super) method: String,
}

impl MessageHead {
    /// Whether the sender expects an answer.
    pub(super) fn asks(&self) -> bool {
        !self.id.is_null() && !self.method.is_empty()
    }

    /// A refusal before anything was started. A refused tool call becomes a result, so that a model can react.
    pub(super) fn refusal_message(&self, code: i64, why: &str) -> String {
        if !self.asks() {
            // An answer's id is the server's: the client would take it for the id of a request of its own.
            return error(&Value::Null, code, why);
        }
        if self.method != "tools/call" {
            return error(&self.id, code, why);
        }
        let text =
            format!("Error: {why}. Nothing was started. Correct the arguments and call again.");
        failed(&self.id, &text, "invalid_arguments", "correct_arguments")
    }
}

/// A JSON-RPC error.
pub(super) fn error(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// A tool result that reports a failure.
pub(super) fn failed(id: &Value, text: &str, status: &str, recovery: &str) -> String {
    // Some clients show their model only the structured content.
    let message = text.strip_prefix("Error: ").unwrap_or(text);
    let structured = json!({ "status": status, "recovery": recovery, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "result": {
        "content": [{ "type": "text", "text": text }], "structuredContent": structured, "isError": true,
    } })
    .to_string()
}

/// Reads the next line; `None` at the end.
pub(super) fn next_line(from: &mut impl BufRead) -> io::Result<Option<BridgeLine>> {
    let mut line = Vec::new();
    let n_bytes = from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if n_bytes as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        let mut rest = LineRemainder { from, is_over: false };
        let head = skim(line.chain(rest.by_ref().take(SKIMMED_BYTES_MAX)));
        io::copy(&mut rest, &mut io::sink())?;
        let why =
            format!("the message has more than {LINE_BYTES_MAX} bytes, the most that is taken");
        return Ok(Some(BridgeLine::Odd(head, why)));
    }
    Ok((n_bytes > 0).then(|| match String::from_utf8(line) {
        Ok(line) => BridgeLine::Whole(line),
        Err(error) => {
            let why =
                format!("the message is not UTF-8 after byte {}", error.utf8_error().valid_up_to());
            BridgeLine::Odd(skim(error.as_bytes()), why)
        }
    }))
}

/// The rest of a line, up to its end.
struct LineRemainder<'a, R> {
    from: &'a mut R,
    is_over: bool,
}

impl<R: BufRead> Read for LineRemainder<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let ready = self.from.fill_buf()?;
        let ready = &ready[..ready.len().min(into.len())];
        let end = ready.iter().position(|byte| *byte == b'\n');
        let n_bytes = end.unwrap_or(ready.len());
        into[..n_bytes].copy_from_slice(&ready[..n_bytes]);
        self.from.consume(n_bytes + usize::from(end.is_some()));
        self.is_over = end.is_some();
        Ok(n_bytes)
    }
}

/// Parses a message; the error is the answer to an invalid one.
pub(super) fn read(line: &str) -> Result<BridgeMessage, String> {
    let no_request = |why: &str| error(&Value::Null, NO_REQUEST, why);
    let text = Json::parse(line.to_owned())
        .map_err(|_| error(&Value::Null, NOT_JSON, "this is not JSON"))?;
    if !text.as_text().starts_with('{') {
        return Err(no_request("a message is one JSON object; batches are not taken"));
    }
    // Half a surrogate pair, or nested too deep: the server would reject it as well.
    let value: Value = serde_json::from_str(line).map_err(|why| {
        skim(line.as_bytes()).refusal_message(
            NOT_JSON,
            &format!("the message has half a surrogate pair or is nested too deep: {why}"),
        )
    })?;
    let method = value["method"].as_str().unwrap_or_default().to_owned();
    let head = MessageHead { id: value["id"].clone(), method };
    let is_answer = value.get("result").or(value.get("error")).is_some();
    match (&head.id, head.method.is_empty()) {
        (_, true) if !is_answer => return Err(no_request("the message has no method")),
        (Value::String(_) | Value::Number(_), _) => {}
        (Value::Null, false) if value.get("id").is_none() => {}
        (_, _) => return Err(no_request("the id must be a string or a number")),
    }
    let called_off =
        (head.method == "notifications/cancelled").then(|| value["params"]["requestId"].clone());
    Ok(BridgeMessage { text, head, called_off })
}

/// Parses a message of the server. Of one that is nested too deep, only its id; null where it is not a message.
pub(super) fn glance(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| match skim(text.as_bytes()) {
        MessageHead { id: Value::Null, .. } => Value::Null,
        MessageHead { id, .. } => json!({ "jsonrpc": "2.0", "id": id }),
    })
}

/// The head of a message, as far as it can be read.
fn skim(line: impl Read) -> MessageHead {
    let mut head = MessageHead::default();
    // It fails where the text is not JSON; the members before that point count.
    let _ = serde_json::Deserializer::from_reader(BufReader::new(line)).deserialize_map(&mut head);
    head
}

impl<'de> Visitor<'de> for &mut MessageHead {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "id" => self.id = plain(&members.next_value::<Box<RawValue>>()?),
                "method" => {
                    let method = plain(&members.next_value::<Box<RawValue>>()?);
                    self.method = method.as_str().unwrap_or_default().to_owned();
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A string or a number; no other type can be an id or a method.
fn plain(raw: &RawValue) -> Value {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    if value.is_string() || value.is_number() { value } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(id: Value, method: &str) -> MessageHead {
        MessageHead { id, method: method.to_owned() }
    }

    #[track_caller]
    fn check(line: &str, id: Value, code: i64) {
        let answer: Value = serde_json::from_str(&read(line).unwrap_err()).unwrap();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{line}");
    }

    #[test]
    fn what_is_no_message_is_answered() {
        check("{", Value::Null, NOT_JSON);
        for line in [
            "7",
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "{}",
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        ] {
            check(line, Value::Null, NO_REQUEST);
        }
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for odd in [r#""\ud83d""#, &deep] {
            let line = |more: &str| format!(r#"{{"params":{odd},"jsonrpc":"2.0"{more}}}"#);
            check(&line(r#","id":6,"method":"ping""#), json!(6), NOT_JSON);
            check(&line(r#","id":6,"result":{}"#), Value::Null, NOT_JSON);
            let told = read(&line(r#","id":"a","method":"tools/call""#)).unwrap_err();
            let told: Value = serde_json::from_str(&told).unwrap();
            let text = told["result"]["content"][0]["text"].as_str().unwrap();
            let message = text.strip_prefix("Error: ").unwrap();
            let structured = json!({ "status": "invalid_arguments", "recovery": "correct_arguments",
                                     "message": message });
            assert_eq!(told["id"], "a");
            assert_eq!(told["result"]["structuredContent"], structured);
        }
    }

    #[test]
    fn a_message_is_known_by_its_id_and_its_method() {
        let cases = [
            (r#"{"id":1,"method":"ping"}"#, head(json!(1), "ping"), None),
            (r#"{"id":"a","result":{}}"#, head(json!("a"), ""), None),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
                head(Value::Null, "notifications/cancelled"),
                Some(json!(1)),
            ),
        ];
        for (line, head, called_off) in cases {
            let text = Json::parse(line.to_owned()).unwrap();
            assert_eq!(read(line), Ok(BridgeMessage { text, head, called_off }));
        }
    }

    #[test]
    fn an_answer_that_is_nested_too_deep_is_known_by_its_id() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let text = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#);
        assert_eq!(glance(&text), json!({ "jsonrpc": "2.0", "id": 3 }));
        assert_eq!(glance("no message"), Value::Null);
    }

    #[test]
    fn a_line_that_is_too_long_or_not_utf_8_is_known_by_its_id_and_the_next_is_read() {
        let long = "x".repeat(usize::try_from(LINE_BYTES_MAX).unwrap());
        let first = format!(r#"{{"id":1,"method":"ping","params":"{long}"}}"#);
        let last = format!(r#"{{"method":"tools/call","params":"{long}","id":2}}"#);
        let broken = b"{\"id\":3,\"method\":\"ping\",\"params\":\"\xff\"}";
        let lines =
            [first.as_bytes(), last.as_bytes(), long.as_bytes(), broken, b"{}"].join(&b'\n');
        let mut from = lines.as_slice();
        let mut heard = vec![];
        while let Some(line) = next_line(&mut from).unwrap() {
            heard.push(match line {
                BridgeLine::Whole(line) => (head(Value::Null, ""), line),
                BridgeLine::Odd(head, why) => (head, why),
            });
        }
        let too_long =
            format!("the message has more than {LINE_BYTES_MAX} bytes, the most that is taken");
        let expected = [
            (head(json!(1), "ping"), too_long.clone()),
            (head(json!(2), "tools/call"), too_long.clone()),
            (head(Value::Null, ""), too_long),
            (head(json!(3), "ping"), "the message is not UTF-8 after byte 34".to_owned()),
            (head(Value::Null, ""), "{}".to_owned()),
        ];
        assert_eq!(heard, expected);
    }
}
