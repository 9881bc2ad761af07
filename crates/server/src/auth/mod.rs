//! Authentication: the token identifies the caller; Host and Origin reveal requests that a foreign page made the
//! browser send.

mod admission;
mod first;
mod host;
mod origins;
pub mod permissions;
pub mod review;
mod rotate;
mod scope;
pub(crate) mod sessions;
mod sign_in_key;
mod token_names;
mod tokens;

pub(crate) use admission::RequestAdmission;
pub use first::{FirstTokensError, first_tokens, secret_file, write_secret};
pub use origins::{BadOrigin, WebOrigin};
pub use rotate::{is_minted_secret, rotate_admin_tokens};
pub(crate) use scope::{AccessDenied, CallerCredential};
pub use scope::{BadScope, Caller, Scope, TokenScopes};
pub use sessions::end_all_sessions;
pub(crate) use sign_in_key::{PeerAddress, is_loopback, presents_sign_in_key};
pub use sign_in_key::{SignInKey, sign_in_key_file};
pub use token_names::{TokenName, check_name};
pub use tokens::{MintedSecret, TokenError, TokenInfo, add, list_tokens, remove, set_answers};
pub(crate) use tokens::{TokenRegistry, digest, same};

use crate::app::AppState;
use crate::door::Door;
use crate::edge::{ConnectionHandle, ConnectionRefusal, opens_stream};
use crate::error::RequestError;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::Method;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lifecycle::BuiltinCaller;
use sessions::{SessionClaim, SessionRefusal};
use std::borrow::Cow;
use std::sync::Arc;

/// How callers are identified.
pub(crate) enum AuthGate {
    /// By their tokens.
    Tokens,
    /// Not at all: every caller has all rights.
    Open,
}

impl<S: Sync> FromRequestParts<S> for Caller
where
    Arc<AppState>: FromRef<S>,
{
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let caller = identify(parts, &Arc::<AppState>::from_ref(state)).await?;
        if let Some(ConnectionHandle(connection)) = parts.extensions.get() {
            connection.authenticate();
            if opens_stream(parts) {
                connection.admit_stream(&caller.name).map_err(ConnectionRefusal::problem)?;
            }
        }
        Ok(caller)
    }
}

async fn identify(parts: &Parts, app: &Arc<AppState>) -> Result<Caller, RequestError> {
    if matches!(app.gate, AuthGate::Open) {
        let name = BuiltinCaller::Anybody.into();
        let scopes = TokenScopes::from([Scope::Admin].as_slice());
        let credential = CallerCredential::NotAsked;
        return Ok(Caller { name, scopes, answers: app.answers.get(), credential });
    }
    let mut caller = match session_caller(parts, app).await? {
        Some(caller) => caller,
        None => token_caller(parts, app).await?,
    };
    caller.answers = caller.answers.min(app.answers.get());
    Ok(caller)
}

/// The caller of a request of a browser session, or of one with a ticket; none if the request claims neither.
async fn session_caller(parts: &Parts, app: &AppState) -> Result<Option<Caller>, RequestError> {
    let ticket = ticket_in_url(parts);
    let claim = sessions::claim_in(&parts.headers);
    let Some(claim) = claim.or_else(|| ticket.as_deref().map(SessionClaim::Ticket)) else {
        return Ok(None);
    };
    let caller = app.sessions.caller(&app.tokens, claim, parts, app.clock.now()).await;
    caller.map(Some).map_err(|refusal| match refusal {
        SessionRefusal::Unknown => RequestError::unauthorized(),
        SessionRefusal::TooMany => RequestError::too_many_requests(),
        SessionRefusal::Store(error) => engine::Fault::from(error).into(),
    })
}

/// The ticket in the query of a request that opens a stream or a WebSocket without other credentials.
fn ticket_in_url(parts: &Parts) -> Option<Cow<'_, str>> {
    if parts.method != Method::GET || parts.headers.contains_key(AUTHORIZATION) {
        return None;
    }
    let query = form_urlencoded::parse(parts.uri.query()?.as_bytes());
    query.into_iter().find(|(name, _)| name == "ticket").map(|(_, value)| value)
}

/// The caller of a request with a token.
async fn token_caller(parts: &Parts, app: &AppState) -> Result<Caller, RequestError> {
    let presented = presented(parts, &app.doors).ok_or_else(RequestError::unauthorized)?;
    let caller = app.tokens.caller(&presented.secret).await.map_err(engine::Fault::from)?;
    let caller = caller.ok_or_else(RequestError::unauthorized)?;
    match presented.is_in_url && caller.scopes.has(Scope::Admin) {
        true => Err(RequestError::forbidden(ADMIN_IN_URL)),
        false => Ok(caller),
    }
}

