//! executor: `/api/executions`. Its "execution id" is a question's id; ours, `run_…`, is taken too.

mod answers;
mod callback;
mod continuing;
mod ended;
mod events;
mod inbound;
mod outbound;
mod session_routes;
mod since;
mod wait;

pub(crate) use answers::{answers, questions};
pub(crate) use callback::callback;
pub(crate) use continuing::{continue_all, continue_one};
pub(crate) use ended::{remove, result};
pub(crate) use events::events;
pub(crate) use session_routes::{resume_in_session, show_in_session};

use super::first;
use crate::answering::{AnswerPath, AnswerSubject, PageOrigin, authorize, permit};
use crate::app::App;
use crate::auth::Caller;
use crate::body::{JsonBody, NeededJson};
use crate::error::Problem;
use crate::query::{Id, Query};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use engine::Start;
use lifecycle::{CallerName, ExecutionId, QuestionId, RefusedLimit, Rejection};
use protocols::executor::{Account, RESULT_BYTES_MAX};
use std::sync::Arc;
use std::time::Duration;
use wait::{Attendant, Until};

/// Longest wait a client can ask for; who asks for more gets this much.
const WAIT_MS_MAX: u64 = 3_600_000;

/// `POST /api/executions`.
pub(crate) async fn execute(
    State(app): State<Arc<App>>,
    caller: Caller,
    pages: PageOrigin,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    caller.may_run().map_err(|denied| Problem::denied(denied, ""))?;
    let order = protocols::executor::execute(&body)?;
    let (wait, limit) = (patience(&query)?, result_limit(&query)?);
    if order.auto_approve {
        // Approving beforehand is answering: what may not be done later may not be done now.
        let subject = AnswerSubject { owner: &caller.name, asked: None };
        let may = permit(&caller, AnswerPath::InAdvance, subject);
        may.map_err(|denied| Problem::denied(denied, ""))?;
    }
    let refused = |refused: RefusedLimit| Problem::bad_request(format!("{refused}."));
    let limits = order.limits.within(app.engine.limits()).map_err(refused)?;
    let start = Start { program: order.program, caller: caller.name.clone(), limits };
    let reader = pages.reader(&caller, &caller.name, AnswerPath::Request);
    let approves_in_advance = order.auto_approve;
    let starting = Arc::clone(&app);
    wait::detached(&app, async move {
        let submitting = starting.engine.submit(start);
        let execution = wait::unless_stopping(&starting, submitting).await?;
        starting.metrics.count_start();
        let usual = Attendant::new(&starting, &caller, execution);
        let attendant = Attendant { approves_in_advance, counts: true, reader, limit, ..usual };
        wait::attended(attendant, Until::START, wait).await
    })
    .await
}

/// `GET /api/executions/{id}`.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    pages: PageOrigin,
    Id(id): Id,
    query: Query,
) -> Result<Response, Problem> {
    let wait = query.get::<u64>("wait", "a number of milliseconds")?.unwrap_or(0);
    let limit = result_limit(&query)?;
    let (execution, question) = find(&app, &id).await?;
    let account = wait::caught_up(&app, execution).await?;
    let owner = account.owner().cloned().unwrap_or(CallerName(String::new()));
    caller.may_see(&owner, account.has_asked()).map_err(|denied| Problem::denied(denied, &id))?;
    let reader = pages.reader(&caller, &owner, AnswerPath::Request);
    let named = question.and_then(|id| account.question(id)).filter(|asked| asked.is_open());
    if account.over().is_none()
        && let Some(asked) = named
    {
        return Ok(outbound::shown(execution, asked, &reader));
    }
    match account.now() {
        Some(told) => Ok(outbound::now(execution, &account, told, (&reader, limit))),
        None if wait == 0 => Ok(outbound::running(execution)),
        None => {
            let wait = Duration::from_millis(wait.min(WAIT_MS_MAX));
            let until = Until::Now(account.last());
            let attendant = Attendant { reader, limit, ..Attendant::new(&app, &caller, execution) };
            wait::told(attendant, until, Some(wait)).await
        }
    }
}

