//! Sources after a restart of the real server: their stored descriptions, calls that wait for a source, and answers
//! that are refused while the source is unavailable.

use crate::server_fixture::{Answer, wait_for};
use crate::source_fixture::House;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// The description of the tool that creates things, before it changes.
const ABOUT: &str = "Makes a thing";

/// How the API's description is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Good,
    /// Requests wait until the mode changes.
    Slow,
    /// Connections are closed without an answer.
    Dead,
}

struct ApiState {
    mode: Mode,
    about: &'static str,
    n_calls: BTreeMap<String, u32>,
}

/// An API with its description at `/openapi.json`, which can be slow, dead or changed while calls still work.
#[derive(Clone)]
struct Api {
    url: String,
    state: Arc<(Mutex<ApiState>, Condvar)>,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = ApiState { mode: Mode::Good, about: ABOUT, n_calls: BTreeMap::new() };
        let api = Self { url, state: Arc::new((Mutex::new(state), Condvar::new())) };
        let serving = api.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let api = serving.clone();
                thread::spawn(move || drop(api.answer(stream)));
            }
        });
        api
    }

    fn configured(&self) -> String {
        format!("[sources.things]\nkind = 'openapi'\nurl = '{}/openapi.json'\n", self.url)
    }

    fn set(&self, mode: Mode) {
        self.state.0.lock().unwrap().mode = mode;
        self.state.1.notify_all();
    }

    /// Changes the description of the tool that creates things, and adds a tool that deletes them.
    fn change(&self, about: &'static str) {
        self.state.0.lock().unwrap().about = about;
    }

    fn n_calls(&self, key: &str) -> u32 {
        self.state.0.lock().unwrap().n_calls.get(key).copied().unwrap_or(0)
    }

    fn n_calls_in_all(&self) -> u32 {
        self.state.0.lock().unwrap().n_calls.values().sum()
    }

    fn description(&self, about: &str) -> String {
        let operation = |id: &str, summary: &str| {
            json!({ "operationId": id, "tags": ["t"], "summary": summary,
                "parameters": [{ "name": "key", "in": "query", "required": true, "schema": { "type": "string" } }],
                "responses": { "200": { "description": "ok" } } })
        };
        let mut path =
            json!({ "get": operation("read", "Reads"), "post": operation("make", about) });
        if about != ABOUT {
            path["delete"] = operation("drop", "Drops a thing");
        }
        json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" },
            "servers": [{ "url": self.url }], "paths": { "/things": path } })
        .to_string()
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut state = self.state.0.lock().unwrap();
        let body = if path == "/openapi.json" {
            state = self.state.1.wait_while(state, |state| state.mode == Mode::Slow).unwrap();
            if state.mode == Mode::Dead {
                return Ok(());
            }
            self.description(state.about)
        } else {
            let key = path.split("key=").nth(1).unwrap_or_default().to_owned();
            *state.n_calls.entry(key.clone()).or_insert(0) += 1;
            json!({ "key": key }).to_string()
        };
        drop(state);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        reader.get_mut().write_all((head + &body).as_bytes())
    }
}

/// The first line of `/readyz`, and what follows it.
fn ready(house: &House) -> String {
    let answer = house.admin().get("/readyz");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// Runs a program that creates one thing, up to its question.
#[track_caller]
fn ask(house: &House, key: &str) -> String {
    let code = format!("return await tools.things.org.main.t.make({{ key: '{key}' }})");
    let paused = house.admin().execute(&code);
    assert_eq!(paused.json()["status"], "paused", "{paused:?}");
    paused.question()
}

/// The ids of the open questions.
fn open_questions(house: &House) -> Vec<String> {
    let told = house.admin().get("/api/questions").json();
    let id = |question: &Value| question["executionId"].as_str().map(str::to_owned);
    told["questions"].as_array().unwrap().iter().filter_map(id).collect()
}

#[track_caller]
fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 409, "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["_tag"], "SourceUnavailableError", "{problem}");
    assert_eq!(problem["code"], "source_unavailable", "{problem}");
    assert!(problem["message"].as_str().unwrap().contains("the question stays open"), "{problem}");
}

