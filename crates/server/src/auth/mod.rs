//! Who asks: the token names the caller, Host and Origin say whether a browser was led here.

mod browser;
mod first;
mod host;
mod rotate;
mod scope;
mod tokens;

pub(crate) use browser::{code, exchange};
pub use first::{FirstTokensError, first_tokens, secret_file};
pub(crate) use host::Hosts;
pub use rotate::{is_minted_secret, rotate_admin_tokens};
pub use scope::{BadScope, Scope, Scopes};
pub(crate) use scope::{Caller, Denied};
pub use tokens::{Secret, Token, TokenError, TokenName, add, list, remove};
pub(crate) use tokens::{Tokens, digest, same};

use crate::app::App;
use crate::error::Problem;
use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, UPGRADE};
use axum::http::request::Parts;
use lifecycle::CallerName;
use std::borrow::Cow;
use std::sync::Arc;

/// Who everybody is where no token is asked for.
const ANYBODY: &str = "anybody";

/// How callers are told apart.
pub(crate) enum Gate {
    /// By their tokens.
    Tokens,
    /// Not at all: everybody may do everything.
    Open,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        if matches!(app.gate, Gate::Open) {
            let name = CallerName(ANYBODY.into());
            let scopes = Scopes::from([Scope::Admin].as_slice());
            return Ok(Self { name, scopes, answers: app.answers.get() });
        }
        let Some(secret) = presented(parts) else { return Err(Problem::unauthorized()) };
        let caller = if browser::is_bearer(&secret) {
            browser::caller(&app.tokens, &secret, app.clock.now()).await
        } else {
            app.tokens.caller(&secret).await
        };
        let caller = caller.map_err(engine::Fault::from)?;
        let mut caller: Self = caller.ok_or_else(Problem::unauthorized)?;
        caller.answers = app.answers.get();
        Ok(caller)
    }
}

/// The secret in the header, else in the query where a client may have nothing but a URL.
pub(crate) fn presented(parts: &Parts) -> Option<Cow<'_, str>> {
    if let Some(header) = parts.headers.get(AUTHORIZATION) {
        let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into());
    }
    if !takes_token_in_url(parts) {
        return None;
    }
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value)
}

/// URLs are kept in histories and logs, so a token in one is taken only from clients that cannot send
/// headers: a browser that opens the page, an `EventSource`, a WebSocket, an MCP client with one setting.
fn takes_token_in_url(parts: &Parts) -> bool {
    let path = parts.uri.path();
    let is_stream = path.starts_with("/api/") && path.ends_with("/events");
    parts.headers.contains_key(UPGRADE) || matches!(path, "/" | "/mcp") || is_stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[test]
    fn a_secret_comes_by_header_or_query_and_the_header_counts() {
        let cases = [
            ("/", Some("Bearer alk_x"), Some("alk_x")),
            ("/", Some("bearer  alk_x"), Some("alk_x")),
            ("/", Some("Basic alk_x"), None),
            ("/?token=alk_x", Some("Basic alk_y"), None),
            ("/?a=1&token=alk%5Fx", None, Some("alk_x")),
            ("/?tokens=1", None, None),
            ("/mcp?token=alk_x", None, Some("alk_x")),
            ("/api/executions/run_1/events?token=alk_x", None, Some("alk_x")),
            ("/api/executions?token=alk_x", None, None),
            ("/api/tokens?token=alk_x", None, None),
            ("/metrics?token=alk_x", None, None),
            ("/execbox?token=alk_x", None, None),
            ("/", None, None),
        ];
        for (uri, header, expected) in cases {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!((uri, presented(&parts).as_deref()), (uri, expected));
        }
        let upgrade = Request::builder().uri("/execbox?token=alk_x").header(UPGRADE, "websocket");
        let (parts, ()) = upgrade.body(()).unwrap().into_parts();
        assert_eq!(presented(&parts).as_deref(), Some("alk_x"));
    }
}
