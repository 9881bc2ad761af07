//! The door that `docs/extending.md` adds: it compiles, it answers, and the page shows its code.

#[path = "../../../examples/extending/tally/door/mod.rs"]
mod tally;

use engine::{Config, Engine};
use server::{AuthMode, DoorSettings, RunningServer};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::Catalogue;

/// The whole response to a request.
fn get(server: &RunningServer, path: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
        server.local_addr()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[track_caller]
fn check(response: &str, status: u16, body: &str) {
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    assert!(response.ends_with(body), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_of_the_documentation_answers() {
    let store = SqliteStore::temporary().unwrap();
    let mut config = Config::new(store.clone(), Catalogue::new(vec![]).unwrap());
    config.sandbox.program =
        sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_children-for-tests").into());
    let engine = Engine::start(config).await.unwrap();
    let door = tally::open_door(&DoorSettings::default()).unwrap();
    assert_eq!(door.permissions().len(), 1);
    let config = server::Config {
        auth: AuthMode::Tokens { environment: Some("a-secret-of-this-test".into()) },
        doors: DoorSettings { added: vec![Arc::clone(&door)], ..DoorSettings::default() },
        ..server::Config::new(engine.clone(), store.clone())
    };
    let server = RunningServer::start(config).await.unwrap();
    let secret = "a-secret-of-this-test";
    check(&get(&server, "/tally", secret), 200, "\r\n\r\nrequests 1\n");
    check(&get(&server, "/tally?paused", secret), 200, "\r\n\r\nrequests 2\n");
    let refused =
        r#"names no phase: \"dead\" is no phase; there are running, paused and finished."}"#;
    check(&get(&server, "/tally?dead", secret), 400, refused);
    check(&get(&server, "/tally", "another"), 401, "Unauthorized");
    tokio::join!(server.shutdown(), engine.shutdown());
    store.close().await;
}

#[test]
fn the_page_shows_the_code_of_the_door() {
    let page = include_str!("../../../docs/extending.md");
    for file in [
        include_str!("../../../examples/extending/tally/protocol/mod.rs"),
        include_str!("../../../examples/extending/tally/protocol/inbound.rs"),
        include_str!("../../../examples/extending/tally/protocol/outbound.rs"),
        include_str!("../../../examples/extending/tally/door/mod.rs"),
        include_str!("../../../examples/extending/tally/door/routes.rs"),
    ] {
        assert!(page.contains(file), "docs/extending.md does not show this file:\n{file}");
    }
}
