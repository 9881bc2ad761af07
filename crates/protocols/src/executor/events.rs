//! The journal for this door's clients: one JSON object per entry, in a stable format.
//!
//! Every object has `seq`, `at` (milliseconds since 1970) and `type`; the other members depend on the type,
//! as listed in [`EventMembers`]. New types and members may be added; existing ones never change their
//! meaning.

use super::execution_view::level_name;
use super::outbound::rendered;
use lifecycle::{
    Answer, CallOutcome, Entry, Event, ExecutionOutcome, Failure, Question, QuestionKind,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// An entry as one line of JSON.
pub fn entry(entry: &Entry) -> String {
    let happened = happened(&entry.event);
    rendered(&EventLine { seq: entry.seq.0, at: entry.at.0, happened })
}

/// The `type` of an event's entry.
pub const fn kind(event: &Event) -> &'static str {
    match event {
        Event::Started { .. } => "started",
        Event::Prepared(_) => "prepared",
        Event::Logged { .. } => "log",
        Event::Emitted { .. } => "emitted",
        Event::CallMade { .. } => "call",
        Event::CallAsked(_) => "question",
        Event::CallAnswered { .. } => "answer",
        Event::CallDeferred { .. } => "deferred",
        Event::CallAdmitted { .. } => "admitted",
        Event::CallDispatched { .. } => "dispatched",
        Event::CallProgressed { .. } => "progress",
        Event::CallSettled { .. } => "settled",
        Event::TimerSet { .. } => "timerSet",
        Event::TimerCleared { .. } => "timerCleared",
        Event::TimerFired { .. } => "timerFired",
        Event::Paused { .. } => "paused",
        Event::RecoveryFailed { .. } => "recoveryFailed",
        Event::Parked => "parked",
        Event::EntriesMayBeLost => "entriesMayBeLost",
        Event::Continued { .. } => "continued",
        Event::LimitReached { .. } => "limitReached",
        Event::Finished { .. } => "finished",
    }
}

/// How an execution ended, with its whole value.
pub fn result(outcome: &ExecutionOutcome) -> String {
    rendered(&finished(outcome))
}

#[derive(Serialize)]
struct EventLine<'a> {
    seq: u64,
    at: i64,
    #[serde(flatten)]
    happened: EventMembers<'a>,
}

/// The event. The seed of a program's randomness is omitted: it would make it predictable.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum EventMembers<'a> {
    Started {
        caller: &'a str,
        code: &'a str,
    },
    Prepared {
        fingerprint: &'a str,
    },
    Log {
        level: &'static str,
        line: &'a str,
    },
    Emitted {
        item: &'a RawValue,
    },
    Call {
        call: u32,
        tool: &'a str,
        args: &'a RawValue,
        read_only: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
    },
    Question {
        execution_id: String,
        call: u32,
        kind: &'static str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        schema: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        editable: bool,
    },
    Answer {
        execution_id: String,
        call: u32,
        action: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a RawValue>,
        by: &'a str,
        /// The role of the answerer; omitted for a person.
        #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
        role: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        remember: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a RawValue>,
    },
    Deferred {
        call: u32,
    },
    Admitted {
        call: u32,
        read_only: bool,
    },
    Dispatched {
        call: u32,
        attempt: u32,
    },
    Progress {
        call: u32,
        text: &'a str,
    },
    Settled {
        call: u32,
        #[serde(flatten)]
        ended: EndMembers<'a>,
    },
    TimerSet {
        timer: u32,
        due: i64,
    },
    TimerCleared {
        timer: u32,
    },
    TimerFired {
        timer: u32,
    },
    Paused {
        active_ms: u64,
    },
    RecoveryFailed {
        why: &'a str,
    },
    Parked,
    EntriesMayBeLost,
    Continued {
        by: &'a str,
    },
    LimitReached {
        limit: String,
    },
    Finished {
        #[serde(flatten)]
        ended: EndMembers<'a>,
        active_ms: u64,
    },
}

/// How a call or an execution ended.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "camelCase")]
enum EndMembers<'a> {
    Completed {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
    },
    Failed {
        error: &'a Failure,
    },
    Cancelled {
        by: &'a str,
    },
    Unknown,
}

