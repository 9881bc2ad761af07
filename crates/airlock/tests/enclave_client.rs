//! The Rust client of the enclave door against the real server, through connections that break.

use crate::server_fixture::{self, Served};
use client::enclave::{
    EnclaveClient, EnclaveError, EnclaveSession, EnclaveToolError, EncryptionMode, Options,
    ReconnectOptions, SessionRequest,
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const NEVER: usize = usize::MAX;

/// Forwards between client and server, and breaks the next connection after the given number of bytes of the answer.
struct Proxy {
    url: String,
    cut: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    async fn start(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = served.url.strip_prefix("http://").unwrap().to_owned();
        let cut = Arc::new(AtomicUsize::new(NEVER));
        let next_cut = Arc::clone(&cut);
        #[expect(clippy::disallowed_methods, reason = "the test ends it")]
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&server).await.unwrap();
                let cut = next_cut.swap(NEVER, Ordering::SeqCst);
                tokio::spawn(pass(near, far, cut));
            }
        });
        Self { url, cut, task }
    }

    fn cut_next_after(&self, n_bytes: usize) {
        self.cut.store(n_bytes, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut near: TcpStream, mut far: TcpStream, mut left: usize) {
    let (mut request, mut answer) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            read = near.read(&mut request) => match read {
                Ok(n) if n > 0 => far.write_all(&request[..n]).await.unwrap_or_default(),
                Ok(_) | Err(_) => return,
            },
            read = far.read(&mut answer) => match read {
                Ok(n) if n > 0 => {
                    let n_passed = n.min(left);
                    if near.write_all(&answer[..n_passed]).await.is_err() || n_passed < n {
                        return;
                    }
                    left -= n_passed;
                }
                Ok(_) | Err(_) => return,
            },
        }
    }
}

fn token(served: &Served) -> String {
    served.client("run").secret
}

fn quick() -> Options {
    let initial_delay = Duration::from_millis(1);
    Options {
        reconnection: ReconnectOptions {
            initial_delay,
            attempts_max: 20,
            ..ReconnectOptions::default()
        },
        ..Options::default()
    }
}

fn connect(url: &str, served: &Served, options: Options) -> EnclaveClient {
    EnclaveClient::new(url, Some(&token(served)), options).unwrap()
}

