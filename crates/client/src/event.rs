//! What happened to an execution, one numbered event after the other.

use crate::{Error, reply::read, wire};
use lifecycle::{
    AnswerRole, CallId, Failure, FailureCode, Json, LogLevel, QuestionId, Seq, TimerId, Timestamp,
};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number; each is heard once.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// What.
    pub happened: Happened,
    /// The same as the server put it.
    pub json: Json,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members are those of the protocol")]
pub enum Happened {
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
        /// As whom; a person where the server names none.
        role: AnswerRole,
        /// What the call got instead of the program's own.
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
        ended: Ended,
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
        ended: Ended,
        active_ms: u64,
    },
    /// Something that only a newer server knows.
    Other {
        kind: String,
    },
}

/// How a call or an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Completed {
        /// Its value, if it has one.
        result: Option<Json>,
    },
    /// Not well.
    Failed(Failure),
    /// Somebody ended it.
    Cancelled {
        /// Who.
        by: String,
    },
    /// Nobody knows: the server died, and it was given up.
    Unknown,
}

impl Event {
    pub(crate) fn read(json: Json) -> Result<Self, Error> {
        let event: wire::Event = read(json.text())?;
        let (seq, at) = (event.seq, event.at);
        let happened = happened(event)
            .map_err(|member| Error::Protocol(format!("event {seq} without its {member}")))?;
        Ok(Self { seq, at, happened, json })
    }

    /// Whether nothing follows.
    pub const fn is_last(&self) -> bool {
        matches!(self.happened, Happened::Finished { .. })
    }
}

/// A member that is missing.
type Missing = &'static str;

fn happened(event: wire::Event) -> Result<Happened, Missing> {
    let call = event.call.map(CallId).ok_or("call");
    let timer = event.timer.map(TimerId).ok_or("timer");
    let id = event.execution_id.ok_or("executionId");
    Ok(match event.kind.as_str() {
        "started" => Happened::Started {
            caller: event.caller.ok_or("caller")?,
            code: event.code.ok_or("code")?,
        },
        "prepared" => Happened::Prepared,
        "log" => {
            let level = event.level.ok_or("level")?.into();
            let line = event.line.as_ref().and_then(|line| line.as_str()).ok_or("line")?;
            Happened::Log { level, line: line.to_owned() }
        }
        "emitted" => Happened::Emitted { item: event.item.ok_or("item")? },
        "call" => {
            let (tool, args) = (event.tool.ok_or("tool")?, event.args.ok_or("args")?);
            Happened::Call { call: call?, tool, args }
        }
        "question" => {
            Happened::Question { id: id?, call: call?, message: event.message.ok_or("message")? }
        }
        "answer" => {
            let (action, by) = (event.action.ok_or("action")?, event.by.ok_or("by")?);
            let (content, arguments) = (event.content, event.arguments);
            let role = event.role.map_or(Ok(AnswerRole::Person), |role| role.parse());
            let role = role.map_err(|_| "as")?;
            Happened::Answer { id: id?, call: call?, action, content, by, role, arguments }
        }
        "deferred" => Happened::Deferred { call: call? },
        "admitted" => Happened::Admitted { call: call? },
        "dispatched" => {
            Happened::Dispatched { call: call?, attempt: event.attempt.ok_or("attempt")? }
        }
        "progress" => Happened::Progress { call: call?, text: event.text.ok_or("text")? },
        "settled" => Happened::Settled { call: call?, ended: ended(event)? },
        "timerSet" => Happened::TimerSet { timer: timer? },
        "timerCleared" => Happened::TimerCleared { timer: timer? },
        "timerFired" => Happened::TimerFired { timer: timer? },
        "paused" => Happened::Paused,
        "recoveryFailed" => Happened::RecoveryFailed { why: event.why.ok_or("why")? },
        "parked" => Happened::Parked,
        "limitReached" => Happened::LimitReached { limit: event.limit.ok_or("limit")? },
        "finished" => {
            let active_ms = event.active_ms.ok_or("activeMs")?;
            Happened::Finished { ended: ended(event)?, active_ms }
        }
        _ => Happened::Other { kind: event.kind },
    })
}

fn ended(event: wire::Event) -> Result<Ended, Missing> {
    Ok(match event.status.as_deref() {
        Some("completed") => Ended::Completed { result: event.result },
        Some("failed") => Ended::Failed(failure(&event.error.ok_or("error")?)),
        Some("cancelled") => Ended::Cancelled { by: event.by.ok_or("by")? },
        Some("unknown") => Ended::Unknown,
        Some(_) | None => return Err("status"),
    })
}

/// A failure of a kind that only a newer server knows is still a failure.
fn failure(json: &Json) -> Failure {
    serde_json::from_str(json.text())
        .unwrap_or_else(|_| Failure::new(FailureCode::Runtime, json.text()))
}
