//! Faults that were observed in other exec-servers, one test each: none occurs here. `crates/processes/tests` has more,
//! where processes are controlled without a protocol.

use crate::exec_server_fixture::{self, AIRLOCK, Raw, Served, connected, heard};
use client::exec_server::{
    ByteChunk, ExecServerClientConnectOptions, ExecServerEvent, ExecServerLaunchCommand,
    OutputMode, ProcessSignal, ReadParams, TerminalSize, TerminateParams, exec_params,
    spawn_local_exec_server,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Nothing takes this long unless it waits for ever.
const PATIENCE: Duration = Duration::from_secs(120);

fn read_after(process_id: &str, after: u64, wait_ms: u64) -> ReadParams {
    ReadParams {
        process_id: process_id.into(),
        after_seq: Some(after),
        max_bytes: None,
        wait_ms: Some(wait_ms),
    }
}

#[test]
fn the_answer_comes_first_then_output_in_sequence_then_the_exit_then_the_end() {
    let mut server = exec_server_fixture::Stdio::start(&[]);
    server.send(&json!({"id": 0, "method": "initialize", "params": {"clientName": "t"}}));
    server.send(&json!({"method": "initialized"}));
    let n = 40;
    for id in 1..=n {
        let params = json!({
            "processId": format!("p{id}"), "argv": ["/bin/sh", "-c", "seq 5000; echo e >&2"],
            "cwd": "/tmp", "env": {}, "tty": id % 2 == 0,
        });
        server.send(&json!({"id": id, "method": "process/start", "params": params}));
    }
    let mut told: HashMap<String, Vec<String>> = HashMap::new();
    let mut n_closed = 0;
    while n_closed < n {
        let message = server.next();
        let (name, what) = match message["method"].as_str() {
            None if message["id"] == 0 => continue,
            None => (format!("p{}", message["id"]), "reply".to_owned()),
            Some(method) => {
                let name = message["params"]["processId"].as_str().unwrap().to_owned();
                let events = told.entry(name.clone()).or_default();
                let seq = message["params"]["seq"].as_u64().unwrap();
                assert_eq!(seq, events.len() as u64, "{name}: {events:?} then {message}");
                (name, method.rsplit('/').next().unwrap().to_owned())
            }
        };
        n_closed += u64::from(what == "closed");
        told.entry(name).or_default().push(what);
    }
    for (name, events) in told {
        let n_output = events.len() - 3;
        assert!(n_output > 0 && events[0] == "reply", "{name}: {events:?}");
        assert!(events[1..=n_output].iter().all(|what| what == "output"), "{name}: {events:?}");
        assert_eq!(events[n_output + 1..], ["exited", "closed"], "{name}");
    }
}

#[tokio::test]
async fn a_child_that_does_not_read_holds_up_nothing() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut deaf = exec_params("deaf", &["sleep", "1000"], "/tmp");
    for tty in [false, true] {
        (deaf.tty, deaf.pipe_stdin) = (tty, !tty);
        deaf.process_id = format!("deaf {tty}");
        client.exec(deaf.clone()).await.unwrap();
        let writes = (0..300).map(|_| client.write(&deaf.process_id, vec![b'y'; 8 << 10]));
        let mut writes = Box::pin(futures_util::future::join_all(writes));
        tokio::select! {
            // Writes that fit are accepted; whether all of them do depends on the free buffer space.
            _ = &mut writes => {}
            answer = client.terminate(&deaf.process_id) => assert!(answer.unwrap().running),
        }
        client.terminate(&deaf.process_id).await.unwrap();
        assert_eq!(client.wait(&deaf.process_id).await.unwrap().exit_code, Some(137));
    }
    // A process that still runs and does not read blocks no other client, and not its own client either. It has a pipe:
    // a terminal would discard unread input, and so accept everything in the end.
    (deaf.tty, deaf.pipe_stdin) = (false, true);
    deaf.process_id = "still deaf".into();
    client.exec(deaf.clone()).await.unwrap();
    let writes = (0..300).map(|_| client.write("still deaf", vec![b'y'; 64 << 10]));
    let mut writes = Box::pin(futures_util::future::join_all(writes));
    let others = async {
        let other = connected(&server).await;
        for client in [&client, &other] {
            client.exec(exec_params("quick", &["true"], "/tmp")).await.unwrap();
            assert_eq!(client.wait("quick").await.unwrap().exit_code, Some(0));
        }
    };
    tokio::select! {
        _ = &mut writes => panic!("nobody reads that much"),
        () = others => {}
    }
}

