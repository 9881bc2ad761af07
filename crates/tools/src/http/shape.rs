//! Converts the answer of an API into the value that a program receives.

use super::redirect::host;
use super::{ApiResponse, AuthChallenge, HttpError, file, is_json, is_text, media_type};
use crate::envelope::{ToolFailure, WANTED_SCOPES, done, recovery};
use crate::{PlacementKind, ToolCredential};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, SET_COOKIE};
use lifecycle::Json;
use serde_json::{Map, Value, json};

/// Headers that a program is shown.
const HEADERS_MAX: usize = 64;

/// Longest header that a program is shown.
const HEADER_BYTES_MAX: usize = 2_000;

/// Largest body of a refusal that a program is shown.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Maximum depth at which the message of a refusal is searched.
const MESSAGE_DEPTH_MAX: usize = 4;

/// Values shorter than this occur by chance; redacting them would damage harmless text.
const SECRET_BYTES_MIN: usize = 8;

/// The replacement where an API repeats a credential.
const BLOT: &str = "[redacted]";

/// The answer as an envelope. A credential that the API repeats is redacted.
pub(crate) fn shape_response(mut incoming: ApiResponse, credential: &ToolCredential) -> Json {
    blot(&mut incoming.body, credential);
    if incoming.status.is_success() {
        let http = json!({
            "status": incoming.status.as_u16(),
            "headers": shown_headers(&incoming.headers, credential),
        });
        return match data(&incoming) {
            Ok(data) => done(&data, Some(&http)),
            Err(trouble) => trouble.into_envelope(),
        };
    }
    refusal(&incoming).into_envelope()
}

/// A request without an answer, as an envelope.
pub(crate) fn trouble(error: &HttpError) -> Json {
    let mut trouble =
        ToolFailure::new(error.code(), format!("{}.", capitalised(&error.to_string())));
    trouble.retryable = Some(error.is_retryable());
    trouble.into_envelope()
}

fn data(incoming: &ApiResponse) -> Result<Json, ToolFailure> {
    let label = label(&incoming.headers);
    let kind = media_type(&label);
    if incoming.body.is_empty() {
        return Ok(Json::null());
    }
    if is_json(&kind) {
        return json_body(&incoming.body).ok_or_else(|| lied(incoming, &kind));
    }
    if kind.is_empty()
        && let Some(json) = json_body(&incoming.body)
    {
        return Ok(json);
    }
    if is_text(&kind)
        && let Some(text) = body_text(&incoming.body, &label)
    {
        return Ok(Json::from_value(&text).expect("a string is JSON"));
    }
    Ok(Json::from_value(&file(&incoming.body, &kind)).expect("a file is JSON"))
}

/// JSON with its original text. A byte order mark is not part of it.
fn json_body(body: &[u8]) -> Option<Json> {
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok()?;
    Json::parse(text.to_owned()).ok()
}

fn lied(incoming: &ApiResponse, kind: &str) -> ToolFailure {
    let begins: String = String::from_utf8_lossy(&incoming.body).chars().take(60).collect();
    let message = format!(
        "{} says its answer is {kind}, but it is not JSON; it begins with {begins:?}.",
        host(&incoming.url)
    );
    let status = Some(incoming.status.as_u16());
    ToolFailure { status, ..ToolFailure::new("upstream_invalid_response", message) }
}

fn refusal(incoming: &ApiResponse) -> ToolFailure {
    let status = incoming.status;
    let body = refusal_body(incoming);
    let said = body.as_ref().and_then(|body| message_in(body, 0));
    let message = match said {
        Some(said) => said,
        None => format!("{} answered {status}.", host(&incoming.url)),
    };
    let retryable = matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504);
    let is_rejected = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let (code, details) = if is_rejected {
        let upstream = json!({ "status": status.as_u16(), "details": body });
        let mut details = json!({
            "category": "authentication",
            "source": { "host": host(&incoming.url) },
            "credential": { "kind": "upstream", "label": "Upstream authorization" },
            "upstream": upstream,
            "recovery": recovery(),
        });
        let challenge = AuthChallenge::among(&incoming.headers).unwrap_or_default();
        if let Some(scopes) = challenge.wants_scopes() {
            details[WANTED_SCOPES] = scopes.join(" ").into();
        }
        ("connection_rejected", Some(details))
    } else {
        ("upstream_http_error", with_wait(body, &incoming.headers))
    };
    ToolFailure {
        status: Some(status.as_u16()),
        details,
        retryable: Some(retryable),
        ..ToolFailure::new(code, message)
    }
}

/// The body, with the `Retry-After` time if the API sent one.
fn with_wait(body: Option<Value>, headers: &HeaderMap) -> Option<Value> {
    let wait = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match (body, wait) {
        (body, None) => body,
        (Some(Value::Object(mut body)), Some(wait)) => {
            body.entry("retryAfter").or_insert_with(|| wait.into());
            Some(body.into())
        }
        (body, Some(wait)) => Some(json!({ "retryAfter": wait, "body": body })),
    }
}

fn refusal_body(incoming: &ApiResponse) -> Option<Value> {
    if incoming.body.is_empty() {
        return None;
    }
    let shown = &incoming.body[..incoming.body.len().min(REFUSAL_BYTES_MAX)];
    let parsed = serde_json::from_slice(shown).ok();
    parsed.or_else(|| {
        let text = String::from_utf8_lossy(shown).trim().to_owned();
        let is_page = text.starts_with('<');
        (!is_page).then_some(Value::String(text))
    })
}

