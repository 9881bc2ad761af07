//! Commands of clients in sandboxes: requested in codex's format or in ours, or imposed by the server's operator.

use crate::exec_server_fixture::{Served, connected};
use crate::server_fixture;
use client::exec_server::{
    ExecServerClient, ExecServerError, ExecServerEvent, ProcessEvents, RemoteExecServerConnectArgs,
    exec_params,
};
use serde_json::{Value, json};
use std::path::Path;

/// Runs a command. Returns its output, its exit code, and what its sandbox denied.
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

async fn ended(events: &mut ProcessEvents, id: &str) -> (String, i32, Vec<String>) {
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

/// The workspace is writable except its .git, everything is readable, and the network is denied: codex's
/// `workspace-write`.
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
    // Requests that the server performs itself have the same restrictions.
    let free = json!({"permissions": {"type": "disabled"}});
    let write = async |path: &Path| {
        let params = json!({"path": path, "dataBase64": "eA==", "sandbox": free});
        client.call::<_, Value>("fs/writeFile", &params, true).await
    };
    assert_eq!(write(&at.join("z")).await.unwrap(), json!({}));
    let outside = tempfile::tempdir().unwrap();
    let refused = write(&outside.path().join("z")).await.unwrap_err().to_string();
    assert!(refused.contains("Read-only file system"), "{refused}");
    let params =
        json!({"method": "GET", "url": "http://127.0.0.1:9", "headers": [], "requestId": "a"});
    let refused = client.call::<_, Value>("http/request", &params, true).await.unwrap_err();
    assert!(refused.to_string().contains("keeps its processes in a sandbox"), "{refused}");
}

#[tokio::test]
async fn the_configuration_of_a_server_imposes_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    std::fs::write(&config, "[processes.sandbox]\nnetwork = 'none'\n").unwrap();
    let words = ["--exec", "--config", config.to_str().unwrap()];
    let house = server_fixture::Served::start(&folder.path().join("data"), &words);
    let url = house.url.replacen("http", "ws", 1);
    let secret = house.client("admin").secret;
    let args = RemoteExecServerConnectArgs::new(format!("{url}/exec"), "test");
    let token = client::ServerToken::found(&secret);
    let client = ExecServerClient::connect_websocket_with(args, Some(token)).await.unwrap();
    let (_, code, denied) =
        ran(&client, "p", "touch x", folder.path(), &Value::Null).await.unwrap();
    assert_eq!((code, denied.len()), (1, 1), "{denied:?}");
}

