//! A token is sent only to a server that proves, at its own address, that it knows the token.

use crate::server_fixture::{self, Served, airlock};
use crate::web::{Page, Web};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use store::sqlite::SqliteStore;

/// A secret in the format of minted ones.
const SECRET: &str = "alk_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

/// A process that listens where a client expects a server. It records the requests, and ends with the test.
struct Impostor {
    url: String,
    got: Arc<Mutex<Vec<u8>>>,
}

/// How it treats a connection.
#[derive(Clone)]
enum Manner {
    /// Answers all requests with this status and an empty object.
    Answers(&'static str),
    /// Answers challenges with 404, as earlier versions do, and other requests with an empty page of executions.
    Older,
    /// Passes bytes on to the server at this address, and back.
    Relays(String),
    /// The same, but replaces its own address by the server's, and back.
    Rewrites(String),
}

impl Impostor {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let got = Arc::<Mutex<Vec<u8>>>::default();
        let (url, record) = (format!("http://{address}"), Arc::clone(&got));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (manner, record, address) =
                    (manner.clone(), Arc::clone(&record), address.clone());
                // Some of these tests are about clients that disconnect.
                thread::spawn(move || drop(serve(&manner, stream, &record, &address)));
            }
        });
        Self { url, got }
    }

    fn got(&self) -> String {
        String::from_utf8_lossy(&self.got.lock().unwrap()).into_owned()
    }
}

fn serve(
    manner: &Manner,
    stream: TcpStream,
    record: &Mutex<Vec<u8>>,
    own: &str,
) -> std::io::Result<()> {
    let server = match manner {
        Manner::Relays(server) | Manner::Rewrites(server) => server.clone(),
        Manner::Answers(_) | Manner::Older => return answer(manner, stream, record),
    };
    let (from, to) = match manner {
        Manner::Rewrites(_) => (own.to_owned(), server.clone()),
        Manner::Answers(_) | Manner::Older | Manner::Relays(_) => (String::new(), String::new()),
    };
    let far = TcpStream::connect(&server)?;
    let (far_back, stream_back) = (far.try_clone()?, stream.try_clone()?);
    let (back_from, back_to) = (to.clone(), from.clone());
    thread::spawn(move || pass(far_back, stream_back, None, &back_from, &back_to));
    pass(stream, far, Some(record), &from, &to)
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    record: Option<&Mutex<Vec<u8>>>,
    replaced: &str,
    by: &str,
) -> std::io::Result<()> {
    let mut bytes = [0; 1 << 16];
    loop {
        let n = from.read(&mut bytes)?;
        if n == 0 {
            return to.shutdown(Shutdown::Write);
        }
        if let Some(record) = record {
            record.lock().unwrap().extend_from_slice(&bytes[..n]);
        }
        let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
        // Ports that the system chooses have five digits, so lengths stay correct.
        let text = if replaced.is_empty() { text } else { text.replace(replaced, by) };
        to.write_all(text.as_bytes())?;
    }
}

