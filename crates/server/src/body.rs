//! Request bodies: JSON only, bounded in size and time.

use crate::auth::sessions::claimed_body_digest;
use crate::error::RequestError;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::BytesMut;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http_body_util::BodyExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::pin::pin;
use std::time::Duration;

/// Maximum size of a body: a program has at most one megabyte, and JSON may encode a character as six.
pub(crate) const BODY_BYTES_MAX: usize = 2 << 20;

/// Maximum time from the head of a request to the end of its body.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The bytes of a body whose content type is JSON.
pub(crate) struct JsonBody(pub(crate) Bytes);

/// Like `JsonBody`, but a request without a body fails for its missing members, not for its content type.
pub(crate) struct NeededJson(pub(crate) Bytes);

/// At most `N` bytes of a body of any content type.
pub(crate) struct AnyBody<const N: usize = BODY_BYTES_MAX>(pub(crate) Bytes);

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = RequestError;

    async fn from_request(request: Request, _: &S) -> Result<Self, RequestError> {
        read_json(request, BODY_BYTES_MAX).await.map(Self)
    }
}

/// Reads a body whose content type is JSON, up to a maximum size.
pub(crate) async fn read_json(request: Request, n_bytes_max: usize) -> Result<Bytes, RequestError> {
    claims_json(request.headers())?;
    read_up_to(request.into_body(), n_bytes_max).await
}

impl<S: Sync> FromRequest<S> for NeededJson {
    type Rejection = RequestError;

    async fn from_request(request: Request, _: &S) -> Result<Self, RequestError> {
        let is_typed = request.headers().contains_key(CONTENT_TYPE);
        if !is_typed && request.body().is_end_stream() {
            return Err(RequestError::bad_request("The body is missing; it is a JSON object."));
        }
        read_json(request, BODY_BYTES_MAX).await.map(Self)
    }
}

impl<S: Sync, const N: usize> FromRequest<S> for AnyBody<N> {
    type Rejection = RequestError;

    async fn from_request(request: Request, _: &S) -> Result<Self, RequestError> {
        read_up_to(request.into_body(), N).await.map(Self)
    }
}

/// A JSON response with a status.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Reads a whole body of any kind.
pub(crate) async fn read(body: Body) -> Result<Bytes, RequestError> {
    read_up_to(body, BODY_BYTES_MAX).await
}

async fn read_up_to(body: Body, n_bytes_max: usize) -> Result<Bytes, RequestError> {
    let mut reading = pin!(whole(body, n_bytes_max));
    // Most bodies arrive together with their heads: these need no timer.
    if let Some(read) = reading.as_mut().now_or_never() {
        return read;
    }
    tokio::time::timeout(BODY_TIME_MAX, reading)
        .await
        .unwrap_or_else(|_| Err(RequestError::too_slow()))
}

async fn whole(mut body: Body, n_bytes_max: usize) -> Result<Bytes, RequestError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(unreadable)?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > n_bytes_max {
            return Err(RequestError::too_large(n_bytes_max));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The body of a signed request differs from the one that was signed.
#[derive(Debug, thiserror::Error)]
#[error("the body is not the one that was signed")]
struct BodyNotSigned;

/// Makes the body of a signed request fail at its end if its digest differs from the signed one. Handlers read a body
/// to its end before they act.
pub(crate) fn check_signed_body(request: Request) -> Request {
    let Some(claimed) = claimed_body_digest(request.headers()) else { return request };
    request.map(|body| {
        let reading = (body.into_data_stream(), Sha256::new(), claimed);
        Body::from_stream(stream::try_unfold(reading, async |(mut data, mut hasher, claimed)| {
            match data.next().await {
                Some(Ok(bytes)) => {
                    hasher.update(&bytes);
                    Ok(Some((bytes, (data, hasher, claimed))))
                }
                Some(Err(error)) => Err(axum::BoxError::from(error)),
                None if hasher.finalize().as_slice() == claimed => Ok(None),
                None => Err(BodyNotSigned.into()),
            }
        }))
    })
}

fn unreadable(error: axum::Error) -> RequestError {
    match error.into_inner().is::<BodyNotSigned>() {
        true => RequestError::bad_request("The body is not the one that was signed."),
        false => RequestError::bad_request("The body broke off."),
    }
}

/// Checks for the JSON content type, which a foreign page cannot send without a preflight request.
fn claims_json(headers: &HeaderMap) -> Result<(), RequestError> {
    let Some(header) = headers.get(CONTENT_TYPE) else { return Err(RequestError::not_json(None)) };
    let text = header.to_str().unwrap_or("something else");
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json =
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    if is_json { Ok(()) } else { Err(RequestError::not_json(Some(text))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_taken() {
        let cases = [
            (Some("application/json"), true),
            (Some("Application/JSON; charset=utf-8"), true),
            (Some("application/problem+json"), true),
            (Some("text/plain"), false),
            (Some("application/x-www-form-urlencoded"), false),
            (None, false),
        ];
        for (kind, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            }
            assert_eq!((kind, claims_json(&headers).is_ok()), (kind, expected));
        }
    }
}