#[test]
fn programs_midway_go_on_after_a_restart_while_the_description_is_slow() {
    const N_PROGRAMS: usize = 8;
    let api = Api::start();
    let house = House::with(&api.configured());
    house.ready("things");
    let program = |n: usize| {
        format!(
            "for (let i = 0; i < 12; i++) {{
                const read = await tools.things.org.main.t.read({{ key: `r{n}-${{i}}` }});
                if (!read.ok) return read;
                await new Promise((done) => setTimeout(done, 20));
            }}
            return await tools.things.org.main.t.make({{ key: 'm{n}' }})"
        )
    };
    let start = |n: usize| {
        let body = json!({ "code": program(n) }).to_string();
        house.admin().post("/api/executions?wait=0", &body).execution()
    };
    let executions: Vec<String> = (0..N_PROGRAMS).map(start).collect();
    wait_for(|| (api.n_calls_in_all() > 20).then_some(()));
    let house = house.again_after(|_| api.set(Mode::Slow));
    assert_eq!(ready(&house), "ok\nloading: things");

    // The description stays slow until every program has ended.
    for (n, execution) in executions.iter().enumerate() {
        let told = wait_for(|| {
            let shown = house.admin().get(&format!("/api/executions/{execution}"));
            let told = shown.json();
            match told["structured"]["status"].as_str() {
                Some("waiting_for_interaction") => {
                    let answer = house.admin().resume(&shown.question(), "accept");
                    assert_eq!(answer.status, 200, "{answer:?}");
                    None
                }
                Some("completed") => Some(told),
                Some("failed") => panic!("{told}"),
                _ => None,
            }
        });
        assert_eq!(told["structured"]["result"]["ok"], true, "{told}");
        assert_eq!(api.n_calls(&format!("m{n}")), 1, "an approved call is made once");
    }
    assert_eq!(ready(&house), "ok\nloading: things");
    api.set(Mode::Good);
    wait_for(|| (ready(&house) == "ok").then_some(()));
}

#[test]
fn a_call_waits_for_a_source_that_was_never_read() {
    let api = Api::start();
    api.set(Mode::Dead);
    let house = House::with_args(&api.configured(), &["--source-wait", "20s"]);
    wait_for(|| (ready(&house) == "ok\nunavailable: things").then_some(()));
    let code = "return await tools.things.org.main.t.read({ key: 'late' })";
    let body = json!({ "code": code }).to_string();
    let execution = house.admin().post("/api/executions?wait=0", &body).execution();
    let events = || house.admin().get(&format!("/api/executions/{execution}/events")).body;
    wait_for(|| events().contains("\"type\":\"deferred\"").then_some(()));
    api.set(Mode::Good);
    let told = wait_for(|| {
        let told = house.admin().get(&format!("/api/executions/{execution}")).json();
        (told["structured"]["status"] == "completed").then_some(told)
    });
    assert_eq!(told["structured"]["result"]["data"]["key"], "late", "{told}");
    assert_eq!(api.n_calls("late"), 1);
    let missing = house.run("return await tools.things.org.main.t.destroy({})");
    assert_eq!(missing["error"]["code"], "tool_not_found", "{missing}");
}

