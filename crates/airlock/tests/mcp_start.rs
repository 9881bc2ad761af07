//! `airlock mcp` where no server runs, and the client configuration for it.

use crate::mcp_node;
use crate::server_fixture::{Served, airlock};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The server of a data directory. It ends when this goes out of scope.
struct Started<'a>(&'a Path);

impl Started<'_> {
    fn pid(&self) -> Option<String> {
        let note = fs::read_to_string(self.0.join("owner.lock")).ok()?;
        note.lines().next().map(str::to_owned)
    }
}

impl Drop for Started<'_> {
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = std::process::Command::new("kill").arg(&pid).status();
            // It is not this process's child: it is gone when its lock is.
            while store::sqlite::owner_of(self.0).is_some() {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn without_a_server_one_is_started_once_however_many_ask() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let started = Started(dir.path());
    let config = json!({ "airlock": env!("CARGO_BIN_EXE_airlock"), "dataDir": dir.path() });
    let status = mcp_node::node(&folder)
        .arg(folder.join("cases.mjs"))
        .args(["started", &config.to_string()])
        .status();
    assert!(status.unwrap().success(), "node says why above");
    let log = fs::read_to_string(dir.path().join("serve.log")).unwrap();
    let n_ready = log.lines().filter(|line| line.contains("the first tokens are")).count();
    assert_eq!(n_ready, 1, "{log}");
    assert!(started.pid().is_some());
}

/// `airlock mcp` with a client that has completed the handshake.
struct Bridge {
    child: Child,
    says: ChildStdin,
    hears: Lines<BufReader<ChildStdout>>,
}

impl Bridge {
    fn open(data_dir: &Path, server: &str, token: &str) -> Self {
        let mut command = airlock(&["mcp", "--server", server, "--token", token, "--data-dir"]);
        Self::start(command.arg(data_dir).stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    fn start(command: &mut std::process::Command) -> Self {
        let mut child = command.spawn().unwrap();
        let says = child.stdin.take().unwrap();
        let hears = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut bridge = Self { child, says, hears };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "roots": {} },
                            "clientInfo": { "name": "test", "version": "1" } });
        bridge.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
        bridge.hears.next().unwrap().unwrap();
        bridge.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        bridge
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.says, "{message}").unwrap();
    }

    /// Calls a tool and returns its result.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
        let answer = self.hears.next().unwrap().unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["result"].take()
    }

    fn close(mut self) {
        drop(self.says);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn the_log_tells_of_capabilities_pauses_and_answers_where_a_variable_asks_for_it() {
    for variable in [None, Some("AIRLOCK_MCP_DEBUG"), Some("EXECUTOR_MCP_DEBUG")] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let file = fs::File::create(&log).unwrap();
        let data_dir = dir.path().join("data");
        let set = variable.map(|name| (name, "1"));
        let served = Served::start_with(&data_dir, &["--answers", "model"], file.into(), set);
        served.let_model_answer();
        let token = fs::read_to_string(data_dir.join("tokens/run")).unwrap();
        let mut bridge = Bridge::open(&data_dir, &served.url, token.trim());
        let code = json!({ "code": "return await tools.demo.ask({ text: 'x' })" });
        let paused = bridge.call("execute", &code)["structuredContent"].clone();
        let id = paused["executionId"].as_str().unwrap();
        bridge.call("resume", &json!({ "executionId": id, "action": "accept" }));
        bridge.close();
        served.stop();
        let log = fs::read_to_string(&log).unwrap();
        let told: Vec<_> = log.lines().filter(|line| line.contains("mcp")).collect();
        let tells = |word: &str| told.iter().any(|line| line.contains(word));
        let all = [tells("roots"), tells("paused") && tells(id), tells("answer"), tells("over")];
        assert_eq!(all, [variable.is_some(); 4], "{variable:?}: {log}");
    }
}

