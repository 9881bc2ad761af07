//! The official conformance suites against `/mcp`. Scenarios that call tools no product has get a
//! handler lent by this test, behind the HTTP side that is served; the others meet the real server.
#![expect(clippy::unwrap_used, reason = "tests")]

mod mcp_fixture;
mod mcp_node;
mod served;

use engine::{Config, Engine};
use mcp_fixture::Fixture;
use server::Auth;
use std::path::Path;
use store::sqlite::SqliteStore;
use tools::Catalogue;

/// The released suite, and the one that knows the revision of 2026.
const RELEASED: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const NEXT: &str = "node_modules/conformance-next/dist/index.js";

/// A suite run against the lent handler.
async fn suite_against_fixture(suite: &'static str, words: &'static [&'static str]) {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let mut config = Config::new(store.clone(), Catalogue::new(vec![]).unwrap());
    config.sandbox.program = sandbox::Program::At(env!("CARGO_BIN_EXE_airlock").into());
    let engine = Engine::start(config).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let config = server::Config {
        listen,
        auth: Auth::Off,
        ..server::Config::new(engine.clone(), store.clone())
    };
    let router = server::mcp_with(config, Fixture);
    let serving = async { axum::serve(listener, router).await.unwrap() };
    let url = format!("http://{listen}/mcp?elicitation_mode=native");
    let run = tokio::task::spawn_blocking(move || run(folder, suite, &url, words));
    tokio::select! {
        passed = run => passed.unwrap(),
        () = serving => unreachable!("it serves until it is dropped"),
    }
    engine.shutdown().await;
    store.close().await;
}

/// One suite, to its end. It exits with an error where a required check fails.
fn run(folder: &Path, suite: &str, url: &str, words: &[&str]) {
    let output = mcp_node::node(folder)
        .arg(folder.join(suite))
        .args(["server", "--url", url])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}\n{said}\n{errors}");
    assert!(said.contains("Passed") || said.contains("passed"), "nothing was checked: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_released_suite_passes() {
    suite_against_fixture(RELEASED, &["--suite", "active"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_of_2025_06_18_passes() {
    suite_against_fixture(NEXT, &["--suite", "all", "--spec-version", "2025-06-18"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_of_2025_11_25_passes() {
    suite_against_fixture(NEXT, &["--suite", "all", "--spec-version", "2025-11-25"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_of_2026_07_28_passes() {
    suite_against_fixture(NEXT, &["--suite", "all", "--spec-version", "2026-07-28"]).await;
}

#[test]
fn the_served_door_passes_what_needs_no_handler_of_the_suite() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let served = served::Served::start(dir.path(), &["--no-auth"]);
    let url = format!("{}/mcp?elicitation_mode=native", served.url);
    for scenario in [
        "server-session-lifecycle",
        "tools-list",
        "resources-list",
        "dns-rebinding-protection",
        "http-header-validation",
    ] {
        run(folder, NEXT, &url, &["--scenario", scenario]);
    }
}
