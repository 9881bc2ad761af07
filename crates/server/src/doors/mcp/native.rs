//! Clients that show forms themselves. On older revisions we ask in the middle of the call; since
//! 2026-07-28 the client is told what is needed and sends the call again with it.

use super::answer;
use super::call::Call;
use super::content;
use super::forms::{self, Yes};
use super::listen::{Wanted, caught_up};
use super::narration::{Narration, Until};
use super::seal::{Bad, State, binding};
use super::visit::Forms;
use crate::app::App;
use crate::error::Problem;
use futures_util::StreamExt as _;
use lifecycle::{ExecutionId, QuestionId, Seq};
use protocols::executor::Asked;
use rmcp::model::{CallToolResponse, ElicitResult, ErrorData, InputRequiredResult, InputResponses};
use std::time::Duration;

/// How long a person may look at a form. The question stays open after that.
const FORM_TIME_MAX: Duration = Duration::from_secs(600);

/// Why a retry goes no further.
pub(super) enum Stop {
    /// The request makes no sense.
    Protocol(ErrorData),
    /// A result that says no.
    Problem(Problem),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl Call<'_> {
    /// Shows the question in the middle of the call. None where the client could not, after all;
    /// otherwise whether an answer was given here.
    pub(super) async fn show(
        &self,
        execution: ExecutionId,
        asked: &Asked,
        forms: Forms,
    ) -> Result<Option<bool>, Problem> {
        let question = asked.question.id;
        let (params, yes) = forms::request(self.visit, asked, forms);
        let peer = &self.context.peer;
        let showing = peer.create_elicitation_with_timeout(params, Some(FORM_TIME_MAX));
        let filled = tokio::select! {
            filled = showing => filled,
            () = settled(&self.visit.app, execution, question) => return Ok(Some(false)),
            () = self.visit.app.stopping.cancelled() => return Err(Problem::stopping()),
        };
        match filled {
            Ok(form) => self.take(question, &form, yes).await.map(Some),
            Err(error) => {
                tracing::debug!(target: "mcp", %question, %error, "the client showed no form");
                Ok(None)
            }
        }
    }

    async fn take(
        &self,
        question: QuestionId,
        form: &ElicitResult,
        yes: Yes,
    ) -> Result<bool, Problem> {
        match (answer::of_form(form), yes) {
            (lifecycle::Answer::Accept { .. }, Yes::Visits) => Ok(false),
            (answer, _) => answer::give(self.visit, question, answer).await,
        }
    }

    /// Tells the client what is needed, and what to send along.
    pub(super) async fn needed(
        &self,
        execution: ExecutionId,
        narration: &Narration,
        forms: Forms,
    ) -> Result<CallToolResponse, Problem> {
        let requests = forms::requests(self.visit, &narration.account, forms);
        let questions = requests.keys().flat_map(|id| id.parse()).collect();
        let app = &self.visit.app;
        let state = State::new(execution, questions, app.clock.now())?;
        let binding = binding(&self.visit.caller.name, &self.tool, &self.args);
        let sealed = app.mcp.seal.close(&binding, &state).await?;
        Ok(InputRequiredResult::new(Some(requests), Some(sealed)).into())
    }

    /// The second half of a call: what the client brought is given as answers, and the wait goes on.
    pub(super) async fn retried(
        &self,
        sealed: &str,
        responses: &InputResponses,
    ) -> Result<Wanted, Stop> {
        let app = &self.visit.app;
        let now = app.clock.now();
        let binding = binding(&self.visit.caller.name, &self.tool, &self.args);
        let opened = app.mcp.seal.open(&binding, sealed, now).await?;
        let state = opened.map_err(|bad| refused(bad, None))?;
        let execution = state.execution;
        let narration = caught_up(app, execution).await?;
        let is_ours = |question: &QuestionId| {
            narration.answered_by(*question) == Some(&self.visit.caller.name)
        };
        // After a restart the journal remembers what we do not: that this caller has answered.
        if state.questions.iter().any(is_ours) {
            return Err(refused(Bad::Used, Some(execution)));
        }
        let forms: Vec<(QuestionId, ElicitResult)> = state
            .questions
            .iter()
            .filter_map(|question| {
                let form = responses.get(&question.to_string())?.clone();
                Some((*question, serde_json::from_value(form).ok()?))
            })
            .collect();
        let unanswered = narration.account.open().next().is_some();
        if forms.is_empty() && unanswered {
            // Nothing we asked for: ask again, with a state of its own.
            return Ok(Wanted { execution, until: Until::Now(Seq(0)), counts: false });
        }
        if !app.mcp.seal.use_up(&state, now) {
            return Err(refused(Bad::Used, Some(execution)));
        }
        let mut until = Until::Now(narration.account.last());
        let mut counts = false;
        for (question, form) in forms {
            let asked = narration.account.question(question);
            let forms = Forms { form: true, url: true };
            let yes =
                asked.map_or(Yes::Answers, |asked| forms::request(self.visit, asked, forms).1);
            counts |= self.take(question, &form, yes).await?;
            until = Until::After(question);
        }
        Ok(Wanted { execution, until, counts })
    }
}

fn refused(bad: Bad, execution: Option<ExecutionId>) -> Stop {
    let message = match (bad, execution) {
        (Bad::Forged, _) => "this requestState was not made for this caller and this call".into(),
        (Bad::Expired, _) => {
            "this requestState has run out; the question is still open and can be answered on its page"
                .into()
        }
        (Bad::Used, None) => "this requestState was used before".into(),
        (Bad::Used, Some(execution)) => {
            format!("this requestState was used before; `wait` for {execution} gives the result")
        }
    };
    Stop::Protocol(ErrorData::invalid_params(message, None))
}

/// Resolves when somebody else has answered, or the execution is over.
async fn settled(app: &App, execution: ExecutionId, question: QuestionId) {
    let mut entries = app.engine.follow(execution, Seq(0));
    let mut narration = Narration::default();
    while let Some(Ok(entry)) = entries.next().await {
        narration.hear(&entry);
        let is_open = narration.account.question(question).is_none_or(Asked::is_open);
        if !is_open || narration.account.over().is_some() {
            return;
        }
    }
}

/// What a client whose form failed is told: the model asks instead.
pub(super) fn fallback(asked: &Asked) -> CallToolResponse {
    content::paused(asked).into()
}
