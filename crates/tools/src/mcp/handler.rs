//! Requests of a server to its client: questions with a form or a URL. Also notifications that its tool list changed.

use super::progress::ProgressListeners;
use lifecycle::{Answer, ExecutionId, Json, ToolPrompt};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

use crate::PersonHandle;

/// The client's handler of one connection.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    pub(super) desk: Arc<ActiveCalls>,
    pub(super) changed: Arc<Notify>,
}

/// The calls in progress on one connection, and the number of open questions.
#[derive(Default)]
pub(super) struct ActiveCalls {
    calls: Mutex<BTreeMap<u64, (ExecutionId, PersonHandle)>>,
    next: AtomicU64,
    n_asking: AtomicUsize,
    has_asked: AtomicBool,
    pub(super) settled: Notify,
    /// Receivers of progress notifications.
    pub(super) listeners: ProgressListeners,
}

/// A registered call. Dropping it removes it.
pub(super) struct ActiveCall<'a> {
    desk: &'a ActiveCalls,
    number: u64,
}

impl ActiveCalls {
    pub(super) fn enter_call(
        &self,
        execution: ExecutionId,
        person: PersonHandle,
    ) -> ActiveCall<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, (execution, person));
        ActiveCall { desk: self, number }
    }

    /// Whether a call of another execution is in progress.
    pub(super) fn serves_another(&self, execution: ExecutionId) -> bool {
        self.lock().values().any(|(other, _)| *other != execution)
    }

    /// Whether a person is being asked.
    pub(super) fn is_asking(&self) -> bool {
        self.n_asking.load(Ordering::Relaxed) > 0
    }

    /// Whether a person was ever asked.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// The only person that a question of the server can be for. The protocol does not link a question to a call,
    /// and a wrong guess would show one caller's question to another.
    fn person(&self) -> Option<PersonHandle> {
        let calls = self.lock();
        let (first, person) = calls.values().next()?;
        calls.values().all(|(other, _)| other == first).then(|| person.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (ExecutionId, PersonHandle)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        self.desk.lock().remove(&self.number);
    }
}

/// Counts an open question for as long as it lives.
struct OpenQuestionCount<'a>(&'a ActiveCalls);

impl<'a> OpenQuestionCount<'a> {
    fn new(desk: &'a ActiveCalls) -> Self {
        desk.n_asking.fetch_add(1, Ordering::Relaxed);
        desk.settled.notify_waiters();
        Self(desk)
    }
}

impl Drop for OpenQuestionCount<'_> {
    fn drop(&mut self) {
        self.0.n_asking.fetch_sub(1, Ordering::Relaxed);
        self.0.settled.notify_waiters();
    }
}

impl ClientHandler for McpClientHandler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.desk.has_asked.store(true, Ordering::Relaxed);
        let Some(person) = self.desk.person() else {
            let why = "several programs are calling, so the receiver of this is unknown";
            return Err(ErrorData::invalid_request(why, None));
        };
        let _asking = OpenQuestionCount::new(&self.desk);
        let wish = wish(&request)?;
        if let Some(defect) = wish.defect() {
            return Err(ErrorData::invalid_params(defect, None));
        }
        Ok(match person.ask_question(wish).await {
            Answer::Accept { content } => {
                let content =
                    content.and_then(|content| serde_json::from_str(content.as_text()).ok());
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                accepted.with_content(content.unwrap_or_else(|| Value::Object(Default::default())))
            }
            Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
            Answer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(
        &self,
        notice: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.desk.listeners.handle_notice(notice);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("airlock", env!("CARGO_PKG_VERSION")))
    }
}

fn wish(request: &ElicitRequestParams) -> Result<ToolPrompt, ErrorData> {
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = Json::from_value(requested_schema)
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
            Ok(ToolPrompt::Form { message: message.clone(), schema })
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            Ok(ToolPrompt::Link { message: message.clone(), url: url.clone(), is_prior: false })
        }
        _ => Err(ErrorData::invalid_params("an unknown way to ask", None)),
    }
}
