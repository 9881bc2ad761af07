//! The transcript of a journal: one line per entry, without ids and times.

use lifecycle::{Answer, CallOutcome, Entry, Event, ExecutionOutcome, QuestionKind};

pub(crate) fn line(entry: &Entry) -> String {
    format!("{} {}\n", entry.seq, words(&entry.event))
}

fn words(event: &Event) -> String {
    match event {
        Event::Started { .. } => "started".into(),
        Event::Prepared(_) => "prepared".into(),
        Event::Logged { level, line, .. } => format!("logged {level:?}: {line}"),
        Event::Emitted { item, .. } => format!("emitted {item:?}"),
        Event::CallMade { call, tool, args, .. } => format!("call {call} made: {tool} {args:?}"),
        Event::CallAsked(question) => {
            let kind = match &question.kind {
                QuestionKind::Approval => "approval",
                QuestionKind::InDoubt => "in doubt",
                QuestionKind::Form { .. } => "form",
                QuestionKind::Link { .. } => "link",
            };
            let first = question.message.lines().next().unwrap_or_default();
            format!("call {} asked ({kind}): {first}", question.call)
        }
        Event::CallAnswered { call, answer, remember, arguments, .. } => {
            let edited = arguments.as_ref().map(|edited| format!(", with {edited:?}"));
            let more = if *remember { ", from now on".into() } else { edited.unwrap_or_default() };
            format!("call {call} answered: {}{more}", said(answer))
        }
        Event::CallDeferred { call } => format!("call {call} waits for its source"),
        Event::CallAdmitted { call, .. } => format!("call {call} has its source"),
        Event::CallDispatched { call, attempt } => {
            format!("call {call} dispatched, attempt {attempt}")
        }
        Event::CallSettled { call, outcome } => format!("call {call} {}", settled(outcome)),
        Event::TimerSet { timer, .. } => format!("timer {timer} set"),
        Event::TimerCleared { timer } => format!("timer {timer} cleared"),
        Event::TimerFired { timer } => format!("timer {timer} fired"),
        Event::CallProgressed { call, text } => format!("call {call} says {text:?}"),
        Event::Paused { inputs, .. } => format!("paused after {inputs} inputs"),
        Event::RecoveryFailed { why } => format!("recovery failed: {why}"),
        Event::Parked => "parked".into(),
        Event::EntriesMayBeLost => "entries may be lost".into(),
        Event::Continued { .. } => "continued".into(),
        Event::LimitReached { limit } => format!("limit reached: {limit}"),
        Event::Finished { outcome, .. } => format!("finished: {}", ended(outcome)),
    }
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Accept { content: None } => "accept".into(),
        Answer::Accept { content: Some(content) } => format!("accept {content:?}"),
        Answer::Decline => "decline".into(),
        Answer::Cancel => "cancel".into(),
    }
}

fn settled(outcome: &CallOutcome) -> String {
    match outcome {
        CallOutcome::Returned { value: Some(value) } => format!("returned {value:?}"),
        CallOutcome::Returned { value: None } => "returned undefined".into(),
        CallOutcome::Failed(failure) => format!("failed ({:?}): {}", failure.code, failure.message),
        CallOutcome::Unknown => "ended with an unknown outcome".into(),
    }
}

fn ended(outcome: &ExecutionOutcome) -> String {
    match outcome {
        ExecutionOutcome::Completed { value: Some(value) } => format!("completed {value:?}"),
        ExecutionOutcome::Completed { value: None } => "completed undefined".into(),
        ExecutionOutcome::Failed(failure) => {
            format!("failed ({:?}): {}", failure.code, failure.message)
        }
        ExecutionOutcome::Cancelled { by, reason: None } => format!("cancelled by {by}"),
        ExecutionOutcome::Cancelled { by, reason: Some(reason) } => {
            format!("cancelled by {by}: {reason}")
        }
    }
}
