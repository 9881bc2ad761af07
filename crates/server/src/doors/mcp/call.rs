//! The tools: `execute`, `resume`, `wait`, `skills`.

use super::follow::{ProgressNotifier, WaitRequest, caught_up, listen};
use super::forms::FormMisfits;
use super::narration::NarrationEnd;
use super::native::{ElicitationOutcome, RetryStop};
use super::visit::{McpRequestContext, QuestionChannel, is_stateless};
use super::{answer, direct, outbound, refusals, skills, tasks};
use crate::answering::AnswerPath;
use crate::error::RequestError;
use engine::ExecutionStart;
use lifecycle::{ExecutionId, Program, QuestionId, ValueConvention};
use protocols::executor::WaitEnd;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a call of a client that supports tasks waits before it becomes a task.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// One call of one of this server's tools.
pub(super) struct McpToolCall<'a> {
    pub(super) visit: &'a Arc<McpRequestContext>,
    /// The request, with its client's capabilities.
    pub(super) context: &'a RequestContext<RoleServer>,
    pub(super) manner: QuestionChannel,
    pub(super) tool: String,
    pub(super) args: JsonObject,
}

/// Performs a call. A refusal that a model can act on is a result; only an unknown tool is an error.
pub(super) async fn call(
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let visit = &McpRequestContext::from_request(context)?;
    let (manner, args) = (visit.manner(context), request.arguments.unwrap_or_default());
    let tool = request.name.into_owned();
    let call = McpToolCall { visit, context, manner, tool, args };
    call.log();
    let told = match (request.request_state, request.input_responses) {
        (Some(sealed), responses) => {
            match call.retried(&sealed, &responses.unwrap_or_default()).await {
                Ok(wanted) => call.proceed(wanted).await,
                Err(RetryStop::Protocol(error)) => return Err(error),
                Err(RetryStop::Problem(problem)) => Err(problem),
                Err(RetryStop::Told(told)) => return Ok(*told),
            }
        }
        // Starting the program again would repeat all of its calls.
        (None, Some(responses)) if !responses.is_empty() => {
            let message = "inputResponses without the requestState that came with their requests";
            return Err(ErrorData::invalid_params(message, None));
        }
        (None, _) => match call.first().await {
            Some(told) => told,
            None => {
                let message = format!("there is no tool {:?}", call.tool);
                return Err(ErrorData::invalid_params(message, None));
            }
        },
    };
    Ok(told.unwrap_or_else(|problem| refusals::refusal_result(&problem, None).into()))
}