#[test]
fn an_accept_is_refused_while_the_source_is_dead_and_counts_when_it_is_back() {
    let api = Api::start();
    let house = House::with_args(&api.configured(), &["--source-wait", "100ms"]);
    house.ready("things");
    let (accepted, declined) = (ask(&house, "accepted"), ask(&house, "declined"));
    let house = house.again_after(|folder| {
        api.set(Mode::Dead);
        std::fs::remove_dir_all(folder.join("data/descriptions")).unwrap();
    });
    wait_for(|| (ready(&house) == "ok\nunavailable: things").then_some(()));
    let read = house.run("return await tools.things.org.main.t.read({ key: 'r' })");
    assert_eq!(read["error"]["code"], "source_unavailable", "{read}");
    assert_eq!(read["error"]["retryable"], true, "{read}");

    is_unavailable(&house.admin().resume(&accepted, "accept"));
    let answers =
        json!({ "answers": [{ "executionId": accepted, "action": "accept" }] }).to_string();
    is_unavailable(&house.admin().post(&format!("/api/executions/{accepted}/answers"), &answers));
    let (code, _, noted) = house.says(&["resume", &accepted]);
    assert_eq!(code, Some(1), "{noted}");
    assert!(noted.contains("try again when it is, or decline the call"), "{noted}");
    let mut open = open_questions(&house);
    open.sort();
    let mut expected = vec![accepted.clone(), declined.clone()];
    expected.sort();
    assert_eq!(open, expected, "both stay open");
    assert_eq!(house.admin().resume(&declined, "decline").status, 200);
    assert_eq!(open_questions(&house), [accepted.as_str()]);

    api.set(Mode::Good);
    let done = wait_for(|| {
        let answer = house.admin().resume(&accepted, "accept");
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(done.result()["data"]["key"], "accepted", "{done:?}");
    assert_eq!((api.n_calls("accepted"), api.n_calls("declined")), (1, 0));
}

#[test]
fn a_description_that_changed_while_the_server_was_down_asks_again() {
    let api = Api::start();
    let house = House::with(&api.configured());
    house.ready("things");
    let question = ask(&house, "changed");
    let rule = json!({ "owner": "org", "pattern": "things.*", "action": "approve" });
    house.admin().post("/api/policies", &rule.to_string());
    let house = house.again_after(|_| api.change("Makes a thing and sells it"));
    wait_for(|| (ready(&house) == "ok").then_some(()));
    let verdicts = ["read", "drop"].map(|tool| house.verdict(&format!("things.org.main.t.{tool}")));
    assert_eq!(verdicts, ["allow", "ask"], "the approval does not cover what is new");
    let again = house.admin().resume(&question, "accept");
    assert_eq!(again.json()["status"], "paused", "{again:?}");
    assert!(again.body.contains("has changed since its approval"), "{again:?}");
    assert_eq!(api.n_calls("changed"), 0);
    let done = house.admin().resume(&again.question(), "accept");
    assert_eq!(done.result()["ok"], true, "{done:?}");
    assert_eq!(api.n_calls("changed"), 1);
}

#[test]
fn a_source_that_was_removed_while_the_server_was_down_does_not_come_back() {
    let api = Api::start();
    let house = House::with_args(&api.configured(), &["--source-wait", "100ms"]);
    house.ready("things");
    let file = house.served.data_dir.join("descriptions/things.description");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = file.parent().unwrap();
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    let question = ask(&house, "gone");
    let house = house.again_after(|folder| {
        std::fs::write(folder.join("airlock.toml"), "").unwrap();
    });
    assert_eq!(ready(&house), "ok");
    assert!(house.source("things").is_none());
    assert!(!file.exists(), "its description is deleted");
    let call = house.run("return await tools.things.org.main.t.read({ key: 'r' })");
    assert_eq!(call["error"]["code"], "tool_not_found", "{call}");
    is_unavailable(&house.admin().resume(&question, "accept"));

    // A source that is reconfigured is read again.
    api.set(Mode::Dead);
    house.configure(&api.configured());
    wait_for(|| (ready(&house) == "ok\nunavailable: things").then_some(()));
    api.set(Mode::Good);
    wait_for(|| (house.admin().resume(&question, "accept").status == 200).then_some(()));
    assert_eq!(api.n_calls("gone"), 1);
}

#[test]
fn a_stored_description_is_deleted_with_its_source_and_counts_for_no_other_address() {
    let (api, other) = (Api::start(), Api::start());
    let house = House::with("");
    let body = |api: &Api| {
        let source = json!({ "kind": "openapi", "url": format!("{}/openapi.json", api.url) });
        json!({ "slug": "things", "source": source, "connect": true }).to_string()
    };
    let added = house.admin().post("/api/sources", &body(&api));
    assert_eq!(added.status, 200, "{added:?}");
    let file = house.served.data_dir.join("descriptions/things.description");
    assert!(file.exists());
    assert_eq!(house.admin().send("DELETE", "/api/integrations/things", &[], "").status, 200);
    assert!(!file.exists());

    house.configure(&api.configured());
    house.ready("things");
    let house = house.again_after(|folder| {
        other.set(Mode::Dead);
        std::fs::write(folder.join("airlock.toml"), other.configured()).unwrap();
    });
    wait_for(|| (ready(&house) == "ok\nunavailable: things").then_some(()));
}

/// An MCP server of a few lines of shell, whose only tool asks first and writes a line to `calls`.
fn write_mcp_server(folder: &Path) {
    let script = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"mark","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]}}\n' "$id" ;;
    *'"tools/call"'*) echo called >> "$(dirname "$0")/calls"; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id" ;;
  esac
done
"#;
    std::fs::write(folder.join("server.sh"), script).unwrap();
}

#[test]
fn an_approved_call_of_a_server_that_is_lost_asks_again_and_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    write_mcp_server(folder.path());
    let script = folder.path().join("server.sh");
    let config = format!("[sources.shell]\ncommand = {}\n", json!(["/bin/sh", script]));
    let house = House::with_args(&config, &["--source-wait", "100ms"]);
    house.ready("shell");
    let call = "return await tools.shell.org.main.mark({})";
    let question = house.admin().execute(call).question();
    let n_calls = || {
        let text = std::fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
        text.lines().count()
    };

    // After the restart its tools are listed, although its program does not start.
    let house = house.again_after(|_| std::fs::write(&script, "exit 1\n").unwrap());
    let listed = house.admin().get("/api/tools?integration=shell").json();
    assert_eq!(listed[0]["address"], "tools.shell.org.main.mark", "{listed}");
    let answer = house.admin().resume(&question, "accept");
    // The answer may arrive before the server has noticed the failure. Then the call asks again.
    if answer.status == 409 {
        is_unavailable(&answer);
    } else {
        let told = answer.json();
        assert_eq!(told["status"], "paused", "{told}");
        assert!(answer.body.contains("was not dispatched"), "{told}");
    }
    assert_eq!(n_calls(), 0);
    let question = open_questions(&house).remove(0);

    write_mcp_server(folder.path());
    let done = wait_for(|| {
        let answer = house.admin().resume(&question, "accept");
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(done.result()["data"]["content"][0]["text"], "done", "{done:?}");
    assert_eq!(n_calls(), 1);
}
