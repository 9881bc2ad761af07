//! Which pages may call the server, where its own pages are, and where a URL may contain a token.

use crate::server_fixture::{self, Answer, Client, Served};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use tempfile::TempDir;

fn fresh(more: &[&str]) -> (TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), more);
    (dir, served)
}

/// Mints a token.
fn token(served: &Served, name: &str, scopes: &[&str]) -> Client {
    let body = json!({ "name": name, "scopes": scopes }).to_string();
    let minted = served.client("admin").post("/api/tokens", &body);
    assert_eq!(minted.status, 201, "{minted:?}");
    served.client_with(minted.json()["secret"].as_str().unwrap())
}

const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The status of a WebSocket upgrade. `101` leaves the connection open, so no more is read.
fn upgrade(client: &Client, path: &str, more: &[(&str, &str)]) -> u16 {
    let headers: Vec<_> = UPGRADE.iter().chain(more).copied().collect();
    let mut stream = client.connect();
    stream.write_all(client.head("GET", path, &headers, 0).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

// ---- Pages of other origins ----

#[test]
fn another_port_of_this_machine_may_not_call_even_where_no_token_is_asked_for() {
    let (_dir, served) = fresh(&["--no-auth"]);
    let page = served.client_with("");
    let from = |origin: &str, method: &str, body: &str| {
        let headers =
            [("Origin", origin), ("Content-Type", "application/json"), ("Authorization", "")];
        page.send(method, "/api/executions", &headers, body)
    };
    let program = r#"{"code":"return 1"}"#;
    let port = served.url.rsplit(':').next().unwrap();
    for origin in [
        "http://localhost:5173",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "http://[::1]:5173",
        &format!("https://127.0.0.1:{port}"),
        &format!("http://localhost:{port}"),
        "null",
    ] {
        let refused = from(origin, "POST", program);
        assert_eq!((origin, refused.status), (origin, 403));
        assert_eq!(refused.header("access-control-allow-origin"), None);
        for path in ["/repl", "/execbox", "/enclave/ws"] {
            assert_eq!((path, upgrade(&page, path, &[("Origin", origin)])), (path, 403));
        }
    }
    assert_eq!(from(&served.url, "POST", program).status, 200);
    assert_eq!(upgrade(&page, "/repl", &[("Origin", &served.url)]), 101);
}

#[test]
fn a_named_origin_may_call_and_no_other() {
    let (_dir, served) = fresh(&["--allowed-origin", "http://localhost:5173"]);
    let client = served.client("run");
    let preflight = |origin: &str| {
        let headers =
            [("Origin", origin), ("Access-Control-Request-Method", "POST"), ("Authorization", "")];
        client.send("OPTIONS", "/api/executions", &headers, "")
    };
    let allowed = preflight("http://localhost:5173");
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("http://localhost:5173"));
    let refused = preflight("http://localhost:5174");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
    let advice = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(advice.contains("--allowed-origin http://localhost:5174"), "{advice}");
    assert_eq!(upgrade(&client, "/repl", &[("Origin", "http://localhost:5173")]), 101);
    assert_eq!(upgrade(&client, "/repl", &[("Origin", "http://localhost:5174")]), 403);
}

#[test]
fn a_named_origin_is_a_recorded_setting_that_no_flag_adds_to() {
    let (dir, data) = (tempfile::tempdir().unwrap(), "data");
    let data_dir = dir.path().join(data);
    let (first, second) = ("http://localhost:5173", "http://localhost:5174");
    let may_call = |served: &Served| {
        let client = served.client("run");
        [first, second].map(|origin| {
            client.send("GET", "/api/executions", &[("Origin", origin)], "").status == 200
        })
    };
    let served = Served::start(&data_dir, &["--allowed-origin", first]);
    assert_eq!(may_call(&served), [true, false]);
    served.kill();
    let served = Served::start(&data_dir, &[]);
    assert_eq!(may_call(&served), [true, false], "nothing is lost with the flag");
    served.kill();
    let mut refused =
        server_fixture::airlock(&["serve", "--listen", "127.0.0.1:0", "--allowed-origin", second]);
    let refused = refused.arg("--data-dir").arg(&data_dir).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("airlock settings set allowed-origins"), "{text}");
    let value = format!("{first},{second}");
    let mut set = server_fixture::airlock(&["settings", "set", "allowed-origins", &value]);
    assert!(set.arg("--data-dir").arg(&data_dir).status().unwrap().success());
    let served = Served::start(&data_dir, &[]);
    assert_eq!(may_call(&served), [true, true]);
}

