//! The layer that every request passes: Host and Origin, preflight, panics, secrets, headers, metrics. It is one
//! layer, because each layer costs every request several boxes.

use crate::app::AppState;
use crate::auth::RequestAdmission;
use crate::error::RequestError;
use crate::{body, redact};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    CACHE_CONTROL, LOCATION, ORIGIN, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The number of headers that are added to every answer.
const N_HEADERS: usize = 4;

/// Admits a request to be answered, or returns why not.
pub(crate) async fn guard(
    State(app): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = known(request.method());
    let origin = request.headers().get(ORIGIN).cloned();
    let path = request.uri().path();
    let rewrite = app.doors.iter().find_map(|door| door.response_rewrite(path));
    let mut response = match app.admission.check_request(&request) {
        Err(problem) => problem.into_response(),
        Ok(()) => {
            let mut response = if is_preflight(&request) {
                preflight()
            } else if let Some(redirect) = page_redirect(&app.admission, route, &request) {
                redirect
            } else {
                attempt(next.run(body::check_signed_body(request))).await
            };
            if let Some(origin) = origin {
                let headers = response.headers_mut();
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                let exposed = "Airlock-Execution, Mcp-Session-Id, X-Session-ID";
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
            }
            response
        }
    };
    if let Some(rewrite) = rewrite {
        response = rewrite(response).await;
    }
    let headers = response.headers_mut();
    headers.reserve(N_HEADERS);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A URL may hold a token.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if !(rewrite.is_some() && headers.contains_key(CACHE_CONTROL)) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let status = response.status().as_u16();
    tracing::debug!(method, route, status, "answered");
    app.metrics.count_request(method, route, status);
    response
}

/// One static name each, so that clients cannot fill the metrics with invented methods.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "HEAD" => "HEAD",
        _ => "other",
    }
}

/// Pages that people open. A sign-in is valid for one origin, so other loopback names are redirected to it.
const PAGE_ROUTES: [&str; 3] = ["/", "/resume/{id}", "/connect"];

/// Redirects a browser that opens a page under another loopback name to the canonical origin. The fragment is
/// preserved: browsers carry it over to a redirect address without one.
fn page_redirect(admission: &RequestAdmission, route: &str, request: &Request) -> Option<Response> {
    let is_page = matches!(*request.method(), Method::GET | Method::HEAD);
    let origin =
        admission.page_redirect(request).filter(|_| is_page && PAGE_ROUTES.contains(&route))?;
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let location = HeaderValue::try_from(format!("{origin}{path}")).ok()?;
    Some((StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response())
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PATCH, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Method, Mcp-Name, \
             Mcp-Protocol-Version, Mcp-Session-Id",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// A panic in a handler fails its own request and nothing else.
async fn attempt(answering: impl Future<Output = Response>) -> Response {
    let answered = async { redact::redact_response(answering.await).await };
    let attempt = AssertUnwindSafe(answered).catch_unwind();
    attempt.await.unwrap_or_else(|_| RequestError::broken(&"a handler panicked").into_response())
}
