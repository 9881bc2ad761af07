//! `airlock exec-server` as its clients meet it: the recorded scenarios, the real codex, our own client.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod exec_served;

use client::exec_server::{
    Events, ExecServerClient, ExecServerClientConnectOptions, ExecServerEvent,
    ExecServerLaunchCommand, ProcessSignal, ReadParams, RemoteExecServerConnectArgs,
    TerminateParams, exec_params, spawn_local_exec_server,
};
use exec_served::{AIRLOCK, Proxy, Served, conformance, node};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Scenarios that wait half a minute for a limit are for the full size.
const SLOW: [&str; 2] = ["18c", "31"];

fn compare_facts(dialect: &str) {
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::read_to_string(conformance("scenarios.mjs")).unwrap();
    let is_full = std::env::var_os("AIRLOCK_SOAK").is_some();
    let names = all.lines().filter_map(|line| line.strip_prefix("def(\"")?.split('"').next());
    let chosen: Vec<&str> =
        names.filter(|name| is_full || !SLOW.iter().any(|slow| name.starts_with(slow))).collect();
    let server = format!("{AIRLOCK} exec-server --no-auth --dialect {dialect} --listen");
    let (stdio, socket) = (format!("{server} stdio://"), format!("{server} ws://127.0.0.1:0"));
    let out = folder.path().to_str().unwrap();
    let scenarios = conformance("scenarios.mjs");
    let words = [
        scenarios.to_str().unwrap(),
        "--name",
        dialect,
        "--cmd",
        &stdio,
        "--spawn-ws",
        &socket,
        "--out",
        out,
        "--only",
        &chosen.join(","),
    ];
    let Some(ran) = node(&words) else { return };
    assert!(ran.status.success(), "{ran:?}");
    let (script, facts) =
        (conformance("compare.mjs"), folder.path().join(dialect).join("facts.json"));
    let compared = node(&[script.to_str().unwrap(), dialect, facts.to_str().unwrap()]).unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

#[test]
fn every_scenario_ends_as_recorded_of_the_seed_or_differs_for_a_reason() {
    compare_facts("seed");
}

#[test]
fn every_scenario_ends_as_recorded_of_todays_codex_or_differs_for_a_reason() {
    compare_facts("codex");
}

#[test]
fn the_answer_comes_first_then_output_in_sequence_then_the_exit_then_the_end() {
    let mut server = exec_served::Stdio::start(&[]);
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

async fn connected(server: &Served) -> ExecServerClient {
    let args = RemoteExecServerConnectArgs::new(&server.url, "test");
    ExecServerClient::connect_websocket(args).await.unwrap()
}

/// Hears a process to its end: all it said, and its code.
async fn heard(events: &mut Events, process_id: &str) -> (Vec<u8>, i32) {
    let (mut said, mut code) = (vec![], None);
    while let Some(event) = events.next().await {
        if event.process_id() != process_id {
            continue;
        }
        match event {
            ExecServerEvent::OutputDelta(output) => said.extend(output.chunk.0),
            ExecServerEvent::Exited(exited) => code = Some(exited.exit_code),
            ExecServerEvent::Closed(_) => return (said, code.expect("the exit comes first")),
        }
    }
    panic!("the connection ended before {process_id} did");
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
            // Those that fit are accepted; whether all do is for the room there is.
            _ = &mut writes => {}
            answer = client.terminate(&deaf.process_id) => assert!(answer.unwrap().running),
        }
        client.terminate(&deaf.process_id).await.unwrap();
        assert_eq!(client.wait(&deaf.process_id).await.unwrap().exit_code, Some(137));
    }
}

#[tokio::test]
async fn a_long_poll_holds_up_nothing() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    client.exec(exec_params("quiet", &["sleep", "1000"], "/tmp")).await.unwrap();
    let read = ReadParams {
        process_id: "quiet".into(),
        after_seq: None,
        max_bytes: None,
        wait_ms: Some(600_000),
    };
    let mut poll = Box::pin(client.read(read));
    tokio::select! {
        _ = &mut poll => panic!("there is nothing to read"),
        started = client.exec(exec_params("other", &["true"], "/tmp")) => drop(started.unwrap()),
    }
    client.terminate("quiet").await.unwrap();
    // The poll sees the end at once.
    let page = poll.await.unwrap();
    assert_eq!(page.exit_code, Some(137));
}

