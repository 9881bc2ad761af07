//! Every transport to a runner carries the same messages.

use crate::played::{Actor, parrot};
use client::execbox::{
    CancellationToken, ErrorCode, ExecboxFailure, ExecboxProgram, ExecuteResult, InProcess,
    OneShot, Options, ProvidedTool, RunnerCommand, TcpRunner, ToolProvider, UnixRunner, WebSocket,
    value,
};
use futures_util::{SinkExt as _, StreamExt as _};
use lifecycle::Json;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio_tungstenite::tungstenite::Message;

async fn run(executor: &OneShot) -> String {
    // Characters that some parsers treat as line breaks.
    let result = executor.execute(ExecboxProgram::new("a\u{2028}b\nc")).await;
    result.outcome.unwrap().unwrap().as_text().to_owned()
}

const SAID: &str = "\"a\u{2028}b\\nc\"";

#[tokio::test]
async fn within_this_process() {
    assert_eq!(run(&OneShot::new(InProcess::new(parrot))).await, SAID);
}

/// Copies bytes between a socket and a runner in memory.
async fn serve(mut socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let passing = async {
        drop(tokio::io::copy_bidirectional(&mut socket, &mut ours).await);
        drop(ours);
    };
    tokio::join!(passing, parrot(theirs));
}

#[tokio::test]
async fn over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let executor = OneShot::new(TcpRunner::new(listener.local_addr().unwrap().to_string()));
    let server = async { serve(listener.accept().await.unwrap().0).await };
    let (said, ()) = tokio::join!(run(&executor), server);
    assert_eq!(said, SAID);
}

#[tokio::test]
async fn over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runner");
    let listener = UnixListener::bind(&path).unwrap();
    let executor = OneShot::new(UnixRunner::new(&path));
    let server = async { serve(listener.accept().await.unwrap().0).await };
    let (said, ()) = tokio::join!(run(&executor), server);
    assert_eq!(said, SAID);
}

#[tokio::test]
async fn over_a_web_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/execbox?x=1", listener.local_addr().unwrap());
    let executor = OneShot::new(WebSocket::new(url).bearer("secret"));
    let server = async {
        let (socket, _) = listener.accept().await.unwrap();
        let mut frames = tokio_tungstenite::accept_async(socket).await.unwrap();
        let Some(Ok(Message::Text(text))) = frames.next().await else { panic!("a text is sent") };
        assert!(!text.ends_with('\n'));
        let execute: Value = serde_json::from_str(&text).unwrap();
        frames.send(Message::Ping("are you there".into())).await.unwrap();
        let done = json!({"type": "done", "id": execute["id"], "ok": true, "durationMs": 0, "logs": [], "result": execute["code"]});
        frames.send(Message::text(done.to_string())).await.unwrap();
        // Receives the pong, then the close frame.
        while frames.next().await.is_some_and(|frame| frame.is_ok()) {}
    };
    let (said, ()) = tokio::join!(run(&executor), server);
    assert_eq!(said, SAID);
}

#[tokio::test]
async fn a_web_socket_that_is_cut_is_a_runner_that_went_away() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let executor = OneShot::new(WebSocket::new(url));
    let server = async {
        let (socket, _) = listener.accept().await.unwrap();
        let mut frames = tokio_tungstenite::accept_async(socket).await.unwrap();
        frames.next().await.unwrap().unwrap();
    };
    let (result, ()) = tokio::join!(executor.execute(ExecboxProgram::new("1")), server);
    let message = "Transport closed unexpectedly".into();
    assert_eq!(result.outcome, Err(ExecboxFailure { code: ErrorCode::Internal, message }));
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for url in ["http://127.0.0.1/", "wss://127.0.0.1/", "not a url", "ws:///x"] {
        let result = OneShot::new(WebSocket::new(url)).execute(ExecboxProgram::new("1")).await;
        assert_eq!(result.outcome.unwrap_err().code, ErrorCode::Internal, "{url}");
    }
}