#[test]
fn a_host_that_is_allowed_has_its_origins_until_origins_are_named() {
    let of = |client: &Client, origin: &str| {
        client
            .send("GET", "/api/executions", &[("Origin", origin), ("Host", "box.example")], "")
            .status
    };
    let (_dir, served) = fresh(&["--allowed-host", "box.example"]);
    let client = served.client("run");
    let before = ["https://box.example", "http://box.example", "https://box.example:8443"];
    assert_eq!(before.map(|origin| of(&client, origin)), [200, 200, 403]);
    let named = ["--allowed-host", "box.example", "--allowed-origin", "https://app.example"];
    let (_dir, served) = fresh(&named);
    let client = served.client("run");
    let after = ["https://box.example", "https://app.example"];
    assert_eq!(after.map(|origin| of(&client, origin)), [403, 200]);
}

#[test]
fn an_origin_has_no_path() {
    for origin in ["http://localhost:5173/", "*", "localhost:5173"] {
        let refused =
            server_fixture::airlock(&["serve", "--allowed-origin", origin]).output().unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains("an origin is scheme://host"), "{text}");
    }
}

// ---- One origin for people ----

#[test]
fn other_loopback_names_lead_to_the_canonical_origin_for_pages_only() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let at = |host: &str, path: &str| client.send("GET", path, &[("Host", host)], "");
    let location = |answer: &Answer| answer.header("location").map(str::to_owned);
    for host in [format!("localhost:{port}"), format!("[::1]:{port}")] {
        for path in ["/", "/?a=b", "/resume/exec_1", "/connect"] {
            let sent = at(&host, path);
            assert_eq!(
                (sent.status, location(&sent)),
                (307, Some(format!("{}{path}", served.url)))
            );
        }
        for path in ["/api/executions", "/healthz", "/console/main.js"] {
            assert_eq!((path, at(&host, path).status), (path, 200));
        }
    }
    for host in [format!("127.0.0.1:{port}"), "localhost:9".into(), "localhost".into()] {
        assert_eq!((host.as_str(), at(&host, "/").status), (host.as_str(), 200));
    }
}

#[test]
fn the_public_url_is_where_people_are_sent_and_whose_pages_may_call() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let public = ["--public-url", "https://box.example"];
    let served = Served::start_with(&dir.path().join("data"), &public, file.into(), None);
    let told = server_fixture::wait_for(|| {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().find(|line| line.contains("#code=")).map(str::to_owned)
    });
    assert!(told.contains("https://box.example/#code="), "{told}");
    let data = served.data_dir.to_str().unwrap();
    let open = server_fixture::airlock(&["open", "--print", "--data-dir", data]).output().unwrap();
    let link = String::from_utf8(open.stdout).unwrap();
    assert!(link.starts_with("https://box.example/#code="), "{link}");
    let client = served.client("run");
    let from = |origin: &str, host: &str| {
        client.send("GET", "/api/executions", &[("Origin", origin), ("Host", host)], "").status
    };
    let local = served.url.strip_prefix("http://").unwrap();
    assert_eq!(from("https://box.example", "box.example"), 200);
    assert_eq!(from("https://box.example", local), 200, "a proxy may rewrite Host");
    assert_eq!(from("http://box.example", "box.example"), 403);
    assert_eq!(from(&served.url, local), 403);
    assert_eq!(
        client.send("GET", "/", &[("Host", local)], "").status,
        200,
        "no loop behind a proxy"
    );
}

// ---- Tokens in URLs ----

