//! The REPL with its clients: the conformance harness, access, evaluation, watches, limits.

use crate::repl_client::{Spoken, conformance, repl_url, spoken, token};
use crate::server_fixture::Served;
use client::repl::ReplClient;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

// ---- Conformance ----

#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
fn python(words: &[&str]) -> std::process::Output {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(python.exists(), "`cargo xtask packages` makes the Python environment");
    Command::new(python).args(words).output().unwrap()
}

/// Every check of the harness must pass, with nothing skipped.
fn conforms(query: &str, profile: &str) {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(&folder.path().join("data"), &["--no-auth"]);
    let report = folder.path().join("report.json");
    let url = format!("{}{query}", repl_url(&server));
    let ran = python(&[
        conformance("harness.py").to_str().unwrap(),
        &url,
        "--profile",
        profile,
        "--hostile",
        "--args",
        "demo.echo={\"message\":\"hi\"}",
        "--long-job",
        "demo.sleep={\"ms\":2000}",
        "--json",
        report.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect(&said)).unwrap();
    let results = report["results"].as_array().unwrap();
    assert!(results.len() >= 95, "{said}");
    let wrong: Vec<&Value> = results.iter().filter(|result| result["status"] != "PASS").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(report["violations"], json!([]));
}

#[test]
fn every_check_of_the_harness_passes() {
    conforms("", "seed");
}

#[test]
fn every_check_passes_for_clients_of_later_revisions() {
    conforms("?values=native", "v4");
}

// ---- Access ----

#[tokio::test]
async fn a_page_of_another_origin_and_a_client_without_a_token_are_refused_at_the_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let status = async |name: &'static str, value: String| {
        let mut request = repl_url(&server).into_client_request().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        match tokio_tungstenite::connect_async(request).await {
            Err(SocketError::Http(response)) => response.status().as_u16(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status("Origin", "http://evil.example".into()).await, 403);
    assert_eq!(status("X-Nothing", "x".into()).await, 401);
    assert_eq!(status("Authorization", "Bearer alk_wrong".into()).await, 401);
    let with_token = format!("{}?token={}", repl_url(&server), token(&server));
    let client = ReplClient::connect(&with_token, None).await.unwrap();
    assert_eq!(client.eval("1 + 1", None).await.unwrap().value.unwrap().as_text(), "2");
}

#[tokio::test]
async fn a_session_is_held_by_one_client_and_others_are_not_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let (url, token) = (repl_url(&server), token(&server));
    let mut usual = Spoken::connect(&url, &token).await;
    let mut named = Spoken::connect(&format!("{url}?session=a%20b"), &token).await;
    usual.value("let who = 'usual'").await;
    named.value("let who = 'named'").await;
    let mut next = Spoken::connect(&url, &token).await;
    assert_eq!(usual.next().await["reason"], "new_connection");
    assert!(usual.receive().await.is_none());
    assert_eq!(next.value("who").await, "usual");
    assert_eq!(named.value("who").await, "named");
}

// ---- Evaluation ----

#[tokio::test]
async fn definitions_stay_and_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("const a = 1; let b = 2; class C { x = a + b }; function f() { return a * 10 }")
        .await;
    assert_eq!(repl.value("[a, b, new C().x, f()]").await, json!([1, 2, 3, 10]));
    repl.value("const a: number = 5; class C { x = 'again' }").await;
    assert_eq!(repl.value("[a, new C().x, f()]").await, json!([5, "again", 50]));
    repl.value("let b").await;
    assert_eq!(repl.eval("b").await["hasValue"], false);
    assert_eq!(repl.value("enum Color { Red = 7 }; await Promise.resolve(Color.Red)").await, 7);
    let failed = repl.eval("console.log('before');\nnull.x").await;
    assert_eq!(failed["error"]["details"]["line"], 2);
    assert_eq!(failed["error"]["details"]["stdout"], "before\n");
    // A promise that was not awaited continues, and the next eval can wait for it.
    repl.value("let later = tools.demo.echo({ message: 'late' })").await;
    assert_eq!(repl.value("(await later).message").await, "late");
}

