//! Decodes lines of a runner to messages. A line is hostile input: only lines that are valid on this link
//! become messages, and everything else becomes [`RunnerLoss::Malformed`].

use super::loss::RunnerLoss;
use super::message::{ProgramFailure, RunnerMessage, SessionMessage, TaskFailure, TaskResult};
use lifecycle::{BadToolPath, CallId, Json, PreparedProgram, TimerId, ToolPath};
use protocols::execbox::session::{EvalValue, FromSession, TaskFailed, TaskOutcome};
use protocols::execbox::wire::{Done, Failed, Log, RawJson, Started};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX};

/// A line of a session's runner.
#[derive(Debug)]
pub(super) enum SessionLine {
    Message(SessionMessage),
    TimerSet {
        timer: TimerId,
        delay_ms: u64,
    },
    TimerCleared(TimerId),
    /// The runner has processed this many lines and waits.
    Rested {
        lines: u64,
    },
    Malformed,
}

fn malformed(what: &'static str) -> RunnerMessage {
    RunnerMessage::Lost(RunnerLoss::Malformed(what))
}

/// Decodes a message about a program of the engine.
pub(super) fn decode_program(line: &[u8]) -> RunnerMessage {
    let Ok(message) = FromRunner::decode(line) else {
        return malformed("a message that cannot be read");
    };
    match message {
        FromRunner::Started(Started { airlock: None, .. }) => {
            malformed("a start without a prepared program")
        }
        FromRunner::Started(Started { airlock: Some(ready), .. }) => {
            RunnerMessage::Started(Some(PreparedProgram {
                text: Some(ready.prepared.into_owned()),
                prelude: ready.prelude,
                fingerprint: ready.fingerprint.into_owned(),
            }))
        }
        FromRunner::ToolCall(call) => {
            match (call.call_id.parse(), tool_path(&call.safe_tool_name)) {
                (Ok(ordinal), Ok(tool)) => {
                    let args = call.input.to_json();
                    RunnerMessage::ToolCalled { call: CallId(ordinal), tool, args, line: call.line }
                }
                _ => malformed("a call without a number or a path"),
            }
        }
        FromRunner::Log(log) => logged(log),
        FromRunner::Emit(emit) => {
            RunnerMessage::Emitted { mark: emit.mark, item: emit.item.to_json() }
        }
        FromRunner::TimerSet(set) => {
            RunnerMessage::TimerSet { timer: set.timer, delay_ms: set.delay_ms }
        }
        FromRunner::TimerCleared(cleared) => RunnerMessage::TimerCleared { timer: cleared.timer },
        FromRunner::Idle(idle) => RunnerMessage::Idle(idle.inputs),
        FromRunner::Counted(counted) => RunnerMessage::Counted(counted.iterations),
        FromRunner::Synced(_) => RunnerMessage::Synced,
        FromRunner::Diverged(diverged) => RunnerMessage::Diverged(diverged.what.into_owned()),
        FromRunner::Done(done) => RunnerMessage::Done(result_of(done)),
    }
}

/// Decodes a message about the program `id` of an execbox host: only what concerns this program reaches the host.
pub(super) fn decode_hosted(line: &[u8], id: &str) -> RunnerMessage {
    match FromRunner::decode(line) {
        Ok(FromRunner::Started(started)) if started.id == id => RunnerMessage::Started(None),
        Ok(FromRunner::ToolCall(call)) if is_call_of(&call.call_id, id) => {
            let mut for_host = Vec::with_capacity(line.len() + 1);
            for_host.extend_from_slice(line);
            for_host.push(b'\n');
            RunnerMessage::HostToolCalled(for_host)
        }
        Ok(FromRunner::Done(done)) if done.id == id && line.len() <= HOST_MESSAGE_BYTES_MAX => {
            RunnerMessage::Done(result_of(done))
        }
        Ok(FromRunner::Log(log)) => logged(log),
        Ok(FromRunner::Emit(emit)) => {
            RunnerMessage::Emitted { mark: emit.mark, item: emit.item.to_json() }
        }
        Ok(FromRunner::TimerSet(set)) => {
            RunnerMessage::TimerSet { timer: set.timer, delay_ms: set.delay_ms }
        }
        Ok(FromRunner::TimerCleared(cleared)) => {
            RunnerMessage::TimerCleared { timer: cleared.timer }
        }
        Ok(_) | Err(_) => malformed("a message that no runner sends to a host"),
    }
}

