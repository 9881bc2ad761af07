//! What every request passes: Host and Origin, preflight, panics, secrets, headers, counting. One layer, because each
//! costs every request a handful of boxes.

use crate::app::App;
use crate::auth::Hosts;
use crate::error::Problem;
use crate::{body, discreet};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    CACHE_CONTROL, HOST, ORIGIN, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Headers that every answer gets here.
const N_HEADERS: usize = 4;

/// Guards what comes by the router.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    guarded(&app, route, request, |request| next.run(request)).await
}

/// Lets a request in to be answered, or says why not.
pub(crate) async fn guarded<F: Future<Output = Response>>(
    app: &App,
    route: &str,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let method = known(request.method());
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match admit(&app.hosts, &request) {
        Err(problem) => problem.into_response(),
        Ok(()) => {
            let mut response = match is_preflight(&request) {
                true => preflight(),
                false => attempt(answer(body::check_signed_body(request))).await,
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
    let headers = response.headers_mut();
    headers.reserve(N_HEADERS);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A URL may hold a token.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = response.status().as_u16();
    tracing::debug!(method, route, status, "answered");
    app.metrics.count_request(method, route, status);
    response
}

/// One name each, so that nobody can fill the metrics with methods of their own.
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

/// Whether a request names us and comes from no page elsewhere.
pub(crate) fn admit(hosts_of_ours: &Hosts, request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let one_is_ours = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(|host| hosts_of_ours.is_ours(host)),
        (Some(_), Some(_)) | (None, _) => false,
    };
    let target_is_ours = match request.uri().authority() {
        Some(authority) => hosts_of_ours.is_ours(authority.as_str()),
        None => true,
    };
    if !(one_is_ours && target_is_ours) {
        return Err(Problem::forbidden(
            "The header Host must name this server: a loopback name, its listen address, or a name \
             given with --allowed-host.",
        ));
    }
    let may_call =
        |origin: &HeaderValue| origin.to_str().is_ok_and(|text| hosts_of_ours.may_call(text));
    if !request.headers().get_all(ORIGIN).iter().all(may_call) {
        return Err(Problem::forbidden(
            "Pages of this Origin may not call this server; --allowed-host names those that may.",
        ));
    }
    Ok(())
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

/// A handler that panics breaks its own request and nothing else.
async fn attempt(answering: impl Future<Output = Response>) -> Response {
    let answered = async { discreet::answer(answering.await).await };
    let attempt = AssertUnwindSafe(answered).catch_unwind();
    attempt.await.unwrap_or_else(|_| Problem::broken(&"a handler panicked").into_response())
}
