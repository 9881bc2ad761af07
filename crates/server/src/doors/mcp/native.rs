//! Clients that show forms themselves. On older revisions the server asks in the middle of the call; since 2026-07-28
//! the client receives what is needed and retries the call with it.

use super::answer;
use super::call::McpToolCall;
use super::follow::{WaitRequest, caught_up};
use super::forms::{self, FormMisfits};
use super::narration::{McpExecutionView, NarrationEnd};
use super::seal::{RequestStateClaims, RequestStateError, binding};
use super::visit::{FormSupport, QuestionChannel};
use crate::answering::AnswerPath;
use crate::app::AppState;
use crate::error::RequestError;
use futures_util::StreamExt as _;
use lifecycle::{Answer, ExecutionId, QuestionId, Seq};
use protocols::executor::AskedQuestion;
use rmcp::model::{
    CallToolResponse, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    InputRequiredResult, InputResponses, JsonObject, MetaObject,
};
use std::time::Duration;

/// How long a person may take for a form. The question stays open after that.
const FORM_TIME_MAX: Duration = Duration::from_secs(600);

/// How often a form is shown in one call while its content does not fit. A client that answers without a person would
/// otherwise repeat for ever.
const SHOWS_MAX: u32 = 3;

/// Why a retry does not continue.
pub(super) enum RetryStop {
    /// The request is invalid.
    Protocol(ErrorData),
    /// The refusal is a result.
    Problem(RequestError),
    /// The result is this one instead.
    Told(Box<CallToolResponse>),
}

/// The outcome of showing a question in the middle of a call.
pub(super) enum ElicitationOutcome {
    /// The question is answered, or will be on its page; whether the answer was given here.
    Answered { counts: bool },
    /// The client could not show it, or no content fitted: then the reason.
    Open { misfit: Option<String> },
}

impl From<RequestError> for RetryStop {
    fn from(problem: RequestError) -> Self {
        Self::Problem(problem)
    }
}

