//! Who asks: the token names the caller, Host and Origin say whether a browser was led here.

mod first;
mod host;
mod scope;
mod tokens;

pub use first::{FirstTokensError, first_tokens, secret_file};
pub(crate) use host::Hosts;
pub use scope::{BadScope, Scope, Scopes};
pub(crate) use scope::{Caller, Denied};
pub use tokens::{Secret, Token, TokenError, TokenName, add, list, remove};
pub(crate) use tokens::{Tokens, digest, same};

use crate::app::App;
use crate::error::Problem;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
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
            return Ok(Self { name, scopes: Scopes::from([Scope::Admin].as_slice()) });
        }
        let Some(secret) = presented(parts) else { return Err(Problem::unauthorized()) };
        let caller = app.tokens.caller(&secret).await.map_err(engine::Fault::from)?;
        caller.ok_or_else(Problem::unauthorized)
    }
}

/// The secret in the header, else in the query.
pub(crate) fn presented(parts: &Parts) -> Option<Cow<'_, str>> {
    if let Some(header) = parts.headers.get(AUTHORIZATION) {
        let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into());
    }
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value)
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
    }
}
