//! The journal for clients of this door: one JSON object per entry, stable.
//!
//! Every object has `seq`, `at` (milliseconds since 1970) and `type`; what else it has goes by the type,
//! as [`Happened`] lists them. New types and members may be added; none changes its meaning.

use super::account::level_name;
use super::outbound::rendered;
use lifecycle::{Answer, CallOutcome, Entry, Event, Failure, Outcome, Question, QuestionKind};
use serde::Serialize;
use serde_json::value::RawValue;

/// An entry as one line of JSON.
pub fn entry(entry: &Entry) -> String {
    let happened = happened(&entry.event);
    rendered(&Line { seq: entry.seq.0, at: entry.at.0, happened })
}

/// The `type` of an entry about this.
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
pub fn result(outcome: &Outcome) -> String {
    rendered(&finished(outcome))
}

#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    at: i64,
    #[serde(flatten)]
    happened: Happened<'a>,
}

/// What happened. The seed of a program's randomness is left out: it would foretell it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Happened<'a> {
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
        /// As whom; left out for a person.
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
        ended: Ended<'a>,
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
        ended: Ended<'a>,
        active_ms: u64,
    },
}

/// How a call or an execution ended.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "camelCase")]
enum Ended<'a> {
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

fn happened(event: &Event) -> Happened<'_> {
    match event {
        Event::Started { program, caller, .. } => {
            Happened::Started { caller: &caller.0, code: &program.source }
        }
        Event::Prepared(prepared) => Happened::Prepared { fingerprint: &prepared.fingerprint },
        Event::Logged { level, line, .. } => Happened::Log { level: level_name(*level), line },
        Event::Emitted { item, .. } => Happened::Emitted { item: item.raw() },
        Event::CallMade { call, tool, args, nature, line, alias: _ } => Happened::Call {
            call: call.0,
            tool: tool.as_str(),
            args: args.raw(),
            read_only: nature.read_only,
            line: *line,
        },
        Event::CallAsked(question) => asked(question),
        Event::CallAnswered { question, call, answer, by, role, remember, arguments } => {
            let (action, content) = said(answer);
            Happened::Answer {
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
        Event::CallDeferred { call } => Happened::Deferred { call: call.0 },
        Event::CallAdmitted { call, nature, .. } => {
            Happened::Admitted { call: call.0, read_only: nature.read_only }
        }
        Event::CallDispatched { call, attempt } => {
            Happened::Dispatched { call: call.0, attempt: *attempt }
        }
        Event::CallProgressed { call, text } => Happened::Progress { call: call.0, text },
        Event::CallSettled { call, outcome } => {
            Happened::Settled { call: call.0, ended: settled(outcome) }
        }
        Event::TimerSet { timer, due } => Happened::TimerSet { timer: timer.0, due: due.0 },
        Event::TimerCleared { timer } => Happened::TimerCleared { timer: timer.0 },
        Event::TimerFired { timer } => Happened::TimerFired { timer: timer.0 },
        Event::Paused { active_ms, .. } => Happened::Paused { active_ms: *active_ms },
        Event::RecoveryFailed { why } => Happened::RecoveryFailed { why },
        Event::Parked => Happened::Parked,
        Event::EntriesMayBeLost => Happened::EntriesMayBeLost,
        Event::Continued { by } => Happened::Continued { by: &by.0 },
        Event::LimitReached { limit } => Happened::LimitReached { limit: limit.to_string() },
        Event::Finished { outcome, active_ms, .. } => {
            Happened::Finished { ended: finished(outcome), active_ms: *active_ms }
        }
    }
}

fn asked(question: &Question) -> Happened<'_> {
    let (kind, schema, url) = match &question.kind {
        QuestionKind::Approval => ("approval", None, None),
        QuestionKind::InDoubt => ("inDoubt", None, None),
        QuestionKind::Form { schema } => ("form", Some(schema.raw()), None),
        QuestionKind::Link { url, .. } => ("link", None, Some(url.as_str())),
    };
    Happened::Question {
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

fn settled(outcome: &CallOutcome) -> Ended<'_> {
    match outcome {
        CallOutcome::Returned { value } => {
            Ended::Completed { result: value.as_ref().map(|value| value.raw()) }
        }
        CallOutcome::Failed(error) => Ended::Failed { error },
        CallOutcome::Unknown => Ended::Unknown,
    }
}

fn finished(outcome: &Outcome) -> Ended<'_> {
    match outcome {
        Outcome::Completed { value } => {
            Ended::Completed { result: value.as_ref().map(|value| value.raw()) }
        }
        Outcome::Failed(error) => Ended::Failed { error },
        Outcome::Cancelled { by, .. } => Ended::Cancelled { by: &by.0 },
    }
}
