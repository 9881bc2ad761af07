//! Files of a server that its processes must not use: a caller that may start processes cannot become an administrator
//! by reading them.

use crate::exec_server_fixture::{self, heard};
use crate::server_fixture::{self, Served, airlock, wait_for};
use client::exec_server::{ExecServerClient, RemoteExecServerConnectArgs, exec_params};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A server with a vault key outside of its data directory, and with a configuration file.
struct Guarded {
    server: server_fixture::Served,
    folder: tempfile::TempDir,
    root: PathBuf,
    secrets: Vec<String>,
}

impl Guarded {
    fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (config, key) = (root.join("airlock.toml"), root.join("vault.key"));
        let approve = "[[policies]]\npattern = 'process.run'\naction = 'approve'\n";
        std::fs::write(&config, format!("{more}\n[processes.run]\n{approve}")).unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        let words = ["--exec", "--config", config.to_str().unwrap(), "--vault-key"];
        let words = [&words[..], &[key.to_str().unwrap()]].concat();
        let server = server_fixture::Served::start(&root.join("data"), &words);
        if !key.exists() {
            std::fs::write(&key, "the secret of the vault").unwrap();
        }
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap().trim().to_owned();
        let secrets = vec![read(root.join("data/tokens/admin")), read(key)];
        Self { server, folder, root, secrets }
    }

    async fn client(&self) -> ExecServerClient {
        let url = self.server.url.replacen("http", "ws", 1);
        let secret = &self.secrets[0];
        let args = RemoteExecServerConnectArgs::new(format!("{url}/exec"), "test");
        let token = client::ServerToken::found(secret);
        ExecServerClient::connect_websocket_with(args, Some(token)).await.unwrap()
    }

    /// A script that reads and changes everything it can.
    fn script(&self) -> String {
        let root = self.root.display();
        format!(
            "D={root}/data; K={root}/vault.key; C={root}/airlock.toml; \
             cat $D/tokens/admin $K; cat /proc/*/root$D/tokens/admin; cat /proc/*/environ; \
             umount $D; nsenter -t 1 -m cat $D/tokens/admin; cp -r {root} {root}/work/copy; \
             cat {root}/work/copy/data/tokens/admin; echo '# changed' >> $C; rm -rf $D; \
             unshare -Urm sh -c \"umount -l $D; cat $D/tokens/admin\"; echo finished"
        )
    }

    #[track_caller]
    fn expect_no_secret(&self, text: &str) {
        assert!(text.contains("finished"), "{text}");
        for secret in &self.secrets {
            assert!(!text.contains(secret), "{text}");
        }
        self.expect_unchanged();
    }

    #[track_caller]
    fn expect_unchanged(&self) {
        assert!(self.root.join("data/tokens/admin").exists());
        let config = std::fs::read_to_string(self.root.join("airlock.toml")).unwrap();
        assert!(!config.contains("# changed"), "{config}");
    }
}

/// Without a sandbox, and with one that allows as much as possible.
const SANDBOXES: [&str; 2] = ["", "[processes.sandbox]\nwritable = ['/']\n"];

#[tokio::test]
async fn no_process_of_a_client_reads_the_token_of_an_administrator() {
    for sandbox in SANDBOXES {
        let guarded = Guarded::start(sandbox);
        let client = guarded.client().await;
        let mut events = client.events();
        for tty in [false, true] {
            let id = format!("tty {tty}");
            let mut params = exec_params(&id, &["sh", "-c", &guarded.script()], "/tmp");
            params.tty = tty;
            client.exec(params).await.unwrap();
            let (said, _) = heard(&mut events, &id).await;
            guarded.expect_no_secret(&String::from_utf8_lossy(&said));
        }
        let work = guarded.root.join("work");
        let mut params = exec_params("pid", &["cat"], work.to_str().unwrap());
        params.pipe_stdin = true;
        client.exec(params).await.unwrap();
        let listed: Value = client.call("process/list", &json!({}), true).await.unwrap();
        let pid = listed["processes"].as_array().unwrap().iter().find(|p| p["processId"] == "pid");
        let pid = pid.unwrap()["pid"].as_i64().unwrap();
        // It is the process id outside of the namespace. The kernel fills in the command line a moment after the
        // program is entered.
        let words = wait_for(|| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            (!words.is_empty()).then_some(words)
        });
        assert_eq!(words, b"cat\0");
        client.terminate("pid").await.unwrap();
    }
}