impl McpToolCall<'_> {
    /// Logs the call for `AIRLOCK_MCP_DEBUG`.
    pub(super) fn log(&self) {
        tracing::debug!(
            target: "mcp",
            caller = %self.visit.caller.name,
            tool = %self.tool,
            mode = self.visit.terms.mode.name(),
            manner = ?self.manner,
            version = ?self.context.protocol_version(),
            client = ?self.context.client_info().map(|client| client.name),
            capabilities = ?self.context.client_capabilities(),
            "call"
        );
    }

    /// Handles a call that is not a retry; none if there is no such tool.
    pub(super) async fn first(&self) -> Option<Result<CallToolResponse, RequestError>> {
        Some(match (self.tool.as_str(), self.manner) {
            ("execute", _) => self.execute().await,
            ("resume", QuestionChannel::Model | QuestionChannel::Browser) | ("wait", _) => {
                Box::pin(self.resume()).await
            }
            ("skills", _) => self.skills(),
            (other, _) => {
                let engine = &self.visit.app.engine;
                let is_listed = self.visit.terms.direct;
                let program = is_listed.then(|| direct::program(engine, other, &self.args))??;
                self.begin_execution(program).await
            }
        })
    }

    async fn execute(&self) -> Result<CallToolResponse, RequestError> {
        let source = self.text_argument("code")?.filter(|code| !code.trim().is_empty());
        let source = source.ok_or_else(|| {
            RequestError::bad_request(
                "The argument \"code\" is missing; it is the program, a string.",
            )
        })?;
        let program =
            Program { source: source.to_owned(), convention: ValueConvention::ExplicitReturn };
        self.begin_execution(program).await
    }

    async fn begin_execution(&self, program: Program) -> Result<CallToolResponse, RequestError> {
        let execution = match self.start(program).await {
            Ok(execution) => execution,
            Err(problem) if problem.tag() == "ShuttingDownError" => {
                return Ok(refusals::maybe_begun(&problem).into());
            }
            Err(problem) => return Err(problem),
        };
        self.proceed(WaitRequest { execution, until: NarrationEnd::START, counts: true }).await
    }

    /// Starts a program. It continues even if the client disconnects in the middle; then neither start nor end is
    /// counted.
    async fn start(&self, program: Program) -> Result<ExecutionId, RequestError> {
        let app = &self.visit.app;
        let caller = self.visit.caller.name.clone();
        let start = ExecutionStart { program, caller, limits: app.engine.limits() };
        let execution = tokio::select! {
            biased; // what is done already is told
            started = app.engine.submit(start) => started?,
            () = app.stopping.cancelled() => return Err(RequestError::stopping()),
        };
        app.metrics.count_start();
        Ok(execution)
    }

    /// Waits for what comes next, and converts it for this client. From here on a refusal names the execution: a
    /// client that runs the program again would repeat its effects.
    async fn proceed(&self, wanted: WaitRequest) -> Result<CallToolResponse, RequestError> {
        let told = self.follow(wanted).await;
        Ok(told.unwrap_or_else(|problem| self.refusal_result(wanted.execution, &problem)))
    }

    /// A refusal about an existing execution.
    pub(super) fn refusal_result(
        &self,
        execution: ExecutionId,
        problem: &RequestError,
    ) -> CallToolResponse {
        refusals::refusal_result(problem, Some((execution, self.manner))).into()
    }

    async fn follow(&self, mut wanted: WaitRequest) -> Result<CallToolResponse, RequestError> {
        let execution = wanted.execution;
        loop {
            let progress = ProgressNotifier::wished(self.context);
            let heard = listen(self.visit, wanted, self.patience(), progress).await?;
            let Some(narration) = heard else { return Box::pin(self.unfinished(wanted)).await };
            let asked = match narration.wait_result(wanted.until) {
                Some(WaitEnd::Over(outcome)) => {
                    tracing::debug!(target: "mcp", %execution, "over");
                    return Ok(outbound::finished_result(execution, &narration, outcome).into());
                }
                Some(WaitEnd::Parked) | None => return Err(RequestError::parked(execution)),
                Some(WaitEnd::Asked(asked)) => asked,
            };
            let question = asked.question.id;
            tracing::debug!(target: "mcp", %execution, %question, "paused");
            let forms = match self.manner {
                QuestionChannel::Model => return Ok(outbound::paused(asked).into()),
                QuestionChannel::Browser => return Ok(self.sent_to_page(question, None)),
                QuestionChannel::Retry(forms) => {
                    match Box::pin(self.needed(execution, forms, &FormMisfits::new())).await? {
                        Some(needed) => return Ok(needed),
                        // Another caller answered first.
                        None => {
                            wanted = WaitRequest { until: NarrationEnd::After(question), ..wanted }
                        }
                    }
                    continue;
                }
                QuestionChannel::Form(forms) => forms,
            };
            match Box::pin(self.elicit_answer(execution, asked, forms)).await? {
                ElicitationOutcome::Answered { counts } => {
                    wanted = WaitRequest { until: NarrationEnd::After(question), counts, ..wanted };
                }
                ElicitationOutcome::Open { misfit } => {
                    return Ok(self.sent_to_page(question, misfit.as_deref()));
                }
            }
        }
    }

    /// The result that directs a model's user to the page where the person decides.
    fn sent_to_page(&self, question: QuestionId, why: Option<&str>) -> CallToolResponse {
        let ignored = self.args.get("action").map(|_| {
            "Nothing was answered: a person decides, and the argument \"action\" is not taken here."
        });
        outbound::approval_required(self.visit, question, self.manner, why.or(ignored)).into()
    }

    /// How long this client's call waits. A client that supports tasks gets one soon.
    fn patience(&self) -> Duration {
        match self.has_tasks() {
            true => self.visit.terms.wait.min(TASK_AFTER),
            false if self.tool == "resume" && self.manner == QuestionChannel::Browser => {
                let hears = self.context.meta.get_progress_token().is_some();
                self.visit.terms.page_wait(hears)
            }
            false => self.visit.terms.wait,
        }
    }

    fn has_tasks(&self) -> bool {
        let capabilities = self.context.client_capabilities();
        is_stateless(self.context) && capabilities.is_some_and(|can| can.supports_tasks())
    }

    /// The wait time has passed. A client that waits for a person receives the instructions for the person again.
    async fn unfinished(&self, wanted: WaitRequest) -> Result<CallToolResponse, RequestError> {
        let execution = wanted.execution;
        if self.has_tasks() {
            return Ok(tasks::created(self.visit, execution).await?.into());
        }
        let narration = caught_up(self.visit, execution).await?;
        let asked = narration.account.open().next();
        Ok(match (self.manner, asked) {
            (_, None) => outbound::running(execution, self.manner).into(),
            (QuestionChannel::Model, Some(asked)) => outbound::paused(asked).into(),
            (
                QuestionChannel::Browser | QuestionChannel::Form(_) | QuestionChannel::Retry(_),
                Some(asked),
            ) => self.sent_to_page(asked.question.id, None),
        })
    }

    async fn resume(&self) -> Result<CallToolResponse, RequestError> {
        let id = self.text_argument("executionId")?.map(str::trim).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| {
            RequestError::bad_request("The argument \"executionId\" is missing; it is a string.")
        })?;
        let (execution, question) = answer::find(self.visit, id).await?;
        let narration = caught_up(self.visit, execution).await?;
        let account = &narration.account;
        answer::see(self.visit, account.owner(), account.has_asked(), id)?;
        let open = match question {
            Some(question) => account.open().find(|asked| asked.question.id == question),
            None => account.open().next(),
        };
        let open = open.map(|asked| asked.question.id);
        let (until, counts) = match (self.manner, open, question) {
            (QuestionChannel::Model, Some(open), _) => {
                (NarrationEnd::After(open), self.answer_from_model(open).await?)
            }
            (_, Some(open), _) => (NarrationEnd::After(open), false),
            (_, None, Some(answered)) => (NarrationEnd::After(answered), false),
            (_, None, None) => (NarrationEnd::Now(account.last()), false),
        };
        self.proceed(WaitRequest { execution, until, counts }).await
    }

    /// The user's decision, as passed on by the model.
    async fn answer_from_model(&self, question: QuestionId) -> Result<bool, RequestError> {
        let action = self.text_argument("action")?.ok_or_else(|| {
            RequestError::bad_request(
                "It waits for the user: the argument \"action\" must be accept, decline or cancel.",
            )
        })?;
        let answer = answer::said(action, self.args.get("content"))?;
        answer::give(self.visit, AnswerPath::McpTool, question, answer).await
    }

    fn skills(&self) -> Result<CallToolResponse, RequestError> {
        let (text, found) = skills::skill(self.text_argument("name")?, self.manner);
        Ok(outbound::said(text, !found).into())
    }

    /// A string argument, if it is present and not null.
    fn text_argument(&self, name: &str) -> Result<Option<&str>, RequestError> {
        match self.args.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => {
                Err(RequestError::bad_request(format!("The argument \"{name}\" must be a string.")))
            }
        }
    }
}