fn answer(manner: &Manner, mut stream: TcpStream, record: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut bytes = [0; 1 << 16];
    loop {
        // Requests of these tests are small and arrive in one piece.
        let n = stream.read(&mut bytes)?;
        if n == 0 {
            return Ok(());
        }
        record.lock().unwrap().extend_from_slice(&bytes[..n]);
        let is_challenge = bytes.starts_with(b"POST /api/prove");
        let (status, body) = match manner {
            Manner::Older if is_challenge => ("404 Not Found", "{}"),
            Manner::Older => ("200 OK", r#"{"executions":[],"complete":true}"#),
            Manner::Answers(status) => (*status, "{}"),
            Manner::Relays(_) | Manner::Rewrites(_) => return Ok(()),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes())?;
    }
}

/// The exit code and the output of a command.
fn told(words: &[&str]) -> (Option<i32>, String, String) {
    let output = airlock(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A data directory that holds a token.
fn directory_with_tokens(dir: &Path) {
    std::fs::create_dir_all(dir.join("tokens")).unwrap();
    for name in ["admin", "run"] {
        std::fs::write(dir.join("tokens").join(name), format!("{SECRET}\n")).unwrap();
    }
}

#[track_caller]
fn got_a_challenge_and_no_secret(impostor: &Impostor, secret: &str) {
    let got = impostor.got();
    assert!(got.starts_with("POST /api/prove "), "{got}");
    assert!(!got.contains(secret) && !got.to_lowercase().contains("authorization"), "{got}");
}

#[test]
fn a_program_that_cannot_prove_anything_gets_nothing() {
    for status in ["404 Not Found", "200 OK", "500 Oh", "401 Unauthorized"] {
        let impostor = Impostor::start(Manner::Answers(status));
        let dir = tempfile::tempdir().unwrap();
        directory_with_tokens(dir.path());
        let data = dir.path().to_str().unwrap();
        let (code, printed, words) =
            told(&["executions", "list", "--server", &impostor.url, "--data-dir", data]);
        assert_ne!(code, Some(0), "{status}: {printed}{words}");
        assert!(words.contains(&impostor.url), "{words}");
        got_a_challenge_and_no_secret(&impostor, SECRET);
    }
}

#[test]
fn a_process_that_passes_the_challenge_on_gets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let (data, address) = (dir.path().to_str().unwrap(), served.client("admin").address);
    let list = |url: &str| told(&["executions", "list", "--server", url, "--data-dir", data]);
    let secret = served.client("admin").secret;

    let relay = Impostor::start(Manner::Relays(address.clone()));
    let (code, _, words) = list(&relay.url);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains(&format!("passes requests on to the server at {address}")), "{words}");
    assert!(words.contains("Nothing was sent"), "{words}");
    got_a_challenge_and_no_secret(&relay, &secret);

    let rewriting = Impostor::start(Manner::Rewrites(address.clone()));
    let (code, _, words) = list(&rewriting.url);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("did not prove that it knows the token. Nothing was sent"), "{words}");
    got_a_challenge_and_no_secret(&rewriting, &secret);

    let (code, _, words) = list(&served.url);
    assert_eq!((code, words.as_str()), (Some(0), ""), "the server itself proves it");
}

#[test]
fn a_tunnel_is_named_with_the_servers_own_address() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("far"), &[]);
    let admin = served.client("admin");
    let tunnel = Impostor::start(Manner::Relays(admin.address.clone()));
    let (near, file) = (dir.path().join("near"), dir.path().join("token"));
    std::fs::write(&file, &admin.secret).unwrap();
    let (near, file) = (near.to_str().unwrap(), file.to_str().unwrap());
    let add =
        ["server", "add", "far", &tunnel.url, "--token-file", file, "--use", "--data-dir", near];
    assert_eq!(told(&add).0, Some(0));
    let list = ["executions", "list", "--data-dir", near];
    assert_eq!(told(&list).0, Some(1), "a profile's token needs a proof too");
    got_a_challenge_and_no_secret(&tunnel, &admin.secret);
    assert_eq!(told(&[&add[..], &["--address", &admin.address]].concat()).0, Some(0));
    let (code, _, words) = told(&list);
    assert_eq!(code, Some(0), "{words}");
}

#[test]
fn another_process_on_the_port_that_the_directory_names_gets_nothing() {
    let impostor = Impostor::start(Manner::Answers("404 Not Found"));
    let dir = tempfile::tempdir().unwrap();
    directory_with_tokens(dir.path());
    let store = SqliteStore::open(dir.path()).unwrap();
    store.set_owner_note(&impostor.url).unwrap();
    let data = dir.path().to_str().unwrap();
    for words in [
        &["executions", "list", "--data-dir", data][..],
        &["token", "list", "--data-dir", data],
        &["repl", "--data-dir", data],
        &["exec", "--data-dir", data, "--", "true"],
        &["mcp", "--data-dir", data, "--server", &impostor.url],
    ] {
        impostor.got.lock().unwrap().clear();
        let mut child = airlock(words);
        child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        // A verb that reads no input may have ended already.
        let _ = writeln!(child.stdin.take().unwrap(), "{ping}");
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("cannot prove that it knows the token"), "{words:?}: {text}");
        got_a_challenge_and_no_secret(&impostor, SECRET);
    }
}