async fn heard(mut session: EnclaveSession) -> Vec<Value> {
    let mut events = vec![];
    while let Some(event) = session.next().await {
        let event = event.unwrap();
        if event["type"] != "heartbeat" {
            events.push(event);
        }
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_run_at_the_caller_and_every_promise_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let client = connect(&served.url, &served, quick());
    let request = SessionRequest::new(
        "const all = await parallel([1, 2, 3], (n) => callTool('double', { n }));
         try { await callTool('fail') } catch (e) { all.push(e.code) } all",
    )
    .tool("double", |args| async move { Ok(json!(args["n"].as_i64().unwrap() * 2)) })
    .tool("fail", |_| async {
        Err(EnclaveToolError { code: "E_NO".into(), message: "no".into() })
    });
    let ended = client.execute(request.clone()).await.unwrap();
    assert_eq!((ended.ok, ended.result), (true, Some(json!([2, 4, 6, "E_NO"]))));
    assert_eq!(ended.stats["toolCallCount"], 4);

    let again = request.session_id("s_same");
    client.execute(again.clone()).await.unwrap();
    let refused = client.execute(again).await.unwrap_err();
    let EnclaveError::Refused { status: 409, code, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(code, "SESSION_EXISTS");
    let cancelled =
        client.start(SessionRequest::new("await callTool('x')").session_id("s_c")).unwrap();
    let mut cancelled = cancelled;
    while cancelled.next().await.unwrap().unwrap()["type"] != "tool_call" {}
    client.cancel("s_c").await.unwrap();
    let ended = cancelled.ended().await.unwrap();
    assert_eq!(ended.error.unwrap().code, "SESSION_CANCELLED");
    let mut impatient = quick();
    impatient.reconnection.attempts_max = 3;
    let nobody = EnclaveClient::new("http://127.0.0.1:1", None, impatient).unwrap();
    let broken = nobody.execute(SessionRequest::new("1")).await;
    assert!(matches!(broken, Err(EnclaveError::Broken(_))), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_at_any_byte_is_heard_whole_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let proxy = Proxy::start(&served).await;
    let client = connect(&proxy.url, &served, quick());
    let request =
        SessionRequest::new("console.log('ä'); emit(1); await tools.demo.add({ a: 1, b: 2 })");
    let recorded = heard(client.start(request.session_id("s_cut")).unwrap()).await;
    assert_eq!(recorded.last().unwrap()["payload"]["result"], 3);
    let raw = served.client("run").get("/sessions/s_cut/stream");
    let n_bytes = raw.body.len() + 700; // and its head
    for n in 0..n_bytes {
        proxy.cut_next_after(n);
        let seen = heard(client.attach("s_cut", 1).unwrap()).await;
        assert_eq!(seen, recorded, "cut after {n} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_session_started_through_breaking_connections_is_heard_whole() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let proxy = Proxy::start(&served).await;
    let options = Options { encryption: EncryptionMode::Required { pinned: None }, ..quick() };
    let client = connect(&proxy.url, &served, options);
    // Break points through the start, the stream and the results. The step is prime, so that no boundary is skipped
    // systematically.
    for n in (0..4_000).step_by(67) {
        proxy.cut_next_after(n);
        let request = SessionRequest::new("console.log('a'); [await callTool('t', {}), 1]")
            .tool("t", |_| async { Ok(json!("SECRET")) });
        let seen = heard(client.start(request).unwrap()).await;
        let kinds: Vec<_> = seen.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let expected = [
            "session_init",
            "stdout",
            "tool_call",
            "tool_progress",
            "tool_progress",
            "tool_result_applied",
            "final",
        ];
        assert_eq!(kinds, expected, "cut after {n} bytes");
        assert_eq!(seen[6]["payload"]["result"], json!(["SECRET", 1]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_in_between_reads_a_sealed_session_and_only_the_pinned_server_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let run = served.client("run");
    let identity: Value = serde_json::from_str(&run.get("/enclave/identity").body).unwrap();
    let pinned = identity["identityPubKeyB64"].as_str().map(str::to_owned);
    let sealed = |pinned| Options { encryption: EncryptionMode::Required { pinned }, ..quick() };
    let client = connect(&served.url, &served, sealed(pinned));
    let request = SessionRequest::new(
        "[await callTool('t', { big: 'x'.repeat(300000) }), 'SECRET of the program']",
    )
    .session_id("s_sealed")
    .tool("t", |_| async { Ok(json!("TOLD by the tool")) });
    let ended = client.execute(request).await.unwrap();
    assert_eq!(ended.result, Some(json!(["TOLD by the tool", "SECRET of the program"])));
    let raw = run.get("/sessions/s_sealed/stream").body;
    // These texts contain spaces, so base64 cannot contain them by chance.
    assert!(!raw.contains("SECRET of") && !raw.contains("TOLD by"), "told in clear");
    let kinds: Vec<Value> = raw
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["session_init", "enc", "enc", "enc", "enc", "enc"]);
    let nonces = |raw: &str| -> Vec<String> {
        let nonce =
            |line| serde_json::from_str::<Value>(line).unwrap()["payload"]["nonceB64"].clone();
        raw.lines().skip(1).map(|line| nonce(line).as_str().unwrap().to_owned()).collect()
    };
    let again = run.get("/sessions/s_sealed/stream").body;
    served.stop();
    let served = Served::start(folder.path(), &[]);
    let after = served.client("run").get("/sessions/s_sealed/stream").body;
    let mut all = [nonces(&raw), nonces(&again), nonces(&after)].concat();
    let n_all = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), n_all, "a nonce came twice");

    let wrong = Some(protocols::enclave::sealing::public_of(&[7; 32]).unwrap());
    let refused =
        connect(&served.url, &served, sealed(wrong)).execute(SessionRequest::new("1")).await;
    assert!(matches!(refused, Err(EnclaveError::Untrusted(_))), "{refused:?}");
    let kept: Value =
        serde_json::from_str(&served.client("run").get("/enclave/identity").body).unwrap();
    assert_eq!(kept, identity, "the same server after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_session_gets_the_plain_value_of_a_catalogue_tool() {
    let folder = tempfile::tempdir().unwrap();
    let (script, file) = (folder.path().join("add.sh"), folder.path().join("airlock.toml"));
    std::fs::write(&script, "echo '{\"sum\":42}'").unwrap();
    let tool = format!("argv = ['sh', '{}']\nasks = false\n", script.display());
    let config = format!("[enclave.tools]\nadd = 't.org.main.add'\n[sources.t.tools.add]\n{tool}");
    std::fs::write(&file, config).unwrap();
    let words = ["--config", file.to_str().unwrap()];
    let served = Served::start(&folder.path().join("data"), &words);
    let options = Options { encryption: EncryptionMode::Required { pinned: None }, ..quick() };
    let client = connect(&served.url, &served, options);
    let ended = client.execute(SessionRequest::new("await callTool('add', {})")).await.unwrap();
    assert_eq!((ended.ok, ended.result), (true, Some(json!({ "sum": 42 }))), "{:?}", ended.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_sealing_is_required_nothing_is_taken_in_clear_or_twice() {
    use protocols::enclave::EnclaveSessionId;
    use protocols::enclave::sealing::{ClientHello, DirectionKeys, StreamOpener, StreamSealer};
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let run = served.client("run");
    let session = EnclaveSessionId::parse("s_req").unwrap();
    let hello = ClientHello::new(&[3; 32]).unwrap();
    let body = json!({"sessionId":"s_req","code":"await callTool('a'); await callTool('b')","filter":{"types":["tool_call"]},
        "encryption":{"mode":"required","clientHello":hello}});
    let reading = run.clone();
    let streaming =
        tokio::task::spawn_blocking(move || reading.post("/sessions", &body.to_string()));
    let first = loop {
        let stream = TcpStream::connect(&run.address).await.unwrap();
        if let Some(lines) = first_lines(stream, &run, "/sessions/s_req/stream", 2).await {
            break lines;
        }
    };
    let server = first[0]["payload"]["encryption"]["serverHello"].clone();
    let keys = DirectionKeys::agree(
        &[3; 32],
        server["serverEphemeralPubKeyB64"].as_str().unwrap(),
        &session,
    )
    .unwrap();
    let key_id = server["keyId"].as_str().unwrap();
    let mut opener = StreamOpener::streams(&keys.s2c, key_id, &session);
    let envelope = serde_json::from_value(first[1].clone()).unwrap();
    let call: Value = serde_json::from_slice(&opener.open(&envelope).unwrap()).unwrap();
    let result = json!({"callId":call["payload"]["callId"],"result":1}).to_string();
    let send = |body: &str| {
        let answer = run.post("/sessions/s_req/tool-result", body);
        let said: Value = serde_json::from_str(&answer.body).unwrap();
        (answer.status, said["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(send(&result), (400, "ENCRYPTION_REQUIRED".into()));
    let mut sealer = StreamSealer::new(&keys.c2s, [1; 8], key_id, &session);
    let sealed = serde_json::to_string(&sealer.seal(1, result.as_bytes()).unwrap()).unwrap();
    assert_eq!(send(&sealed).0, 200);
    assert_eq!(send(&sealed), (409, "ENCRYPTION_NONCE_REUSE".into()));
    let cancel = |body: &str| {
        let answer = run.post("/sessions/s_req/cancel", body);
        let said: Value = serde_json::from_str(&answer.body).unwrap();
        (answer.status, said["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(cancel(r#"{"reason":"SECRET"}"#), (400, "ENCRYPTION_REQUIRED".into()));
    let no_cancel = sealer.seal(9, result.as_bytes()).unwrap();
    let no_cancel = serde_json::to_string(&no_cancel).unwrap();
    assert_eq!(cancel(&no_cancel), (400, "INVALID_REQUEST".into()), "a result ends nothing");
    let mut touched = sealer.seal(2, result.as_bytes()).unwrap();
    touched.payload.kid = "k_other".into();
    assert_eq!(
        send(&serde_json::to_string(&touched).unwrap()),
        (400, "ENCRYPTION_DECRYPTION_FAILED".into())
    );
    let reason = json!({"type":"cancel","payload":{"reason":"SECRET"}}).to_string();
    let sealed = serde_json::to_string(&sealer.seal(3, reason.as_bytes()).unwrap()).unwrap();
    assert_eq!(cancel(&sealed).0, 200);
    let streamed = streaming.await.unwrap().body;
    assert!(!streamed.contains("SECRET"), "told in clear: {streamed}");
    let mut opener = StreamOpener::streams(&keys.s2c, key_id, &session);
    let mut end = Value::Null;
    for line in streamed.lines().skip(1) {
        let envelope = serde_json::from_str(line).unwrap();
        end = serde_json::from_slice(&opener.open(&envelope).unwrap()).unwrap();
    }
    let message = "The session was cancelled by run: SECRET";
    assert_eq!(end["payload"]["error"], json!({"code":"SESSION_CANCELLED","message":message}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_ends_its_session_with_a_reason_sealed_or_not_and_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    for encryption in [EncryptionMode::Off, EncryptionMode::Required { pinned: None }] {
        let client = connect(&served.url, &served, Options { encryption, ..quick() });
        let request = SessionRequest::new("await callTool('x')");
        let mut session = client.start(request).unwrap();
        while session.next().await.unwrap().unwrap()["type"] != "tool_call" {}
        session.cancel(Some("enough")).await.unwrap();
        let id = session.id().to_owned();
        let error = session.ended().await.unwrap().error.unwrap();
        assert_eq!(error.message, "The session was cancelled by run: enough");
        client.remove(&id).await.unwrap();
        let gone = heard_first(client.attach(&id, 2).unwrap()).await;
        let Err(EnclaveError::Refused { status: 410, code, .. }) = gone else { panic!("{gone:?}") };
        assert_eq!(code, "EVENTS_GONE");
    }
}

async fn heard_first(mut session: EnclaveSession) -> Result<Value, EnclaveError> {
    session.next().await.unwrap()
}

/// The first lines of a stream that continues; `None` if the session does not exist yet.
async fn first_lines(
    mut stream: TcpStream,
    client: &server_fixture::Client,
    path: &str,
    n: usize,
) -> Option<Vec<Value>> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        client.address, client.secret
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let lines: Vec<Value> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .flat_map(serde_json::from_str)
            .collect();
        if text.starts_with("HTTP/1.1 404") {
            return None;
        }
        if lines.len() >= n {
            return Some(lines);
        }
        let n_read = stream.read(&mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..n_read]).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_session_is_cancelled_over_a_socket_under_seal_and_not_in_clear() {
    use protocols::enclave::EnclaveSessionId;
    use protocols::enclave::sealing::{ClientHello, DirectionKeys, StreamOpener, StreamSealer};
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let mut socket = socket(&served).await;
    let session = EnclaveSessionId::parse("s_ws").unwrap();
    let hello = ClientHello::new(&[3; 32]).unwrap();
    let execute = json!({"type":"execute","sessionId":"s_ws","code":"await callTool('a')",
        "encryption":{"mode":"required","clientHello":hello}});
    socket.send(Message::text(execute.to_string())).await.unwrap();
    let (mut seal, mut refused, mut heard) = (None, vec![], vec![]);
    let end = loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        heard.push(text.to_string());
        let event: Value = serde_json::from_str(&text).unwrap();
        let server = &event["payload"]["encryption"]["serverHello"];
        if let Some(key) = server["serverEphemeralPubKeyB64"].as_str() {
            let keys = DirectionKeys::agree(&[3; 32], key, &session).unwrap();
            let id = server["keyId"].as_str().unwrap();
            let opener = StreamOpener::streams(&keys.s2c, id, &session);
            seal = Some((opener, StreamSealer::new(&keys.c2s, [1; 8], id, &session)));
        } else if event["type"] == "error" {
            refused.push(event["code"].clone());
            let wish = json!({"type":"cancel","payload":{"reason":"SECRET"}}).to_string();
            let sealed = seal.as_mut().unwrap().1.seal(1, wish.as_bytes()).unwrap();
            let sealed = serde_json::to_string(&sealed).unwrap();
            socket.send(Message::text(sealed)).await.unwrap();
        } else if event["type"] == "enc" {
            let envelope = serde_json::from_value(event).unwrap();
            let opened = seal.as_mut().unwrap().0.open(&envelope).unwrap();
            let event: Value = serde_json::from_slice(&opened).unwrap();
            match event["type"].as_str().unwrap() {
                "tool_call" => {
                    let clear = json!({"type":"cancel","sessionId":"s_ws","reason":"in clear"});
                    socket.send(Message::text(clear.to_string())).await.unwrap();
                }
                "final" => break event["payload"]["error"].clone(),
                _ => {}
            }
        }
    };
    assert_eq!(refused, ["ENCRYPTION_REQUIRED"]);
    let message = "The session was cancelled by run: SECRET";
    assert_eq!(end, json!({"code":"SESSION_CANCELLED","message":message}));
    assert!(!heard.concat().contains("SECRET"), "told in clear");
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

/// A WebSocket to the enclave door.
async fn socket(served: &Served) -> Socket {
    socket_at(served, "/enclave/ws", &token(served)).await
}

async fn socket_at(served: &Served, path: &str, token: &str) -> Socket {
    let url = served.url.replace("http://", "ws://") + path;
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {token}").parse().unwrap();
    request.headers_mut().insert("Authorization", bearer);
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_guest_puts_together_leaves_by_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let passphrase = json!({ "passphrase": "correct horse battery" }).to_string();
    assert_eq!(served.client("admin").post("/api/vault/export", &passphrase).status, 200);
    let mut socket = socket(&served).await;
    let code =
        "console.log('correct ho' + 'rse battery'); return ['correct ho', 'rse battery'].join('')";
    let execute = json!({ "type": "execute", "sessionId": "s_shy", "code": code });
    socket.send(Message::text(execute.to_string())).await.unwrap();
    let mut told = String::new();
    while !told.contains("\"final\"") {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        told.push_str(&text);
    }
    assert!(told.contains("[redacted]") && !told.contains("horse battery"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_sessions_share_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let mut socket = socket(&served).await;
    let frames = [
        json!({"type":"ping","timestamp":1}),
        json!({"type":"wat"}),
        json!({"type":"execute","sessionId":"s_a","code":"[await callTool('a'), 1]"}),
        json!({"type":"execute","sessionId":"s_b","code":"[await callTool('b'), 2]"}),
        json!({"type":"execute","sessionId":"s_c","code":"await callTool('c')"}),
        json!({"type":"execute","sessionId":"s_d","code":"await callTool('d')"}),
    ];
    for frame in frames {
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    let (mut ended, mut others) = (vec![], vec![]);
    while ended.len() < 4 {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let event: Value = serde_json::from_str(&text).unwrap();
        let (session, call) = (event["sessionId"].clone(), event["payload"]["callId"].clone());
        let answer = match (event["type"].as_str().unwrap(), session.as_str().unwrap_or_default()) {
            ("tool_call", "s_a") => json!({"type":"tool_result","callId":call,"result":"seed"}),
            ("tool_call", "s_b") => {
                json!({"protocolVersion":2,"sessionId":"s_b","type":"tool_result_submit","payload":{"callId":call,"ok":true,"result":"types"}})
            }
            ("tool_call", "s_c") => {
                json!({"type":"tool_result","sessionId":"s_c","callId":call,"success":true,"value":"demo"})
            }
            ("tool_call", "s_d") => json!({"type":"cancel","sessionId":"s_d","reason":"bye"}),
            ("final", id) => {
                let payload = &event["payload"];
                let end = if payload["ok"] == true {
                    &payload["result"]
                } else {
                    &payload["error"]["code"]
                };
                ended.push((id.to_owned(), end.clone()));
                continue;
            }
            ("pong" | "error", "") => {
                others.push((event["type"].clone(), event["code"].clone()));
                continue;
            }
            _ => continue,
        };
        socket.send(Message::text(answer.to_string())).await.unwrap();
    }
    ended.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("s_a".to_owned(), json!(["seed", 1])),
        ("s_b".to_owned(), json!(["types", 2])),
        ("s_c".to_owned(), json!("demo")),
        ("s_d".to_owned(), json!("SESSION_CANCELLED")),
    ];
    assert_eq!(ended, expected);
    assert_eq!(others, [(json!("pong"), Value::Null), (json!("error"), json!("INVALID_REQUEST"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_frame_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let mut socket = socket(&served).await;
    let run = json!({"type":"execute","sessionId":"s_close","code":"1"}).to_string();
    socket.send(Message::text(run)).await.unwrap();
    socket.next().await.unwrap().unwrap();
    assert!(is_close_answered(socket).await, "/enclave/ws");
}

/// Closes a socket and reports whether a Close frame arrives before the connection ends.
async fn is_close_answered(mut socket: Socket) -> bool {
    socket.close(None).await.unwrap();
    while let Some(message) = socket.next().await {
        // A connection that ends without a Close frame is an error here, and code 1006 in a browser.
        match message {
            Ok(message) if message.is_close() => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn every_socket_answers_a_close_frame() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--exec"]);
    let body = json!({"name":"sockets","scopes":["run","process"]}).to_string();
    let minted: Value =
        serde_json::from_str(&served.client("admin").post("/api/tokens", &body).body).unwrap();
    let token = minted["secret"].as_str().unwrap();
    for path in ["/enclave/ws", "/execbox", "/repl", "/exec"] {
        let socket = socket_at(&served, path, token).await;
        assert!(is_close_answered(socket).await, "{path}");
    }
}

/// The code of the Close frame that ends a socket: 1005 for one without a code, none where it is cut off.
async fn close_code(mut socket: Socket) -> Option<u16> {
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Close(frame) = message {
            return Some(frame.map_or(1005, |frame| frame.code.into()));
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_closes_every_socket() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--exec"]);
    let body = json!({"name":"sockets","scopes":["run","process"]}).to_string();
    let minted: Value =
        serde_json::from_str(&served.client("admin").post("/api/tokens", &body).body).unwrap();
    let token = minted["secret"].as_str().unwrap();
    let mut sockets = vec![];
    for path in ["/enclave/ws", "/execbox", "/repl", "/exec"] {
        let mut socket = socket_at(&served, path, token).await;
        if path == "/repl" {
            socket.next().await.unwrap().expect("the handshake: its session has the client");
        }
        sockets.push((path, close_code(socket)));
    }
    served.signal("-TERM");
    let mut codes = vec![];
    for (path, code) in sockets {
        codes.push((path, code.await));
    }
    let expected = [
        ("/enclave/ws", Some(1001)),
        ("/execbox", Some(1001)),
        ("/repl", Some(1000)),
        ("/exec", Some(1005)),
    ];
    assert_eq!(codes, expected);
}