#[tokio::test]
async fn a_text_that_only_the_engine_cannot_compile_is_no_program_either() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    for code in ["@dec class D {}", "using a = null", "'use strict'; 010"] {
        let error = repl.eval(code).await["error"].clone();
        assert_eq!(
            (&error["kind"], &error["code"]),
            (&json!("validation_failed"), &json!("compileError")),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().starts_with("(1,"), "{error}");
    }
    // Code that runs and throws the same error is a different case.
    let error = repl.eval("throw new SyntaxError('mine')").await["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("runtimeException"), &json!("SyntaxError: mine"))
    );
    assert_eq!(repl.eval("JSON.parse('(')").await["error"]["code"], "runtimeException");
}

#[tokio::test]
async fn code_that_does_not_yield_is_stopped_and_says_that_its_definitions_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("let kept = 1").await;
    let stuck =
        json!({"type": "eval", "code": "[].sort.call({length: 2**53 - 1})", "timeoutMs": 200});
    let failed = repl.ask(stuck).await;
    assert_eq!(failed["error"]["code"], "evalTimeout");
    assert_eq!(failed["error"]["details"]["stateLost"], true);
    assert_eq!(repl.of_type("assembly_reload").await["assembly"], "evaluator");
    assert_eq!(repl.eval("kept").await["type"], "eval_error");
    assert_eq!(repl.value("1 + 1").await, 2);
}

#[tokio::test]
async fn polls_and_lists_are_answered_while_an_eval_computes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let job =
        repl.ask(json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 60_000}}));
    let job = job.await["jobId"].as_str().unwrap().to_owned();
    let busy =
        repl.send(json!({"type": "eval", "code": "while (true) {}", "timeoutMs": 60_000})).await;
    for _ in 0..200 {
        let status = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        assert_eq!(status["state"], "running");
    }
    repl.ask(json!({"type": "commands_list"})).await;
    repl.ask(json!({"type": "journal_query"})).await;
    let names = repl.ask(json!({"type": "complete", "code": "tools.demo.ec"})).await;
    assert_eq!(names["completions"], json!(["echo"]));
    // Completion of names that only the evaluator knows waits for the evaluator.
    let waiting = repl.send(json!({"type": "complete", "code": "JSON.pa"})).await;
    repl.send(json!({"type": "cancel", "targetId": busy})).await;
    assert_eq!(repl.answer(&busy).await["error"]["code"], "evalCancelled");
    assert_eq!(repl.answer(&waiting).await["completions"], json!(["parse"]));
    let ended = repl.ask(json!({"type": "job_cancel", "jobId": job})).await;
    assert_eq!(ended["accepted"], true);
}

#[tokio::test]
async fn an_eval_that_must_ask_waits_without_blocking_and_is_answered_from_another_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let code = "await tools.demo.ask({ text: 'may I?' })";
    let asking = repl.send(json!({"type": "eval", "code": code, "timeoutMs": 60_000})).await;
    let http = server.client("admin");
    let question = loop {
        let open = http.get("/api/questions").json();
        if let Some(question) = open["questions"].get(0) {
            break question.clone();
        }
        // Meanwhile the connection answers other requests.
        repl.ask(json!({"type": "complete", "code": "JSON."})).await;
    };
    let id = question["id"].as_str().or(question["executionId"].as_str()).unwrap();
    assert_eq!(http.resume(id, "accept").status, 200);
    let told = repl.answer(&asking).await;
    assert_eq!(told["value"], r#"{"approved":true,"text":"may I?"}"#);
}

#[tokio::test]
async fn a_cursor_counts_as_javascript_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    for (cursor, expected) in
        [(13, json!(["parse"])), (12, json!(["parse", "propertyIsEnumerable"]))]
    {
        let code = "'\u{1F600}'; JSON.pa + tools.demo.add({ ";
        let asked = json!({"type": "complete", "code": code, "cursor": cursor});
        assert_eq!(repl.ask(asked).await["completions"], expected);
    }
    let code = "'\u{1F600}'; tools.demo.add({  }) ";
    let asked = json!({"type": "complete", "code": code, "cursor": 23});
    assert_eq!(repl.ask(asked).await["completions"], json!(["a", "b"]));
}

// ---- Watches ----