#[test]
fn what_cannot_be_passed_on_is_answered_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let token = fs::read_to_string(served.data_dir.join("tokens/run")).unwrap();
    let mut bridge = Bridge::open(dir.path(), &served.url, token.trim());
    let call = |id: u32, code: &str| {
        let params = json!({ "name": "execute", "arguments": { "code": code } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let (long, large) = (call(8, &"x".repeat(5 << 20)), call(10, &"x".repeat(3 << 20)));
    type Told = (Value, Option<i64>, Option<&'static str>);
    let nobody = |code: i64| (Value::Null, Some(code), None);
    let lone =
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\ud83d"}}"#.as_slice();
    let cases: [(&[u8], Told); 6] = [
        (b"[", nobody(-32_700)),
        (b"[]", nobody(-32_600)),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, nobody(-32_600)),
        (lone, (json!(7), None, Some("half a surrogate pair"))),
        (long.as_bytes(), (json!(8), None, Some("more than 4194304 bytes"))),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\",\"params\":\"\xff\"}",
            (json!(9), Some(-32_600), None),
        ),
    ];
    let slow = call(3, "await tools.demo.sleep({ ms: 300 }); return 5");
    writeln!(bridge.says, "{slow}").unwrap();
    let mut answers = vec![];
    let hear = |bridge: &mut Bridge| {
        serde_json::from_str::<Value>(&bridge.hears.next().unwrap().unwrap()).unwrap()
    };
    for (line, _) in &cases {
        bridge.says.write_all(line).unwrap();
        bridge.says.write_all(b"\n").unwrap();
    }
    for _ in 0..=cases.len() {
        answers.push(hear(&mut bridge));
    }
    let at = answers.iter().position(|answer| answer["id"] == 3).unwrap();
    assert_eq!(answers.remove(at)["result"]["structuredContent"]["result"], 5, "it goes on");
    for ((_, (id, code, why)), answer) in cases.iter().zip(&answers) {
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (id, *code), "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(why.is_none_or(|why| text.unwrap().contains(why)), "{answer}");
    }
    writeln!(bridge.says, "{large}").unwrap();
    let refused = hear(&mut bridge);
    let text = "Error: the server refused this: The body is larger than 2097152 bytes, the most that is taken. \
                Nothing was started. Correct the arguments and call again.";
    assert_eq!(refused["result"]["content"][0]["text"], text);
    assert_eq!(refused["result"]["structuredContent"]["recovery"], "correct_arguments");
    bridge.close();
    let listed = served.client("admin").get("/api/executions").json();
    assert_eq!(listed["executions"].as_array().unwrap().len(), 1, "nothing else was started");
}

#[test]
fn a_call_whose_server_dies_says_not_to_run_the_program_again() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let token = fs::read_to_string(served.data_dir.join("tokens/run")).unwrap();
    let mut bridge = Bridge::open(dir.path(), &served.url, token.trim());
    let code = json!({ "code": "await tools.demo.sleep({ ms: 60_000 })" });
    let params = json!({ "name": "execute", "arguments": code });
    bridge.say(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }));
    let admin = served.client("admin");
    crate::server_fixture::wait_for(|| {
        let listed = admin.get("/api/executions").json();
        listed["executions"][0]["executionId"].is_string().then_some(())
    });
    served.kill();
    let answer: Value = serde_json::from_str(&bridge.hears.next().unwrap().unwrap()).unwrap();
    let told = &answer["result"]["structuredContent"];
    assert_eq!(
        (&answer["id"], &told["status"]),
        (&json!(3), &json!("connection_lost")),
        "{answer}"
    );
    assert_eq!(told["recovery"], "read_resources");
    let message = told["message"].as_str().unwrap();
    assert!(message.ends_with("Do not run the program again before you looked."), "{message}");
    bridge.close();
}

#[test]
fn a_server_that_is_named_is_spoken_to_and_none_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("there"), &[]);
    let here = dir.path().join("here");
    let token = fs::read_to_string(served.data_dir.join("tokens/run")).unwrap();
    let mut add = airlock(&["server", "add", "away", &served.url, "--data-dir"]);
    assert!(add.arg(&here).output().unwrap().status.success());
    for named in [&served.url, "away"] {
        let mut bridge = Bridge::open(&here, named, token.trim());
        let answer = bridge.call("execute", &json!({ "code": "return 6 * 7" }));
        assert_eq!(answer["structuredContent"]["result"], 42, "{named}: {answer}");
        bridge.close();
    }
    assert_eq!(store::sqlite::owner_of(&here), None, "no server was started");
    let listed = served.client("admin").get("/api/executions").json();
    assert_eq!(listed["executions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_server_that_cannot_start_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("journal.sqlite"), "no database at all, by far").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let output = airlock(&["mcp", "--data-dir"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: could not use "), "{said}");
}

