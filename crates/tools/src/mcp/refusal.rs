//! How a server rejects a credential: it wants a token, a better one, or one with more permissions.

use crate::envelope::{ToolFailure, WANTED_SCOPES, recovery};
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::InsufficientScopeError;
use serde_json::json;
use std::error::Error;

/// The phrase for a server that wants a token, or another one.
pub(super) const WANTS_TOKEN: &str = "it wants a token that it knows (HTTP 401)";

/// The phrase for a server that knows the caller and requires more scopes, which follow.
pub(super) const WANTS_SCOPES: &str = "it wants more to be allowed (HTTP 403): ";

/// The code of a call that was not sent because there is no connection.
pub(super) const SERVER_DOWN: &str = "mcp_server_down";

/// Whether a server could not be read because it wants a token.
pub(crate) fn wants_token(why: &str) -> bool {
    why.contains(WANTS_TOKEN)
}

/// Whether a server rejected the credential; it is not down then.
pub(super) fn is_one(why: &str) -> bool {
    wants_token(why) || why.contains(WANTS_SCOPES)
}

/// Why there is no connection, for the call that needs one.
pub(super) fn unmade(why: String) -> ToolFailure {
    match why.split_once(WANTS_SCOPES) {
        _ if wants_token(&why) => unknown_caller(),
        Some((_, scopes)) => too_narrow(scopes),
        None => down(&why),
    }
}

pub(super) fn unknown_caller() -> ToolFailure {
    let why = "The server does not know who calls.";
    let details = Some(json!({ "category": "authentication", "recovery": recovery() }));
    ToolFailure { status: Some(401), details, ..ToolFailure::new("connection_rejected", why) }
}

/// A refusal with the scopes that would suffice.
pub(super) fn too_narrow(scopes: &str) -> ToolFailure {
    let why = format!("The server wants more to be allowed: {scopes}.");
    let details = Some(json!({
        "category": "authentication", "recovery": recovery(), WANTED_SCOPES: scopes,
    }));
    ToolFailure { status: Some(403), details, ..ToolFailure::new("connection_rejected", why) }
}

/// The scopes that a server requires, if an error contains them.
pub(super) fn wanted_scopes(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(narrow) = error.downcast_ref::<InsufficientScopeError>() {
            return narrow.required_scope.clone();
        }
        cause = error.source();
    }
    None
}

/// The same for a call: our library does not report errors of the transport as a cause.
pub(super) fn sent_in_vain(error: &ServiceError) -> Option<String> {
    let ServiceError::TransportSend(sent) = error else { return None };
    wanted_scopes(&*sent.error)
}

fn down(why: &str) -> ToolFailure {
    ToolFailure {
        retryable: Some(true),
        ..ToolFailure::new(SERVER_DOWN, format!("The server is down: {why}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProofRefused;
    use crate::envelope::refused_envelope;

    #[test]
    fn who_is_not_let_in_learns_what_would_help() {
        let why = |text: &str| refused_envelope(&unmade(text.to_owned()).into_envelope());
        assert_eq!(why(&format!("x: {WANTS_TOKEN}")), Some(ProofRefused::Unknown));
        assert_eq!(
            why(&format!("{WANTS_SCOPES}a b")),
            Some(ProofRefused::Narrow(vec!["a".into(), "b".into()]))
        );
        assert_eq!(why("it is gone"), None);
    }
}