fn happened(event: &Event) -> EventMembers<'_> {
    match event {
        Event::Started { program, caller, .. } => {
            EventMembers::Started { caller: &caller.0, code: &program.source }
        }
        Event::Prepared(prepared) => EventMembers::Prepared { fingerprint: &prepared.fingerprint },
        Event::Logged { level, line, .. } => EventMembers::Log { level: level_name(*level), line },
        Event::Emitted { item, .. } => EventMembers::Emitted { item: item.raw() },
        Event::CallMade { call, tool, args, nature, line, alias: _ } => EventMembers::Call {
            call: call.0,
            tool: tool.as_str(),
            args: args.raw(),
            read_only: nature.read_only,
            line: *line,
        },
        Event::CallAsked(question) => asked(question),
        Event::CallAnswered { question, call, answer, by, role, remember, arguments } => {
            let (action, content) = said(answer);
            EventMembers::Answer {
                execution_id: question.to_string(),
                call: call.0,
                action,
                content,
                by: &by.0,
                role: (!role.is_person()).then_some(role.name()),
                remember: remember.then_some("execution"),
                arguments: arguments.as_ref().map(|edited| edited.raw()),
            }
        }
        Event::CallDeferred { call } => EventMembers::Deferred { call: call.0 },
        Event::CallAdmitted { call, nature, .. } => {
            EventMembers::Admitted { call: call.0, read_only: nature.read_only }
        }
        Event::CallDispatched { call, attempt } => {
            EventMembers::Dispatched { call: call.0, attempt: *attempt }
        }
        Event::CallProgressed { call, text } => EventMembers::Progress { call: call.0, text },
        Event::CallSettled { call, outcome } => {
            EventMembers::Settled { call: call.0, ended: settled(outcome) }
        }
        Event::TimerSet { timer, due } => EventMembers::TimerSet { timer: timer.0, due: due.0 },
        Event::TimerCleared { timer } => EventMembers::TimerCleared { timer: timer.0 },
        Event::TimerFired { timer } => EventMembers::TimerFired { timer: timer.0 },
        Event::Paused { active_ms, .. } => EventMembers::Paused { active_ms: *active_ms },
        Event::RecoveryFailed { why } => EventMembers::RecoveryFailed { why },
        Event::Parked => EventMembers::Parked,
        Event::EntriesMayBeLost => EventMembers::EntriesMayBeLost,
        Event::Continued { by } => EventMembers::Continued { by: &by.0 },
        Event::LimitReached { limit } => EventMembers::LimitReached { limit: limit.to_string() },
        Event::Finished { outcome, active_ms, .. } => {
            EventMembers::Finished { ended: finished(outcome), active_ms: *active_ms }
        }
    }
}

fn asked(question: &Question) -> EventMembers<'_> {
    let (kind, schema, url) = match &question.kind {
        QuestionKind::Approval => ("approval", None, None),
        QuestionKind::InDoubt => ("inDoubt", None, None),
        QuestionKind::Form { schema } => ("form", Some(schema.raw()), None),
        QuestionKind::Link { url, .. } => ("link", None, Some(url.as_str())),
    };
    EventMembers::Question {
        execution_id: question.id.to_string(),
        call: question.call.0,
        kind,
        message: &question.message,
        schema,
        url,
        editable: question.editable,
    }
}

fn said(answer: &Answer) -> (&'static str, Option<&RawValue>) {
    match answer {
        Answer::Accept { content } => ("accept", content.as_ref().map(|content| content.raw())),
        Answer::Decline => ("decline", None),
        Answer::Cancel => ("cancel", None),
    }
}

fn settled(outcome: &CallOutcome) -> EndMembers<'_> {
    match outcome {
        CallOutcome::Returned { value } => {
            EndMembers::Completed { result: value.as_ref().map(|value| value.raw()) }
        }
        CallOutcome::Failed(error) => EndMembers::Failed { error },
        CallOutcome::Unknown => EndMembers::Unknown,
    }
}

fn finished(outcome: &ExecutionOutcome) -> EndMembers<'_> {
    match outcome {
        ExecutionOutcome::Completed { value } => {
            EndMembers::Completed { result: value.as_ref().map(|value| value.raw()) }
        }
        ExecutionOutcome::Failed(error) => EndMembers::Failed { error },
        ExecutionOutcome::Cancelled { by, .. } => EndMembers::Cancelled { by: &by.0 },
    }
}