#[tokio::test]
async fn ending_a_process_that_has_exited_ends_what_it_left_and_closes() {
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
    exec_served::gone(pid).await;
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
async fn a_reconnect_in_the_middle_of_output_loses_and_doubles_no_byte() {
    let server = Served::start(&[]);
    let proxy = Proxy::start(&server.url).await;
    let args = RemoteExecServerConnectArgs::new(&proxy.url, "test");
    let client = ExecServerClient::connect_websocket(args).await.unwrap();
    let mut events = client.events();
    let n_lines: usize =
        if std::env::var_os("AIRLOCK_SOAK").is_some() { 14_000_000 } else { 2_000_000 };
    let numbers = n_lines.to_string();
    client.exec(exec_params("big", &["seq", &numbers], "/tmp")).await.unwrap();
    let (mut said, mut n_cuts) = (Vec::new(), 0);
    loop {
        match events.next().await.expect("the client comes back") {
            ExecServerEvent::OutputDelta(output) => said.extend(output.chunk.0),
            ExecServerEvent::Exited(exited) => assert_eq!(exited.exit_code, 0),
            ExecServerEvent::Closed(_) => break,
        }
        if said.len() > (n_cuts + 1) * 4_000_000 {
            n_cuts += 1;
            proxy.cut();
        }
    }
    assert!(n_cuts >= 2, "it was cut off");
    let mut lines = said.split(|byte| *byte == b'\n');
    for n in 1..=n_lines {
        assert_eq!(lines.next(), Some(n.to_string().as_bytes()));
    }
    assert_eq!(lines.next(), Some(&b""[..]));
}

#[tokio::test]
async fn a_server_of_ones_own_ends_with_its_client_and_takes_everything_along() {
    let command =
        ExecServerLaunchCommand { program: AIRLOCK.into(), args: vec!["exec-server".into()] };
    let options = ExecServerClientConnectOptions::default();
    let server = spawn_local_exec_server(command, options).await.unwrap();
    let mut events = server.client().events();
    let script = "setsid sleep 1000 & echo left=$!; wait";
    server.client().exec(exec_params("p", &["/bin/sh", "-c", script], "/tmp")).await.unwrap();
    let Some(ExecServerEvent::OutputDelta(said)) = events.next().await else { panic!("it talks") };
    let left = String::from_utf8(said.chunk.0).unwrap();
    let pid: i32 = left.trim().strip_prefix("left=").unwrap().parse().unwrap();
    // Killed, not asked.
    drop(server);
    exec_served::gone(pid).await;
}

#[tokio::test]
async fn a_server_within_the_same_process_needs_no_socket() {
    let program = processes::Program::At(AIRLOCK.into());
    let house = processes::Processes::start(&processes::Config { program }).unwrap();
    let server = server::exec_server::ExecServer::new(house, server::exec_server::Choice::Auto);
    let options = ExecServerClientConnectOptions::default();
    let client =
        ExecServerClient::connect_in_process(server.connect_in_process(), options).await.unwrap();
    let mut events = client.events();
    client.exec(exec_params("p", &["echo", "hello"], "/tmp")).await.unwrap();
    assert_eq!(heard(&mut events, "p").await, (b"hello\n".to_vec(), 0));
    drop((client, events));
    tokio::time::timeout(Duration::from_secs(20), server.shutdown()).await.unwrap();
}

#[test]
fn only_those_with_the_token_come_in() {
    let server = Served::start_with_token();
    let status = |url: &str, headers: &[(&str, &str)]| exec_served::upgrade(url, headers);
    assert_eq!(status(&server.url, &[]), "101");
    let bare = server.url.split('?').next().unwrap();
    assert_eq!(status(bare, &[]), "401");
    assert_eq!(status(bare, &[("Authorization", "Bearer wrong")]), "401");
    assert_eq!(status(&server.url, &[("Origin", "http://127.0.0.1")]), "403");
    assert_eq!(status(&server.url, &[("Host", "evil.example")]), "403");
}

#[test]
fn the_real_codex_runs_its_commands_here_over_both_transports() {
    let Some(codex) = exec_served::codex() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = conformance("e2e/script-basic.json");
    let output = |out: &std::path::Path| -> String {
        let log = std::fs::read_to_string(out.join("model.jsonl")).unwrap();
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        last["lastOutputs"][0]["output"].as_str().unwrap_or_else(|| panic!("{log}")).to_owned()
    };
    let server = Served::start(&[]);
    let (over_socket, over_stdio) = (folder.path().join("ws"), folder.path().join("stdio"));
    let address = server.url.strip_prefix("ws://").unwrap();
    let runs: [(&str, Vec<&str>); 2] = [
        (
            "e2e/run-real-client.sh",
            vec![&codex, address, script.to_str().unwrap(), over_socket.to_str().unwrap()],
        ),
        (
            "e2e/run-real-client-stdio.sh",
            vec![
                &codex,
                script.to_str().unwrap(),
                over_stdio.to_str().unwrap(),
                AIRLOCK,
                "exec-server",
            ],
        ),
    ];
    for ((shell_script, words), out) in runs.iter().zip([&over_socket, &over_stdio]) {
        exec_served::bash(&conformance(shell_script), words);
        let said = output(out);
        assert!(said.contains("Process exited with code 3"), "{said}");
        assert!(said.contains("real-client"), "{said}");
    }
}
