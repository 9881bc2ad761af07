//! Formats an event as one line.

use crate::print::tamed;
use client::{EventKind, EventOutcome, ExecutionEvent};
use lifecycle::{AnswerRole, LogLevel, UtcTime};

/// Longest text in a line; `--json` has the full text.
const TEXT_CHARS_MAX: usize = 300;

/// Longest part of a program that a line shows.
const CODE_CHARS_MAX: usize = 80;

/// Number, time and description of the event.
pub(super) fn line(event: &ExecutionEvent) -> String {
    let (seq, time) = (event.seq.0, UtcTime::from(event.at).time());
    format!("{seq:>4}  {time}  {}", said(&event.happened))
}

fn said(happened: &EventKind) -> String {
    match happened {
        EventKind::Started { caller, code } => {
            format!("started by {}: {}", short(caller), cut(code, CODE_CHARS_MAX))
        }
        EventKind::Prepared => "prepared".into(),
        EventKind::Log { level, line } => format!("[{}] {}", level_name(*level), short(line)),
        EventKind::Emitted { item } => format!("emitted {}", short(item.as_text())),
        EventKind::Call { call, tool, args } => {
            format!("call {call}: {} {}", short(tool), short(args.as_text()))
        }
        EventKind::Question { id, call, message } => {
            let first = message.lines().next().unwrap_or_default();
            format!("call {call} asks as {id}: {}", short(first))
        }
        EventKind::Answer { id, action, by, role, arguments: Some(edited), .. } => {
            let (by, edited) = (author(by, *role), short(edited.as_text()));
            format!("{id} was answered by {by}: {} with {edited} instead", short(action))
        }
        EventKind::Answer { id, action, content, by, role, .. } => {
            let content = content.as_ref().map(|json| format!(" {}", short(json.as_text())));
            let content = content.unwrap_or_default();
            format!("{id} was answered by {}: {}{content}", author(by, *role), short(action))
        }
        EventKind::Deferred { call } => format!("call {call} waits for its source"),
        EventKind::Admitted { call } => format!("the source of call {call} is available"),
        EventKind::Dispatched { call, attempt: 0 | 1 } => format!("call {call} goes to its tool"),
        EventKind::Dispatched { call, attempt } => {
            format!("call {call} goes to its tool, attempt {attempt}")
        }
        EventKind::Progress { call, text } => format!("call {call} says: {}", short(text)),
        EventKind::Settled { call, ended } => format!("call {call} {}", how(ended)),
        EventKind::TimerSet { timer } => format!("timer {timer} is set"),
        EventKind::TimerCleared { timer } => format!("timer {timer} is cleared"),
        EventKind::TimerFired { timer } => format!("timer {timer} fires"),
        EventKind::Paused => "paused".into(),
        EventKind::RecoveryFailed { why } => format!("could not be recovered: {}", short(why)),
        EventKind::Parked => "parked: it is not tried again by itself".into(),
        EventKind::LimitReached { limit } => format!("reached its limit: {}", short(limit)),
        EventKind::Finished { ended, active_ms } => format!("{} ({active_ms} ms)", how(ended)),
        EventKind::Other { kind } => format!("{} (--json shows its data)", short(kind)),
    }
}

fn how(ended: &EventOutcome) -> String {
    match ended {
        EventOutcome::Completed { result: Some(result) } => {
            format!("returned {}", short(result.as_text()))
        }
        EventOutcome::Completed { result: None } => "returned nothing".into(),
        EventOutcome::Failed(failure) => {
            let name = failure.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            format!("failed: {}", short(&format!("{name}{}", failure.message)))
        }
        EventOutcome::Cancelled { by } => format!("cancelled by {}", short(by)),
        EventOutcome::Unknown => "may or may not have run".into(),
    }
}

/// The answer's author, with the role unless it is a person.
fn author(by: &str, role: AnswerRole) -> String {
    match role {
        AnswerRole::Person => short(by),
        AnswerRole::Client | AnswerRole::Model => format!("{} as {role}", short(by)),
    }
}

fn short(text: &str) -> String {
    cut(text, TEXT_CHARS_MAX)
}

/// A text in one line, shortened to `n_max` characters.
pub(super) fn cut(text: &str, n_max: usize) -> String {
    let mut chars = text.trim().chars();
    let kept: String = chars.by_ref().take(n_max).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("{}{more}", tamed(&kept).replace('\n', "\\n").replace('\t', "\\t"))
}

pub(crate) const fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Log => "log",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{CallId, Failure, FailureCode, Json, Seq, Timestamp};

    #[track_caller]
    fn check(happened: EventKind, expected: &str) {
        let event =
            ExecutionEvent { seq: Seq(7), at: Timestamp(1_500), happened, json: Json::null() };
        assert_eq!(line(&event), format!("   7  00:00:01.500  {expected}"));
    }

    #[test]
    fn an_event_is_one_line() {
        let id = "exec_00000000-0000-0000-0000-000000000002".parse().unwrap();
        let (call, by) = (CallId(1), "ann".to_owned());
        let json = |text: &str| Json::parse(text.to_owned()).unwrap();
        let (caller, code) = (by.clone(), "const a = 1\n  return a\n".to_owned());
        check(EventKind::Started { caller, code }, "started by ann: const a = 1\\n  return a");
        let (tool, args) = ("demo.add".to_owned(), json(r#"{"a":1}"#));
        check(EventKind::Call { call, tool, args }, r#"call 1: demo.add {"a":1}"#);
        let message = "Approve demo.ask?\n\nArguments:".to_owned();
        check(
            EventKind::Question { id, call, message },
            "call 1 asks as exec_00000000-0000-0000-0000-000000000002: Approve demo.ask?",
        );
        let answer = |role| {
            let (action, by) = ("decline".to_owned(), "ann".to_owned());
            EventKind::Answer { id, call, action, content: None, by, role, arguments: None }
        };
        check(
            answer(AnswerRole::Person),
            "exec_00000000-0000-0000-0000-000000000002 was answered by ann: decline",
        );
        check(
            answer(AnswerRole::Model),
            "exec_00000000-0000-0000-0000-000000000002 was answered by ann as model: decline",
        );
        let (action, arguments) = ("accept".to_owned(), Some(json(r#"{"a":2}"#)));
        let role = AnswerRole::Person;
        check(
            EventKind::Answer { id, call, action, content: None, by, role, arguments },
            "exec_00000000-0000-0000-0000-000000000002 was answered by ann: accept with {\"a\":2} instead",
        );
        check(EventKind::Dispatched { call, attempt: 2 }, "call 1 goes to its tool, attempt 2");
        let text = "half\nof it\n".to_owned();
        check(EventKind::Progress { call, text }, "call 1 says: half\\nof it");
        let ended = EventOutcome::Completed { result: Some(json("3")) };
        check(EventKind::Settled { call, ended }, "call 1 returned 3");
        let name = Some("TypeError".into());
        let failure = Failure { name, ..Failure::new(FailureCode::Runtime, "no") };
        let ended = EventOutcome::Failed(failure);
        check(EventKind::Finished { ended, active_ms: 5 }, "failed: TypeError: no (5 ms)");
    }

    #[test]
    fn what_a_program_prints_stays_in_its_line() {
        let log = |line: &str| EventKind::Log { level: LogLevel::Warn, line: line.to_owned() };
        check(log("a\nb\t\u{1b}[2J"), "[warn] a\\nb\\t\\u{1b}[2J");
        check(log(&"x".repeat(1_000)), &format!("[warn] {}…", "x".repeat(300)));
    }
}
