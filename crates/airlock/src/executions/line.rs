//! One event, one line.

use crate::print::tamed;
use client::{Ended, Event, Happened};
use lifecycle::{AnswerRole, LogLevel, Utc};

/// Longest text in a line; `--json` has the whole.
const TEXT_CHARS_MAX: usize = 300;

/// Longest part of a program that a line shows.
const CODE_CHARS_MAX: usize = 80;

/// Number, time and what happened.
pub(super) fn line(event: &Event) -> String {
    let (seq, time) = (event.seq.0, Utc::from(event.at).time());
    format!("{seq:>4}  {time}  {}", said(&event.happened))
}

fn said(happened: &Happened) -> String {
    match happened {
        Happened::Started { caller, code } => {
            format!("started by {}: {}", short(caller), cut(code, CODE_CHARS_MAX))
        }
        Happened::Prepared => "prepared".into(),
        Happened::Log { level, line } => format!("[{}] {}", level_name(*level), short(line)),
        Happened::Emitted { item } => format!("emitted {}", short(item.text())),
        Happened::Call { call, tool, args } => {
            format!("call {call}: {} {}", short(tool), short(args.text()))
        }
        Happened::Question { id, call, message } => {
            let first = message.lines().next().unwrap_or_default();
            format!("call {call} asks as {id}: {}", short(first))
        }
        Happened::Answer { id, action, by, role, arguments: Some(edited), .. } => {
            let (by, edited) = (author(by, *role), short(edited.text()));
            format!("{id} was answered by {by}: {} with {edited} instead", short(action))
        }
        Happened::Answer { id, action, content, by, role, .. } => {
            let content = content.as_ref().map(|json| format!(" {}", short(json.text())));
            let content = content.unwrap_or_default();
            format!("{id} was answered by {}: {}{content}", author(by, *role), short(action))
        }
        Happened::Deferred { call } => format!("call {call} waits for its source"),
        Happened::Admitted { call } => format!("the source of call {call} is available"),
        Happened::Dispatched { call, attempt: 0 | 1 } => format!("call {call} goes to its tool"),
        Happened::Dispatched { call, attempt } => {
            format!("call {call} goes to its tool, attempt {attempt}")
        }
        Happened::Progress { call, text } => format!("call {call} says: {}", short(text)),
        Happened::Settled { call, ended } => format!("call {call} {}", how(ended)),
        Happened::TimerSet { timer } => format!("timer {timer} is set"),
        Happened::TimerCleared { timer } => format!("timer {timer} is cleared"),
        Happened::TimerFired { timer } => format!("timer {timer} fires"),
        Happened::Paused => "paused".into(),
        Happened::RecoveryFailed { why } => format!("could not be brought back: {}", short(why)),
        Happened::Parked => "parked: it is not tried again by itself".into(),
        Happened::LimitReached { limit } => format!("reached its limit: {}", short(limit)),
        Happened::Finished { ended, active_ms } => format!("{} ({active_ms} ms)", how(ended)),
        Happened::Other { kind } => format!("{} (--json has it)", short(kind)),
    }
}

fn how(ended: &Ended) -> String {
    match ended {
        Ended::Completed { result: Some(result) } => format!("returned {}", short(result.text())),
        Ended::Completed { result: None } => "returned nothing".into(),
        Ended::Failed(failure) => {
            let name = failure.name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            format!("failed: {}", short(&format!("{name}{}", failure.message)))
        }
        Ended::Cancelled { by } => format!("cancelled by {}", short(by)),
        Ended::Unknown => "may or may not have run".into(),
    }
}

/// Who answered, and as whom if that was no person.
fn author(by: &str, role: AnswerRole) -> String {
    match role {
        AnswerRole::Person => short(by),
        AnswerRole::Client | AnswerRole::Model => format!("{} as {role}", short(by)),
    }
}

fn short(text: &str) -> String {
    cut(text, TEXT_CHARS_MAX)
}

/// A text in one line, and no longer than that.
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
    fn check(happened: Happened, expected: &str) {
        let event = Event { seq: Seq(7), at: Timestamp(1_500), happened, json: Json::null() };
        assert_eq!(line(&event), format!("   7  00:00:01.500  {expected}"));
    }

    #[test]
    fn an_event_is_one_line() {
        let id = "exec_00000000-0000-0000-0000-000000000002".parse().unwrap();
        let (call, by) = (CallId(1), "ann".to_owned());
        let json = |text: &str| Json::parse(text.to_owned()).unwrap();
        let (caller, code) = (by.clone(), "const a = 1\n  return a\n".to_owned());
        check(Happened::Started { caller, code }, "started by ann: const a = 1\\n  return a");
        let (tool, args) = ("demo.add".to_owned(), json(r#"{"a":1}"#));
        check(Happened::Call { call, tool, args }, r#"call 1: demo.add {"a":1}"#);
        let message = "Approve demo.ask?\n\nArguments:".to_owned();
        check(
            Happened::Question { id, call, message },
            "call 1 asks as exec_00000000-0000-0000-0000-000000000002: Approve demo.ask?",
        );
        let answer = |role| {
            let (action, by) = ("decline".to_owned(), "ann".to_owned());
            Happened::Answer { id, call, action, content: None, by, role, arguments: None }
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
            Happened::Answer { id, call, action, content: None, by, role, arguments },
            "exec_00000000-0000-0000-0000-000000000002 was answered by ann: accept with {\"a\":2} instead",
        );
        check(Happened::Dispatched { call, attempt: 2 }, "call 1 goes to its tool, attempt 2");
        let text = "half\nof it\n".to_owned();
        check(Happened::Progress { call, text }, "call 1 says: half\\nof it");
        let ended = Ended::Completed { result: Some(json("3")) };
        check(Happened::Settled { call, ended }, "call 1 returned 3");
        let name = Some("TypeError".into());
        let failure = Failure { name, ..Failure::new(FailureCode::Runtime, "no") };
        let ended = Ended::Failed(failure);
        check(Happened::Finished { ended, active_ms: 5 }, "failed: TypeError: no (5 ms)");
    }

    #[test]
    fn what_a_program_prints_stays_in_its_line() {
        let log = |line: &str| Happened::Log { level: LogLevel::Warn, line: line.to_owned() };
        check(log("a\nb\t\u{1b}[2J"), "[warn] a\\nb\\t\\u{1b}[2J");
        check(log(&"x".repeat(1_000)), &format!("[warn] {}…", "x".repeat(300)));
    }
}