/// Decodes a message of a session.
pub(super) fn decode_session(line: &[u8]) -> SessionLine {
    let Ok(message) = serde_json::from_slice::<FromSession<'_>>(line) else {
        return SessionLine::Malformed;
    };
    SessionLine::Message(match message {
        FromSession::TimerSet(set) => {
            return SessionLine::TimerSet { timer: TimerId(set.timer), delay_ms: set.delay_ms };
        }
        FromSession::TimerCleared(timer) => return SessionLine::TimerCleared(TimerId(timer)),
        FromSession::Rested { lines } => return SessionLine::Rested { lines },
        FromSession::Ended(ended) => SessionMessage::TaskEnded {
            task: ended.task,
            result: task_result(ended.outcome),
            is_fouled: ended.fouled,
        },
        FromSession::Completed(completed) => SessionMessage::Completed {
            task: completed.task,
            names: completed.names.into_iter().map(Into::into).collect(),
        },
        FromSession::Called(called) => SessionMessage::ToolCalled {
            task: called.task,
            call: called.call,
            tool: called.tool.into(),
            args: called.args.as_text().to_owned(),
        },
        FromSession::Printed(printed) => {
            SessionMessage::Printed { task: printed.task, line: printed.line.into() }
        }
        FromSession::Registered(descriptor) => {
            SessionMessage::CommandRegistered(descriptor.as_text().to_owned())
        }
        FromSession::Unregistered(name) => SessionMessage::CommandUnregistered(name.into()),
        FromSession::Progressed(progressed) => SessionMessage::Progressed {
            task: progressed.task,
            value: progressed.value.as_text().to_owned(),
        },
        FromSession::Wrote(wrote) => SessionMessage::FileWritten {
            task: wrote.task,
            name: wrote.name.into(),
            content_type: wrote.content_type.into(),
            base64: wrote.base64.into(),
        },
    })
}

fn logged(log: Log<'_>) -> RunnerMessage {
    RunnerMessage::Logged {
        mark: log.mark,
        level: log.level,
        line: log.line.into_owned(),
        exact: log.exact.map(|exact| exact.as_text().to_owned()),
    }
}

fn result_of(done: Done<'_>) -> Result<Option<Json>, ProgramFailure> {
    match done.outcome {
        Ok(value) => Ok(value.map(RawJson::to_json)),
        Err(Failed { code, message, name, stack, limit }) => Err(ProgramFailure {
            code: code.into_owned(),
            message: message.into_owned(),
            name: name.map(Into::into),
            stack: stack.map(Into::into),
            limit: limit.map(Into::into),
        }),
    }
}

fn task_result(outcome: TaskOutcome<'_>) -> TaskResult {
    match outcome {
        TaskOutcome::Value(EvalValue { type_name, json, bytes }) => TaskResult::Value {
            type_name: type_name.into(),
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX).max(json.len()),
            json: json.into(),
        },
        TaskOutcome::Nothing => TaskResult::Nothing,
        TaskOutcome::Output(json) => TaskResult::Output(json.into()),
        TaskOutcome::Failed(TaskFailed { why, message, stack, kind, code, details }) => {
            TaskResult::Failed(TaskFailure {
                why,
                message: message.into(),
                stack: stack.map(Into::into),
                kind: kind.map(Into::into),
                code: code.map(Into::into),
                details: details.map(Into::into),
            })
        }
    }
}

/// Parses the path of a tool. Some programs write `tools.` before it; rules about the tool omit the prefix.
fn tool_path(name: &str) -> Result<ToolPath, BadToolPath> {
    ToolPath::parse(name.trim_start_matches("tools."))
}

/// Whether a call was made by the program `id`.
pub(super) fn is_call_of(call_id: &str, id: &str) -> bool {
    call_id.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_hears_of_its_own_program_only() {
        let started = br#"{"type":"started","id":"a"}"#;
        assert!(matches!(decode_hosted(started, "a"), RunnerMessage::Started(None)));
        let strange: [&[u8]; 4] = [
            started,
            br#"{"type":"idle","inputs":1}"#,
            br#"{"type":"tool_call","callId":"a.1","providerName":"p","safeToolName":"t"}"#,
            b"nonsense",
        ];
        for line in strange {
            let message = decode_hosted(line, "b");
            let RunnerMessage::Lost(RunnerLoss::Malformed(_)) = message else {
                panic!("{message:?}")
            };
        }
    }

    #[test]
    fn a_code_that_is_not_ours_is_a_tools_own() {
        let failed = |code: &str, limit: Option<&str>| ProgramFailure {
            code: code.into(),
            message: "no".into(),
            name: None,
            stack: None,
            limit: limit.map(Into::into),
        };
        let (failure, limit) = failed("E_MAIL", None).into_failure();
        assert_eq!(failure.code, lifecycle::FailureCode::Tool);
        assert_eq!(failure.details.unwrap().as_text(), r#"{"code":"E_MAIL"}"#);
        assert_eq!(limit, None);
        let (failure, limit) = failed("timeout", Some("cpu")).into_failure();
        assert_eq!(
            (failure.code, limit),
            (lifecycle::FailureCode::Timeout, Some(lifecycle::LimitKind::Cpu))
        );
        let (_, limit) = failed("memory_limit", None).into_failure();
        assert_eq!(limit, Some(lifecycle::LimitKind::Memory));
    }
}
