//! A client of `/mcp` for programs that forward messages. It does not interpret a message beyond the fields that the
//! headers repeat.

use crate::Error;
use crate::error::root_cause;
use crate::http::AirlockClient;
use crate::sse::SseParser;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use lifecycle::Json;
use serde_json::Value;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Forwards messages to `/mcp`.
#[derive(Debug, Clone)]
pub struct McpClient {
    http: AirlockClient,
    path: String,
}

/// What goes into the head of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpHead {
    /// The session, where there is one.
    pub session: Option<String>,
    /// The negotiated protocol revision; a message that names its own takes precedence.
    pub version: Option<String>,
}

/// The server's response to one message.
#[derive(Debug)]
pub struct McpSaid {
    /// The session that it opened.
    pub session: Option<String>,
    /// The HTTP status; messages may come with any.
    pub status: u16,
    body: McpBody,
}

#[derive(Debug)]
enum McpBody {
    Stream(Incoming, SseParser),
    Whole(Option<String>),
}

impl McpClient {
    /// Creates a client with these query parameters, such as `elicitation_mode=browser`.
    pub fn new(http: AirlockClient, query: &str) -> Self {
        let path = if query.is_empty() { "/mcp".into() } else { format!("/mcp?{query}") };
        Self { http, path }
    }

    /// Sends one message, which is JSON.
    pub async fn post(&self, message: &Json, head: &McpHead) -> Result<McpSaid, Error> {
        let mut request = self.http.post_to(&self.path, message)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        describe(message, head, headers);
        let response = self.http.raw(request).await?;
        let (status, kind) = (response.status(), response.headers().get(CONTENT_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            return Err(Error::Unauthorised { url: self.http.base_url().to_owned() });
        }
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        let session = session.map(str::to_owned);
        let body = if is_stream {
            McpBody::Stream(response.into_body(), SseParser::new())
        } else {
            let (_, text) = self.http.whole(response).await?;
            McpBody::Whole(Some(text).filter(|text| !text.trim().is_empty()))
        };
        Ok(McpSaid { session, status: status.as_u16(), body })
    }
}

impl McpSaid {
    /// Returns the next message; `None` at the end of the response.
    pub async fn next(&mut self) -> Result<Option<String>, String> {
        let (incoming, messages) = match &mut self.body {
            McpBody::Whole(text) => return Ok(text.take()),
            McpBody::Stream(incoming, messages) => (incoming, messages),
        };
        loop {
            while let Some(message) = messages.next() {
                if !message.is_empty() {
                    return String::from_utf8(message).map(Some).map_err(|error| error.to_string());
                }
            }
            match incoming.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(root_cause(&error)),
                Some(Ok(frame)) => {
                    let heard = frame.data_ref().map(|bytes| messages.push_bytes(bytes));
                    heard.unwrap_or(Ok(())).map_err(|_| "a message that is too long".to_owned())?;
                }
            }
        }
    }
}

/// Sets the headers that the protocol requires to repeat parts of the message.
fn describe(message: &Json, head: &McpHead, headers: &mut HeaderMap) {
    // A message that is nested too deep to parse gets no headers; the server reports what it misses.
    let message: Value = serde_json::from_str(message.as_text()).unwrap_or_default();
    let (method, params) = (message["method"].as_str(), &message["params"]);
    let named = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let version = named.or(head.version.as_deref());
    let name = match method {
        Some("tools/call" | "prompts/get") => params["name"].as_str(),
        Some("resources/read" | "resources/subscribe" | "resources/unsubscribe") => {
            params["uri"].as_str()
        }
        Some("tasks/get" | "tasks/update" | "tasks/cancel") => params["taskId"].as_str(),
        Some(_) | None => None,
    };
    let session = head.session.as_deref();
    for (header, value) in [(SESSION, session), (VERSION, version), (METHOD, method), (NAME, name)]
    {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(plain(value)).ok()) {
            headers.insert(header, value);
        }
    }
}

/// The text as a valid header value.
fn plain(text: &str) -> String {
    let is_visible = |c: char| (' '..='~').contains(&c);
    let is_plain = text.chars().all(is_visible) && text.trim() == text && !text.starts_with("=?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_repeats_what_the_message_says() {
        let mut headers = HeaderMap::new();
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let head = McpHead { session: Some("s".into()), version: Some("2025-06-18".into()) };
        describe(&Json::parse(message.into()).unwrap(), &head, &mut headers);
        let said = |name: HeaderName| headers[name].to_str().unwrap().to_owned();
        let all = [SESSION, VERSION, METHOD, NAME].map(said);
        assert_eq!(all, ["s", "2026-07-28", "tools/call", "=?base64?w6k=?="]);
        let mut headers = HeaderMap::new();
        describe(&Json::parse("[1]".into()).unwrap(), &McpHead::default(), &mut headers);
        assert!(headers.is_empty());
    }
}