#[test]
fn a_token_in_a_url_counts_for_the_protocols_only_and_never_with_admin() {
    let (_dir, served) = fresh(&["--exec"]);
    let bare = Client { secret: String::new(), ..served.client("run") };
    let get = |path: &str, secret: &str, more: &[(&str, &str)]| {
        let path = format!("{path}?token={secret}");
        bare.send("GET", &path, &[&[("Authorization", "")], more].concat(), "").status
    };
    let open = |path: &str, secret: &str| {
        upgrade(&bare, &format!("{path}?token={secret}"), &[("Authorization", "")])
    };
    let run = token(&served, "bot", &["run", "process"]).secret;
    let execution = served.client_with(&run).execute("return 1").execution();
    let events = format!("/api/executions/{execution}/events");
    assert_eq!(get(&events, &run, &[]), 200);
    for path in ["/exec", "/repl", "/execbox", "/enclave/ws"] {
        assert_eq!((path, open(path, &run)), (path, 101));
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mcp = |secret: &str| {
        let headers = [
            ("Authorization", ""),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        bare.send("POST", &format!("/mcp?token={secret}"), &headers, list).status
    };
    assert_ne!(mcp(&run), 401);

    let others = ["/api/executions", "/api/tokens", "/api/questions", "/api/session", "/sessions"];
    for path in others {
        assert_eq!((path, get(path, &run, &[])), (path, 401));
        assert_eq!((path, open(path, &run)), (path, 401), "no header widens it");
        assert_eq!((path, get(path, &run, &[("Upgrade", "x")])), (path, 401));
    }
    for secret in [served.client("admin").secret.as_str(), server_fixture::ENVIRONMENT_SECRET] {
        assert_eq!((get(&events, secret, &[]), mcp(secret)), (403, 403));
        for path in ["/exec", "/repl", "/execbox", "/enclave/ws"] {
            assert_eq!((path, open(path, secret)), (path, 403));
        }
    }
}

#[test]
fn the_repl_of_its_own_server_takes_a_token_in_the_url_where_its_clients_look() {
    use std::process::Stdio;
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        server_fixture::airlock(&["repl-server", "--listen", "ws://127.0.0.1:0", "--data-dir"])
            .arg(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let address = ready.trim().rsplit("http://").next().unwrap().to_owned();
    let secret =
        |name: &str| std::fs::read_to_string(dir.path().join("tokens").join(name)).unwrap();
    let (run, admin) = (secret("run"), secret("admin"));
    let bare = Client { address, secret: String::new() };
    let open = |path: &str, secret: &str| {
        upgrade(&bare, &format!("{path}?token={}", secret.trim()), &[("Authorization", "")])
    };
    assert_eq!([open("/", &run), open("/repl", &run), open("/any", &run)], [101; 3]);
    assert_eq!([open("/", &admin), open("/api/executions", &run)], [403, 401]);
    child.kill().unwrap();
    child.wait().unwrap();
}

// ---- Names of tokens ----

#[test]
fn no_token_has_the_name_of_a_built_in_caller() {
    let (_dir, served) = fresh(&[]);
    let admin = served.client("admin");
    let mint = |body: serde_json::Value| admin.post("/api/tokens", &body.to_string());
    for name in ["environment", "anybody", "terminal", "embedder", "callback", "token.bot"] {
        let refused = mint(json!({ "name": name, "scopes": ["run"] }));
        assert_eq!(refused.status, 400, "{refused:?}");
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("{name} is the name of a caller")), "{message}");
    }
}

#[test]
fn a_removed_name_is_issued_again_only_to_take_it_over() {
    let (_dir, served) = fresh(&[]);
    let admin = served.client("admin");
    let data = served.data_dir.to_str().unwrap().to_owned();
    let command = |words: &[&str]| {
        let words = [&["token", "--data-dir", &data], words].concat();
        let output = server_fixture::airlock(&words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let first = token(&served, "bot", &["run"]);
    let execution = first.execute("return 'a secret of the first'").execution();
    assert_eq!(command(&["remove", "bot"]).0, Some(0));
    let again = json!({ "name": "bot", "scopes": ["run"] });
    let refused = admin.post("/api/tokens", &again.to_string());
    assert_eq!(refused.status, 409, "{refused:?}");
    let (code, words) = command(&["add", "bot", "--scope", "run"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("--take-over"), "{words}");
    let unused = json!({ "name": "other", "scopes": ["run"] });
    assert_eq!(admin.post("/api/tokens", &unused.to_string()).status, 201);

    assert_eq!(served.stop(), Some(0));
    let (code, words) = command(&["add", "bot", "--scope", "run"]);
    assert_eq!(code, Some(1), "the same without a server: {words}");
    assert_eq!(command(&["add", "bot", "--scope", "run", "--take-over"]).0, Some(0));
    assert_eq!(command(&["remove", "bot"]).0, Some(0));
    let served = Served::start(std::path::Path::new(&data), &[]);
    let taken = json!({ "name": "bot", "scopes": ["run"], "takeOver": true });
    let taken = served.client("admin").post("/api/tokens", &taken.to_string());
    assert_eq!(taken.status, 201, "{taken:?}");
    let second = served.client_with(taken.json()["secret"].as_str().unwrap());
    assert_eq!(second.get(&format!("/api/executions/{execution}")).status, 200);
}

#[test]
fn a_token_from_before_continues_under_a_name_of_its_own_and_is_reported() {
    use sha2::{Digest as _, Sha256};
    use store::RecordStore as _;
    use store::sqlite::SqliteStore;
    let dir = tempfile::tempdir().unwrap();
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    drop(Served::start(&data, &[]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&data).unwrap();
        let sha256: String =
            Sha256::digest("alk_old").iter().map(|byte| format!("{byte:02x}")).collect();
        let record =
            json!({ "name": "environment", "scopes": ["run"], "sha256": sha256, "created": 1 });
        store.put("token", "environment", record.to_string(), 0).await.unwrap();
        store.close().await;
    });
    let file = std::fs::File::create(&log).unwrap();
    let served = Served::start_with(&data, &[], file.into(), None);
    let old = served.client_with("alk_old");
    assert_eq!(old.get("/api/session").json()["name"], "token.environment");
    let owned =
        served.client_with(server_fixture::ENVIRONMENT_SECRET).execute("return 1").execution();
    assert_eq!(old.get(&format!("/api/executions/{owned}")).status, 404);
    let words = std::fs::read_to_string(&log).unwrap();
    assert!(words.contains("continues as token.environment"), "{words}");
    let list = ["token", "list", "--data-dir", data.to_str().unwrap()];
    let listed =
        String::from_utf8(server_fixture::airlock(&list).output().unwrap().stdout).unwrap();
    assert!(listed.contains("\ttoken.environment\n"), "{listed}");
}