/// Runs a verb of `airlock mcp` in its own home directory. Returns whether it succeeded, and its output.
fn mcp_verb(verb: &str, home: &Path, words: &[&str]) -> (bool, String) {
    let mut command = airlock(&["mcp", verb]);
    for moved in
        ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME", "GEMINI_CLI_HOME"]
    {
        command.env_remove(moved);
    }
    let output = command.args(words).env("HOME", home).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn install(home: &Path, words: &[&str]) -> (bool, String) {
    mcp_verb("install", home, words)
}

const JSON_CLIENTS: [(&str, &str, &str); 9] = [
    ("claude-code", ".claude.json", "mcpServers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("opencode", ".config/opencode/opencode.json", "mcp"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
];

#[test]
fn clients_are_configured_without_loss_and_without_a_secret() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    for (client, file, section) in JSON_CLIENTS {
        fs::create_dir_all(at(file).parent().unwrap()).unwrap();
        let old = format!(
            "{{\n  // mine\n  \"keep\": 1.50,\n  \"{section}\": {{\"other\": {{\"command\": \"x\"}}}}, // theirs\n}}\n"
        );
        fs::write(at(file), &old).unwrap();
        let (is_good, shown) = install(home.path(), &[client, "--dry-run"]);
        assert!(is_good && shown.contains("\"airlock\""), "{shown}");
        assert_eq!(fs::read_to_string(at(file)).unwrap(), old, "a dry run changes nothing");
        let (is_good, said) = install(home.path(), &[client, "--elicitation-mode", "browser"]);
        assert!(is_good, "{said}");
        let text = fs::read_to_string(at(file)).unwrap();
        for kept in ["// mine", "// theirs", "1.50", "\"other\": {\"command\": \"x\"}"] {
            assert!(text.contains(kept), "{kept} {text}");
        }
        assert!(!text.contains("alk_"), "{text}");
        let words =
            format!("\"mcp\", \"--as\", \"{client}\", \"--elicitation-mode\", \"browser\"]");
        assert!(text.contains(&words), "{text}");
        let backup = format!("{}.before-airlock", at(file).display());
        assert_eq!(fs::read_to_string(backup).unwrap(), old);
        assert!(
            install(home.path(), &[client, "--elicitation-mode", "browser"])
                .1
                .contains("has it already.")
        );
    }
    fs::create_dir(at(".codex")).unwrap();
    fs::write(at(".codex/config.toml"), "model = \"m\" # mine\n").unwrap();
    assert!(install(home.path(), &["codex"]).0);
    let text = fs::read_to_string(at(".codex/config.toml")).unwrap();
    let command = env!("CARGO_BIN_EXE_airlock");
    let expected = format!(
        "model = \"m\" # mine\n\n[mcp_servers.airlock]\ncommand = \"{command}\"\nargs = [\"mcp\", \"--as\", \"codex\"]\n\
         startup_timeout_sec = 30\ntool_timeout_sec = 660\ndefault_tools_approval_mode = \"approve\"\n"
    );
    assert_eq!(text, expected);
    fs::create_dir_all(at(".config/goose")).unwrap();
    fs::write(
        at(".config/goose/config.yaml"),
        "# mine\nextensions:\n  other:\n    enabled: true\n",
    )
    .unwrap();
    assert!(install(home.path(), &["goose"]).0);
    let text = fs::read_to_string(at(".config/goose/config.yaml")).unwrap();
    assert!(text.starts_with("# mine\nextensions:\n  airlock:\n    type: \"stdio\"\n"), "{text}");
    assert!(text.ends_with("  other:\n    enabled: true\n"), "{text}");
}

#[test]
fn a_file_that_cannot_be_edited_is_left_alone_and_no_token_is_minted() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(home.path().join(".cursor")).unwrap();
    for odd in ["{ mine: 1 }", "[]", r#"{"mcpServers": 1}"#] {
        fs::write(&file, odd).unwrap();
        let (is_good, said) = install(home.path(), &["cursor"]);
        assert!(!is_good && said.starts_with("error: "), "{said}");
        assert!(said.contains("is left alone"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), odd);
    }
    assert!(!home.path().join(".airlock/tokens/cursor").exists());
}

#[test]
fn uninstall_takes_out_what_install_put_in_and_the_token() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    let token = |name: &str| at(".airlock/tokens").join(name).exists();
    let uninstall = |words: &[&str]| mcp_verb("uninstall", home.path(), words);
    let files = JSON_CLIENTS.map(|(client, file, _)| (client, file));
    for (client, file) in
        [&files[..], &[("codex", ".codex/config.toml"), ("goose", ".config/goose/config.yaml")]]
            .concat()
    {
        // Uninstalling removes a file that install created.
        assert!(install(home.path(), &[client]).0);
        assert!(at(file).is_file() && token(client), "{client}");
        let (is_good, said) = uninstall(&[client]);
        assert!(is_good && said.contains(&format!("token {client} is removed")), "{said}");
        assert!(!at(file).exists() && !token(client), "{client}");
        let (is_good, said) = uninstall(&[client]);
        assert!(!is_good && said.contains("there is nothing to remove"), "{said}");
    }
    let zed = at(".config/zed/settings.json");
    let old = "// mine\n{ \"theme\": \"x\", }\n";
    fs::write(&zed, old).unwrap();
    // A file that existed before is restored, also after a second installation.
    install(home.path(), &["zed"]);
    install(home.path(), &["zed", "--elicitation-mode", "native"]);
    assert!(uninstall(&["zed", "--dry-run"]).1.starts_with("// mine"));
    assert!(uninstall(&["zed"]).0);
    assert_eq!(fs::read_to_string(&zed).unwrap(), old);
    assert!(!at(".config/zed/settings.json.before-airlock").exists());
    // A change that was made after the installation is preserved.
    install(home.path(), &["zed"]);
    let changed = fs::read_to_string(&zed).unwrap().replace("\"x\"", "\"y\"");
    fs::write(&zed, &changed).unwrap();
    assert!(uninstall(&["zed"]).0);
    let left = fs::read_to_string(&zed).unwrap();
    assert!(
        left.contains("\"y\"") && left.contains("// mine") && !left.contains("airlock"),
        "{left}"
    );
    // An entry of another program is preserved.
    let other = r#"{"context_servers": {"airlock": {"command": "other", "args": ["x"]}}}"#;
    fs::write(&zed, other).unwrap();
    let (is_good, said) = uninstall(&["zed"]);
    assert!(!is_good && said.contains("install did not write it"), "{said}");
    assert_eq!(fs::read_to_string(&zed).unwrap(), other);
}

