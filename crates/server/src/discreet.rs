//! The last look at whatever leaves over HTTP: pages, errors, events, metrics. Known secrets stay here, whoever put
//! them into an answer.

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use std::borrow::Cow;
use tools::scrub;

/// Passes an answer on without known secrets. One that is whole is looked at as a whole, a stream piece by piece: our
/// own streams send whole events.
pub(crate) async fn discreet(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
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
        Err(error) => crate::error::Problem::broken(&error).into_response(),
    }
}

fn blotted(piece: Bytes) -> Bytes {
    match scrub::bytes(&piece) {
        Cow::Borrowed(_) => piece,
        Cow::Owned(blotted) => blotted.into(),
    }
}
