//! Who asks, on what terms, from where: what one request brings with it.

use super::terms::{Mode, Terms};
use crate::answering::{AnswerPath, AnswerSubject, permit};
use crate::app::App;
use crate::auth::Caller;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use std::sync::Arc;

/// One request's caller and terms.
pub(super) struct Visit {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) terms: Terms,
    /// Host and port by which the client reached us.
    pub(super) host: Option<HeaderValue>,
}

/// How a question reaches a person, given what the client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The model is told and calls `resume` with what the person says.
    Model,
    /// The person opens a page; `resume` waits for them.
    Browser,
    /// The client shows a form in the middle of the call.
    Form(Forms),
    /// The client is told what is needed and sends the call again with it.
    Retry(Forms),
}

/// What a client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    /// Forms.
    pub(super) form: bool,
    /// Links.
    pub(super) url: bool,
}

impl Visit {
    /// What the HTTP side put beside the message.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Result<Arc<Self>, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let visit = parts.and_then(|parts| parts.extensions.get::<Arc<Self>>());
        visit.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    /// Scheme, host and port by which the client reached us; a page is found there too.
    pub(super) fn origin(&self) -> String {
        let host = self.host.as_ref().and_then(|host| host.to_str().ok());
        format!("http://{}", host.unwrap_or("localhost"))
    }

    /// Whether the caller may answer its own questions.
    pub(super) fn may_answer(&self) -> bool {
        let subject = AnswerSubject { owner: &self.caller.name, asked: None };
        permit(&self.caller, AnswerPath::McpTool, subject).is_ok()
    }

    /// How a question of this caller reaches a person. Whoever may not answer is sent to a page.
    pub(super) fn manner(&self, context: Option<&RequestContext<RoleServer>>) -> Manner {
        if !self.may_answer() {
            return Manner::Browser;
        }
        let shown = context.and_then(|context| Some((is_stateless(context), forms(context)?)));
        match (self.terms.mode, shown) {
            (Mode::Browser, _) => Manner::Browser,
            (Mode::Native, Some((true, forms))) => Manner::Retry(forms),
            (Mode::Native, Some((false, forms))) => Manner::Form(forms),
            (Mode::Model, _) | (Mode::Native, None) => Manner::Model,
        }
    }
}

/// Whether the client speaks a revision in which servers send no requests.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let first = ProtocolVersion::V_2026_07_28;
    context.protocol_version().is_some_and(|version| version.as_str() >= first.as_str())
}

/// What the client says it can show; a capability without members means forms.
fn forms(context: &RequestContext<RoleServer>) -> Option<Forms> {
    let elicitation = context.client_capabilities()?.elicitation?;
    let (form, url) = (elicitation.form.is_some(), elicitation.url.is_some());
    Some(Forms { form: form || !url, url })
}