#[test]
fn each_client_gets_a_token_of_its_own_with_its_own_value() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let data_dir = home.path().join("data");
    let data = data_dir.to_str().unwrap().to_owned();
    let installed = |words: &[&str]| {
        let (is_good, said) = install(home.path(), &[words, &["--data-dir", &data]].concat());
        assert!(is_good, "{said}");
        said
    };
    let listed = || {
        let output = airlock(&["token", "list", "--data-dir", &data]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // Without a server, the verb works on the directory.
    installed(&["cursor"]);
    let said = installed(&["codex", "--answers", "client"]);
    assert!(said.contains("airlock serve --answers client"), "{said}");
    let before =
        "admin\tadmin\tperson\ncodex\trun\tclient\ncursor\trun\tperson\nrun\trun\tperson\n";
    assert_eq!(listed(), before);
    let codex = fs::read_to_string(data_dir.join("tokens/codex")).unwrap();
    // With a server, the verb works through it. An existing token of a client is reused, and its `answers` value can be
    // changed.
    let served = Served::start(&data_dir, &["--answers", "client"]);
    installed(&["vscode", "--answers", "model"]);
    installed(&["codex", "--answers", "person"]);
    let after = "admin\tadmin\tperson\ncodex\trun\tperson\ncursor\trun\tperson\nrun\trun\tperson\nvscode\trun\tmodel\n";
    assert_eq!(listed(), after);
    assert_eq!(fs::read_to_string(data_dir.join("tokens/codex")).unwrap(), codex);
    for client in ["cursor", "codex", "vscode"] {
        let file = data_dir.join("tokens").join(client);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{client}");
    }
    for file in [".cursor/mcp.json", ".codex/config.toml", ".config/Code/User/mcp.json"] {
        assert!(!fs::read_to_string(home.path().join(file)).unwrap().contains("alk_"), "{file}");
    }
    // Removing the entry removes the token too, and the server no longer lists it.
    assert!(mcp_verb("uninstall", home.path(), &["cursor", "--data-dir", &data]).0);
    assert!(!data_dir.join("tokens/cursor").exists() && !listed().contains("cursor"));
    // The bridge uses that token and no other.
    let mut bridge = airlock(&["mcp", "--as", "vscode", "--data-dir", &data]);
    let mut bridge = Bridge::start(bridge.stdin(Stdio::piped()).stdout(Stdio::piped()));
    bridge.call("execute", &json!({ "code": "return 1" }));
    bridge.close();
    let executions = served.client("admin").get("/api/executions").json();
    assert_eq!(executions["executions"][0]["caller"], "vscode");
    let stranger = airlock(&["mcp", "--as", "stranger", "--data-dir", &data]).output().unwrap();
    assert_eq!(stranger.status.code(), Some(1));
    let said = String::from_utf8(stranger.stderr).unwrap();
    assert!(said.contains("no file tokens/stranger"), "{said}");
}

#[test]
fn codex_without_a_terminal_calls_what_was_installed() {
    let Some(folder) = mcp_node::installed() else { return };
    let Some(codex) = mcp_node::codex() else { return };
    let home = tempfile::tempdir().unwrap();
    let data_dir = home.path().join("data");
    let served = Served::start(&data_dir, &[]);
    let (is_good, said) =
        install(home.path(), &["codex", "--data-dir", data_dir.to_str().unwrap()]);
    assert!(is_good, "{said}");
    let config = json!({ "codex": codex, "home": home.path() });
    let status =
        mcp_node::node(&folder).arg(folder.join("codex.mjs")).arg(config.to_string()).status();
    assert!(status.unwrap().success(), "node says why above");
    let executions = served.client("admin").get("/api/executions").json();
    assert_eq!(executions["executions"][0]["caller"], "codex");
}