impl McpToolCall<'_> {
    /// Shows the question in the middle of the call, and again with the reason if the answer does not fit.
    pub(super) async fn elicit_answer(
        &self,
        execution: ExecutionId,
        asked: &AskedQuestion,
        forms: FormSupport,
    ) -> Result<ElicitationOutcome, RequestError> {
        let question = asked.question.id;
        let mut misfit = None;
        for _ in 0..SHOWS_MAX {
            let (params, _) = forms::request(self.visit, asked, forms, misfit.as_deref());
            let filled = tokio::select! {
                filled = self.filled(params) => filled,
                () = settled(&self.visit.app, execution, question) => {
                    return Ok(ElicitationOutcome::Answered { counts: false });
                }
                () = self.visit.app.stopping.cancelled() => return Err(RequestError::stopping()),
                () = self.visit.app.credential_end(&self.visit.caller) => {
                    return Err(RequestError::unauthorized());
                }
            };
            let Some(form) = filled else { break };
            if !forms.counts && form.action != ElicitationAction::Accept {
                break; // no answer, and nothing was opened: the model gets the link
            }
            let Some(answer) = forms::meant(asked, forms, &form) else {
                return Ok(ElicitationOutcome::Answered { counts: false });
            };
            match answer::give(self.visit, AnswerPath::McpDialog, question, answer).await {
                Err(problem) if answer::is_misfit(&problem) => {
                    misfit = Some(problem.message().to_owned());
                }
                given => return given.map(|counts| ElicitationOutcome::Answered { counts }),
            }
        }
        Ok(ElicitationOutcome::Open { misfit })
    }

    /// The response of the client's person; none if the client could not ask.
    async fn filled(&self, params: ElicitRequestParams) -> Option<ElicitResult> {
        let peer = &self.context.peer;
        let filled = peer.create_elicitation_with_timeout(params, Some(FORM_TIME_MAX)).await;
        filled
            .inspect_err(
                |error| tracing::debug!(target: "mcp", %error, "the client showed no form"),
            )
            .ok()
    }

    /// The result that names what is needed, and the state to send along. None if nothing is needed any more.
    pub(super) async fn needed(
        &self,
        execution: ExecutionId,
        forms: FormSupport,
        misfits: &FormMisfits,
    ) -> Result<Option<CallToolResponse>, RequestError> {
        let app = &self.visit.app;
        // The wait ended at the first question; by now there may be more.
        let narration = caught_up(self.visit, execution).await?;
        let requests = forms::requests(self.visit, &narration.account, forms, misfits);
        if requests.is_empty() {
            return Ok(None);
        }
        let questions = requests.keys().flat_map(|id| id.parse()).collect();
        let state = RequestStateClaims::new(execution, questions, app.clock.now())?;
        let binding = binding(&self.visit.caller.name, &self.tool, &self.args);
        let sealed = self.visit.state.seal.close(&binding, &state).await?;
        let mut needed = InputRequiredResult::new(Some(requests), Some(sealed));
        let execution = ("executionId".to_owned(), execution.to_string().into());
        needed.meta = Some(MetaObject(JsonObject::from_iter([execution])));
        Ok(Some(needed.into()))
    }

    /// The second half of a call: gives the client's responses as answers, and continues to wait.
    pub(super) async fn retried(
        &self,
        sealed: &str,
        responses: &InputResponses,
    ) -> Result<WaitRequest, RetryStop> {
        let app = &self.visit.app;
        let now = app.clock.now();
        let binding = binding(&self.visit.caller.name, &self.tool, &self.args);
        let opened = self.visit.state.seal.open(&binding, sealed, now).await?;
        let state = opened.map_err(|bad| state_refusal(bad, None))?;
        let execution = state.execution;
        let narration = caught_up(self.visit, execution).await?;
        let is_ours = |question: &QuestionId| {
            narration.answered_by(*question) == Some(&self.visit.caller.name)
        };
        // After a restart the journal shows what memory no longer does: that this caller has answered.
        if state.questions.iter().any(is_ours) {
            return Err(state_refusal(RequestStateError::Used, Some(execution)));
        }
        let mut brought = forms::brought(&narration.account, self.manner, responses);
        brought.retain(|(question, _)| state.questions.contains(question));
        let until = NarrationEnd::Now(narration.account.last());
        let unanswered = narration.account.open().next().is_some();
        if brought.is_empty() && unanswered {
            // Nothing that was requested: ask again, with a new state.
            return Ok(WaitRequest { execution, until, counts: false });
        }
        // All answers are checked before any of them is given: those that do not fit are requested again.
        let misfits = forms::misfits(&narration.account, &brought);
        if !misfits.is_empty() {
            return self.again(WaitRequest { execution, until, counts: false }, &misfits).await;
        }
        if !self.visit.state.seal.use_up(&state, now) {
            return Err(state_refusal(RequestStateError::Used, Some(execution)));
        }
        let wanted = WaitRequest { execution, until, counts: false };
        self.given(wanted, brought).await
    }

    async fn given(
        &self,
        mut wanted: WaitRequest,
        brought: Vec<(QuestionId, Option<Answer>)>,
    ) -> Result<WaitRequest, RetryStop> {
        let mut misfits = FormMisfits::new();
        for (question, answer) in brought {
            wanted.until = NarrationEnd::After(question);
            let Some(answer) = answer else { continue };
            match answer::give(self.visit, AnswerPath::McpDialog, question, answer).await {
                Ok(counts) => wanted.counts |= counts,
                Err(problem) if answer::is_misfit(&problem) => {
                    misfits.insert(question, problem.message().to_owned());
                }
                Err(problem) => {
                    return Err(RetryStop::Told(Box::new(
                        self.refusal_result(wanted.execution, &problem),
                    )));
                }
            }
        }
        if misfits.is_empty() { Ok(wanted) } else { self.again(wanted, &misfits).await }
    }

    /// Requests the answers that did not fit again, with a new state.
    async fn again(
        &self,
        wanted: WaitRequest,
        misfits: &FormMisfits,
    ) -> Result<WaitRequest, RetryStop> {
        let QuestionChannel::Retry(forms) = self.manner else { return Ok(wanted) };
        match self.needed(wanted.execution, forms, misfits).await? {
            Some(needed) => Err(RetryStop::Told(Box::new(needed))),
            None => Ok(wanted),
        }
    }
}

fn state_refusal(bad: RequestStateError, execution: Option<ExecutionId>) -> RetryStop {
    let message = match (bad, execution) {
        (RequestStateError::Forged, _) => "this requestState was not made for this caller and this call".into(),
        (RequestStateError::Expired, _) => {
            "this requestState has run out; the question is still open and can be answered on its page"
                .into()
        }
        (RequestStateError::Used, None) => "this requestState was used before".into(),
        (RequestStateError::Used, Some(execution)) => {
            format!("this requestState was used before; `wait` for {execution} gives the result")
        }
    };
    RetryStop::Protocol(ErrorData::invalid_params(message, None))
}

/// Resolves when another caller has answered, or the execution is over.
async fn settled(app: &AppState, execution: ExecutionId, question: QuestionId) {
    let mut entries = app.engine.follow(execution, Seq(0));
    let mut narration = McpExecutionView::default();
    while let Some(Ok(entry)) = entries.next().await {
        narration.handle_entry(&entry);
        let is_open = narration.account.question(question).is_none_or(AskedQuestion::is_open);
        if !is_open || narration.account.wait_end().is_some() {
            return;
        }
    }
}