/// The last frame of a watch.
async fn last(repl: &mut Spoken, id: &str) -> Value {
    loop {
        let frame = repl.answer(id).await;
        if frame["final"] == true {
            return frame;
        }
    }
}

#[tokio::test]
async fn a_watch_says_that_it_is_over_whatever_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let watch = |code: &str, limit: u64| json!({"type": "subscribe", "code": code, "intervalFrames": 1, "limit": limit});
    let id = repl.send(watch("7", 2)).await;
    let frame = last(&mut repl, &id).await;
    assert_eq!((&frame["seq"], &frame["value"]), (&json!(1), &json!("7")));
    let mut slow = watch("while (true) {}", 0);
    slow["timeoutMs"] = json!(50);
    for (watch, seq, code) in [
        (watch("throw new Error('no')", 0), 2, "runtimeException"),
        (watch("(", 0), 0, "compileError"),
        (slow, 0, "evalTimeout"),
    ] {
        let id = repl.send(watch).await;
        let frame = last(&mut repl, &id).await;
        assert_eq!((&frame["seq"], &frame["error"]["code"]), (&json!(seq), &json!(code)));
    }
    for (ending, code) in [("cancel", "subscriptionCancelled"), ("reset", "evalCancelled")] {
        let id = repl.send(watch("1", 0)).await;
        repl.answer(&id).await;
        repl.send(json!({"type": ending, "targetId": id})).await;
        assert_eq!(last(&mut repl, &id).await["error"]["code"], code);
    }
    let id = repl.send(watch("1", 0)).await;
    repl.answer(&id).await;
    let mut next = spoken(&server).await;
    assert_eq!(last(&mut repl, &id).await["error"]["code"], "subscriptionCancelled");
    assert_eq!(repl.of_type("session_evicted").await["reason"], "new_connection");
    assert!(repl.receive().await.is_none());
    // The next client receives nothing of it.
    assert_eq!(next.value("1 + 1").await, 2);
}

// ---- Limits ----

#[tokio::test]
async fn a_frame_that_is_too_long_to_be_read_is_answered_and_closes_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &["--no-auth"]);
    let (socket, _) = tokio_tungstenite::connect_async(repl_url(&server)).await.unwrap();
    let (mut out, mut heard) = socket.split();
    // The server does not read the message to its end.
    let sending = async {
        let _ = out.send(Message::Text("x".repeat(17 << 20).into())).await;
        std::future::pending().await
    };
    let hearing = async {
        let mut last = Value::Null;
        loop {
            match heard.next().await.unwrap().unwrap() {
                Message::Text(text) => last = serde_json::from_str(&text).unwrap(),
                Message::Close(frame) => {
                    break (last["error"]["code"].clone(), frame.unwrap().code);
                }
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    };
    let told = tokio::select! {
        told = hearing => told,
        () = sending => unreachable!("it never ends"),
    };
    assert_eq!(told, (json!("messageTooLarge"), CloseCode::Size));
}

#[tokio::test]
async fn arguments_that_do_not_fit_a_tool_are_listed_as_errors() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let args = json!({"a": "x", "b": 1});
    let call = json!({"type": "command_call", "name": "demo.add", "args": args});
    let details = repl.ask(call).await["error"]["details"].clone();
    let message = "value is not of type \"number\"";
    let issues = json!([{"path": "/a", "message": message}]);
    let errors = json!([format!("at /a: {message}")]);
    assert_eq!(details, json!({"issues": issues, "errors": errors}));
}

