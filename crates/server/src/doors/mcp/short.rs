//! The short way: a call that wishes for nothing besides its result is answered where it is read.
//!
//! rmcp gives each message without a session a service, channels and three tasks of its own, which takes longer than a
//! small program does. Whatever is not plainly such a call goes rmcp's way: other methods and revisions, progress, forms,
//! nonsense. What is answered here is written in rmcp's types, too, unless it is nothing but a program's value.

use super::call::Call;
use super::content::{self, Reply};
use super::serve::SESSION;
use super::terms::Mode;
use super::visit::Visit;
use crate::error::Problem;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::{IntoResponse as _, Response};
use protocols::json_rpc::Id;
use protocols::mcp::{PlainCall, plain_call};
use rmcp::model::{
    CallToolResponse, NumberOrString, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use std::sync::Arc;

/// Most answers are shorter.
const BODY_BYTES_USUAL: usize = 1_000;

/// What clients say that they take.
const ACCEPT_USUAL: &str = "application/json, text/event-stream";

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Answers a plain call. None: it is another request, and nothing has been done.
pub(super) async fn answer(visit: &Arc<Visit>, request: &Request<Bytes>) -> Option<Response> {
    let may_be = request.method() == Method::POST && visit.terms.mode != Mode::Native;
    if !may_be || !is_plain(request.headers()) {
        return None;
    }
    let PlainCall { id, tool, arguments: args } = plain_call(request.body())?;
    let visiting = Arc::clone(visit);
    // To its end, also when the client leaves in the middle of it: start and end are counted.
    let told = visit.app.tasks.spawn(async move {
        let (visit, context) = (&visiting, None);
        let call = Call { visit, context, manner: visit.manner(context), tool, args };
        call.log();
        call.first().await
    });
    let told = match told.await {
        Ok(told) => told?,
        Err(panic) => Err(Problem::broken(&panic)),
    };
    let told = told.unwrap_or_else(|problem| content::refused(&problem, None).into());
    let body = match told {
        Reply::Plain(plain) => plain.message(&id),
        Reply::Full(told) => in_full(*told, id),
    };
    Some(([(CONTENT_TYPE, "application/json")], body).into_response())
}

fn in_full(told: CallToolResponse, id: Id) -> Vec<u8> {
    let id = match id {
        Id::Number(number) => NumberOrString::Number(number),
        Id::Text(text) => NumberOrString::String(text.into()),
    };
    let mut result = ServerResult::from(told);
    result.strip_result_type_for_legacy_peer();
    let message = ServerJsonRpcMessage::response(result, id);
    let mut body = Vec::with_capacity(BODY_BYTES_USUAL);
    serde_json::to_writer(&mut body, &message).expect("results have texts as keys");
    body
}

/// Whether the head is that of a client which hears what it asked for and nothing else. Later revisions say in other
/// headers, too, what the body says; which must then be compared.
fn is_plain(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let version = headers.get(VERSION).map(|version| version.to_str().unwrap_or_default());
    let is_older = version.is_none_or(|version| {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
        known && version < ProtocolVersion::STANDARD_HEADERS.as_str()
    });
    let is_json = text(&CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"));
    let takes_both = text(&ACCEPT).is_some_and(|kinds| {
        kinds == ACCEPT_USUAL
            || (kinds.contains("application/json") && kinds.contains("text/event-stream"))
    });
    is_older && is_json && takes_both && !headers.contains_key(SESSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_short_way_is_for_older_revisions_without_sessions() {
        let plain = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let with = |changes: &[(&'static str, &'static str)]| {
            let headers = plain.iter().chain(changes);
            let mut all = HeaderMap::new();
            for (name, value) in headers {
                all.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            is_plain(&all)
        };
        assert!(with(&[]));
        assert!(with(&[("mcp-protocol-version", "2025-06-18")]));
        assert!(with(&[("content-type", "application/json; charset=utf-8")]));
        assert!(with(&[("accept", "text/event-stream;q=0.5, application/json")]));
        for other in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-protocol-version", "1999-01-01"),
            ("mcp-session-id", "x"),
            ("accept", "application/json"),
            ("content-type", "text/plain"),
        ] {
            assert!(!with(&[other]), "{other:?}");
        }
    }
}
