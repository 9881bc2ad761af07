//! `airlock exec-server` with its clients: the recorded scenarios, the real codex, and our own client.

use crate::exec_server_fixture::{
    self, AIRLOCK, Proxy, Raw, Served, Sites, Stdio, conformance, heard, node,
};
use crate::server_fixture;
use crate::server_fixture::Served as House;
use client::exec_server::{
    ByteChunk, ExecServerClient, ExecServerClientConnectOptions, ExecServerEvent,
    RemoteExecServerConnectArgs, exec_params,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Scenarios that wait half a minute for a limit run only in the full campaign.
const SLOW: [&str; 2] = ["18c", "31"];

fn compare_facts(dialect: &str) {
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::read_to_string(conformance("scenarios.mjs")).unwrap();
    let is_full = std::env::var_os("AIRLOCK_SOAK").is_some();
    let names = all.lines().filter_map(|line| line.strip_prefix("def(\"")?.split('"').next());
    let chosen: Vec<&str> =
        names.filter(|name| is_full || !SLOW.iter().any(|slow| name.starts_with(slow))).collect();
    // The codex of the recordings retained detached sessions and ended processes for 30 seconds.
    let retention = "--detached-seconds 30 --ended-seconds 30";
    let server =
        format!("{AIRLOCK} exec-server --no-auth {retention} --dialect {dialect} --listen");
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
            ExecServerEvent::Lost { bytes, .. } => panic!("{bytes} bytes are lost"),
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
async fn a_client_of_many_processes_leaves_nothing_behind() {
    let is_full = std::env::var_os("AIRLOCK_SOAK").is_some();
    let (n_starts, n_terminals) = if is_full { (10_000, 200) } else { (300, 20) };
    let server = Served::start(&[]);
    let client = exec_server_fixture::connected(&server).await;
    let mut events = client.events();
    // As many subreapers as the server ever retains wait for another program afterwards.
    for n in 0..processes::SPARES_MAX {
        let mut params = exec_params(&format!("w{n}"), &["cat"], "/tmp");
        params.pipe_stdin = true;
        client.exec(params).await.unwrap();
    }
    for n in 0..processes::SPARES_MAX {
        client.close_stdin(&format!("w{n}")).await.unwrap();
        heard(&mut events, &format!("w{n}")).await;
    }
    while server.descriptors_and_children().1 != 1 + processes::SPARES_MAX {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = server.descriptors_and_children();
    let open = (0..n_terminals).map(|n| {
        let mut params = exec_params(&format!("t{n}"), &["cat"], "/tmp");
        params.tty = true;
        client.exec(params)
    });
    for opened in futures_util::future::join_all(open).await {
        opened.unwrap();
    }
    // Sixteen at a time, and more in total than a session remembers.
    let (mut n_begun, mut n_ended) = (0, 0);
    while n_ended < n_starts {
        while n_begun < n_starts && n_begun < n_ended + 16 {
            n_begun += 1;
            client.exec(exec_params(&format!("s{n_begun}"), &["true"], "/tmp")).await.unwrap();
        }
        match events.next().await.unwrap() {
            ExecServerEvent::Exited(exited) => assert_eq!(exited.exit_code, 0),
            ExecServerEvent::Closed(_) => n_ended += 1,
            ExecServerEvent::OutputDelta(_) | ExecServerEvent::Lost { .. } => {}
        }
    }
    for n in 0..n_terminals {
        let name = format!("t{n}");
        client.write(&name, format!("{n}\n").into_bytes()).await.unwrap();
        client.close_stdin(&name).await.unwrap();
        let echoed = format!("{n}\r\n").repeat(2);
        let (said, code) = heard(&mut events, &name).await;
        assert_eq!((String::from_utf8(said).unwrap(), code), (echoed, 0));
    }
    // The last processes may still be exiting.
    for _ in 0..3_000 {
        if server.descriptors_and_children() == before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} were there, {:?} are", before, server.descriptors_and_children());
}

#[tokio::test]
async fn a_server_within_the_same_process_needs_no_socket() {
    let program = processes::SelfProgram::At(AIRLOCK.into());
    let house =
        processes::ProcessSpawner::start(&processes::Config { program, ..Default::default() })
            .unwrap();
    let server = ::exec_server::ExecServer::new(house, ::exec_server::Config::default());
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
fn a_listener_says_where_it_is_on_both_streams_and_is_open_to_nobody_else() {
    let (url, announced) = exec_server_fixture::announced(&["--no-auth"]);
    let said = announced.lines().last().unwrap();
    assert!(url.starts_with("ws://127.0.0.1:"), "{url}");
    assert_eq!(said, format!("codex-exec-server listening on {url}"));
    // A listener outside loopback requires a token from every client.
    let refused =
        server_fixture::airlock(&["exec-server", "--no-auth", "--listen", "ws://0.0.0.0:0"])
            .output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(refused.stdout, b"");
}

#[test]
fn only_those_with_the_token_come_in() {
    let server = Served::start_with_token();
    let status = |url: &str, headers: &[(&str, &str)]| exec_server_fixture::upgrade(url, headers);
    assert_eq!(status(&server.url, &[]), "101");
    let bare = server.url.split('?').next().unwrap();
    assert_eq!(status(bare, &[]), "401");
    assert_eq!(status(bare, &[("Authorization", "Bearer wrong")]), "401");
    assert_eq!(status(&server.url, &[("Origin", "http://127.0.0.1")]), "403");
    assert_eq!(status(&server.url, &[("Host", "evil.example")]), "403");
}

#[tokio::test]
async fn serve_has_this_door_where_it_is_enabled_and_for_those_who_may_spawn() {
    let folder = tempfile::tempdir().unwrap();
    let status = |house: &House, token: &str, more: &[(&str, &str)]| {
        let url = house.url.replacen("http", "ws", 1);
        exec_server_fixture::upgrade(&format!("{url}/exec?token={token}"), more)
    };
    let secret = |house: &House, name: &str| house.client(name).secret;
    let house = House::start(&folder.path().join("closed"), &[]);
    let admin = format!("Bearer {}", secret(&house, "admin"));
    assert_eq!(status(&house, "", &[("Authorization", &admin)]), "404");
    drop(house);

    let house = House::start(&folder.path().join("open"), &["--exec"]);
    let body = json!({ "name": "bot", "scopes": ["process"] }).to_string();
    let minted = house.client("admin").post("/api/tokens", &body);
    let process = minted.json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(status(&house, "wrong", &[]), "401");
    assert_eq!(status(&house, &secret(&house, "run"), &[]), "403");
    let admin = secret(&house, "admin");
    assert_eq!(status(&house, &admin, &[]), "403", "an admin token does not count in a URL");
    let admin = format!("Bearer {admin}");
    assert_eq!(status(&house, "", &[("Authorization", &admin)]), "101");
    assert_eq!(status(&house, &process, &[("Origin", &house.url)]), "403");
    assert_eq!(status(&house, &process, &[]), "101");
    let url = house.url.replacen("http", "ws", 1);
    let args = RemoteExecServerConnectArgs::new(format!("{url}/exec?token={process}"), "test");
    let client = ExecServerClient::connect_websocket(args).await.unwrap();
    let mut events = client.events();
    client.exec(exec_params("p", &["echo", "hello"], "/tmp")).await.unwrap();
    assert_eq!(heard(&mut events, "p").await, (b"hello\n".to_vec(), 0));
}

#[test]
fn requests_go_out_from_here_with_and_without_tls() {
    let Some(sites) = Sites::start() else { return };
    let authority = conformance("tls/authority.pem");
    let env = [
        ("SSL_CERT_FILE", authority.to_str().unwrap()),
        ("MY_SECRET", "s3cret"),
        ("OPENAI_IDENTITY_TOKEN_FILE", "x"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let mut server = Stdio::greeted(&env);
    let request = |url: &str, headers: Value| json!({"method": "GET", "url": url, "headers": headers, "requestId": "r"});
    let body = |answer: Result<Value, (i64, String)>| -> Value {
        let text = answer.unwrap()["bodyBase64"].as_str().unwrap().to_owned();
        serde_json::from_slice(&ByteChunk::parse(&text).unwrap().0).unwrap()
    };
    let secret = json!([{"name": "X-Secret", "value": "Bearer ", "valueEnvVar": "MY_SECRET"}]);
    let seen = |scheme: &str, secret: Value| json!({"scheme": scheme, "method": "GET", "secret": secret, "body": ""});
    for (url, expected) in [
        (format!("{}/echo", sites.https), seen("https", json!("Bearer s3cret"))),
        (format!("{}/home", sites.https), seen("https", json!("Bearer s3cret"))),
        // A redirect to another server does not carry the token.
        (format!("{}/away", sites.https), seen("http", json!(null))),
        (format!("{}/echo", sites.http), seen("http", json!("Bearer s3cret"))),
    ] {
        assert_eq!(
            body(server.ask("http/request", request(&url, secret.clone()))),
            expected,
            "{url}"
        );
    }
    for variable in ["NO_SUCH_VARIABLE", "OPENAI_IDENTITY_TOKEN_FILE"] {
        let headers = json!([{"name": "x", "value": "", "valueEnvVar": variable}]);
        let refused = server.ask("http/request", request(&sites.http, headers)).unwrap_err();
        assert_eq!((refused.0, refused.1.contains(variable)), (-32602, true), "{refused:?}");
    }
    let mut streamed = request(&format!("{}/pieces", sites.https), json!([]));
    streamed["streamResponse"] = json!(true);
    assert_eq!(server.ask("http/request", streamed).unwrap()["bodyBase64"], "");
    let mut text = vec![];
    loop {
        let delta = server.note()["params"].take();
        text.extend(ByteChunk::parse(delta["deltaBase64"].as_str().unwrap()).unwrap().0);
        if delta["done"] == true {
            break;
        }
    }
    assert_eq!(text, b"onetwothree");
    // Certificates without a trusted issuer are refused.
    let mut strict = Stdio::greeted(&[("NO_PROXY", "127.0.0.1")]);
    let refused = strict.ask("http/request", request(&sites.https, json!([]))).unwrap_err();
    assert_eq!((refused.0, refused.1.contains("certificate")), (-32603, true), "{refused:?}");
}

#[test]
fn files_are_written_piece_by_piece_and_missing_ones_are_watched_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let uri = |name: &str| format!("file://{}", at(name).display());
    let mut server = Stdio::greeted(&[]);
    let watch = |id: u64, missing: &[&str], present: Option<&str>| json!({"watchId": id, "missing": missing.iter().map(|name| uri(name)).collect::<Vec<_>>(), "present": present.map(uri)});
    std::fs::write(at("old"), "old").unwrap();
    let watching = |is: bool| Ok(json!({"watching": is}));
    assert_eq!(server.ask("fs/watchMissing", watch(1, &["old"], None)), watching(false));
    assert_eq!(server.ask("fs/watchMissing", watch(2, &["replaced"], None)), watching(true));
    assert_eq!(server.ask("fs/watchMissing", watch(3, &["new"], Some("old"))), watching(true));
    assert_eq!(server.ask("fs/watchMissing", watch(3, &["new"], None)), watching(false));
    // The last value counts.
    std::fs::write(at("replaced"), "").unwrap();
    let open = json!({"handleId": "h", "path": uri("new"), "mode": "replace"});
    server.ask("fs/open", open.clone()).unwrap();
    assert_eq!(server.note(), json!({"method": "fs/missingChanged", "params": {"watchId": 3}}));
    let block = |offset: u64, text: &str| json!({"handleId": "h", "offset": offset, "chunk": ByteChunk(text.into())});
    assert_eq!(server.ask("fs/writeBlock", block(6, "world")), Ok(json!({})));
    assert_eq!(server.ask("fs/writeBlock", block(0, "hello ")), Ok(json!({})));
    server.ask("fs/close", json!({"handleId": "h"})).unwrap();
    assert_eq!(std::fs::read(at("new")).unwrap(), b"hello world");
    server.ask("fs/open", open).unwrap();
    assert_eq!(std::fs::read(at("new")).unwrap(), b"");
    // A handle that is open for writing cannot be read, and the reverse.
    let read = json!({"handleId": "h", "offset": 0, "len": 10});
    assert_eq!(server.ask("fs/readBlock", read).unwrap_err().0, -32603);
    server.ask("fs/open", json!({"handleId": "h", "path": uri("old")})).unwrap();
    assert_eq!(server.ask("fs/writeBlock", block(0, "x")).unwrap_err().0, -32603);
    // A changed file is reported, too.
    assert_eq!(server.ask("fs/watchMissing", watch(4, &["none"], Some("old"))), watching(true));
    std::fs::write(at("old"), "changed").unwrap();
    assert_eq!(server.note(), json!({"method": "fs/missingChanged", "params": {"watchId": 4}}));
}

#[test]
fn settings_of_codex_on_this_machine_can_be_asked_for() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("config.toml"),
        "model = 'x'\n[mcp_servers.a]\ncommand = 'true'\n",
    )
    .unwrap();
    let mut server = Stdio::greeted(&[("CODEX_HOME", home.path().to_str().unwrap())]);
    let params = json!({"cwd": "file:///tmp", "configPaths": [["mcp_servers"]], "requirementsPaths": [["x"]]});
    let told = server.ask("environmentConfig/read", params).unwrap();
    let base = format!("file://{}", home.path().display());
    assert_eq!(told["codexHomeDir"], base);
    let source = format!("user ({}/config.toml)", home.path().display());
    let layer =
        json!({"source": source, "baseDir": base, "toml": "[mcp_servers.a]\ncommand = \"true\"\n"});
    assert_eq!(told["config"], json!({"layers": [layer], "cloudInsertionIndex": 0}));
    assert_eq!(told["requirements"], json!({"layers": [], "cloudInsertionIndex": 0}));
}

#[test]
fn a_sandbox_that_restricts_nothing_is_none_and_one_that_is_not_understood_is_refused_in_words() {
    let mut server = Stdio::greeted(&[]);
    let mut start = |name: &str, sandbox: Value| {
        let params = json!({
            "processId": name, "argv": ["true"], "cwd": "file:///tmp", "env": {}, "tty": false, "sandbox": sandbox,
            "metadata": {"threadId": "t", "toolCallId": "c"}, "enforceManagedNetwork": false, "managedNetwork": null,
        });
        server.ask("process/start", params)
    };
    let managed = |files: &str| {
        json!({"permissions": {
        "type": "managed", "file_system": {"type": files, "entries": [
            {"path": {"type": "glob_pattern", "pattern": "**/*.env"}, "access": "deny"}
        ]}, "network": "enabled"}, "cwd": "file:///tmp"})
    };
    let started = |name: &str| Ok(json!({"processId": name, "sandboxType": "none"}));
    assert_eq!(start("a", json!(null)), started("a"));
    assert_eq!(start("b", json!({"permissions": {"type": "disabled"}})), started("b"));
    assert_eq!(start("c", managed("unrestricted")), started("c"));
    let (code, why) = start("d", managed("restricted")).unwrap_err();
    assert_eq!(code, -32602);
    assert!(
        why.starts_with("the sandbox names **/*.env, and patterns are not enforced here"),
        "{why}"
    );
}

#[tokio::test]
async fn a_malformed_message_is_answered_to_nobody_and_the_connection_lives_on() {
    let server = Served::start(&[]);
    for hello in
        [json!({"clientName": "seed"}), json!({"clientName": "codex", "resumeSessionId": null})]
    {
        let mut client = Raw::connect(&server.url).await;
        client.greet(hello).await;
        for nonsense in [
            "{",
            "[]",
            "7",
            r#"{"id": null, "method": "x"}"#,
            r#"{"id": 1, "id": 2, "method": "x"}"#,
        ] {
            client.send(nonsense).await;
            let answer = client.next().await.unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&json!(-1), &json!(-32600)),
                "{nonsense}"
            );
        }
        // A request with far too many values is malformed, too.
        client
            .send(&format!(
                r#"{{"id": 1, "method": "process/list", "params": [{}0]}}"#,
                "1,".repeat(300_000)
            ))
            .await;
        assert_eq!(client.next().await.unwrap()["id"], -1);
        assert_eq!(client.ask("process/list", json!({})).await, json!({"processes": []}));
        // A response without a request ends the conversation.
        client.send(r#"{"id": 9, "result": {}}"#).await;
        assert_eq!(client.next().await, None);
    }
}

/// How often a test repeats because the scripted model was too slow on a busy machine, or because it called codex
/// before codex had connected to our server.
const MODEL_STARTS_MAX: usize = 5;

/// The error that codex reports to a model while it is not yet connected.
const NOT_CONNECTED: &str = "No usable execution environment is available.";

#[test]
fn the_real_codex_runs_its_commands_here_over_both_transports() {
    let Some(codex) = exec_server_fixture::codex() else { return };
    let folder = tempfile::tempdir().unwrap();
    // The script reads its picture from this path beside the folder of each run.
    let picture = folder.path().join("peers/codex/e2e-img.png");
    std::fs::create_dir_all(picture.parent().unwrap()).unwrap();
    std::fs::write(picture, PICTURE).unwrap();
    let server = Served::start(&[]);
    let address = server.url.strip_prefix("ws://").unwrap();
    let run = |script: &str, transport: &str| {
        let out = folder.path().join(format!("{transport}-{script}"));
        let (out_text, script) =
            (out.to_str().unwrap().to_owned(), conformance(&format!("e2e/{script}.json")));
        let script = script.to_str().unwrap();
        // The script gives its model half a second to listen. If that was too short, the run made no requests and is
        // repeated.
        for _ in 0..MODEL_STARTS_MAX {
            let _ = std::fs::remove_dir_all(&out);
            match transport {
                "socket" => exec_server_fixture::bash(
                    &conformance("e2e/run-real-client.sh"),
                    &[&codex, address, script, &out_text],
                ),
                _ => exec_server_fixture::bash(
                    &conformance("e2e/run-real-client-stdio.sh"),
                    &[&codex, script, &out_text, AIRLOCK, "exec-server"],
                ),
            }
            let told = std::fs::read_to_string(out.join("model.jsonl"));
            if told.is_ok_and(|told| !told.contains(NOT_CONNECTED)) {
                break;
            }
        }
        outputs(&out)
    };
    std::thread::scope(|scope| {
        for transport in ["socket", "stdio"] {
            let run = &run;
            scope.spawn(move || {
                let said = run("script-basic", transport);
                assert!(said[0].contains("Process exited with code 3"), "{said:?}");
                assert!(said[0].contains("real-client"), "{said:?}");
                check_full(&run("script-full", transport));
            });
        }
    });
}

/// A picture of one pixel.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// The output that each scripted call returned to the model.
fn outputs(out: &std::path::Path) -> Vec<String> {
    let log = std::fs::read_to_string(out.join("model.jsonl")).unwrap();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let last = |entry: Value| {
        let output = entry["lastOutputs"].as_array()?.last()?["output"].clone();
        Some(output.as_str().map_or_else(|| output.to_string(), str::to_owned))
    };
    entries.filter_map(last).collect()
}

/// A terminal that is written to and interrupted, a pipe that is written to, much output, a patch, a signal, a picture,
/// a missing folder.
fn check_full(said: &[String]) {
    let has =
        |idx: usize, text: &str| assert!(said[idx].contains(text), "{idx}: {text} in {said:?}");
    assert_eq!(said.len(), 11, "{said:?}");
    let talk = said[..4].concat();
    assert!(talk.contains("start\r\n") && talk.contains("got:hello\r\n"), "{talk}");
    has(3, "Process exited with code 130");
    has(5, "Process exited with code 130");
    has(6, "Process exited with code 0");
    has(6, "Original token count: 750001");
    has(6, "END");
    has(7, "A new.txt");
    has(8, "line one");
    has(8, "Process exited with code 137");
    has(9, "data:image/png;base64,iVBOR");
    has(10, "No such file or directory");
}

#[tokio::test]
async fn how_long_ended_processes_and_those_of_a_lost_client_are_retained_can_be_chosen() {
    let server = Served::start(&["--detached-seconds", "0", "--ended-seconds", "0"]);
    let mut client = Raw::connect(&server.url).await;
    let greeting = client.greet(json!({"clientName": "t", "resumeSessionId": null})).await;
    let start = |id: &str, argv: Value| json!({"processId": id, "argv": argv, "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"}, "tty": false});
    client.ask("process/start", start("ended", json!(["true"]))).await;
    while client.note().await["method"] != "process/closed" {}
    // An id can be used again once its process is forgotten.
    while client.ask("process/list", json!({})).await["processes"] != json!([]) {}
    client.ask("process/start", start("ended", json!(["true"]))).await;
    client.ask("process/start", start("runs", json!(["sleep", "1000"]))).await;
    let listed = client.ask("process/list", json!({})).await;
    let runs = listed["processes"].as_array().unwrap().iter().find(|p| p["processId"] == "runs");
    let pid = runs.unwrap()["pid"].as_i64().unwrap();
    drop(client);
    exec_server_fixture::gone(i32::try_from(pid).unwrap()).await;
    let mut again = Raw::connect(&server.url).await;
    let params = json!({"clientName": "t", "resumeSessionId": greeting["sessionId"]});
    again.send(&json!({"id": 1, "method": "initialize", "params": params}).to_string()).await;
    let answer = again.next().await.unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("unknown session"), "{answer}");
}

#[test]
fn a_session_that_cannot_be_resumed_has_no_id() {
    let mut server = Stdio::start(&[]);
    assert_eq!(server.greet(json!({"clientName": "t"})).unwrap()["sessionId"], Value::Null);
    let mut server = Stdio::start(&[]);
    let greeting = server.greet(json!({"clientName": "t", "resumeSessionId": null})).unwrap();
    assert!(greeting["sessionId"].is_string(), "{greeting}");
}
