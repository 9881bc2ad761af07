//! Calls of catalogue tools by a session: each is an execution of its own, with the same policies, questions, journal
//! and durability as every other program.

use super::repl_store::{PendingEntry, ReplStore};
use engine::{Engine, Error, ExecutionStart};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use lifecycle::{
    ActiveClock, CallRules, CallerName, Entry, Event, ExecutionId, ExecutionLimits,
    ExecutionOutcome, Failure, FailureCode, Json, Program, Rejection, Seq, ToolPath,
    ValueConvention,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum active time of a call, not counting the time it waits for people: jobs are for long work.
const ACTIVE_MS_MAX: u64 = 24 * 3_600_000;

/// How much later than its session the engine ends a call that has timed out.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// The progress of a call.
#[derive(Debug)]
pub(super) enum CallSaid {
    /// A person is being asked.
    Asked(Value),
    /// A person has answered.
    Answered,
    /// The tool reported progress.
    Progressed(String),
    /// The execution has ended.
    Ended(ExecutionOutcome),
}

/// A call: the tool, the caller and the execution id.
pub(super) struct ReplToolCall {
    pub(super) execution: ExecutionId,
    pub(super) caller: CallerName,
    pub(super) tool: ToolPath,
    /// The arguments as JSON text.
    pub(super) args: String,
    /// For a job of that id: the journal and the pending entry that its end must be written to.
    pub(super) owed: Option<(String, PendingEntry)>,
    /// The timeout that the caller requested, if any.
    pub(super) timeout: Option<Duration>,
    /// Cancelled once the call has begun or can no longer begin: only then can it be ended.
    pub(super) begun: CancellationToken,
}

/// Starts the call and streams its progress until it ends.
pub(super) fn follow_call(
    store: Arc<ReplStore>,
    call: ReplToolCall,
) -> BoxStream<'static, CallSaid> {
    let execution = call.execution;
    let told = call.begun.clone().drop_guard();
    let begun = async move {
        let begun = begin_call(&store, call).await;
        drop(told);
        match begun {
            Ok(()) => heard(&store.engine, execution),
            Err(failure) => once(CallSaid::Ended(ExecutionOutcome::Failed(failure))),
        }
    };
    stream::once(begun).flatten().boxed()
}

fn once(said: CallSaid) -> BoxStream<'static, CallSaid> {
    stream::once(std::future::ready(said)).boxed()
}

async fn begin_call(store: &ReplStore, call: ReplToolCall) -> Result<(), Failure> {
    let ReplToolCall { execution, caller, tool, args, owed, timeout, begun: _ } = call;
    if let Some((job, owed)) = &owed {
        store.record_pending(job, owed).await.map_err(|error| {
            tracing::error!(%error, "could not record a job");
            Failure::new(FailureCode::Internal, "the job could not be recorded")
        })?;
    }
    let names: String = tool.segments().map(|name| format!("[{}]", Value::from(name))).collect();
    // Passed as text instead of a literal: in a literal, `__proto__` would not be an ordinary member.
    let args = Value::from(args);
    let source = format!("return await tools{names}(JSON.parse({args}))");
    let program = Program { source, convention: ValueConvention::ExplicitReturn };
    let limits = ExecutionLimits {
        active_ms_max: timeout.map_or(ACTIVE_MS_MAX, active_ms_max),
        active_clock: ActiveClock::StopsForQuestions,
        ..ExecutionLimits::default()
    };
    let noted = |(_, owed): &(String, PendingEntry)| json!({ "hotrepl": { "job": owed.name } });
    let note = owed.as_ref().map(noted).and_then(|note| Json::from_value(&note).ok());
    let terms = CallRules { note, ..CallRules::default() };
    let start = ExecutionStart { program, caller, limits };
    store.engine.submit_as(execution, start, terms).await.map(drop).map_err(|error| match error {
        Error::Rejected(why @ Rejection::QuotaReached { .. }) => {
            Failure::new(FailureCode::LimitExceeded, why.to_string())
        }
        Error::Rejected(why) => Failure::new(FailureCode::Internal, why.to_string()),
        Error::Fault(fault) => Failure::new(FailureCode::Internal, fault.to_string()),
    })
}

/// A waiting session ends the call in time; this limit applies if no session waits, as after a restart.
fn active_ms_max(timeout: Duration) -> u64 {
    let ms = (timeout + TIMEOUT_GRACE).as_millis();
    u64::try_from(ms).unwrap_or(u64::MAX).min(ACTIVE_MS_MAX)
}

fn heard(engine: &Engine, execution: ExecutionId) -> BoxStream<'static, CallSaid> {
    let entries = engine.follow(execution, Seq(0));
    let heard = entries.filter_map(|entry| {
        std::future::ready(match entry {
            Ok(Entry { event, .. }) => said(event),
            Err(fault) => Some(CallSaid::Ended(ExecutionOutcome::Failed(Failure::new(
                FailureCode::Internal,
                fault.to_string(),
            )))),
        })
    });
    heard.boxed()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the rest is of no concern to who waits")]
fn said(event: Event) -> Option<CallSaid> {
    match event {
        Event::CallAsked(question) => Some(CallSaid::Asked(json!({ "question": question.id }))),
        Event::CallAnswered { .. } => Some(CallSaid::Answered),
        Event::CallProgressed { text, .. } => Some(CallSaid::Progressed(text)),
        Event::Finished { outcome, .. } => Some(CallSaid::Ended(outcome)),
        _ => None,
    }
}
