//! The last filter for everything that leaves over HTTP: pages, errors, events, metrics. It redacts known secrets,
//! regardless of their origin.

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use lifecycle::Json;
use std::borrow::Cow;
use tools::scrub;

/// Redacts known secrets in an answer. A complete body is redacted as a whole, a stream piece by piece: this server's
/// own streams send whole events.
pub(crate) async fn redact_response(response: Response) -> Response {
    if scrub::knows_nothing() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    for value in parts.headers.values_mut() {
        if let Cow::Owned(blotted) = scrub::bytes(value.as_bytes())
            && let Ok(blotted) = HeaderValue::from_bytes(&blotted)
        {
            *value = blotted;
        }
    }
    if body.size_hint().exact().is_none() {
        let pieces = body.into_data_stream().map(|piece| piece.map(blotted));
        return Response::from_parts(parts, Body::from_stream(pieces));
    }
    match body.collect().await {
        Ok(whole) => {
            let whole = blotted(whole.to_bytes());
            if let Some(length) = parts.headers.get_mut(CONTENT_LENGTH) {
                *length = whole.len().into();
            }
            Response::from_parts(parts, Body::from(whole))
        }
        Err(error) => crate::error::RequestError::broken(&error).into_response(),
    }
}

/// Redacts a frame or a line of JSON; the result is JSON too. For data that leaves by a socket, or sealed.
pub(crate) fn frame(text: Vec<u8>) -> Vec<u8> {
    if scrub::knows_nothing() {
        return text;
    }
    let Cow::Owned(blotted) = scrub::bytes(&text) else { return text };
    let whole = String::from_utf8(text).ok().and_then(|text| Json::parse(text).ok());
    whole.map_or(blotted, |whole| scrub::json(whole).as_text().to_owned().into_bytes())
}

fn blotted(piece: Bytes) -> Bytes {
    match scrub::bytes(&piece) {
        Cow::Borrowed(_) => piece,
        Cow::Owned(blotted) => blotted.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_its_secrets_is_json() {
        scrub::learn("7316498520");
        let told = |text: &str| String::from_utf8(frame(text.into())).unwrap();
        assert_eq!(told(r#"{"a":7316498520}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(told(r#"{"a":"x 73164\u00398520"}"#), r#"{"a":"x [redacted]"}"#);
        assert_eq!(told(r#"{"a": 1}"#), r#"{"a": 1}"#);
    }
}