/// `POST /api/executions/{id}/resume`.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    NeededJson(body): NeededJson,
) -> Result<Response, Problem> {
    let answer = protocols::executor::resume(&body)?;
    let rider = protocols::executor::rider(&body)?;
    let (wait, limit) = (patience(&query)?, result_limit(&query)?);
    let (execution, question) = find(&app, &id).await?;
    let path = AnswerPath::Request;
    let given = question.map(|question| (question, &answer));
    authorize(&app, &caller, path, execution, given.as_slice()).await?;
    let Some(question) = (match question {
        Some(question) => Some(question),
        None => oldest_open(&app, &caller, execution).await?,
    }) else {
        let attendant = Attendant { limit, ..Attendant::new(&app, &caller, execution) };
        return wait::told(attendant, Until::Over, wait).await;
    };
    let author = authorize(&app, &caller, path, execution, &[(question, &answer)]).await?;
    let resuming = Arc::clone(&app);
    wait::detached(&app, async move {
        let answering = resuming.engine.answer_with(question, answer, author, rider);
        let counts = match first(wait::unless_stopping(&resuming, answering).await) {
            Ok(counts) => counts,
            Err(problem) => return Ok(outbound::about(execution, problem.into_response())),
        };
        let attendant =
            Attendant { counts, limit, ..Attendant::new(&resuming, &caller, execution) };
        wait::attended(attendant, Until::After(question), wait).await
    })
    .await
}

/// `POST /api/executions/{id}/cancel`.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, Problem> {
    let (execution, _) = find(&app, &id).await?;
    let owner = owner(&app, execution).await?;
    caller.may_cancel(&owner).map_err(|denied| Problem::denied(denied, &id))?;
    let cancelling = app.engine.cancel(execution, caller.name.clone());
    let counts = match wait::unless_stopping(&app, cancelling).await {
        Ok(()) => true,
        // It is over, which is what was wanted.
        Err(engine::Error::Rejected(Rejection::AlreadyFinished)) => false,
        Err(error) => return Err(error.into()),
    };
    let attendant = Attendant { counts, ..Attendant::new(&app, &caller, execution) };
    wait::told(attendant, Until::Over, None).await
}

/// `GET /api/executions`.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Response, Problem> {
    let now = app.clock.now();
    let search = inbound::search(&query, &caller, now)?;
    let page = app.engine.search(search).await?;
    Ok(outbound::list(&page, now))
}

/// The execution that an id names, and the question if it is one's.
async fn find(app: &App, id: &str) -> Result<(ExecutionId, Option<QuestionId>), Problem> {
    if let Ok(question) = id.parse::<QuestionId>() {
        let execution = app.engine.asked_by(question).await?;
        return Ok((execution, Some(question)));
    }
    let execution = id.parse().map_err(|_| Problem::no_execution(id))?;
    Ok((execution, None))
}

/// Lets those pass who may see an execution; to others it is as if it did not exist.
fn see(caller: &Caller, account: &Account, id: &str) -> Result<(), Problem> {
    let owner = account.owner().ok_or_else(|| Problem::no_execution(id))?;
    let may = caller.may_see(owner, account.has_asked());
    may.map_err(|denied| Problem::denied(denied, id))
}

/// Whose execution it is.
async fn owner(app: &App, execution: ExecutionId) -> Result<CallerName, Problem> {
    Ok(app.engine.overview(execution).await?.listed.standing.caller)
}

/// The question that waits longest; none where the execution is over.
async fn oldest_open(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
) -> Result<Option<QuestionId>, Problem> {
    let account = wait::caught_up(app, execution).await?;
    see(caller, &account, &execution.to_string())?;
    let open = account.open().next().map(|asked| asked.question.id);
    if open.is_none() && account.over().is_none() {
        return Err(Problem::conflict(format!("{execution} asks nothing now.")));
    }
    Ok(open)
}

/// How many bytes of a value the client takes; none takes the whole value.
fn result_limit(query: &Query) -> Result<Option<usize>, Problem> {
    let limit = query.get::<usize>("limit", "a number of bytes")?;
    Ok(limit.map(|limit| limit.min(RESULT_BYTES_MAX)))
}

/// How long to wait; none is as long as it takes.
fn patience(query: &Query) -> Result<Option<Duration>, Problem> {
    let ms = query.get::<u64>("wait", "a number of milliseconds")?;
    Ok(ms.map(|ms| Duration::from_millis(ms.min(WAIT_MS_MAX))))
}
