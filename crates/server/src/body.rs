//! Bodies: JSON only, bounded in size and time.

use crate::app::App;
use crate::error::Problem;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use std::sync::Arc;
use std::time::Duration;

/// Largest body: a program has at most one megabyte, and JSON may write a character as six. It is what axum allows by
/// itself, so that no layer need say it to every request; a test does.
pub(crate) const BODY_BYTES_MAX: usize = 2 << 20;

/// Longest time from the head of a request to the end of its body.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The bytes of a body that claims to be JSON.
pub(crate) struct JsonBody(pub(crate) Bytes);

/// The bytes of a body, whatever it claims to be.
pub(crate) struct AnyBody(pub(crate) Bytes);

impl FromRequest<Arc<App>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        claims_json(request.headers())?;
        read(request, app).await.map(Self)
    }
}

impl FromRequest<Arc<App>> for AnyBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        read(request, app).await.map(Self)
    }
}

/// A body of any kind.
pub(crate) async fn read(request: Request, app: &Arc<App>) -> Result<Bytes, Problem> {
    let reading = Bytes::from_request(request, app);
    let read =
        tokio::time::timeout(BODY_TIME_MAX, reading).await.map_err(|_| Problem::too_slow())?;
    read.map_err(|refused| match refused.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(BODY_BYTES_MAX),
        _ => Problem::bad_request("The body broke off."),
    })
}

/// JSON by its content type: what a page elsewhere cannot send without asking first.
fn claims_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(header) = headers.get(CONTENT_TYPE) else { return Err(Problem::not_json(None)) };
    let text = header.to_str().unwrap_or("something else");
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json =
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    if is_json { Ok(()) } else { Err(Problem::not_json(Some(text))) }
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