const ADMIN_IN_URL: &str = "A token with the scope admin does not count in a URL, because URLs are logged. Send it in \
     the header Authorization, or create another token: airlock token add NAME --scope run.";

/// A secret that was sent with a request.
struct PresentedSecret<'p> {
    secret: Cow<'p, str>,
    is_in_url: bool,
}

/// Returns the secret from the header, or from the query on routes whose clients may be unable to send headers.
fn presented<'p>(parts: &'p Parts, doors: &[Arc<dyn Door>]) -> Option<PresentedSecret<'p>> {
    if parts.headers.contains_key(AUTHORIZATION) {
        return in_header(parts).map(|secret| PresentedSecret { secret, is_in_url: false });
    }
    // Histories and logs store URLs, so a token in a URL is only accepted if a door declares that its clients cannot
    // send headers.
    let takes_token = |door: &Arc<dyn Door>| door.takes_token_in_url(parts.uri.path());
    let in_url = in_query(parts).filter(|_| doors.iter().any(takes_token));
    in_url.map(|secret| PresentedSecret { secret, is_in_url: true })
}

/// Returns the secret sent to a listener with one door and one token, made for that door: it may be in the URL.
pub(crate) fn presented_to_lone_door(parts: &Parts) -> Option<Cow<'_, str>> {
    match parts.headers.contains_key(AUTHORIZATION) {
        true => in_header(parts),
        false => in_query(parts),
    }
}

fn in_header(parts: &Parts) -> Option<Cow<'_, str>> {
    let (scheme, secret) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into())
}

fn in_query(parts: &Parts) -> Option<Cow<'_, str>> {
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value)
}

/// Passes administrators only.
pub(crate) fn require_admin(caller: &Caller) -> Result<(), RequestError> {
    caller.may_administer().map_err(|denied| RequestError::denied(denied, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DoorSelection;
    use crate::doors::{self, DoorSettings};
    use axum::http::Request;

    fn open_doors(which: DoorSelection) -> Vec<Arc<dyn Door>> {
        doors::open(DoorSettings { which, ..DoorSettings::default() })
    }

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_secret_comes_by_header_or_query_and_the_header_counts() {
        let cases = [
            ("/", Some("Bearer alk_x"), Some(("alk_x", false))),
            ("/", Some("bearer  alk_x"), Some(("alk_x", false))),
            ("/", Some("Basic alk_x"), None),
            ("/mcp?token=alk_x", Some("Basic alk_y"), None),
            ("/mcp?token=alk_x", Some("Bearer alk_y"), Some(("alk_y", false))),
            ("/mcp?a=1&token=alk%5Fx", None, Some(("alk_x", true))),
            ("/mcp?tokens=1", None, None),
            ("/", None, None),
        ];
        for (uri, header, expected) in cases {
            let headers = header.map(|header| ("authorization", header));
            let parts = parts(uri, headers.as_slice());
            let seen = presented(&parts, &open_doors(DoorSelection::All));
            let seen = seen.as_ref().map(|seen| (&*seen.secret, seen.is_in_url));
            assert_eq!((uri, seen), (uri, expected));
        }
    }

    #[test]
    fn a_token_in_the_url_counts_on_the_routes_of_protocols_and_nowhere_else() {
        let taking = |doors: DoorSelection, path: &str| {
            let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
            let parts = parts(&format!("{path}?token=alk_x"), &upgrade);
            presented(&parts, &open_doors(doors)).is_some()
        };
        let protocols = ["/mcp", "/exec", "/repl", "/execbox", "/enclave/ws"];
        for path in protocols.into_iter().chain(["/api/executions/run_1/events"]) {
            assert!(taking(DoorSelection::All, path), "{path}");
        }
        let others = [
            "/",
            "/api/executions",
            "/api/tokens",
            "/api/sign-in/codes",
            "/api/tokens/events",
            "/metrics",
            "/mcp/",
            "/sessions/1/stream",
            "/enclave/identity",
            "/repl/artifacts/a/b",
        ];
        for path in others {
            assert!(!taking(DoorSelection::All, path), "{path}");
        }
        for (path, expected) in [("/", true), ("/repl", true), ("/any", true)] {
            assert_eq!(taking(DoorSelection::Repl, path), expected, "{path}");
        }
        for path in ["/api/executions", "/api/executions/run_1/resume", "/repl/artifacts/a/b"] {
            assert!(!taking(DoorSelection::Repl, path), "{path}");
        }
    }
}