#[tokio::test]
async fn every_limit_of_the_handshake_is_enforced() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let limits = repl.handshake["limits"].clone();
    let limit = |name: &str| limits[name].as_u64().unwrap() as usize;
    let mut enforced = vec!["defaultEvalTimeoutMs"];

    let too_long = json!({"type": "eval", "code": "1".repeat(limit("maxMessageBytes"))});
    repl.send(too_long).await;
    assert_eq!(repl.of_type("error").await["error"]["code"], "messageTooLarge");
    enforced.push("maxMessageBytes");

    let shown = repl.eval(&format!("'x'.repeat({})", limit("maxResultLength"))).await;
    assert_eq!(shown["value"].as_str().unwrap().len(), limit("maxResultLength"));
    enforced.push("maxResultLength");

    let code = format!("Array({}).fill(0)", limit("maxEnumerableElements") + 1);
    let listed = repl.value(&code).await;
    assert_eq!(listed.as_array().unwrap().len(), limit("maxEnumerableElements"));
    enforced.push("maxEnumerableElements");

    let nap = json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 600_000}});
    let mut jobs = vec![];
    for _ in 0..limit("maxJobConcurrency") {
        jobs.push(repl.ask(nap.clone()).await["jobId"].clone());
    }
    let busy = repl.ask(nap.clone()).await["error"].clone();
    let told = (&busy["kind"], &busy["code"], &busy["retryable"]);
    assert_eq!(told, (&json!("busy"), &json!("jobConcurrencyLimit"), &json!(true)));
    for job in jobs {
        assert_eq!(repl.ask(json!({"type": "job_cancel", "jobId": job})).await["accepted"], true);
    }
    enforced.push("maxJobConcurrency");

    // The eval waits for an event that never comes. Evals without a time limit get the default one.
    let patient =
        json!({"type": "eval", "code": "await new Promise((done) => setTimeout(done, 1e9))"});
    let patient = repl.send(patient).await;
    let mut waiting = vec![];
    for _ in 0..limit("maxQueuedCommands") {
        waiting.push(repl.send(json!({"type": "eval", "code": "1"})).await);
    }
    let busy = repl.eval("2").await;
    assert_eq!(busy["error"]["code"], "commandQueueFull");
    enforced.push("maxQueuedCommands");
    let late = repl.answer(&patient).await["error"].clone();
    assert_eq!(late["code"], "evalTimeout");
    let took = late["details"]["durationMs"].as_u64().unwrap() as usize;
    assert!(took >= limit("defaultEvalTimeoutMs"), "{late}");
    for id in waiting {
        assert_eq!(repl.answer(&id).await["value"], "1");
    }

    let mut named: Vec<&str> = limits.as_object().unwrap().keys().map(String::as_str).collect();
    named.sort_unstable();
    enforced.sort_unstable();
    assert_eq!(enforced, named);
}

#[tokio::test]
async fn a_value_longer_than_any_message_is_cut_and_definitions_stay() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("let kept = 7; const shout = () => 'x'.repeat(17 << 20)").await;
    let told = repl.eval("shout()").await;
    assert_eq!(told["type"], "eval_result", "{told}");
    let value = told["value"].as_str().unwrap();
    assert!(value.len() <= 102_400 && value.ends_with(" [truncated at 102400 bytes]"));
    // Output longer than a message fails its command only.
    repl.value("Repl.command({ name: 'loud' }, () => '\\n'.repeat(9 << 20))").await;
    let call = json!({"type": "command_call", "name": "loud", "args": {}});
    assert_eq!(repl.ask(call).await["status"], "failed");
    assert_eq!(repl.value("kept").await, 7);
}