fn shell(script: &str) -> OneShot {
    OneShot::new(RunnerCommand::new("/bin/sh").arg("-c").arg(script).quiet())
}

/// A runner for one program, in the shell: it takes the id out of the message.
const ONE: &str = r#"read -r line; id=${line#*'"id":"'}; id=${id%%'"'*};
    printf '{"type":"done","id":"%s","ok":true,"durationMs":0,"logs":[],"result":7}\n' "$id"; read -r line"#;

#[tokio::test]
async fn over_the_standard_streams_of_a_child() {
    let result = shell(ONE).execute(ExecboxProgram::new("code")).await;
    assert_eq!(result.outcome.unwrap().unwrap().as_text(), "7");
}

fn broken(result: ExecuteResult) -> String {
    let failure = result.outcome.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Internal);
    failure.message
}

#[tokio::test]
async fn a_child_that_exits_is_named_with_its_status() {
    let result = shell("read -r line; exit 3").execute(ExecboxProgram::new("code")).await;
    assert_eq!(broken(result), "Child process exited unexpectedly with code 3");
    let result = shell("exit 3").execute(ExecboxProgram::new("code")).await;
    assert_eq!(broken(result), "Child process exited unexpectedly with code 3");
    let result = shell("read -r line; kill -9 $$").execute(ExecboxProgram::new("code")).await;
    assert_eq!(broken(result), "Child process exited unexpectedly with signal 9");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_internal_error() {
    let executor = OneShot::new(RunnerCommand::new("/nowhere/at/all"));
    let result = executor.execute(ExecboxProgram::new("code")).await;
    assert_eq!(result.outcome.unwrap_err().code, ErrorCode::Internal);
}

#[tokio::test]
async fn a_child_that_does_not_stop_is_killed() {
    // The child sends its pid and then ignores everything, even the end of its input.
    let script = r#"trap '' TERM HUP; read -r line
        printf '{"type":"tool_call","callId":"c","providerName":"tools","safeToolName":"t","input":%s}\n' $$
        while :; do read -r line; done"#;
    let pid = Arc::new(Mutex::new(String::new()));
    let (noted, cancel) = (pid.clone(), CancellationToken::new());
    let cancelled = cancel.clone();
    let tool = ProvidedTool::new("t", move |input: Json, _| {
        *noted.lock().unwrap() = input.as_text().to_owned();
        cancelled.cancel();
        async { value(&true) }
    });
    let tools = ToolProvider::new("tools").tool(tool).resolve().unwrap();
    let options = Options { timeout: Some(Duration::from_secs(60)), ..Options::default() };
    let execution = ExecboxProgram::new("code").provider(tools).options(options).cancel(cancel);
    let result = shell(script).execute(execution).await;
    assert_eq!(result.outcome.unwrap_err().code, ErrorCode::Timeout);
    assert!(!std::path::Path::new("/proc").join(&*pid.lock().unwrap()).exists());
}

#[tokio::test]
async fn a_runner_that_reads_slowly_hears_everything() {
    let tool = ProvidedTool::new("t", |input, _| async { Ok(Some(input)) });
    let tools = ToolProvider::new("tools").tool(tool).resolve().unwrap();
    let runner = InProcess::new(|stream| async {
        let mut actor = Actor::new(stream);
        let id = actor.hear_execute().await;
        // Exceeds the capacity of the channel and the queue: both sides must continue to read.
        for n in 0..40 {
            actor.call(&n.to_string(), "t", json!("x".repeat(1_000))).await;
        }
        for n in 0..40 {
            assert_eq!(actor.hear().await["callId"], n.to_string());
        }
        actor.done(&id, json!("all")).await;
    });
    let result = OneShot::new(runner).execute(ExecboxProgram::new("code").provider(tools)).await;
    assert_eq!(result.outcome.unwrap().unwrap().as_text(), "\"all\"");
}
