//! Settings outlive the server that was started with them, regardless of who starts the next one.

use crate::server_fixture::{self, Served, airlock};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// How a verb ended.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A verb on this data directory, with its own home and in a directory without a project.
fn verb(data_dir: &Path, words: &[&str]) -> Command {
    let home = data_dir.with_extension("home");
    fs::create_dir_all(&home).unwrap();
    let mut command = airlock(words);
    command.env_remove("AIRLOCK_URL").env("AIRLOCK_DATA_DIR", data_dir).env("HOME", &home);
    command.env_remove("XDG_CONFIG_HOME").current_dir(&home);
    command
}

fn done(mut command: Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The value of a setting that the directory records.
fn setting(data_dir: &Path, name: &str) -> Value {
    let listed = done(verb(data_dir, &["settings", "--json"]));
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let all = listed.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = all.into_iter().find(|setting| setting["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {listed:?}"))
}

/// A server that a client started. It ends when this goes out of scope.
struct ClientStarted<'a>(&'a Path);

impl ClientStarted<'_> {
    fn pid(&self) -> Option<u32> {
        store::sqlite::directory_owner(self.0).map(|owner| owner.pid)
    }

    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn end(&self, signal: &str) {
        if let Some(pid) = self.pid() {
            let _ = Command::new("kill").args([signal, &pid.to_string()]).status();
            // It is not this process's child: it is gone when its lock is.
            while store::sqlite::owner_of(self.0).is_some() {
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for ClientStarted<'_> {
    fn drop(&mut self) {
        self.end("-TERM");
    }
}

/// `airlock mcp` on stdio, after the handshake.
struct Bridge {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next_id: u64,
}

impl Bridge {
    fn open(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut bridge = Self { child, stdin, lines, next_id: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                            "clientInfo": { "name": "test", "version": "1" } });
        bridge.request("initialize", &hello);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(bridge.stdin, "{ready}").unwrap();
        bridge
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        writeln!(self.stdin, "{request}").unwrap();
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next_id {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn close(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_directory_without_a_record_says_that_defaults_count() {
    let dir = tempfile::tempdir().unwrap();
    let listed = done(verb(&dir.path().join("data"), &["settings"]));
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""));
    assert!(listed.stderr.contains("every setting has its default"), "{listed:?}");
}

const BLOCKS: &str = "[[policies]]\npattern = 'demo.add'\naction = 'block'\n";

/// The attack: the server dies, and the bridge of an agent starts another.
#[test]
fn settings_are_in_force_on_a_server_that_a_bridge_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (data_dir, config, key) =
        (dir.path().join("data"), dir.path().join("own.toml"), dir.path().join("own.key"));
    let blocks = "[sources.c.tools.one]\nargv = ['echo', '1']\nread_only = true\n\
                  [sources.c.tools.two]\nargv = ['echo', '2']\n\
                  [[policies]]\npattern = 'c.org.main.one'\naction = 'block'\n";
    fs::write(&config, blocks).unwrap();
    let words = ["--no-model-answers", "--config", config.to_str().unwrap(), "--vault-key"];
    let words = [&words[..], &[key.to_str().unwrap(), "--allowed-host", "box.example"]].concat();
    let served = Served::start(&data_dir, &words);
    let recorded = |name: &str| setting(&data_dir, name)["value"].clone();
    let expected = json!(["person", "box.example", config, key]);
    let names = ["answers", "allowed-hosts", "config", "vault-key"];
    assert_eq!(json!(names.map(recorded)), expected);
    served.kill();
    let started = ClientStarted(&data_dir);
    let mut bridge = Bridge::open(verb(&data_dir, &["mcp", "--wait", "100"]));
    assert!(started.pid().is_some());
    let owner = store::sqlite::directory_owner(&data_dir).unwrap();
    assert!(owner.is_client_started, "{owner:?}");
    // The agent cannot answer.
    let paused =
        bridge.call("execute", &json!({ "code": "return (await tools.c.org.main.two()).data" }));
    let id = paused["structuredContent"]["executionId"].as_str().unwrap().to_owned();
    let answered = bridge.call("resume", &json!({ "executionId": id, "action": "accept" }));
    assert_ne!(answered["structuredContent"]["status"], "completed", "{answered}");
    // A tool that the configuration blocks stays blocked, and the vault's key and the hosts are the recorded ones.
    let blocked = bridge.call("execute", &json!({ "code": "return await tools.c.org.main.one()" }));
    assert!(blocked.to_string().contains("Tool blocked by policy"), "{blocked}");
    let vault = done(verb(&data_dir, &["vault", "status", "--json"]));
    assert!(vault.stdout.contains(key.to_str().unwrap()), "{vault:?}");
    let address = owner.note.strip_prefix("http://").unwrap().to_owned();
    let client = server_fixture::Client { address, secret: String::new() };
    let status = |host: &str| client.send("GET", "/healthz", &[("Host", host)], "").status;
    assert_eq!((status("box.example"), status("other.example")), (200, 403));
    bridge.close();
    // The server that the client started recorded nothing.
    assert_eq!(json!(names.map(recorded)), expected);
}

#[test]
fn a_flag_that_loosens_is_refused_and_names_the_command_that_does_it() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let other = dir.path().join("other.toml");
    fs::write(&other, "").unwrap();
    let own = dir.path().join("own.toml");
    fs::write(&own, BLOCKS).unwrap();
    let usual = ["--answers", "client", "--config", own.to_str().unwrap()];
    assert_eq!(Served::start(&data_dir, &usual).stop(), Some(0));
    let cases: [&[&str]; 5] = [
        &["--answers", "model"],
        &["--config", other.to_str().unwrap()],
        &["--allowed-host", "box.example"],
        &["--listen", "0.0.0.0:0"],
        &["--public-url", "https://box.example"],
    ];
    for words in cases {
        let refused = done(verb(&data_dir, &[&["serve"], words].concat()));
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(refused.stderr.contains("airlock settings set "), "{refused:?}");
    }
    // Repeating a value and tightening it are allowed; the tighter value becomes the record.
    assert_eq!(Served::start(&data_dir, &usual).stop(), Some(0));
    assert_eq!(Served::start(&data_dir, &["--answers", "person"]).stop(), Some(0));
    let refused = done(verb(&data_dir, &["serve", "--answers", "client"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    // The whole command line becomes the record.
    let replaced = ["--answers", "model", "--replace-settings"];
    assert_eq!(Served::start(&data_dir, &replaced).stop(), Some(0));
    let recorded = ["answers", "config"].map(|name| setting(&data_dir, name)["value"].clone());
    assert_eq!(json!(recorded), json!(["model", "usual"]));
}

#[test]
fn a_setting_is_changed_with_the_server_up_and_down_and_each_change_says_who_and_when() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let served = Served::with_model_answers(&data_dir, &[]);
    let asks = "return await tools.demo.ask({ text: 'x' })";
    let agent = served.client("run");
    let accepts = |id: &str| agent.resume(id, "accept").status;
    assert_eq!(accepts(&agent.execute(asks).question()), 200);
    let asked = agent.execute(asks).question();
    let set = done(verb(&data_dir, &["settings", "set", "answers", "person"]));
    assert_eq!(set.code, Some(0), "{set:?}");
    // The value applies from the next decision on, without a restart.
    assert_eq!(accepts(&asked), 403);
    assert_eq!(agent.get("/api/settings").status, 403);
    let body = r#"{"name":"answers","value":"model"}"#;
    assert_eq!(agent.post("/api/settings", body).status, 403);
    let shown = setting(&data_dir, "answers");
    assert_eq!((&shown["value"], &shown["by"]), (&json!("person"), &json!("token admin")));
    let wrong = done(verb(&data_dir, &["settings", "set", "answers", "agent"]));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    served.stop();
    let set = done(verb(&data_dir, &["settings", "set", "answers", "client"]));
    assert_eq!(set.code, Some(0), "{set:?}");
    let shown = setting(&data_dir, "answers");
    assert!(shown["by"].as_str().unwrap().starts_with("airlock settings by "), "{shown}");
    assert!(shown["at"].as_i64().unwrap() > 0);
    let history = done(verb(&data_dir, &["settings", "history", "--json"]));
    let history = history.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers: Vec<_> = history
        .filter(|change| change["name"] == "answers")
        .map(|change| json!([change["old"], change["new"]]))
        .collect();
    let expected =
        [json!([null, "model"]), json!(["model", "person"]), json!(["person", "client"])];
    assert_eq!(answers, expected);
    let mode = fs::metadata(data_dir.join("settings.json")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
}

/// A `run` secret in a client's environment must not administer the server that the client starts.
#[test]
fn a_clients_environment_does_not_reach_the_server_that_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    Served::start(&data_dir, &[]).stop();
    let run = fs::read_to_string(data_dir.join("tokens/run")).unwrap();
    let started = ClientStarted(&data_dir);
    let mut command = verb(&data_dir, &["mcp"]);
    command.env("AIRLOCK_TOKEN", run.trim()).env("AIRLOCK_ADMIN_TOKEN", "x".repeat(40));
    command.env("XDG_CONFIG_HOME", dir.path()).env("HTTPS_PROXY", "http://127.0.0.1:9");
    command.env("LANG", "C.UTF-8").env("AIRLOCK_CONFIG", "/no/such/file");
    let bridge = Bridge::open(command);
    let pid = started.pid().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let names: Vec<_> = environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| {
            String::from_utf8_lossy(variable).split_once('=').map(|(name, _)| name.to_owned())
        })
        .collect();
    assert!(names.iter().any(|name| name == "PATH") && names.iter().any(|name| name == "LANG"));
    let is_foreign = |name: &&String| {
        name.starts_with("AIRLOCK_") || name.starts_with("XDG_") || name.ends_with("_PROXY")
    };
    assert_eq!(names.iter().find(is_foreign), None);
    let owner = store::sqlite::directory_owner(&data_dir).unwrap();
    let address = owner.note.strip_prefix("http://").unwrap().to_owned();
    let status = |secret: &str| {
        let client = server_fixture::Client { address: address.clone(), secret: secret.to_owned() };
        client.get("/api/tokens").status
    };
    assert_eq!((status(run.trim()), status(&"x".repeat(40))), (403, 401));
    bridge.close();
}

/// Starts a server with this environment and returns it with what it wrote to stderr until it was ready.
fn serve_with(data_dir: &Path, variables: &[(&str, &str)]) -> (Served, std::path::PathBuf) {
    let log = data_dir.with_extension("log");
    let file = fs::File::create(&log).unwrap();
    let served = Served::start_with_variables(data_dir, &[], file.into(), variables);
    (served, log)
}

#[test]
fn the_administrators_variable_has_a_name_of_its_own_and_32_characters() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let long = "0123456789-0123456789-0123456789";
    let (served, log) = serve_with(&data_dir, &[("AIRLOCK_TOKEN", long)]);
    assert_eq!(served.client_with(long).get("/api/tokens").status, 200);
    served.stop();
    assert!(fs::read_to_string(log).unwrap().contains("for one more version"));
    let run = fs::read_to_string(data_dir.join("tokens/run")).unwrap();
    for ignored in [run.trim(), "too-short"] {
        let (served, log) = serve_with(&data_dir, &[("AIRLOCK_TOKEN", ignored)]);
        assert_ne!(served.client_with(ignored).get("/api/tokens").status, 200, "{ignored}");
        served.stop();
        assert!(fs::read_to_string(log).unwrap().contains("AIRLOCK_TOKEN is ignored"));
    }
    for refused in ["too-short", run.trim()] {
        let mut command = verb(&data_dir, &["serve"]);
        command.env("AIRLOCK_ADMIN_TOKEN", refused);
        let refused = done(command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("AIRLOCK_ADMIN_TOKEN"), "{refused:?}");
    }
}

/// The bridge's server is asked to stop; the paused execution and the bridge continue with the operator's.
#[test]
fn an_operators_server_replaces_one_that_a_bridge_started() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    fs::create_dir(&data_dir).unwrap();
    fs::write(data_dir.join("airlock.toml"), "[sources.c.tools.two]\nargv = ['echo', '2']\n")
        .unwrap();
    let started = ClientStarted(&data_dir);
    let mut bridge = Bridge::open(verb(&data_dir, &["mcp"]));
    let code = json!({ "code": "return (await tools.c.org.main.two()).data" });
    let paused = bridge.call("execute", &code);
    let id = paused["structuredContent"]["executionId"].as_str().unwrap().to_owned();
    let before = started.pid().unwrap();
    let served = Served::start(&data_dir, &[]);
    let owner = store::sqlite::directory_owner(&data_dir).unwrap();
    assert!(owner.pid != before && !owner.is_client_started, "{owner:?}");
    assert_eq!(owner.note, served.url);
    // The execution survived, and the bridge reconnects.
    let tools = bridge.request("tools/list", &json!({}));
    assert!(tools["tools"].is_array(), "{tools}");
    let answered = served.client("admin").resume(&id, "accept");
    assert_eq!(answered.result(), json!(2));
    bridge.close();
    // Another operator's server is not replaced.
    let refused = done(verb(&data_dir, &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("a server already owns"), "{refused:?}");
    served.stop();
}

#[test]
fn a_bridge_waits_for_a_supervised_server_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    Served::start_with(&data_dir, &[], Stdio::null(), Some(("INVOCATION_ID", "a1"))).stop();
    assert_eq!(setting(&data_dir, "supervised")["value"], "on");
    let mut command = verb(&data_dir, &["call", "demo.add", r#"{"a":1,"b":2}"#]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = command.spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the server of"), "{line}");
    assert_eq!(store::sqlite::owner_of(&data_dir), None, "no server was started");
    // The supervisor's server is the one that answers.
    let served = Served::start_with(&data_dir, &[], Stdio::null(), Some(("INVOCATION_ID", "a2")));
    let mut answer = String::new();
    waiting.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!((waiting.wait().unwrap().code(), answer.trim()), (Some(0), "3"));
    served.stop();
    // A server that a person starts does not record `supervised`.
    Served::start(&data_dir, &[]).stop();
    assert_eq!(setting(&data_dir, "supervised")["value"], "off");
}

#[test]
fn a_configuration_file_that_is_missing_or_wrong_keeps_the_server_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let mut by_variable = verb(&data_dir, &["serve", "--listen", "127.0.0.1:0"]);
    by_variable.env("AIRLOCK_CONFIG", "/no/such/file");
    let by_flag = verb(&data_dir, &["serve", "--config", "/no/such/file"]);
    for command in
        [by_variable, by_flag, verb(&data_dir, &["run", "--config", "/no/such/file", "-e", "1"])]
    {
        let refused = done(command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("/no/such/file does not exist"), "{refused:?}");
    }
    let wrong = dir.path().join("wrong.toml");
    fs::write(&wrong, "sorces = 1\n").unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0", "--config", wrong.to_str().unwrap()];
    let refused = done(verb(&data_dir, &words));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("sorces"), "{refused:?}");
    assert!(!data_dir.join("tokens").exists() && !data_dir.join("settings.json").exists());
    // If a recorded file is deleted, every later start fails.
    fs::write(&wrong, BLOCKS).unwrap();
    Served::start(&data_dir, &["--config", wrong.to_str().unwrap()]).stop();
    fs::remove_file(&wrong).unwrap();
    let refused = done(verb(&data_dir, &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("airlock settings set config"), "{refused:?}");
}

#[test]
fn a_port_in_use_is_explained_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let refused = done(verb(&data_dir, &["serve", "--listen", &address]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let owner = format!("(process {})", std::process::id());
    assert!(refused.stderr.contains("--listen") && refused.stderr.contains(&owner), "{refused:?}");
    assert!(!data_dir.join("tokens").exists() && !data_dir.join("settings.json").exists());
}

/// The account of this test can log in: a process that shares it has the same access, so operator mode would protect
/// nothing.
#[test]
fn operator_mode_needs_an_account_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let served = Served::start(&data_dir, &[]);
    let refused = done(verb(&data_dir, &["settings", "set", "operator-mode", "on"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("nothing was changed"), "{refused:?}");
    assert_eq!(served.client("admin").get("/api/tokens").status, 200);
    served.stop();
    let refused = done(verb(&data_dir, &["settings", "set", "operator-mode", "on"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    // A directory of a server that had its own account.
    let store = store::sqlite::SqliteStore::open(&data_dir).unwrap();
    let on = r#"{"value":"on","by":"test","at":1}"#.to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let before =
            store::RecordStore::get(&store, "setting", "operator-mode").await.unwrap().unwrap();
        store::RecordStore::put(&store, "setting", "operator-mode", on, before.version)
            .await
            .unwrap();
        store.close().await;
    });
    let refused = done(verb(&data_dir, &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("operator mode is on"), "{refused:?}");
    let shown = done(verb(&data_dir, &["doctor"]));
    assert!(shown.stdout.contains("may share its account with agents"), "{shown:?}");
}

/// With an account that cannot log in. Only root can start processes under one.
#[test]
fn operator_mode_ends_every_admin_secret_and_prints_no_link() {
    const NOBODY: u32 = 65_534;
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let has_nobody = passwd.lines().any(|line| {
        let fields: Vec<_> = line.split(':').collect();
        fields.get(2) == Some(&"65534")
            && fields.last().is_some_and(|shell| shell.ends_with("nologin"))
    });
    let is_root = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0;
    if !is_root || !has_nobody {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (data_dir, fresh) = (dir.path().join("data"), dir.path().join("fresh"));
    for folder in [dir.path(), &data_dir, &fresh] {
        fs::create_dir_all(folder).unwrap();
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let as_nobody = |mut command: Command| {
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
        command
    };
    let log = dir.path().join("log");
    let serve = |data_dir: &Path| {
        let log = fs::File::create(&log).unwrap();
        let mut command = as_nobody(airlock(&["serve"]));
        command.env("HOME", dir.path()).current_dir(dir.path());
        Served::start_command(command, data_dir, log.into())
    };
    let served = serve(&data_dir);
    let admin = served.client("admin").secret;
    let words = ["settings", "set", "operator-mode", "on"];
    let set = done(as_nobody(verb(&data_dir, &words)));
    assert_eq!(set.code, Some(0), "{set:?}");
    assert!(!data_dir.join("tokens/admin").exists());
    assert_eq!(served.client_with(&admin).get("/api/tokens").status, 401);
    assert_eq!(served.client("run").execute("return 1").status, 200);
    served.stop();
    // Also if it was switched on before the first start: a secret of an administrator is never written.
    let set = done(as_nobody(verb(&fresh, &words)));
    assert_eq!(set.code, Some(0), "{set:?}");
    for data_dir in [&data_dir, &fresh] {
        let served = serve(data_dir);
        assert_eq!(served.client_with(&admin).get("/api/tokens").status, 401);
        assert!(data_dir.join("tokens/run").exists() && !data_dir.join("tokens/admin").exists());
        served.stop();
        let output = fs::read_to_string(&log).unwrap();
        assert!(!output.contains("#code=") && !output.contains("WARNING"), "{output}");
    }
}