/// Another client of the server is served within the usual time.
async fn expect_served(server: &Served) {
    let quick = async {
        let other = connected(server).await;
        other.exec(exec_params("quick", &["true"], "/tmp")).await.unwrap();
        assert_eq!(other.wait("quick").await.unwrap().exit_code, Some(0));
    };
    tokio::time::timeout(PATIENCE, quick).await.expect("another client is served");
}

#[tokio::test]
async fn a_terminal_that_its_program_leaves_with_input_waiting_freezes_nothing() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    for (n, leave) in ["exec <&- >&- 2>&-; sleep 1000", "exit 0"].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (go, gone) = (folder.path().join("go"), folder.path().join("gone"));
        let script = format!(
            "trap '' HUP; stty raw -echo; echo ready; until [ -e {} ]; do sleep 0.01; done; (sleep 0.05; touch {}) & {leave}",
            go.display(),
            gone.display(),
        );
        let process_id = format!("leaves {n}");
        let mut params = exec_params(&process_id, &["/bin/sh", "-c", &script], "/tmp");
        params.tty = true;
        client.exec(params).await.unwrap();
        while !matches!(events.next().await.unwrap(), ExecServerEvent::OutputDelta(_)) {}
        for _ in 0..64 {
            client.write(&process_id, vec![b'y'; 8 << 10]).await.unwrap();
        }
        std::fs::write(&go, "").unwrap();
        while !gone.exists() {
            expect_served(&server).await;
        }
        expect_served(&server).await;
        let ended = tokio::time::timeout(PATIENCE, client.terminate(&process_id)).await;
        ended.expect("its own client is served").unwrap();
    }
}

/// The client stops reading its socket while more output is due than sockets buffer, and closes one direction.
#[tokio::test]
async fn a_socket_that_its_client_does_not_read_freezes_nothing() {
    let server = Served::start(&[]);
    for is_half_closed in [false, true] {
        let mut deaf = Raw::connect(&server.url).await;
        deaf.greet(json!({"clientName": "t", "resumeSessionId": null})).await;
        let params = json!({
            "processId": "loud", "argv": ["cat", "/dev/zero"], "cwd": "/tmp",
            "env": {"PATH": "/usr/bin:/bin"}, "tty": false,
        });
        deaf.ask("process/start", params).await;
        if is_half_closed {
            deaf.close_write().await;
        }
        for _ in 0..5 {
            expect_served(&server).await;
        }
    }
}

/// A greeted client with a program that reads nothing, or only once its input begins to end.
async fn with_program(server: &Served, script: &str) -> Raw {
    let mut client = Raw::connect(&server.url).await;
    client.greet(json!({"clientName": "t", "resumeSessionId": null})).await;
    let params = json!({
        "processId": "p", "argv": ["/bin/sh", "-c", script], "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"},
        "tty": false, "pipeStdin": true,
    });
    client.ask("process/start", params).await;
    client
}

/// Sends a request without waiting for the answer.
async fn ask_ahead(client: &mut Raw, id: i64, method: &str, params: Value) {
    client.send(&json!({"id": id, "method": method, "params": params}).to_string()).await;
}

fn write_of(n_bytes: usize, write_id: i64) -> Value {
    json!({"processId": "p", "chunk": ByteChunk(vec![b'y'; n_bytes]), "writeId": write_id.to_string()})
}

/// The ids of answered requests, grouped by their answer.
async fn answers(client: &mut Raw, n: usize) -> BTreeMap<String, Vec<i64>> {
    let mut answers: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    while answers.values().map(Vec::len).sum::<usize>() < n {
        let note = client.note().await;
        let Some(id) = note["id"].as_i64() else { continue };
        let what = match note["error"]["message"].as_str() {
            Some(why) => why.to_owned(),
            None => note["result"].to_string(),
        };
        answers.entry(what).or_default().push(id);
    }
    answers
}

const ACCEPTED: &str = r#"{"status":"accepted"}"#;

