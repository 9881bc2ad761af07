//! The context of one request: its caller, its options and its origin.

use super::McpState;
use super::inbound::{ConnectionTerms, ElicitationMode};
use crate::answering::{AnswerPath, PageOrigin};
use crate::app::AppState;
use crate::auth::{Caller, is_loopback};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use lifecycle::{AnswerRole, CallerName, QuestionId};
use protocols::executor::QuestionReader;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use std::net::SocketAddr;
use std::sync::Arc;

/// One request's caller and options.
pub(super) struct McpRequestContext {
    pub(super) app: Arc<AppState>,
    pub(super) state: Arc<McpState>,
    pub(super) caller: Caller,
    pub(super) terms: ConnectionTerms,
    /// Host and port by which the client reached the server.
    pub(super) host: Option<HeaderValue>,
    /// The address of its connection's peer; none if it is in this process.
    pub(super) peer: Option<SocketAddr>,
    /// Its MCP session, if it has one: links to pages name it, as clients of Executor expect.
    pub(super) session: Option<String>,
}

/// How a question reaches a person, given what the client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionChannel {
    /// The model receives the question and calls `resume` with the person's answer.
    Model,
    /// The person opens a page; `resume` waits for them.
    Browser,
    /// The client shows a form in the middle of the call.
    Form(FormSupport),
    /// The client receives what is needed and retries the call with it.
    Retry(FormSupport),
}

/// The session's name in links for clients that have no session.
const NO_SESSION: &str = "none";

/// What a client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormSupport {
    /// Forms.
    pub(super) form: bool,
    /// Links.
    pub(super) url: bool,
    /// Whether the result of the client's dialog is an answer. Otherwise the client shows a link to the page, and
    /// only the page answers.
    pub(super) counts: bool,
}

impl McpRequestContext {
    /// The context that the HTTP layer attached to the message.
    pub(super) fn from_request(
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Self>, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let visit = parts.and_then(|parts| parts.extensions.get::<Arc<Self>>());
        visit.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    /// Scheme, host and port under which a person finds the pages.
    pub(super) fn origin(&self) -> String {
        PageOrigin::for_request(&self.app, self.host.as_ref()).0
    }

    /// The page where a person answers a question. The URL contains an MCP session even if there is none, because
    /// clients of Executor read the name from it; the routes below `/api/mcp-sessions` accept any.
    pub(super) fn page(&self, question: QuestionId) -> String {
        let session = self.session.as_deref().unwrap_or(NO_SESSION);
        format!("{}/resume/{question}?mcp_session_id={session}", self.origin())
    }

    /// A note about the page's address for a person on another machine; none if the address works there.
    pub(super) fn page_note(&self) -> Option<&'static str> {
        let is_public = self.app.admission.public_origin().is_some();
        (!is_public && !is_near(self.peer)).then_some(
            "The page is on the machine that runs Airlock, at the address by which this client reached it.",
        )
    }

    /// Who reads a question in a resource.
    pub(super) fn reader(&self, owner: &CallerName) -> QuestionReader {
        let pages = PageOrigin::for_request(&self.app, self.host.as_ref());
        pages.reader(&self.caller, owner, AnswerPath::McpTool)
    }

    /// How a question of this caller reaches a person, given the client's capabilities and whose answers count.
    pub(super) fn manner(&self, context: &RequestContext<RoleServer>) -> QuestionChannel {
        let counts = self.caller.answers >= AnswerRole::Client;
        let shown = forms(context).map(|forms| (is_stateless(context), forms));
        // If no dialog answer counts, only a link to the page is shown.
        let shown = shown.filter(|(_, forms)| counts || forms.url);
        match (self.terms.mode, shown) {
            (ElicitationMode::Browser, _) => QuestionChannel::Browser,
            (ElicitationMode::Native, Some((true, forms))) => {
                QuestionChannel::Retry(FormSupport { counts, ..forms })
            }
            (ElicitationMode::Native, Some((false, forms))) => {
                QuestionChannel::Form(FormSupport { counts, ..forms })
            }
            (ElicitationMode::Native, None) if self.caller.answers < AnswerRole::Model => {
                QuestionChannel::Browser
            }
            (ElicitationMode::Model, _) | (ElicitationMode::Native, None) => QuestionChannel::Model,
        }
    }
}

/// Whether a client is on this machine. `Host` does not show it: a remote client can use `localhost`, and a local one
/// another name.
fn is_near(peer: Option<SocketAddr>) -> bool {
    peer.is_none_or(|peer| is_loopback(peer.ip()))
}

/// Whether the client's revision has no requests from servers.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let first = ProtocolVersion::V_2026_07_28;
    context.protocol_version().is_some_and(|version| version.as_str() >= first.as_str())
}

/// The client's declared elicitation support; a capability without members means forms.
fn forms(context: &RequestContext<RoleServer>) -> Option<FormSupport> {
    let elicitation = context.client_capabilities()?.elicitation?;
    let (form, url) = (elicitation.form.is_some(), elicitation.url.is_some());
    Some(FormSupport { form: form || !url, url, counts: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_near_by_its_address() {
        assert!(is_near(None), "in this process");
        for near in ["127.0.0.1:4788", "[::1]:4788", "[::ffff:127.0.0.1]:1"] {
            assert!(is_near(near.parse().ok()), "{near}");
        }
        for far in ["10.0.0.1:4788", "[fe80::1]:4788", "[::ffff:10.0.0.1]:1"] {
            assert!(!is_near(far.parse().ok()), "{far}");
        }
    }
}
