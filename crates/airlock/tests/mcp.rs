//! The MCP door with the official clients, over stdio and HTTP, in every revision that the server supports.

use crate::mcp_node;
use crate::server_fixture::{Served, wait_for};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs one case against the server.
fn told(case: &str) {
    told_with(case, &[]);
}

fn told_with(case: &str, flags: &[&str]) {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let served = match flags {
        [] => Served::with_model_answers(dir.path(), flags),
        flags => Served::start(dir.path(), flags),
    };
    let status = client(&folder, case, &served).status().unwrap();
    assert!(status.success(), "{case} failed; node says why above");
}

fn client(folder: &Path, case: &str, served: &Served) -> Command {
    let config = json!({
        "url": served.url,
        "token": served.client("run").secret,
        "admin": served.client("admin").secret,
        "airlock": env!("CARGO_BIN_EXE_airlock"),
        "dataDir": served.data_dir,
    });
    let mut command = mcp_node::node(folder);
    command.arg(folder.join("cases.mjs")).args([case, &config.to_string()]);
    command.env_remove("AIRLOCK_TOKEN").env_remove("AIRLOCK_DATA_DIR").env_remove("AIRLOCK_URL");
    command
}

#[test]
fn in_model_mode_the_model_brings_the_persons_answer() {
    told("model");
}

#[test]
fn in_browser_mode_resume_waits_for_the_person_and_the_model_cannot_answer() {
    told("browser");
}

#[test]
fn in_native_mode_the_client_shows_forms_and_links() {
    told("native");
}

#[test]
fn a_form_whose_answer_does_not_fit_is_shown_again_with_the_reason() {
    told("misfit");
}

#[test]
fn a_client_that_cannot_show_its_form_is_sent_to_the_page() {
    told("unshown");
}

#[test]
fn everything_that_is_asked_is_asked_at_once() {
    told("together");
}

#[test]
fn a_form_that_no_client_can_draw_is_a_link() {
    told("undrawn");
}

#[test]
fn a_client_without_elicitation_is_told_what_to_do() {
    told("lacking");
}

#[test]
fn a_request_state_is_sealed_bound_and_good_once() {
    told("sealed");
}

#[test]
fn a_pause_is_answered_through_any_door() {
    told("doors");
}

#[test]
fn long_work_is_answered_with_a_handle_and_tells_of_its_progress() {
    told("long");
}

#[test]
fn a_client_with_tasks_gets_a_task() {
    told("tasks");
}

#[test]
fn a_client_that_dies_in_mid_call_loses_nothing() {
    told("dies");
}

#[test]
fn ten_sessions_at_once_do_not_disturb_each_other() {
    told("ten");
}

#[test]
fn emitted_items_are_content_and_what_is_too_large_is_a_resource() {
    told("content");
}

#[test]
fn a_small_catalogue_can_be_listed_tool_by_tool() {
    told("direct");
}

#[test]
fn where_owners_may_not_answer_the_model_is_sent_to_the_page() {
    told_with("browser", &["--answers", "person"]);
}

#[test]
fn a_restart_between_pause_and_resume_loses_nothing() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let served = Served::with_model_answers(dir.path(), &[]);
    let mut child = client(&folder, "restart", &served)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "PAUSED\n");
    served.kill();
    let served = Served::with_model_answers(dir.path(), &[]);
    writeln!(child.stdin.take().unwrap(), "{}", served.url).unwrap();
    assert!(child.wait().unwrap().success(), "node says why above");
}

#[test]
fn structured_content_holds_what_a_model_must_read() {
    told("structure");
}

#[test]
fn annotations_are_true_and_each_skill_is_a_prompt() {
    told("offers");
}

#[test]
fn a_progress_token_costs_nothing_where_nothing_is_reported() {
    told("unreported");
}

#[test]
fn a_native_session_ends_its_call_at_a_restart_lives_on_and_is_deleted() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--answers", "client"];
    let served = Served::start(dir.path(), &flags);
    let dialog = [("Content-Type", "application/json")];
    let change = ("PATCH", "/api/tokens/run", r#"{"answers":"client"}"#);
    let changed = served.client("admin").send(change.0, change.1, &dialog, change.2);
    assert_eq!(changed.status, 200, "{changed:?}");
    let mut child = client(&folder, "cutoff", &served)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "SHOWN\n");
    let address = served.url.strip_prefix("http://").unwrap().to_owned();
    served.kill();
    let _served = Served::start(dir.path(), &[&flags[..], &["--listen", &address]].concat());
    writeln!(child.stdin.take().unwrap(), "go on").unwrap();
    assert!(child.wait().unwrap().success(), "node says why above");
}

#[test]
fn a_body_that_is_no_message_is_answered_with_a_json_rpc_error() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let client = served.client("run");
    let head =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let call = |code: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"execute","arguments":{code}}}}}"#
        )
    };
    let cases = [
        (call(&deep), json!(7), -32_700),
        ("{".to_owned(), json!(null), -32_700),
        ("[]".to_owned(), json!(null), -32_600),
    ];
    for path in ["/mcp", "/mcp?elicitation_mode=native"] {
        for (body, id, code) in &cases {
            let refused = client.send("POST", path, &head, body);
            let answer = refused.json();
            assert_eq!((refused.status, &answer["id"]), (400, id), "{refused:?}");
            assert_eq!(answer["error"]["code"], *code, "{refused:?}");
        }
    }
    let plain = [("Content-Type", "text/plain"), head[1]];
    assert_eq!(client.send("POST", "/mcp", &plain, "{}").status, 415);
}

#[test]
fn a_program_goes_on_and_is_counted_when_its_client_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let (client, admin) = (served.client("run"), served.client("admin"));
    let code = "await tools.demo.sleep({ ms: 300 }); return 'it went on'";
    let params = json!({ "name": "execute", "arguments": { "code": code } });
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
    let body = body.to_string();
    let headers =
        [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    let mut leaving = client.connect();
    leaving.write_all(client.head("POST", "/mcp", &headers, body.len()).as_bytes()).unwrap();
    leaving.write_all(body.as_bytes()).unwrap();
    let running = || client.get("/api/executions").json()["executions"][0].clone();
    let execution = wait_for(|| running()["executionId"].as_str().map(str::to_owned));
    drop(leaving);
    let path = format!("/api/executions/{execution}");
    let over = wait_for(|| Some(client.get(&path).json()).filter(|it| it["status"] == "completed"));
    assert_eq!(over["structured"]["result"], "it went on");
    let ended = "airlock_executions_finished_total{outcome=\"completed\"} 1";
    wait_for(|| admin.get("/metrics").body.contains(ended).then_some(()));
    served.stop();
}