#[tokio::test]
async fn however_much_waits_for_a_child_that_does_not_read_its_connection_answers() {
    let server = Served::start(&[]);
    let mut client = with_program(&server, "exec sleep 1000").await;
    for id in 1_001..=1_009 {
        ask_ahead(&mut client, id, "process/write", write_of(1 << 20, id)).await;
    }
    for id in 1_010..=2_109 {
        ask_ahead(&mut client, id, "process/write", write_of(1, id)).await;
    }
    assert_eq!(client.ask("environment/status", json!({})).await, json!({"status": "ready"}));
    // Eight are being written, 128 wait, and the others are refused with the reason.
    let full =
        "too much is waiting to be read by process p: 128 writes or 16 MiB; wait for an answer";
    let told = BTreeMap::from([
        (ACCEPTED.to_owned(), (1_001..=1_008).collect()),
        (full.to_owned(), (1_137..=2_109).collect()),
    ]);
    assert_eq!(answers(&mut client, 8 + 973).await, told);
    // A refused write had no effect: it can be retried, and is refused again.
    ask_ahead(&mut client, 3_000, "process/write", write_of(1, 2_109)).await;
    let told = BTreeMap::from([(full.to_owned(), vec![3_000])]);
    assert_eq!(answers(&mut client, 1).await, told);
    let ended = client.ask("process/terminate", json!({"processId": "p"})).await;
    assert_eq!(ended, json!({"running": true}));
    let told = BTreeMap::from([(ACCEPTED.to_owned(), (1_009..=1_136).collect())]);
    assert_eq!(answers(&mut client, 128).await, told);
}

#[tokio::test]
async fn however_many_polls_wait_their_connection_answers() {
    let server = Served::start(&[]);
    let mut client = with_program(&server, "exec sleep 1000").await;
    for id in 1_001..=2_100 {
        let (method, params) = match id % 3 {
            0 => ("process/read", json!({"processId": "p", "waitMs": 600_000})),
            1 => ("process/wait", json!({"processId": "p"})),
            _ => ("process/waitFor", json!({"processId": "p", "exit": true})),
        };
        ask_ahead(&mut client, id, method, params).await;
    }
    assert_eq!(client.ask("environment/status", json!({})).await, json!({"status": "ready"}));
    let why = "1024 requests of this connection wait already, and no more can; wait for an answer";
    let told = BTreeMap::from([(why.to_owned(), (2_025..=2_100).collect())]);
    assert_eq!(answers(&mut client, 76).await, told);
    let ended = client.ask("process/terminate", json!({"processId": "p"})).await;
    assert_eq!(ended, json!({"running": true}));
    let n_told: usize = answers(&mut client, 1_024).await.values().map(Vec::len).sum();
    assert_eq!(n_told, 1_024);
}

#[tokio::test]
async fn the_end_of_input_comes_after_all_that_was_written_before_it() {
    let server = Served::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (at, is_asked) = (folder.path().join("go"), folder.path().join("go").display().to_string());
    let script = format!("until [ -e {is_asked} ]; do sleep 0.01; done; wc -c");
    let mut client = with_program(&server, &script).await;
    for id in 1_001..=1_012 {
        ask_ahead(&mut client, id, "process/write", write_of(1 << 20, id)).await;
    }
    ask_ahead(&mut client, 1_013, "process/closeStdin", json!({"processId": "p"})).await;
    // After the end no further write is accepted, and a repeated write is not applied twice.
    ask_ahead(&mut client, 1_014, "process/write", write_of(1, 1_014)).await;
    ask_ahead(&mut client, 1_015, "process/write", write_of(1 << 20, 1_012)).await;
    let told = BTreeMap::from([
        (ACCEPTED.to_owned(), (1_001..=1_008).chain([1_015]).collect()),
        (r#"{"status":"stdinClosed"}"#.to_owned(), vec![1_014]),
    ]);
    assert_eq!(answers(&mut client, 10).await, told);
    std::fs::write(at, "").unwrap();
    let mut said = vec![];
    let mut answered = vec![];
    loop {
        let note = client.note().await;
        match note["method"].as_str() {
            Some("process/output") => said.extend(bytes_of(&note["params"])),
            Some("process/closed") => break,
            Some(_) => {}
            None => answered.push((note["id"].clone(), note["error"].clone())),
        }
    }
    assert_eq!(String::from_utf8(said).unwrap().trim(), (12 << 20).to_string());
    let expected: Vec<_> = (1_009..=1_013).map(|id| (json!(id), Value::Null)).collect();
    assert_eq!(answered, expected);
}

#[tokio::test]
async fn a_long_poll_holds_up_nothing() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    client.exec(exec_params("quiet", &["sleep", "1000"], "/tmp")).await.unwrap();
    let mut poll = Box::pin(client.read(read_after("quiet", 0, 600_000)));
    tokio::select! {
        _ = &mut poll => panic!("there is nothing to read"),
        started = client.exec(exec_params("other", &["true"], "/tmp")) => drop(started.unwrap()),
    }
    client.terminate("quiet").await.unwrap();
    // The poll receives the end immediately.
    let page = poll.await.unwrap();
    assert_eq!(page.exit_code, Some(137));
}

