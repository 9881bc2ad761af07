//! One execution over one channel: the messages, their order, and the outcomes.

use crate::played::{Actor, stage};
use client::execbox::{
    CancellationToken, ErrorCode, ExecboxFailure, ExecboxProgram, ExecuteResult, HostSession,
    Options, ProvidedTool, ToolContext, ToolProvider, value,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn failed(code: ErrorCode, message: &str, duration_ms: u64) -> ExecuteResult {
    let outcome = Err(ExecboxFailure { code, message: message.to_owned() });
    ExecuteResult { outcome, logs: vec![], emitted: vec![], duration_ms }
}

fn timed_out(duration_ms: u64) -> ExecuteResult {
    failed(ErrorCode::Timeout, "Execution timed out", duration_ms)
}

fn short() -> Options {
    Options { timeout: Some(Duration::from_millis(50)), ..Options::default() }
}

/// A long timeout for large data on a busy machine.
fn patient() -> Options {
    Options { timeout: Some(Duration::from_secs(60)), ..Options::default() }
}

fn shown(result: &ExecuteResult) -> Value {
    serde_json::from_str(result.to_json().as_text()).unwrap()
}

/// Records that the tool has begun and that it was cancelled.
#[derive(Default)]
struct Watch {
    begun: AtomicUsize,
    stopped: AtomicUsize,
}

fn hanging_tool(watch: &Arc<Watch>) -> ExecboxProgram {
    let watch = watch.clone();
    let hang = ProvidedTool::new("hang", move |_, context: ToolContext| {
        let watch = watch.clone();
        async move {
            watch.begun.fetch_add(1, Ordering::SeqCst);
            context.signal.cancelled().await;
            watch.stopped.fetch_add(1, Ordering::SeqCst);
            Err(client::execbox::ExecboxToolError::new("aborted"))
        }
    });
    ExecboxProgram::new("code").provider(ToolProvider::new("tools").tool(hang).resolve().unwrap())
}

#[tokio::test]
async fn a_program_calls_a_tool_and_ends() {
    let (mut channel, mut actor, endings) = stage();
    let echo = ProvidedTool::new("my-echo", |input, _| async { Ok(Some(input)) })
        .description("Says it again");
    let tools = ToolProvider::new("tools").tool(echo).resolve().unwrap();
    let execution = ExecboxProgram::new("await tools.my_echo(1)").provider(tools);
    let runner = async {
        let types = "declare namespace tools {\n  /**\n   * Says it again\n   */\n  function my_echo(input: unknown): Promise<unknown>;\n}";
        let expected = json!({
            "type": "execute", "id": "e1", "code": "await tools.my_echo(1)",
            "options": {"timeoutMs": 5_000, "memoryLimitBytes": 67_108_864, "maxLogLines": 100, "maxLogChars": 64_000},
            "providers": [{
                "name": "tools", "types": types,
                "tools": {"my_echo": {"safeName": "my_echo", "originalName": "my-echo", "description": "Says it again"}},
            }],
        });
        assert_eq!(actor.hear().await, expected);
        actor.say(&json!({"type": "started", "id": "e1"})).await;
        actor.call("c1", "my_echo", json!([1])).await;
        let expected = json!({"type": "tool_result", "callId": "c1", "ok": true, "result": [1]});
        assert_eq!(actor.hear().await, expected);
        actor.say(&json!({"type": "done", "id": "e1", "ok": true, "durationMs": 4, "logs": ["a"], "result": 2})).await;
    };
    let session = HostSession::new(&mut *channel).id("e1");
    let (result, ()) = tokio::join!(session.run(&execution), runner);
    let expected = json!({"ok": true, "result": 2, "logs": ["a"], "durationMs": 4});
    assert_eq!((shown(&result), endings.terminated()), (expected, 0));
}

#[tokio::test]
async fn calls_run_side_by_side_and_are_answered_as_they_settle() {
    let (mut channel, mut actor, _) = stage();
    let gate = CancellationToken::new();
    let opened = gate.clone();
    let slow = ProvidedTool::new("slow", move |_, _| {
        let opened = opened.clone();
        async move {
            opened.cancelled().await;
            value("slow")
        }
    });
    let quick = ProvidedTool::new("quick", |_, _| async { value("quick") });
    let tools = ToolProvider::new("tools").tool(slow).tool(quick).resolve().unwrap();
    let execution = ExecboxProgram::new("code").provider(tools);
    let runner = async {
        let id = actor.hear_execute().await;
        actor.call("1", "slow", Value::Null).await;
        actor.call("2", "quick", Value::Null).await;
        assert_eq!(actor.hear().await["callId"], "2");
        gate.cancel();
        assert_eq!(actor.hear().await["callId"], "1");
        actor.done(&id, Value::Null).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert!(result.ok());
}

#[tokio::test(start_paused = true)]
async fn a_silent_runner_is_told_to_stop_and_ended_once() {
    let (mut channel, mut actor, endings) = stage();
    let execution = ExecboxProgram::new("code").options(short());
    let runner = async {
        let id = actor.hear_execute().await;
        assert_eq!(actor.hear().await, json!({"type": "cancel", "id": id}));
        assert_eq!(actor.hear_if_any().await, None);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!((result, endings.terminated()), (timed_out(50 + 100 + 25), 1));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_closes_after_a_cancel_is_still_a_timeout() {
    let (mut channel, mut actor, endings) = stage();
    let execution = ExecboxProgram::new("code").options(short());
    let runner = async {
        actor.hear_execute().await;
        assert_eq!(actor.hear().await["type"], "cancel");
        drop(actor);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!((result, endings.terminated()), (timed_out(150), 0));
}

#[tokio::test(start_paused = true)]
async fn a_callers_cancel_reaches_tools_and_runner() {
    let (mut channel, mut actor, endings) = stage();
    let watch = Arc::new(Watch::default());
    let cancel = CancellationToken::new();
    let execution = hanging_tool(&watch).cancel(cancel.clone());
    let runner = async {
        let id = actor.hear_execute().await;
        actor.call("c", "hang", Value::Null).await;
        while watch.begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        assert_eq!(actor.hear().await, json!({"type": "cancel", "id": id}));
        let error = json!({"code": "tool_error", "message": "aborted"});
        let expected = json!({"type": "tool_result", "callId": "c", "ok": false, "error": error});
        assert_eq!(actor.hear().await, expected);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!(result, timed_out(25));
    assert_eq!((watch.stopped.load(Ordering::SeqCst), endings.terminated()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_result_in_the_grace_window_is_taken_as_it_is() {
    let (mut channel, mut actor, endings) = stage();
    let execution = ExecboxProgram::new("code").options(short());
    let runner = async {
        let id = actor.hear_execute().await;
        assert_eq!(actor.hear().await["type"], "cancel");
        tokio::time::sleep(Duration::from_millis(20)).await;
        actor.done(&id, json!("late")).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    let expected = json!({"ok": true, "result": "late", "logs": [], "durationMs": 3});
    assert_eq!((shown(&result), endings.terminated()), (expected, 0));
}

#[tokio::test(start_paused = true)]
async fn no_tool_starts_after_a_cancel() {
    let (mut channel, mut actor, _) = stage();
    let watch = Arc::new(Watch::default());
    let execution = hanging_tool(&watch).options(short());
    let runner = async {
        actor.hear_execute().await;
        assert_eq!(actor.hear().await["type"], "cancel");
        actor.call("late", "hang", Value::Null).await;
        let error = json!({"code": "timeout", "message": "Execution timed out"});
        let expected =
            json!({"type": "tool_result", "callId": "late", "ok": false, "error": error});
        assert_eq!(actor.hear().await, expected);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!((result.ok(), watch.begun.load(Ordering::SeqCst)), (false, 0));
}

#[tokio::test]
async fn a_runner_that_goes_away_is_an_internal_error() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code");
    let runner = async {
        actor.hear_execute().await;
        drop(actor);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    let message = "Transport closed unexpectedly";
    assert_eq!(result, failed(ErrorCode::Internal, message, result.duration_ms));
}

#[tokio::test]
async fn a_message_without_end_is_an_internal_error() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code").options(patient());
    let runner = async {
        actor.hear_execute().await;
        actor.say_line(&" ".repeat(65 << 20)).await;
    };
    tokio::select! {
        result = HostSession::new(&mut *channel).run(&execution) => {
            let message = "a line is longer than 67108864 bytes";
            assert_eq!(result, failed(ErrorCode::Internal, message, result.duration_ms));
        }
        () = runner => panic!("the host does not read that much"),
    }
}

#[tokio::test]
async fn what_a_runner_said_before_it_went_is_heard() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code");
    let runner = async {
        let id = actor.hear_execute().await;
        actor.call("1", "nobody", Value::Null).await;
        actor.done(&id, json!(5)).await;
        drop(actor);
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!(shown(&result)["result"], 5);
}

#[tokio::test]
async fn malformed_messages_and_those_of_others_mean_nothing() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code");
    let runner = async {
        let id = actor.hear_execute().await;
        for line in
            ["", "{", "[]", "null", r#"{"type":"later"}"#, "\u{2028}", r#"{"type":"tool_call"}"#]
        {
            actor.say_line(line).await;
        }
        actor.say(&json!({"type": "done", "id": id, "ok": true, "logs": []})).await;
        actor
            .say(&json!({"type": "done", "id": id, "ok": true, "durationMs": "3", "logs": []}))
            .await;
        actor
            .say(&json!({"type": "done", "id": id, "ok": true, "durationMs": 3, "logs": [1]}))
            .await;
        actor
            .say(&json!({"type": "done", "id": id, "ok": false, "durationMs": 3, "logs": []}))
            .await;
        actor.done("another", json!("another")).await;
        actor.say(&json!({"type": "started", "id": "another"})).await;
        actor.say(&json!({"type": "idle", "inputs": 1})).await;
        actor.done(&id, json!("mine")).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!(shown(&result)["result"], "mine");
}

#[tokio::test]
async fn a_result_that_is_absent_is_undefined_and_a_stray_error_is_nothing() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code");
    let runner = async {
        let id = actor.hear_execute().await;
        let error = json!({"code": "a", "message": "b"});
        actor.say(&json!({"type": "done", "id": id, "ok": true, "durationMs": 1.5, "logs": [], "error": error})).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!(
        result,
        ExecuteResult { outcome: Ok(None), logs: vec![], emitted: vec![], duration_ms: 1 }
    );
}

#[tokio::test]
async fn a_failure_keeps_its_code_and_its_logs() {
    let (mut channel, mut actor, _) = stage();
    let execution = ExecboxProgram::new("code");
    let runner = async {
        let id = actor.hear_execute().await;
        let error = json!({"code": "of_its_own", "message": "m"});
        actor.say(&json!({"type": "done", "id": id, "ok": false, "durationMs": 1, "logs": ["l"], "error": error})).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    let outcome =
        Err(ExecboxFailure { code: ErrorCode::Other("of_its_own".into()), message: "m".into() });
    assert_eq!(
        result,
        ExecuteResult { outcome, logs: vec!["l".into()], emitted: vec![], duration_ms: 1 }
    );
}

#[tokio::test]
async fn unknown_tools_are_named_and_a_call_id_may_come_twice() {
    let (mut channel, mut actor, _) = stage();
    let echo = ProvidedTool::new("echo", |input, _| async { Ok(Some(input)) });
    let execution = ExecboxProgram::new("code")
        .provider(ToolProvider::new("tools").tool(echo).resolve().unwrap());
    let runner = async {
        let id = actor.hear_execute().await;
        for (provider, tool) in [("tools", "nope"), ("nobody", "echo"), ("tools", "__proto__")] {
            let call = json!({"type": "tool_call", "callId": "c", "providerName": provider, "safeToolName": tool, "input": 1});
            actor.say(&call).await;
            let error = json!({"code": "internal_error", "message": format!("Unknown tool {provider}.{tool}")});
            let expected =
                json!({"type": "tool_result", "callId": "c", "ok": false, "error": error});
            assert_eq!(actor.hear().await, expected);
        }
        for _ in 0..2 {
            actor.call("c", "echo", json!(1)).await;
            assert_eq!(actor.hear().await["result"], 1);
        }
        actor.done(&id, Value::Null).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert!(result.ok());
}

#[tokio::test]
async fn an_argument_that_a_runner_leaves_out_is_null() {
    let (mut channel, mut actor, _) = stage();
    let echo = ProvidedTool::new("echo", |input, _| async { Ok(Some(input)) });
    let execution = ExecboxProgram::new("code")
        .provider(ToolProvider::new("tools").tool(echo).resolve().unwrap());
    let runner = async {
        let id = actor.hear_execute().await;
        let call = json!({"type": "tool_call", "callId": "c", "providerName": "tools", "safeToolName": "echo"});
        actor.say(&call).await;
        assert_eq!(actor.hear().await["result"], Value::Null);
        actor.done(&id, Value::Null).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert!(result.ok());
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_maximum_are_refused_and_the_run_goes_on() {
    let (mut channel, mut actor, _) = stage();
    let watch = Arc::new(Watch::default());
    let execution = hanging_tool(&watch);
    let runner = async {
        let id = actor.hear_execute().await;
        for _ in 0..4_100 {
            actor.call("c", "hang", Value::Null).await;
        }
        for _ in 0..4 {
            assert_eq!(actor.hear().await["error"]["code"], "internal_error");
        }
        actor.done(&id, Value::Null).await;
    };
    let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    assert_eq!((result.ok(), watch.begun.load(Ordering::SeqCst)), (true, 4_096));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_floods_without_reading_is_ended_on_time() {
    let (mut channel, mut actor, endings) = stage();
    let execution = ExecboxProgram::new("code").options(short());
    let flood = async {
        actor.hear_execute().await;
        loop {
            actor.call("c", "nobody", json!("x".repeat(1_000))).await;
        }
    };
    tokio::select! {
        result = HostSession::new(&mut *channel).run(&execution) => {
            assert_eq!((result.outcome, endings.terminated()), (timed_out(0).outcome, 1));
        }
        () = flood => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_session_that_was_cancelled_before_sends_no_program() {
    let (mut channel, mut actor, endings) = stage();
    let execution = ExecboxProgram::new("code");
    execution.cancel.cancel();
    let runner = async { actor.hear().await };
    let (result, said) =
        tokio::join!(HostSession::new(&mut *channel).id("e").run(&execution), runner);
    assert_eq!(said, json!({"type": "cancel", "id": "e"}));
    assert_eq!((result, endings.terminated()), (timed_out(25), 1));
}

#[tokio::test]
async fn a_program_that_is_too_long_to_be_sent_is_refused_here() {
    let (mut channel, actor, _) = stage();
    let execution = ExecboxProgram::new("x".repeat(64 << 20));
    let result = HostSession::new(&mut *channel).run(&execution).await;
    assert_eq!(result.outcome.unwrap_err().code, ErrorCode::Internal);
    drop::<Actor>(actor);
}

#[tokio::test(start_paused = true)]
async fn a_channel_with_half_a_message_in_it_is_not_used_again() {
    for (n_bytes, n_terminated) in [(100, 0), (1 << 20, 1)] {
        let (mut channel, mut actor, endings) = stage();
        let large =
            ProvidedTool::new("large", move |_, _| async move { value(&"x".repeat(n_bytes)) });
        let execution = ExecboxProgram::new("code")
            .provider(ToolProvider::new("tools").tool(large).resolve().unwrap());
        let runner = async {
            let id = actor.hear_execute().await;
            actor.call("c", "large", Value::Null).await;
            // The runner requests a large value, ends, and reads none of it.
            tokio::time::sleep(Duration::from_millis(1)).await;
            actor.done(&id, json!(1)).await;
        };
        let (result, ()) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
        assert_eq!((result.ok(), endings.terminated()), (true, n_terminated));
    }
}
