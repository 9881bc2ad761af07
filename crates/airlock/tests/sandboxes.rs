//! Commands of clients in sandboxes: asked for in codex's words or ours, or imposed by whoever runs the server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod exec_served;
mod served;

use client::exec_server::{
    Events, ExecServerClient, ExecServerError, ExecServerEvent, RemoteExecServerConnectArgs,
    exec_params,
};
use exec_served::{Served, connected};
use serde_json::{Value, json};
use std::path::Path;

/// What a command said, its code, and what its sandbox denied it.
async fn ran(
    client: &ExecServerClient,
    id: &str,
    script: &str,
    cwd: &Path,
    sandbox: &Value,
) -> Result<(String, i32, Vec<String>), ExecServerError> {
    let mut events = client.events();
    let mut params = exec_params(id, &["sh", "-c", script], cwd.to_str().unwrap());
    params.sandbox = Some(sandbox.clone()).filter(|sandbox| !sandbox.is_null());
    let started = client.exec(params).await?;
    assert_eq!(started.sandbox_type.as_deref(), Some("linuxSeccomp"));
    Ok(ended(&mut events, id).await)
}

async fn ended(events: &mut Events, id: &str) -> (String, i32, Vec<String>) {
    let (mut said, mut code, mut denied) = (vec![], 0, vec![]);
    loop {
        match events.next().await.unwrap() {
            ExecServerEvent::OutputDelta(output) => said.extend(output.chunk.0),
            ExecServerEvent::Exited(exited) => {
                assert_eq!(exited.sandbox_denied, Some(!exited.denied.is_empty()));
                (code, denied) = (exited.exit_code, exited.denied);
            }
            ExecServerEvent::Closed(closed) if closed.process_id == id => {
                return (String::from_utf8(said).unwrap(), code, denied);
            }
            ExecServerEvent::Closed(_) | ExecServerEvent::Lost { .. } => {}
        }
    }
}

/// The workspace can be written but for its .git, everything read, nobody spoken to: codex's `workspace-write`.
fn workspace_write(workspace: &Path) -> Value {
    let special = |kind: &str, access: &str| json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access});
    let git = json!({"path": {"type": "special", "value": {"kind": "project_roots", "subpath": ".git"}}, "access": "read"});
    let entries = [special("root", "read"), special("project_roots", "write"), git];
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "policyContext": {"cwd": format!("file://{}", workspace.display()), "workspaceRoots": []},
    })
}

#[tokio::test]
async fn codex_s_sandbox_is_enforced_and_what_was_denied_is_told() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let (workspace, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(workspace.path().join(".git")).unwrap();
    let sandbox = workspace_write(workspace.path());
    let at = workspace.path();
    let (text, code, denied) =
        ran(&client, "a", "echo x > file && cat file", at, &sandbox).await.unwrap();
    assert_eq!((text.as_str(), code, denied), ("x\n", 0, vec![]));
    let script = format!("touch {}/x; touch .git/x", outside.path().display());
    let (_, code, denied) = ran(&client, "b", &script, at, &sandbox).await.unwrap();
    let expected = [
        format!("touch: cannot touch '{}/x': Read-only file system", outside.path().display()),
        "touch: cannot touch '.git/x': Read-only file system".to_owned(),
    ];
    assert_eq!((code, denied.as_slice()), (1, &expected[..]));
    let script = "python3 -c 'import socket; socket.socket()'";
    let (_, code, denied) = ran(&client, "c", script, at, &sandbox).await.unwrap();
    assert_eq!((code, denied.len()), (1, 1), "{denied:?}");
    assert!(denied[0].contains("Operation not permitted"), "{denied:?}");
    let read =
        client.read(serde_json::from_value(json!({"processId": "b"})).unwrap()).await.unwrap();
    assert_eq!((read.sandbox_denied, read.denied), (true, expected.to_vec()));
    let glob = json!({"permissions": {"type": "managed", "network": "enabled", "file_system": {
        "type": "restricted",
        "entries": [{"path": {"type": "glob_pattern", "pattern": "**/*.env"}, "access": "deny"}],
    }}});
    let refused = ran(&client, "d", "true", at, &glob).await.unwrap_err().to_string();
    assert!(refused.contains("patterns are not enforced here"), "{refused}");
}

#[tokio::test]
async fn a_sandbox_in_our_own_words_limits_a_whole_family() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let sandbox = json!({"writable": [folder.path()], "network": "loopback", "processes": 10});
    let script = "while :; do sleep 1000 & done";
    let (_, code, denied) = ran(&client, "bomb", script, folder.path(), &sandbox).await.unwrap();
    let why = "it used more processes than its sandbox allows";
    assert_eq!((code, denied), (137, vec![why.to_owned()]));
}

#[tokio::test]
async fn an_imposed_sandbox_holds_whatever_the_client_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let imposed = json!({"writable": [at], "network": "none"}).to_string();
    let server = Served::start(&["--sandbox", &imposed]);
    let client = connected(&server).await;
    let free = json!({"permissions": {"type": "disabled"}});
    for (id, sandbox) in
        [("none", Value::Null), ("free", free), ("wide", json!({"writable": ["/"]}))]
    {
        let (_, code, denied) = ran(&client, id, "touch /etc/x", at, &sandbox).await.unwrap();
        assert_eq!((id, code, denied.len()), (id, 1, 1));
        let id = format!("{id} inside");
        let (_, code, _) = ran(&client, &id, "touch x", at, &sandbox).await.unwrap();
        assert_eq!((id.as_str(), code), (id.as_str(), 0));
    }
    let (_, code, _) = ran(&client, "less", "touch y", at, &json!({"writable": []})).await.unwrap();
    assert_eq!(code, 1);
    let params = json!({"path": "file:///etc/passwd"});
    let refused = client.call::<_, Value>("fs/readFile", &params, true).await.unwrap_err();
    assert!(refused.to_string().contains("keeps its processes in a sandbox"), "{refused}");
}

#[tokio::test]
async fn the_configuration_of_a_server_imposes_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    std::fs::write(&config, "[processes.sandbox]\nnetwork = 'none'\n").unwrap();
    let words = ["--exec", "--config", config.to_str().unwrap()];
    let house = served::Served::start(&folder.path().join("data"), &words);
    let url = house.url.replacen("http", "ws", 1);
    let secret = house.client("admin").secret;
    let args = RemoteExecServerConnectArgs::new(format!("{url}/exec?token={secret}"), "test");
    let client = ExecServerClient::connect_websocket(args).await.unwrap();
    let (_, code, denied) =
        ran(&client, "p", "touch x", folder.path(), &Value::Null).await.unwrap();
    assert_eq!((code, denied.len()), (1, 1), "{denied:?}");
}