#[tokio::test]
async fn ending_a_process_that_has_exited_ends_what_kept_its_output_open() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    let script = "setsid sleep 1000 & echo left=$!; exit 3";
    client.exec(exec_params("p", &["/bin/sh", "-c", script], "/tmp")).await.unwrap();
    assert_eq!(client.wait("p").await.unwrap().exit_code, Some(3));
    client.terminate("p").await.unwrap();
    let (said, code) = heard(&mut events, "p").await;
    let left = String::from_utf8(said).unwrap();
    let pid: i32 = left.trim().strip_prefix("left=").unwrap().parse().unwrap();
    assert_eq!(code, 3);
    exec_server_fixture::gone(pid).await;
}

#[tokio::test]
async fn what_is_said_while_nobody_listens_waits_for_whoever_comes_back() {
    let server = Served::start(&[]);
    let mut first = Raw::connect(&server.url).await;
    let hello = first.greet(json!({"clientName": "t", "resumeSessionId": null})).await;
    let session = hello["sessionId"].clone();
    let params = json!({
        "processId": "p", "argv": ["/bin/sh", "-c", "seq 1000000"], "cwd": "/tmp", "env": {}, "tty": false,
    });
    first.ask("process/start", params).await;
    // The connection breaks before the first event; the program prints five times what the server retains.
    drop(first);
    let mut second = Raw::connect(&server.url).await;
    second.greet_again(json!({"clientName": "t", "resumeSessionId": session})).await;
    // As today's clients do: the client reads the missed output, and receives the rest as notifications.
    let params = json!({"processId": "p", "afterSeq": 0, "maxBytes": null, "waitMs": 0});
    let page = second.ask("process/read", params).await;
    assert_eq!(page["droppedBytes"], 0, "{page}");
    let mut pieces = BTreeMap::new();
    for chunk in page["chunks"].as_array().unwrap() {
        pieces.insert(chunk["seq"].as_u64().unwrap(), bytes_of(chunk));
    }
    let n_events = loop {
        let note = second.note().await;
        let seq = note["params"]["seq"].as_u64().unwrap();
        match note["method"].as_str().unwrap() {
            "process/output" => drop(pieces.insert(seq, bytes_of(&note["params"]))),
            "process/closed" => break seq,
            _ => {}
        }
    };
    // All events except the exit and the end.
    assert_eq!(pieces.len() as u64, n_events - 2);
    let said: Vec<u8> = pieces.into_values().flatten().collect();
    let expected: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    assert!(said == expected.as_bytes(), "{} of {} bytes", said.len(), expected.len());
}

fn bytes_of(output: &Value) -> Vec<u8> {
    ByteChunk::parse(output["chunk"].as_str().unwrap()).unwrap().0
}

#[tokio::test]
async fn what_is_kept_no_more_is_told() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    client.exec(exec_params("p", &["seq", "1000000"], "/tmp")).await.unwrap();
    let (said, _) = heard(&mut events, "p").await;
    let page = client.read(read_after("p", 0, 0)).await.unwrap();
    let kept: usize = page.chunks.iter().map(|chunk| chunk.chunk.0.len()).sum();
    assert_eq!(page.dropped_bytes as usize + kept, said.len());
    assert!(page.dropped_bytes > 0 && page.first_seq == page.chunks.first().map(|chunk| chunk.seq));
}

#[tokio::test]
async fn a_reader_that_polls_loses_nothing_where_it_says_that_it_will() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut params = exec_params("p", &["seq", "1000000"], "/tmp");
    params.output = Some(OutputMode::Pull);
    client.exec(params).await.unwrap();
    let (mut n_bytes, mut after) = (0, 0);
    loop {
        let page = client.read(read_after("p", after, 600_000)).await.unwrap();
        assert_eq!(page.dropped_bytes, 0);
        n_bytes += page.chunks.iter().map(|chunk| chunk.chunk.0.len()).sum::<usize>();
        after = page.next_seq - 1;
        if page.closed {
            break;
        }
    }
    assert_eq!(n_bytes, (1..=1_000_000).map(|n: u32| n.to_string().len() + 1).sum::<usize>());
}

