//! The numbered events of an execution.

use crate::{Error, reply::read, wire};
use lifecycle::{
    AnswerRole, CallId, Failure, FailureCode, Json, LogLevel, QuestionId, Seq, TimerId, Timestamp,
};

/// An event of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEvent {
    /// Its sequence number; a follower delivers each number once.
    pub seq: Seq,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of event, with its data.
    pub happened: EventKind,
    /// The server's JSON, unchanged.
    pub json: Json,
}

/// The kind of an event, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members are those of the protocol")]
pub enum EventKind {
    Started {
        caller: String,
        code: String,
    },
    Prepared,
    Log {
        level: LogLevel,
        line: String,
    },
    Emitted {
        item: Json,
    },
    Call {
        call: CallId,
        tool: String,
        args: Json,
    },
    Question {
        id: QuestionId,
        call: CallId,
        message: String,
    },
    Answer {
        id: QuestionId,
        call: CallId,
        action: String,
        content: Option<Json>,
        by: String,
        /// The role of the answer's author; `person` where the server names none.
        role: AnswerRole,
        /// The arguments that replaced those of the program.
        arguments: Option<Json>,
    },
    Deferred {
        call: CallId,
    },
    Admitted {
        call: CallId,
    },
    Dispatched {
        call: CallId,
        attempt: u32,
    },
    Progress {
        call: CallId,
        text: String,
    },
    Settled {
        call: CallId,
        ended: EventOutcome,
    },
    TimerSet {
        timer: TimerId,
    },
    TimerCleared {
        timer: TimerId,
    },
    TimerFired {
        timer: TimerId,
    },
    Paused,
    RecoveryFailed {
        why: String,
    },
    Parked,
    LimitReached {
        limit: String,
    },
    Finished {
        ended: EventOutcome,
        active_ms: u64,
    },
    /// An event of a kind that only a newer server knows.
    Other {
        kind: String,
    },
}

/// How a call or an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventOutcome {
    /// It completed.
    Completed {
        /// Its value, if it has one.
        result: Option<Json>,
    },
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled {
        /// The name of the caller that cancelled it.
        by: String,
    },
    /// Its outcome is not known: the server died during the call, and the call was given up.
    Unknown,
}

impl ExecutionEvent {
    pub(crate) fn read(json: Json) -> Result<Self, Error> {
        let event: wire::EventBody = read(json.as_text())?;
        let (seq, at) = (event.seq, event.at);
        let happened = happened(event)
            .map_err(|member| Error::Protocol(format!("event {seq} without its {member}")))?;
        Ok(Self { seq, at, happened, json })
    }

    /// Whether this is the last event of the execution.
    pub const fn is_last(&self) -> bool {
        matches!(self.happened, EventKind::Finished { .. })
    }
}

/// The name of a member that is missing.
type MissingMember = &'static str;

fn happened(event: wire::EventBody) -> Result<EventKind, MissingMember> {
    let call = event.call.map(CallId).ok_or("call");
    let timer = event.timer.map(TimerId).ok_or("timer");
    let id = event.execution_id.ok_or("executionId");
    Ok(match event.kind.as_str() {
        "started" => EventKind::Started {
            caller: event.caller.ok_or("caller")?,
            code: event.code.ok_or("code")?,
        },
        "prepared" => EventKind::Prepared,
        "log" => {
            let level = event.level.ok_or("level")?.into();
            let line = event.line.as_ref().and_then(|line| line.as_str()).ok_or("line")?;
            EventKind::Log { level, line: line.to_owned() }
        }
        "emitted" => EventKind::Emitted { item: event.item.ok_or("item")? },
        "call" => {
            let (tool, args) = (event.tool.ok_or("tool")?, event.args.ok_or("args")?);
            EventKind::Call { call: call?, tool, args }
        }
        "question" => {
            EventKind::Question { id: id?, call: call?, message: event.message.ok_or("message")? }
        }
        "answer" => {
            let (action, by) = (event.action.ok_or("action")?, event.by.ok_or("by")?);
            let (content, arguments) = (event.content, event.arguments);
            let role = event.role.map_or(Ok(AnswerRole::Person), |role| role.parse());
            let role = role.map_err(|_| "as")?;
            EventKind::Answer { id: id?, call: call?, action, content, by, role, arguments }
        }
        "deferred" => EventKind::Deferred { call: call? },
        "admitted" => EventKind::Admitted { call: call? },
        "dispatched" => {
            EventKind::Dispatched { call: call?, attempt: event.attempt.ok_or("attempt")? }
        }
        "progress" => EventKind::Progress { call: call?, text: event.text.ok_or("text")? },
        "settled" => EventKind::Settled { call: call?, ended: ended(event)? },
        "timerSet" => EventKind::TimerSet { timer: timer? },
        "timerCleared" => EventKind::TimerCleared { timer: timer? },
        "timerFired" => EventKind::TimerFired { timer: timer? },
        "paused" => EventKind::Paused,
        "recoveryFailed" => EventKind::RecoveryFailed { why: event.why.ok_or("why")? },
        "parked" => EventKind::Parked,
        "limitReached" => EventKind::LimitReached { limit: event.limit.ok_or("limit")? },
        "finished" => {
            let active_ms = event.active_ms.ok_or("activeMs")?;
            EventKind::Finished { ended: ended(event)?, active_ms }
        }
        _ => EventKind::Other { kind: event.kind },
    })
}

fn ended(event: wire::EventBody) -> Result<EventOutcome, MissingMember> {
    Ok(match event.status.as_deref() {
        Some("completed") => EventOutcome::Completed { result: event.result },
        Some("failed") => EventOutcome::Failed(failure(&event.error.ok_or("error")?)),
        Some("cancelled") => EventOutcome::Cancelled { by: event.by.ok_or("by")? },
        Some("unknown") => EventOutcome::Unknown,
        Some(_) | None => return Err("status"),
    })
}

/// A failure of a kind that only a newer server knows is still a failure.
fn failure(json: &Json) -> Failure {
    serde_json::from_str(json.as_text())
        .unwrap_or_else(|_| Failure::new(FailureCode::Runtime, json.as_text()))
}