#[test]
fn a_token_that_is_given_for_an_older_server_is_sent_as_before() {
    let older = Impostor::start(Manner::Older);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let list = ["executions", "list", "--server", &older.url, "--data-dir", data];
    let (code, _, words) = told(&[&list[..], &["--token", SECRET]].concat());
    assert_eq!(code, Some(0), "{words}");
    assert!(
        older
            .got()
            .to_lowercase()
            .contains(&format!("authorization: bearer {SECRET}").to_lowercase())
    );
    directory_with_tokens(dir.path());
    let again = Impostor::start(Manner::Older);
    let (code, _, words) =
        told(&["executions", "list", "--server", &again.url, "--data-dir", data]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("earlier version"), "{words}");
    got_a_challenge_and_no_secret(&again, SECRET);
}

#[test]
fn a_secret_that_nobody_minted_is_never_hashed_for_a_stranger() {
    let older = Impostor::start(Manner::Older);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let words =
        ["executions", "list", "--server", &older.url, "--token", "short", "--data-dir", data];
    assert_eq!(told(&words).0, Some(0));
    let got = older.got();
    assert!(!got.contains("/api/prove") && got.contains("Bearer short"), "{got}");
}

#[test]
fn the_base_url_of_an_api_is_not_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let (web, api) = (Web::start(), Impostor::start(Manner::Answers("200 OK")));
    let description = json!({
        "openapi": "3.0.0",
        "info": { "title": "Todo", "version": "1" },
        "servers": [{ "url": "https://elsewhere.example" }],
        "paths": { "/todos": { "get": { "operationId": "listTodos", "summary": "lists todos", "responses": { "200": { "description": "x" } } } } }
    });
    let url = web.put("/todo.json", Page::Text("application/json", description.to_string()));
    let data = dir.path().to_str().unwrap();
    let add = ["source", "add", &url, "--name", "todo", "--base-url", &api.url, "--data-dir", data];
    let (code, printed, words) = told(&add);
    assert_eq!(code, Some(0), "{printed}{words}");
    assert_eq!(api.got(), "", "the API was not asked to be the server");
    let program = "const found = await tools.search({ query: 'lists todos', namespace: 'todo' }); \
                   const call = found.items[0].path.split('.').reduce((at, name) => at[name], tools); \
                   return await call({})";
    let called = served.client("admin").execute(program);
    assert_eq!(called.json()["structured"]["status"], "completed", "{called:?}");
    let got = api.got();
    assert!(got.starts_with("GET /todos "), "{got}");
    assert!(!got.contains("alk_"), "{got}");
}

#[test]
fn the_route_tells_strangers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let stranger = served.client_with("");
    let ask = |body: &Value| {
        let headers = [("Authorization", ""), ("Content-Type", "application/json")];
        stranger.send("POST", "/api/prove", &headers, &body.to_string())
    };
    let key_of = |secret: &str| {
        let digest = Sha256::digest(secret.as_bytes());
        let hash =
            Sha256::new().chain_update(b"airlock token key 1\0").chain_update(digest).finalize();
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let nonce = "00".repeat(32);
    let challenge =
        |key: &str, address: &str| json!({ "key": key, "nonce": nonce, "addresses": [address] });
    let unknown = json!({ "reason": "unknown-token" });
    for key in [key_of(server_fixture::ENVIRONMENT_SECRET), key_of("alk_x"), String::new()] {
        assert_eq!(ask(&challenge(&key, &stranger.address)).json(), unknown);
    }
    let key = key_of(&served.client("run").secret);
    let proven = ask(&challenge(&key, &stranger.address)).json();
    assert_eq!(
        (&proven["address"], proven["proof"].as_str().unwrap().len()),
        (&json!(stranger.address), 64)
    );
    for other in
        ["127.0.0.1:1", "localhost", "", &stranger.address.replace("127.0.0.1", "localhost")]
    {
        let refused = ask(&challenge(&key, other)).json();
        assert_eq!(
            (other, &refused["reason"], &refused["proof"]),
            (other, &json!("other-address"), &Value::Null)
        );
    }
    for bad in [json!({}), json!({ "key": key, "nonce": "00", "addresses": [] }), json!([1])] {
        assert_eq!(ask(&bad).status, 400, "{bad}");
    }
}