#[tokio::test]
async fn input_can_be_ended_and_a_process_asked_to_end() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    let mut cat = exec_params("cat", &["cat"], "/tmp");
    cat.pipe_stdin = true;
    client.exec(cat).await.unwrap();
    client.write("cat", "hello").await.unwrap();
    client.close_stdin("cat").await.unwrap();
    assert_eq!(heard(&mut events, "cat").await, (b"hello".to_vec(), 0));
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.02; done";
    client.exec(exec_params("polite", &["/bin/sh", "-c", script], "/tmp")).await.unwrap();
    loop {
        let event = events.next().await.unwrap();
        if matches!(&event, ExecServerEvent::OutputDelta(said) if said.chunk.0 == b"ready\n") {
            break;
        }
    }
    let asked = TerminateParams {
        process_id: "polite".into(),
        signal: Some(ProcessSignal::Terminate),
        grace_ms: Some(600_000),
    };
    client.terminate_with(asked).await.unwrap();
    assert_eq!(heard(&mut events, "polite").await.1, 4);
}

#[tokio::test]
async fn a_terminal_is_one_in_every_respect() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    let mut run =
        async |name: &str, script: &str, change: fn(&mut client::exec_server::ExecParams)| {
            let mut params = exec_params(name, &["/bin/sh", "-c", script], "/tmp");
            params.tty = true;
            change(&mut params);
            client.exec(params).await.unwrap();
            let (said, code) = heard(&mut events, name).await;
            (String::from_utf8(said).unwrap(), code)
        };
    let said = |text: &str| (text.to_owned(), 0);
    assert_eq!(
        run("term", "echo $TERM; stty size", |_| {}).await,
        said("xterm-256color\r\n24 80\r\n")
    );
    let sized = run("size", "stty size", |params| {
        params.size = Some(TerminalSize { rows: 50, cols: 132 });
    });
    assert_eq!(sized.await, said("50 132\r\n"));
    let named = run("arg0", "echo $0", |params| {
        (params.argv, params.arg0) =
            (vec!["/bin/sh".into(), "-c".into(), "echo $0".into()], Some("fancy".into()));
    });
    assert_eq!(named.await, said("fancy\r\n"));
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("INT", 130), ("HUP", 129)] {
        assert_eq!(run(signal, &format!("kill -{signal} $$"), |_| {}).await.1, code, "{signal}");
    }
    let mut params = exec_params("nowhere", &["true"], "/no/such/folder");
    params.tty = true;
    let why = client.exec(params).await.unwrap_err().to_string();
    assert_eq!(why, "exec-server refused (-32603): No such file or directory (os error 2)");
}

#[tokio::test]
async fn a_terminal_can_be_resized() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut events = client.events();
    let script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut params = exec_params("p", &["/bin/sh", "-c", script], "/tmp");
    params.tty = true;
    client.exec(params).await.unwrap();
    while !matches!(events.next().await, Some(ExecServerEvent::OutputDelta(said)) if said.chunk.0 == b"ready\r\n")
    {
    }
    client.resize("p", TerminalSize { rows: 40, cols: 100 }).await.unwrap();
    assert_eq!(heard(&mut events, "p").await, (b"40 100\r\n".to_vec(), 0));
}

#[tokio::test]
async fn a_read_that_waits_sleeps_through_nothing() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let mut cat = exec_params("cat", &["cat"], "/tmp");
    (cat.pipe_stdin, cat.output) = (true, Some(OutputMode::Pull));
    client.exec(cat).await.unwrap();
    let mut after = 0;
    for _ in 0..500 {
        // Concurrently: the write may come before, between and after the reader's check and its wait.
        let both = async {
            tokio::join!(client.read(read_after("cat", after, 600_000)), client.write("cat", "x"))
        };
        let (page, _) = tokio::time::timeout(PATIENCE, both).await.expect("the read woke up");
        after = page.unwrap().next_seq - 1;
    }
    assert_eq!(after, 500);
}

#[tokio::test]
async fn a_server_that_is_killed_takes_everything_along() {
    for tty in [false, true] {
        let command =
            ExecServerLaunchCommand { program: AIRLOCK.into(), args: vec!["exec-server".into()] };
        let options = ExecServerClientConnectOptions::default();
        let server = spawn_local_exec_server(command, options).await.unwrap();
        let mut events = server.client().events();
        let script = "trap '' HUP; setsid sleep 1000 & echo left=$!; wait";
        let mut params = exec_params("p", &["/bin/sh", "-c", script], "/tmp");
        params.tty = tty;
        server.client().exec(params).await.unwrap();
        let said = events.next().await;
        let Some(ExecServerEvent::OutputDelta(said)) = said else { panic!("it talks") };
        let left = String::from_utf8(said.chunk.0).unwrap();
        let pid: i32 = left.trim().strip_prefix("left=").unwrap().parse().unwrap();
        // Killed, without a chance to shut down.
        drop(server);
        exec_server_fixture::gone(pid).await;
    }
}