/// The message for people, at any place where APIs put it.
fn message_in(body: &Value, depth: usize) -> Option<String> {
    const NAMES: [&str; 12] = [
        "message",
        "error_description",
        "errorMessage",
        "error",
        "errors",
        "detail",
        "details",
        "title",
        "description",
        "reason",
        "fault",
        "msg",
    ];
    if depth > MESSAGE_DEPTH_MAX {
        return None;
    }
    match body {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().take(8).find_map(|item| message_in(item, depth + 1)),
        Value::Object(members) => {
            NAMES.iter().find_map(|name| message_in(members.get(*name)?, depth + 1))
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Headers by name. Cookies are omitted: they are credentials too.
fn shown_headers(headers: &HeaderMap, credential: &ToolCredential) -> Map<String, Value> {
    let shown =
        headers.iter().filter(|(name, _)| *name != SET_COOKIE).filter_map(|(name, value)| {
            let mut value = value.as_bytes().to_vec();
            value.truncate(HEADER_BYTES_MAX);
            blot(&mut value, credential);
            Some((name.as_str().to_owned(), String::from_utf8(value).ok()?.into()))
        });
    shown.take(HEADERS_MAX).collect()
}

fn blot(body: &mut Vec<u8>, credential: &ToolCredential) {
    let values =
        credential.value_at(PlacementKind::Header).chain(credential.value_at(PlacementKind::Query));
    for (_, value) in values {
        // `Bearer key` may come back as `key`.
        let bare = value.rsplit([' ', '=']).find(|part| !part.is_empty()).unwrap_or(value);
        for secret in [value, bare] {
            let occurs = secret.len() >= SECRET_BYTES_MIN
                && body.windows(secret.len()).any(|window| window == secret.as_bytes());
            if occurs && let Ok(text) = std::str::from_utf8(body) {
                *body = text.replace(secret, BLOT).into_bytes();
            }
        }
    }
}

fn label(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// Text in UTF-8, or in Latin-1 if the label names it; none for other bytes.
fn body_text(body: &[u8], label: &str) -> Option<String> {
    let label = label.to_ascii_lowercase();
    let is_latin = ["iso-8859-1", "latin1", "windows-1252"].iter().any(|name| label.contains(name));
    match std::str::from_utf8(body) {
        Ok(text) => Some(text.to_owned()),
        Err(_) if is_latin => Some(body.iter().map(|byte| char::from(*byte)).collect()),
        Err(_) => None,
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), text.contains('.')) {
        // `Host` has its own spelling.
        (Some(first), false) => first.to_uppercase().chain(chars).collect(),
        (Some(_), true) | (None, _) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, kind: &str, body: &[u8]) -> Value {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        }
        let incoming = ApiResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: body.to_vec(),
            url: "https://api.example.com/x?key=1".parse().unwrap(),
        };
        let told = shape_response(incoming, &ToolCredential::bearer("0123456789"));
        serde_json::from_str(told.as_text()).unwrap()
    }

    #[test]
    fn a_body_becomes_json_text_a_file_or_nothing() {
        let data = |kind, body: &[u8]| said(200, kind, body)["data"].clone();
        assert_eq!(data("application/json", b"\xef\xbb\xbf{\"a\":1}"), json!({"a": 1}));
        assert_eq!(data("", b"[1]"), json!([1]));
        assert_eq!(data("", b""), Value::Null);
        assert_eq!(data("text/plain", b"123"), json!("123"));
        assert_eq!(data("text/plain; charset=ISO-8859-1", b"caf\xe9"), json!("café"));
        assert_eq!(data("text/plain", b"\xff\xfe")["_tag"], "ToolFile");
        assert_eq!(data("image/png", b"\x89PNG")["mimeType"], "image/png");
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_trouble_that_names_the_source() {
        let expected = json!({"ok": false, "error": {
            "code": "upstream_invalid_response", "status": 200,
            "message": "api.example.com says its answer is application/json, but it is not JSON; it begins with \"<html>\".",
        }});
        assert_eq!(said(200, "application/json", b"<html>"), expected);
    }

    #[test]
    fn a_refusal_keeps_what_the_api_said() {
        let body = br#"{"error": {"errors": [{"message": "no such pet"}], "code": 7}}"#;
        let expected = json!({"ok": false, "error": {
            "code": "upstream_http_error", "status": 404, "message": "no such pet", "retryable": false,
            "details": {"error": {"errors": [{"message": "no such pet"}], "code": 7}},
        }});
        assert_eq!(said(404, "application/json", body), expected);
        let page = said(503, "text/html", b"<html>down</html>");
        assert_eq!(page["error"]["message"], "api.example.com answered 503 Service Unavailable.");
        assert_eq!(page["error"]["retryable"], true);
        let rejected = said(401, "text/plain", b"bad key");
        assert_eq!(rejected["error"]["code"], "connection_rejected");
        let recovery = &rejected["error"]["details"]["recovery"];
        assert_eq!(recovery["startOAuthTool"], "executor.coreTools.oauth.start");
        assert!(
            recovery["connectionInstructions"].as_str().unwrap().contains("createConnectionTool")
        );
        assert_eq!(
            rejected["error"]["details"]["upstream"],
            json!({"status": 401, "details": "bad key"})
        );
        assert_eq!(rejected["error"]["details"]["credential"]["kind"], "upstream");
    }

    #[test]
    fn a_credential_that_comes_back_is_blotted_out() {
        let echoed = said(200, "text/plain", b"you sent Bearer 0123456789");
        assert_eq!(echoed["data"], "you sent [redacted]");
    }
}