#[test]
fn no_command_of_a_program_reads_the_token_of_an_administrator() {
    for sandbox in SANDBOXES {
        let guarded = Guarded::start(sandbox);
        let command = json!({"argv": ["sh", "-c", guarded.script()]});
        let answer = guarded.server.client("admin");
        let answer = answer.execute(&format!("return await tools.process.run({command})"));
        guarded.expect_no_secret(&answer.json().to_string());
    }
}

/// Requests that the server performs itself for a client have the same restrictions.
#[tokio::test]
async fn no_request_about_files_reads_or_changes_them() {
    for sandbox in SANDBOXES {
        let guarded = Guarded::start(sandbox);
        let client = guarded.client().await;
        let root = guarded.root.to_str().unwrap();
        let ask = async |method: &'static str, params: Value| {
            client.call::<_, Value>(method, &params, true).await.map_err(|error| error.to_string())
        };
        let token = format!("{root}/data/tokens/admin");
        for (method, params) in [
            ("fs/readFile", json!({"path": token})),
            ("fs/readFile", json!({"path": format!("{root}/work/../data/tokens/admin")})),
            ("fs/open", json!({"path": token, "handleId": "h"})),
            ("fs/writeFile", json!({"path": token, "dataBase64": "eA=="})),
            ("fs/writeFile", json!({"path": format!("{root}/airlock.toml"), "dataBase64": "eA=="})),
            (
                "fs/remove",
                json!({"path": format!("{root}/data"), "recursive": true, "force": false}),
            ),
            (
                "fs/copy",
                json!({"sourcePath": token, "destinationPath": format!("{root}/work/t"), "recursive": false}),
            ),
            ("fs/readDirectory", json!({"path": format!("{root}/data/tokens")})),
        ] {
            let answer = ask(method, params.clone()).await;
            assert!(answer.is_err(), "{method} {params}: {answer:?}");
        }
        let key = ask("fs/readFile", json!({"path": format!("{root}/vault.key")})).await;
        let shown = format!("{key:?}");
        assert!(key.is_err() || shown.contains("\"dataBase64\": String(\"\")"), "{shown}");
        guarded.expect_unchanged();
        // Everything else works as usual.
        let own = format!("{root}/work/own");
        ask("fs/writeFile", json!({"path": own, "dataBase64": "eHk="})).await.unwrap();
        let read = ask("fs/readFile", json!({"path": own})).await.unwrap();
        assert_eq!(read["dataBase64"], "eHk=");
        if sandbox.is_empty() {
            ask("fs/open", json!({"path": own, "handleId": "own"})).await.unwrap();
            let block = json!({"handleId": "own", "offset": 1, "len": 1});
            assert_eq!(ask("fs/readBlock", block).await.unwrap()["chunk"], "eQ==");
        }
    }
}

#[tokio::test]
async fn the_configuration_can_show_them_to_processes_without_a_sandbox() {
    let guarded = Guarded::start("[processes]\nhide_server_files = false\n");
    let client = guarded.client().await;
    let mut events = client.events();
    let token = guarded.root.join("data/tokens/admin");
    client.exec(exec_params("p", &["cat", token.to_str().unwrap()], "/tmp")).await.unwrap();
    let (said, code) = heard(&mut events, "p").await;
    assert_eq!((String::from_utf8_lossy(&said).trim(), code), (guarded.secrets[0].as_str(), 0));
    drop(guarded.folder);
}

