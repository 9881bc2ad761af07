//! Formats one execution for a person.

use super::question_text;
use crate::print::tamed;
use client::{ExecutionRef, ExecutionReply, ExecutionStanding};

/// The state of the execution; `flags` direct a command to the same server.
pub(super) fn execution_text(
    id: ExecutionRef,
    reply: &ExecutionReply,
    page_origin: &str,
    flags: &str,
) -> String {
    let id = reply.execution.map_or(id, ExecutionRef::from);
    let head = |status: &str| format!("Execution  {id}\nStatus     {status}");
    match &reply.standing {
        ExecutionStanding::Completed { result, logs } => {
            let result = tamed(result.as_text());
            head("completed") + &format!("\nResult     {result}") + &log(logs)
        }
        ExecutionStanding::Failed { error, logs } => {
            head("failed") + &block("Error", error.lines()) + &log(logs)
        }
        ExecutionStanding::Asks(asked) => {
            head("paused") + "\n\n" + &question_text::question_text(asked, None, page_origin, flags)
        }
        ExecutionStanding::Running => head("running"),
        ExecutionStanding::Parked => {
            head("parked")
                + &format!(
                    "\n\nIt could not be recovered after a restart. \
                     Why:\n  airlock executions follow {id}{flags}"
                )
        }
    }
}

fn log(logs: &[String]) -> String {
    block("Log", logs.iter().flat_map(|log| log.lines()))
}

/// Lines one below the other, with a name in front of the first.
fn block<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> String {
    let named = std::iter::once(name).chain(std::iter::repeat(""));
    named.zip(lines).map(|(name, line)| format!("\n{name:<11}{}", tamed(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::Json;

    #[track_caller]
    fn check(standing: ExecutionStanding, expected: &str) {
        let execution = "run_00000000-0000-0000-0000-000000000001".parse().ok();
        let asked = "exec_00000000-0000-0000-0000-000000000002".parse().unwrap();
        let reply = ExecutionReply { execution, standing, json: Json::null() };
        let shown = execution_text(asked, &reply, "http://x:1", "");
        let head = "Execution  run_00000000-0000-0000-0000-000000000001\nStatus     ";
        assert_eq!(shown.strip_prefix(head), Some(expected));
    }

    #[test]
    fn how_it_stands_is_shown_with_what_it_printed() {
        let result = Json::parse("[1]".into()).unwrap();
        let logs = vec!["[log] a\nb".into(), "[warn] \u{1b}c".into()];
        check(
            ExecutionStanding::Completed { result, logs },
            "completed\nResult     [1]\nLog        [log] a\n           b\n           [warn] \\u{1b}c",
        );
        let error = "TypeError: x\n    at program:1:1".into();
        check(
            ExecutionStanding::Failed { error, logs: vec![] },
            "failed\nError      TypeError: x\n               at program:1:1",
        );
        check(ExecutionStanding::Running, "running");
    }
}
