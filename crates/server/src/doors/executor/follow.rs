//! Waits for what a client must receive. A client that disconnects changes nothing.

use super::outbound;
use crate::answering::{AnswerPath, AnswerSubject, is_first_answer, permit};
use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use lifecycle::{
    Answer, AnswerAuthor, Entry, Event, ExecutionId, Question, QuestionId, Rejection, Seq, ToolPath,
};
use protocols::executor::{AskedQuestion, ExecutionView, QuestionReader, WaitEnd};
use std::sync::Arc;
use std::time::Duration;

/// What ends the wait.
#[derive(Debug, Clone)]
pub(super) enum WaitUntil {
    /// A question or the end, once everything up to here has been read.
    Now(Seq),
    /// The event that follows the answer to this question.
    After(QuestionId),
    /// The event that follows the last of the answers to these questions.
    AfterAll(Vec<QuestionId>),
    /// The end of the execution.
    Over,
}

impl WaitUntil {
    /// The first question or end of a new execution.
    pub(super) const START: Self = Self::Now(Seq(0));
}

/// Waits on an execution for a client.
pub(super) struct ExecutionWaiter {
    pub(super) app: Arc<AppState>,
    /// The caller that waits.
    pub(super) caller: Caller,
    pub(super) execution: ExecutionId,
    /// Whether to accept the approvals that this caller may give in advance.
    pub(super) approves_in_advance: bool,
    /// Whether this waiter may count the end: it is counted once.
    pub(super) counts: bool,
    /// Who reads the question, if there is one.
    pub(super) reader: QuestionReader,
    /// The largest value that the client accepts; none is no limit.
    pub(super) limit: Option<usize>,
}

impl ExecutionWaiter {
    /// Creates a waiter for a client that may answer.
    pub(super) fn new(app: &Arc<AppState>, caller: &Caller, execution: ExecutionId) -> Self {
        let (app, caller) = (Arc::clone(app), caller.clone());
        let reader = QuestionReader::MayAnswer;
        let (approves_in_advance, counts, limit) = (false, false, None);
        Self { app, caller, execution, approves_in_advance, counts, reader, limit }
    }

    async fn wait_until_end(self, until: WaitUntil) -> Response {
        let execution = self.execution;
        let response = tokio::select! {
            biased; // what is done already is sent, and the rest costs only those who wait
            response = self.listen(until) => response.unwrap_or_else(|problem| problem.into_response()),
            () = self.app.stopping.cancelled() => RequestError::stopping().into_response(),
            // Also ends approvals in advance.
            () = self.app.credential_end(&self.caller) => RequestError::unauthorized().into_response(),
        };
        outbound::about(execution, response)
    }

    async fn listen(&self, until: WaitUntil) -> Result<Response, RequestError> {
        let mut account = self.beginning(&until).await;
        let mut entries = self.app.engine.follow(self.execution, account.last());
        loop {
            if let Some(told) = self.wait_result(&account, &until) {
                if let WaitEnd::Over(outcome) = told
                    && self.counts
                {
                    self.app.metrics.count_end(outcome);
                }
                return Ok(outbound::end_response(
                    self.execution,
                    &account,
                    told,
                    (&self.reader, self.limit),
                ));
            }
            let entry = entries.next().await;
            let entry = entry.ok_or_else(|| RequestError::no_execution(self.execution))??;
            account.handle_entry(&entry);
            self.approve(&entry, &account).await?;
        }
    }

    /// The remembered view of a long journal. The client's result does not depend on when it connected, except at the
    /// start: there the first question counts, and a caller that approves in advance must see each question.
    async fn beginning(&self, until: &WaitUntil) -> ExecutionView {
        let is_start = matches!(until, WaitUntil::Now(Seq(0)));
        if is_start || self.approves_in_advance {
            return ExecutionView::default();
        }
        let remembered = self.app.execution_views.remembered(self.execution).await;
        remembered.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    fn wait_result<'a>(
        &self,
        account: &'a ExecutionView,
        until: &WaitUntil,
    ) -> Option<WaitEnd<'a>> {
        match until {
            WaitUntil::Now(seq) if account.last() < *seq => None,
            // Questions that this caller approves in advance do not end the wait.
            WaitUntil::Now(_) => account.now_among(|asked: &AskedQuestion| {
                self.approval(&asked.question, &asked.tool).is_none()
            }),
            WaitUntil::After(question) => account.after(*question),
            WaitUntil::AfterAll(questions) => account.after_all(questions),
            WaitUntil::Over => account.wait_end().or(account.parked()),
        }
    }

    /// Accepts the question that this entry asks, if that may be done in advance.
    async fn approve(&self, entry: &Entry, account: &ExecutionView) -> Result<(), RequestError> {
        let Event::CallAsked(question) = &entry.event else { return Ok(()) };
        let asked = account.question(question.id);
        let author = asked.and_then(|asked| self.approval(&asked.question, &asked.tool));
        let Some(author) = author else { return Ok(()) };
        let accept = Answer::Accept { content: None };
        let answered = self.app.engine.answer_question(question.id, accept, author).await;
        // If another caller answered first, that answer counts.
        is_first_answer(answered).map(drop)
    }

    /// The caller in whose name a question is accepted without being shown; none if it stays open.
    fn approval(&self, question: &Question, tool: &ToolPath) -> Option<AnswerAuthor> {
        let approver = self.approves_in_advance.then_some(&self.caller)?;
        let subject = AnswerSubject { owner: &approver.name, asked: Some((question, tool)) };
        permit(approver, AnswerPath::InAdvance, subject).ok()
    }
}

/// Runs an operation to completion, even if the client disconnects in the middle of it.
pub(super) async fn detached(
    app: &AppState,
    doing: impl Future<Output = Result<Response, RequestError>> + Send + 'static,
) -> Result<Response, RequestError> {
    app.tasks.spawn(doing).await.map_err(|panic| RequestError::broken(&panic))?
}

/// Returns the engine's result, unless the server stops first.
pub(super) async fn unless_stopping<T>(
    app: &AppState,
    asking: impl Future<Output = Result<T, engine::Error>>,
) -> Result<T, engine::Error> {
    tokio::select! {
        biased; // what is done already is told
        said = asking => said,
        () = app.stopping.cancelled() => Err(Rejection::ShuttingDown.into()),
    }
}

/// Waits so that approvals and counts continue if the client disconnects or its wait time passes. Called where a
/// client that disconnects ends nothing: see [`detached`].
pub(super) async fn attended(
    attendant: ExecutionWaiter,
    until: WaitUntil,
    wait: Option<Duration>,
) -> Result<Response, RequestError> {
    match wait {
        None => Ok(attendant.wait_until_end(until).await),
        Some(_) => wait_response(attendant, until, wait).await,
    }
}

/// Like `attended`, in its own task.
pub(super) async fn wait_response(
    attendant: ExecutionWaiter,
    until: WaitUntil,
    wait: Option<Duration>,
) -> Result<Response, RequestError> {
    let execution = attendant.execution;
    let tasks = attendant.app.tasks.clone();
    let attending = tasks.spawn(attendant.wait_until_end(until));
    let attended = match wait {
        None => attending.await,
        Some(wait) => match tokio::time::timeout(wait, attending).await {
            Ok(attended) => attended,
            Err(_) => return Ok(outbound::still_running(execution)),
        },
    };
    attended.map_err(|panic| RequestError::broken(&panic))
}

/// The current view of the execution.
pub(super) async fn caught_up(
    app: &AppState,
    execution: ExecutionId,
) -> Result<Arc<ExecutionView>, RequestError> {
    app.execution_views.read(&app.engine, execution).await
}