#[test]
fn a_server_whose_processes_can_read_its_files_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    std::fs::write(&config, "[processes]\nhide_server_files = false\n").unwrap();
    let log = folder.path().join("log");
    let words = ["--exec", "--config", config.to_str().unwrap()];
    let file = std::fs::File::create(&log).unwrap();
    let served = Served::start_with(&folder.path().join("data"), &words, file.into(), None);
    let warning =
        "WARNING: processes can read the data directory: the scope `process` equals `admin` here";
    wait_for(|| std::fs::read_to_string(&log).unwrap().contains(warning).then_some(()));
    assert_eq!(served.stop(), Some(0));
}

/// The variables that contain a server's own secrets are not passed on.
#[test]
fn no_process_finds_a_secret_of_its_server_in_its_environment() {
    let secret = "a-secret-of-more-than-thirty-two-characters";
    let mut server = exec_server_fixture::Stdio::greeted(&[("AIRLOCK_TOKEN", secret)]);
    let params = json!({
        "processId": "p", "argv": ["env"], "cwd": "/tmp", "env": {"OWN": "set"},
        "envPolicy": {"inherit": "all", "ignoreDefaultExcludes": true, "exclude": [], "set": {}, "includeOnly": []},
        "tty": false,
    });
    server.ask("process/start", params).unwrap();
    let mut said = vec![];
    loop {
        let note = server.note();
        match note["method"].as_str() {
            Some("process/output") => {
                said.extend(note["params"]["chunk"].as_str().map(decoded).unwrap_or_default());
            }
            Some("process/closed") => break,
            _ => {}
        }
    }
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("OWN=set") && said.contains("PATH="), "{said}");
    assert!(!said.contains(secret), "{said}");
}

fn decoded(chunk: &str) -> Vec<u8> {
    serde_json::from_value::<client::exec_server::ByteChunk>(json!(chunk)).unwrap().0
}

#[test]
fn a_standalone_exec_server_hides_the_data_directory_of_its_account() {
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join(".airlock/tokens/admin");
    std::fs::create_dir_all(token.parent().unwrap()).unwrap();
    std::fs::write(&token, "the secret of the account").unwrap();
    for (words, code) in [(&[][..], 1), (&["--show-server-files"][..], 0)] {
        let mut server =
            exec_server_fixture::Stdio::start_at(words, &[("HOME", home.path().to_str().unwrap())]);
        server.greet(json!({"clientName": "test", "resumeSessionId": null})).unwrap();
        let params = json!({
            "processId": "p", "argv": ["cat", token], "cwd": "/tmp",
            "env": {"PATH": "/usr/bin:/bin"}, "tty": false,
        });
        server.ask("process/start", params).unwrap();
        let exited = loop {
            let note = server.note();
            if note["method"] == "process/exited" {
                break note;
            }
        };
        assert_eq!(exited["params"]["exitCode"], code, "{words:?}");
    }
}

#[test]
fn the_doctor_says_whether_files_can_be_hidden_here() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["doctor", "--json", "--data-dir", folder.path().to_str().unwrap()];
    let output = airlock(&words).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_said =
        |text: &str| {
            told["findings"].as_array().unwrap().iter().any(|finding| {
                finding["text"].as_str().is_some_and(|finding| finding.contains(text))
            })
        };
    let is_hidden = is_said("processes cannot read the data directory");
    assert!(is_hidden || is_said("the scope `process` equals `admin`"), "{told}");
    assert_eq!(is_hidden, can_hide(folder.path()), "{told}");
}

/// Whether this machine lets us mount, directly or in a user namespace.
fn can_hide(folder: &Path) -> bool {
    let script = format!("mount -t tmpfs none {}", folder.display());
    let tried = |words: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "it is waited for")]
        let mut command = std::process::Command::new("unshare");
        command.args(words).args(["sh", "-c", &script]).status().is_ok_and(|ended| ended.success())
    };
    tried(&["-m"]) || tried(&["-Urm"])
}