#[tokio::test]
async fn a_session_whose_memory_stays_full_is_replaced_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let fill = "globalThis.hold = []; for (let n = 0; ; n++) hold.push({ n, next: hold[n - 1], list: [n, n, n] })";
    let error = repl.eval(fill).await["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("bytes of memory"), "{error}");
    assert_eq!(error["details"]["stateLost"], true, "{error}");
    let reload = repl.of_type("assembly_reload").await;
    assert!(reload["message"].as_str().unwrap().contains("memory was full"), "{reload}");
    assert_eq!(repl.value("[typeof hold, 1 + 1]").await, json!(["undefined", 2]));
    let names = repl.ask(json!({"type": "complete", "code": "JSON.", "cursor": 5})).await;
    assert!(names["completions"].as_array().unwrap().contains(&json!("stringify")), "{names}");
    // An eval that fails for lack of memory, and retains none, does not end the session.
    repl.value("let kept = 7").await;
    let error = repl.eval("new Array(1e7).fill(0).map((_, n) => ({ n }))").await["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("memory"), "{error}");
    assert_eq!(repl.value("kept").await, 7);
}

/// A client that does not validate frames against the schemas.
async fn unchecked(
    server: &Served,
) -> tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>> {
    let mut request = repl_url(server).into_client_request().unwrap();
    let bearer = format!("Bearer {}", token(server)).parse().unwrap();
    request.headers_mut().insert("Authorization", bearer);
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

#[tokio::test]
async fn completions_say_when_there_are_more() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut socket = unchecked(&server).await;
    let mut ask = async |id: &str, code: &str, kind: &str| {
        let frame = json!({"type": kind, "id": id, "code": code});
        socket.send(Message::Text(frame.to_string().into())).await.unwrap();
        loop {
            let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["id"] == id {
                return frame;
            }
        }
    };
    ask("a", "for (let n = 0; n < 501; n++) globalThis['zz' + n] = n", "eval").await;
    let many = ask("b", "zz", "complete").await;
    let n = many["completions"].as_array().unwrap().len();
    assert_eq!((n, &many["truncated"]), (500, &json!(true)));
    ask("c", "delete globalThis.zz0", "eval").await;
    let all = ask("d", "zz", "complete").await;
    let n = all["completions"].as_array().unwrap().len();
    assert_eq!((n, all.get("truncated")), (500, None));
}

#[tokio::test]
async fn a_journal_of_an_unknown_kind_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let told = repl.ask(json!({"type": "journal_query", "kind": "nope"})).await;
    let error = (&told["type"], &told["error"]["kind"], &told["error"]["code"]);
    assert_eq!(error, (&json!("error"), &json!("invalid_request"), &json!("invalidRequest")));
    assert_eq!(told["error"]["message"], "kind must be \"eval\" or \"command\".");
}

#[tokio::test]
async fn refusals_name_the_limit_that_was_broken() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let url = format!("{}?session={}", repl_url(&server), "n".repeat(129));
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {}", token(&server)).parse().unwrap();
    request.headers_mut().insert("Authorization", bearer);
    let Err(SocketError::Http(refused)) = tokio_tungstenite::connect_async(request).await else {
        panic!("a name of 129 bytes was taken");
    };
    let body = String::from_utf8(refused.into_body().unwrap()).unwrap();
    assert!(body.contains("at most 128 bytes"), "{body}");
    let mut repl = spoken(&server).await;
    let watch = json!({"type": "subscribe", "code": "1", "intervalFrames": 1_000_000});
    for _ in 0..8 {
        repl.send(watch.clone()).await;
    }
    let told = repl.ask(watch).await;
    assert!(told["error"]["message"].as_str().unwrap().contains("at most 8 watches"), "{told}");
    repl.eval("await tools.demo.echo({ message: 'ready' })").await;
    // These requests wait for the store, which receives all of them before it answers the first.
    let mut asked = vec![];
    for _ in 0..400 {
        asked.push(repl.send(json!({"type": "job_status", "jobId": "none"})).await);
    }
    let mut codes = std::collections::BTreeMap::new();
    for id in asked {
        let told = repl.answer(&id).await;
        let message = told["error"]["message"].as_str().unwrap().to_owned();
        codes.insert(told["error"]["code"].as_str().unwrap().to_owned(), message);
    }
    if let Some(message) = codes.get("commandQueueFull") {
        assert!(message.contains("256"), "{message}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_told_why_before_it_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut socket = unchecked(&server).await;
    // Each is answered with the whole list of commands, and the client reads none of the answers.
    let frame = json!({"type": "commands_list", "id": "x".repeat(1_000)}).to_string();
    // Until the server stops reading: while it reads, the answers accumulate for their reader.
    for _ in 0..200_000 {
        let feeding = socket.feed(Message::Text(frame.as_str().into()));
        let fed = tokio::time::timeout(std::time::Duration::from_secs(10), feeding).await;
        if !matches!(fed, Ok(Ok(()))) {
            break;
        }
    }
    let (mut last, mut closed) = (Value::Null, None);
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) => last = serde_json::from_str(&text).unwrap(),
            Message::Close(frame) => closed = frame,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("readerTooSlow")));
    assert!(last["error"]["message"].as_str().unwrap().starts_with("More than "), "{last}");
    assert_eq!(closed.unwrap().code, CloseCode::Policy);
    let mut next = spoken(&server).await;
    assert_eq!(next.value("1 + 1").await, 2, "its session goes on");
}