/// A workspace with a file, a folder and a `.git`, beside a folder that the sandbox must protect.
struct Places {
    workspace: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl Places {
    fn new() -> Self {
        let (workspace, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [".git", "folder"] {
            std::fs::create_dir(workspace.path().join(folder)).unwrap();
            std::fs::write(workspace.path().join(folder).join("file"), "inside").unwrap();
        }
        std::fs::write(outside.path().join("file"), "untouched").unwrap();
        Self { workspace, outside }
    }

    /// Replaces `IN` and `OUT` by the two folders.
    fn put(&self, text: &str) -> String {
        let [inside, outside] =
            [&self.workspace, &self.outside].map(|dir| dir.path().to_str().unwrap());
        text.replace("IN", inside).replace("OUT", outside)
    }

    /// Sends a request about files in codex's sandbox, and returns the answer.
    async fn ask(
        &self,
        client: &ExecServerClient,
        method: &'static str,
        params: &Value,
    ) -> Result<Value, String> {
        let mut params: Value = serde_json::from_str(&self.put(&params.to_string())).unwrap();
        params["sandbox"] = workspace_write(self.workspace.path());
        let told = client.call::<_, Value>(method, &params, true).await;
        told.map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn requests_about_files_are_kept_to_their_sandbox() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let places = Places::new();
    let data = "aGVsbG8=";
    // The requests that codex sends when it patches a workspace.
    for (method, params, expected) in [
        ("fs/writeFile", json!({"path": "IN/new", "dataBase64": data}), json!({})),
        ("fs/readFile", json!({"path": "IN/new"}), json!({"dataBase64": data})),
        ("fs/readFile", json!({"path": "IN/folder/../new"}), json!({"dataBase64": data})),
        ("fs/readFile", json!({"path": "OUT/file"}), json!({"dataBase64": "dW50b3VjaGVk"})),
        ("fs/createDirectory", json!({"path": "IN/a/b"}), json!({})),
        (
            "fs/copy",
            json!({"sourcePath": "OUT/file", "destinationPath": "IN/a/copy", "recursive": false}),
            json!({}),
        ),
        ("fs/remove", json!({"path": "IN/new"}), json!({})),
        ("fs/remove", json!({"path": "IN/folder"}), json!({})),
        ("fs/canonicalize", json!({"path": "IN/a/../a"}), json!({"path": "file://IN/a"})),
    ] {
        let told = places.ask(&client, method, &params).await;
        let expected = serde_json::from_str(&places.put(&expected.to_string())).unwrap();
        assert_eq!((method, told), (method, Ok(expected)), "{params}");
    }
    let told = places.ask(&client, "fs/readDirectory", &json!({"path": "IN"})).await.unwrap();
    assert_eq!(told["entries"].as_array().unwrap().len(), 2, "{told}");
    let told = places.ask(&client, "fs/readFile", &json!({"path": "IN/none"})).await.unwrap_err();
    assert!(told.contains("-32004"), "{told}");
    // An open handle would outlive the sandbox of its request.
    let open = json!({"path": "IN/a/copy", "handleId": "h"});
    let told = places.ask(&client, "fs/open", &open).await.unwrap_err();
    assert!(told.contains("not kept open in a sandbox"), "{told}");
    let mut nowhere = workspace_write(places.workspace.path());
    nowhere["policyContext"] = json!({});
    let params = json!({"path": "/x", "dataBase64": "", "sandbox": nowhere});
    let told = client.call::<_, Value>("fs/writeFile", &params, true).await.unwrap_err();
    assert!(told.to_string().contains("does not say what its workspace is"), "{told}");
}

/// Requests that would change something outside, with their names.
fn ways_out() -> Vec<(&'static str, &'static str, Value)> {
    let data = "eA==";
    vec![
        ("write a file", "fs/writeFile", json!({"path": "OUT/file", "dataBase64": data})),
        ("create a file", "fs/writeFile", json!({"path": "OUT/new", "dataBase64": data})),
        (
            "write upwards",
            "fs/writeFile",
            json!({"path": "IN/folder/../../../../../../../..OUT/new", "dataBase64": data}),
        ),
        (
            "write through a link to a folder",
            "fs/writeFile",
            json!({"path": "IN/way/file", "dataBase64": data}),
        ),
        (
            "write through a link to a file",
            "fs/writeFile",
            json!({"path": "IN/alias", "dataBase64": data}),
        ),
        (
            "write through a link to nothing",
            "fs/writeFile",
            json!({"path": "IN/dangling", "dataBase64": data}),
        ),
        (
            "write through /proc",
            "fs/writeFile",
            json!({"path": "/proc/self/rootOUT/file", "dataBase64": data}),
        ),
        (
            "write what can be read only",
            "fs/writeFile",
            json!({"path": "IN/.git/file", "dataBase64": data}),
        ),
        ("make a folder", "fs/createDirectory", json!({"path": "IN/way/folder"})),
        ("remove a file", "fs/remove", json!({"path": "IN/way/file"})),
        ("remove all of it", "fs/remove", json!({"path": "OUT"})),
        (
            "copy out",
            "fs/copy",
            json!({"sourcePath": "IN/folder/file", "destinationPath": "IN/way/new", "recursive": false}),
        ),
        (
            "copy a folder out",
            "fs/copy",
            json!({"sourcePath": "IN/folder", "destinationPath": "OUT/new", "recursive": true}),
        ),
    ]
}

#[tokio::test]
async fn every_named_way_out_of_the_workspace_is_closed_to_requests_about_files() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let places = Places::new();
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(places.put(to), places.put(at)).unwrap();
    };
    link("OUT", "IN/way");
    link("OUT/file", "IN/alias");
    link("OUT/new", "IN/dangling");
    for (name, method, params) in ways_out() {
        let told = places.ask(&client, method, &params).await.unwrap_err();
        assert!(told.contains("-32600"), "{name}: {told}");
    }
    let left: Vec<_> = std::fs::read_dir(places.outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::read_to_string(places.outside.path().join("file")).unwrap(), "untouched");
    assert_eq!(
        std::fs::read_to_string(places.workspace.path().join(".git/file")).unwrap(),
        "inside"
    );
    // A hidden path cannot be read either, by any alias.
    let hidden = json!({"writable": [places.workspace.path()], "hidden": [places.outside.path()]});
    for path in ["OUT/file", "IN/alias", "IN/way/file"] {
        let params = json!({"path": places.put(path), "sandbox": hidden});
        let told = client.call::<_, Value>("fs/readFile", &params, true).await;
        assert!(told.is_err(), "{path}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_becomes_a_link_in_mid_request_leads_nowhere() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    let places = Places::new();
    let (real, link) = (places.put("IN/real"), places.put("IN/link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(places.outside.path(), &link).unwrap();
    let (stop, at) = (std::sync::atomic::AtomicBool::new(false), places.put("IN/at"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for from in [&real, &link] {
                    let _ = std::fs::rename(from, &at);
                    let _ = std::fs::rename(&at, from);
                }
            }
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for n in 0..20 {
                    let params = json!({"path": format!("IN/at/{n}"), "dataBase64": "eA=="});
                    // The write may succeed or fail; through a path that leads outside, nothing is written.
                    let _ = places.ask(&client, "fs/writeFile", &params).await;
                }
            });
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let left: Vec<_> = std::fs::read_dir(places.outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
