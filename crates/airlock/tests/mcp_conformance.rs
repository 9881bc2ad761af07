//! The official conformance suites against `/mcp`. Scenarios that call tools which no product has use a handler of this
//! test behind the real HTTP layer; the others use the real server.

use crate::mcp_fixture::Fixture;
use crate::mcp_node;
use crate::server_fixture;
use engine::{Config, Engine};
use server::AuthMode;
use std::path::Path;
use store::sqlite::SqliteStore;
use tools::Catalogue;

/// The released suite, and the one that knows the revision of 2026.
const RELEASED: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const NEXT: &str = "node_modules/conformance-next/dist/index.js";

/// Runs a suite against the test's handler.
async fn suite_against_fixture(suite: &'static str, words: &'static [&'static str]) {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let mut config = Config::new(store.clone(), Catalogue::new(vec![]).unwrap());
    config.sandbox.program = sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_airlock").into());
    let engine = Engine::start(config).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = listener.local_addr().unwrap();
    let config = server::Config {
        listen,
        auth: AuthMode::Off,
        ..server::Config::new(engine.clone(), store.clone())
    };
    let router = server::mcp_with(config, Fixture);
    let serving = async { axum::serve(listener, router).await.unwrap() };
    let url = format!("http://{listen}/mcp?elicitation_mode=native");
    let run = tokio::task::spawn_blocking(move || run(&folder, suite, &url, words));
    tokio::select! {
        passed = run => passed.unwrap(),
        () = serving => unreachable!("it serves until it is dropped"),
    }
    engine.shutdown().await;
    store.close().await;
}

/// Runs one suite to its end. It exits with an error if a required check fails.
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

/// Scenarios that the real server passes, with an ordinary MCP server as its source and `?tools=direct`.
const SERVED: [&str; 24] = [
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// Scenarios that no source of a user can satisfy, with the reasons. The test's handler passes them.
const NOT_SERVED: [(&str, &[&str]); 9] = [
    (
        "Airlock has no completions, logging or subscriptions, and does not declare them",
        &[
            "completion-complete",
            "logging-set-level",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "Airlock asks no model: it never sends sampling or roots requests",
        &[
            "tools-call-sampling",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-multiple-input-requests",
            "input-required-result-capability-check",
        ],
    ),
    (
        "log messages to the client are no part of a tool's result here; a program's lines are in `logs`",
        &["tools-call-with-logging"],
    ),
    (
        "progress is reported twice a second at most; the scenario wants three reports within 100 ms",
        &["tools-call-with-progress"],
    ),
    (
        "tools are listed under their whole path, not under the name that the scenario looks for",
        &["json-schema-2020-12", "http-custom-header-server-validation"],
    ),
    (
        "resources are executions; the scenario reads `test://…`",
        &["resources-read-text", "resources-read-binary", "resources-templates-read"],
    ),
    (
        "prompts are Airlock's skills; the scenario gets prompts of its own",
        &[
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
            "input-required-result-non-tool-request",
        ],
    ),
    (
        "input requests are named by the ids of their questions, not as the scenario names them",
        &[
            "input-required-result-basic-elicitation",
            "input-required-result-request-state",
            "input-required-result-multi-round",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
        ],
    ),
    (
        "some of its checks call diagnostic tools or read `test://…`; the others pass",
        &["server-stateless", "caching"],
    ),
];

#[test]
fn the_served_server_passes_every_scenario_that_an_ordinary_source_can_satisfy() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let command = [folder.join("node_modules/node/bin/node"), folder.join("source.mjs")];
    let config = dir.path().join("airlock.toml");
    let command = serde_json::json!(command);
    std::fs::write(&config, format!("[sources.suite]\ncommand = {command}\n")).unwrap();
    let data_dir = dir.path().join("data");
    let config = config.to_str().unwrap();
    let served = server_fixture::Served::start(
        &data_dir,
        &["--no-auth", "--answers", "client", "--config", config],
    );
    let url = format!("{}/mcp?elicitation_mode=native&tools=direct", served.url);
    for scenario in SERVED {
        run(&folder, NEXT, &url, &["--scenario", scenario]);
    }
}

#[test]
fn every_scenario_is_run_or_listed_with_the_reason() {
    let Some(folder) = mcp_node::installed() else { return };
    let output = mcp_node::node(&folder).arg(folder.join(NEXT)).args(["list", "--server"]).output();
    let listed = String::from_utf8(output.unwrap().stdout).unwrap();
    let mut scenarios: Vec<_> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once(' '))
        // Extensions are drafts, and reported by the suite without a score.
        .filter(|(_, revisions)| *revisions != "[extension]")
        .map(|(name, _)| name)
        .collect();
    let mut known: Vec<_> = SERVED
        .into_iter()
        .chain(NOT_SERVED.iter().flat_map(|(_, names)| *names).copied())
        .collect();
    scenarios.sort_unstable();
    known.sort_unstable();
    known.dedup();
    assert_eq!(scenarios, known);
    let page = include_str!("../../../docs/mcp.md");
    for (reason, names) in NOT_SERVED {
        assert!(page.contains(reason), "{reason}");
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
