//! Which callers may answer a question: an agent's attempts over MCP, HTTP and `autoApprove`, under each value of the
//! setting and with each scope.

use crate::server_fixture::{self, Client, Served, airlock};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const WRITE: &str = "return await tools.demo.append({ line: 'written' })";
const ASK: &str = "return await tools.demo.ask({ text: 'x' })";
const FORM: &str = "return await tools.demo.form({ message: 'Who?', schema: { type: 'object', \
                    properties: { name: { type: 'string' } }, required: ['name'] } })";

/// `airlock mcp` with a client that accepts every dialog, as some agents' clients do.
struct Agent {
    child: Child,
    says: ChildStdin,
    hears: Lines<BufReader<ChildStdout>>,
    /// Every dialog that the server asked the client to show.
    dialogs: Vec<Value>,
    n_sent: u64,
}

impl Agent {
    fn open(served: &Served, secret: &str, words: &[&str], capabilities: &Value) -> Self {
        let mut command =
            airlock(&["mcp", "--server", &served.url, "--token", secret, "--wait", "300"]);
        let command = command.args(words).arg("--data-dir").arg(&served.data_dir);
        Self::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()), capabilities)
    }

    fn start(command: &mut std::process::Command, capabilities: &Value) -> Self {
        let mut child = command.spawn().unwrap();
        let says = child.stdin.take().unwrap();
        let hears = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut agent = Self { child, says, hears, dialogs: vec![], n_sent: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
                            "clientInfo": { "name": "test", "version": "1" } });
        agent.request("initialize", &hello);
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.says, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.n_sent += 1;
        let id = self.n_sent;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let line = self.hears.next().unwrap().unwrap();
            let mut heard: Value = serde_json::from_str(&line).unwrap();
            if heard["method"] == "elicitation/create" {
                let fields = &heard["params"]["requestedSchema"]["properties"];
                let content =
                    if fields["name"].is_object() { json!({ "name": "Ann" }) } else { json!({}) };
                let mut yes = json!({ "action": "accept" });
                if heard["params"]["mode"] != "url" {
                    yes["content"] = content;
                }
                self.dialogs.push(heard["params"].take());
                self.say(&json!({ "jsonrpc": "2.0", "id": heard["id"], "result": yes }));
            } else if heard["id"] == id && heard["method"].is_null() {
                return heard["result"].take();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn execute(&mut self, code: &str) -> Value {
        self.call("execute", &json!({ "code": code }))
    }

    fn close(mut self) {
        drop(self.says);
        assert!(self.child.wait().unwrap().success());
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn written(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("demo-append.txt")).unwrap_or_default()
}

fn mint(served: &Served, name: &str, scopes: &[&str], answers: &str) -> Client {
    let body = json!({ "name": name, "scopes": scopes, "answers": answers });
    let minted = served.client("admin").post("/api/tokens", &body.to_string());
    assert_eq!(minted.status, 201, "{minted:?}");
    served.client_with(minted.json()["secret"].as_str().unwrap())
}

/// The identity under which each answer of an execution was given. A person's entry has no name.
fn answered_as(served: &Served, id: &str) -> Vec<(String, Option<String>)> {
    let events = served.client("admin").get(&format!("/api/executions/{id}/events?type=answer"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let events = events.json()["events"].as_array().unwrap().clone();
    events.iter().map(|event| (text(&event["by"]).unwrap(), text(&event["as"]))).collect()
}

/// Asserts that a text contains no hint on how to answer, for readers who may not.
#[track_caller]
fn advises_nothing(text: &str) {
    for hint in ["\"accept\"", "`accept`", "\\\"accept\\\"", "airlock resume", "#code="] {
        assert!(!text.contains(hint), "{hint} in {text}");
    }
}

#[test]
fn by_default_an_agent_cannot_approve_its_own_write() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    // Without options, the token is `tokens/run` of the data directory.
    let mut command = airlock(&["mcp", "--wait", "300", "--data-dir"]);
    let command = command.arg(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = Agent::start(command, &json!({}));
    let paused = agent.execute(WRITE);
    let id = paused["structuredContent"]["executionId"].as_str().unwrap().to_owned();
    assert_eq!(paused["structuredContent"]["status"], "user_approval_required", "{paused}");
    let page = format!("{}/resume/{id}?mcp_session_id=none", served.url);
    assert_eq!(paused["structuredContent"]["approvalUrl"], page);
    let tried =
        agent.call("resume", &json!({ "executionId": id, "action": "accept", "content": "{}" }));
    assert_eq!(tried["structuredContent"]["status"], "user_approval_required", "{tried}");
    assert!(text(&tried).starts_with("Nothing was answered: a person decides"), "{tried}");
    let over_http = served.client("run").resume(&id, "accept");
    assert_eq!(over_http.status, 403);
    assert!(over_http.body.contains(&format!("on the page /resume/{id}")), "{over_http:?}");
    advises_nothing(&over_http.body);
    assert_eq!(written(dir.path()), "", "nothing was written");

    assert_eq!(served.client("admin").resume(&id, "accept").status, 200, "a person's token may");
    let done = agent.call("resume", &json!({ "executionId": id }));
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");
    assert_eq!(written(dir.path()), "written\n");
    assert_eq!(answered_as(&served, &id), [("admin".to_owned(), None)]);
    agent.close();
}

#[test]
fn a_dialog_counts_from_client_on_whatever_its_schema_and_whatever_the_scopes() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--answers", "model"]);
    let shows = json!({ "elicitation": { "form": {}, "url": {} } });
    for (answers, counts) in [("person", false), ("client", true), ("model", true)] {
        for scopes in [&["run"][..], &["run", "answer"], &["admin"]] {
            let name = format!("{answers}-{}", scopes.join("-"));
            let token = mint(&served, &name, scopes, answers);
            let mut agent =
                Agent::open(&served, &token.secret, &["--elicitation-mode", "native"], &shows);
            for code in [ASK, FORM] {
                let told = agent.execute(code);
                let status = told["structuredContent"]["status"].as_str().unwrap().to_owned();
                let dialog = agent.dialogs.pop().unwrap();
                if counts {
                    assert_eq!(status, "completed", "{name}: {told}");
                    let execution = &token.get("/api/executions?limit=1").json()["executions"][0];
                    let id = execution["executionId"].as_str().unwrap();
                    let expected = [(name.clone(), Some("client".to_owned()))];
                    assert_eq!(answered_as(&served, id), expected, "{name}");
                } else {
                    assert_eq!(status, "user_approval_required", "{name}: {told}");
                    let id = told["structuredContent"]["executionId"].as_str().unwrap();
                    assert_eq!(dialog["mode"], "url", "{name}: {dialog}");
                    let page = format!("{}/resume/{id}?mcp_session_id=", served.url);
                    let session = dialog["url"].as_str().unwrap().strip_prefix(&page);
                    assert_eq!(session.map(str::len), Some(36), "{name}: {dialog}");
                    let open =
                        served.client("admin").get(&format!("/api/executions/{id}/questions"));
                    assert_eq!(open.json()["questions"].as_array().unwrap().len(), 1, "{name}");
                    assert_eq!(answered_as(&served, id), []);
                    served.client("admin").resume(id, "cancel");
                }
            }
            agent.close();
        }
    }
}

#[test]
fn a_client_that_shows_only_forms_gets_the_address_as_text_under_person() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let run = served.client("run");
    let shows = json!({ "elicitation": {} });
    let mut agent = Agent::open(&served, &run.secret, &["--elicitation-mode", "native"], &shows);
    let told = agent.execute(ASK);
    assert_eq!(told["structuredContent"]["status"], "user_approval_required", "{told}");
    assert!(agent.dialogs.is_empty(), "{:?}", agent.dialogs);
    let page = told["structuredContent"]["approvalUrl"].as_str().unwrap();
    assert!(text(&told).contains(page));
    agent.close();
}

#[test]
fn a_token_answers_as_far_as_its_value_and_the_servers_permit() {
    let accept = |id: &Value| json!({ "executionId": id, "action": "accept" });
    for ceiling in ["person", "client", "model"] {
        let dir = tempfile::tempdir().unwrap();
        let served = Served::start(dir.path(), &["--answers", ceiling]);
        for answers in ["person", "client", "model"] {
            let may = ceiling == "model" && answers == "model";
            for scopes in [&["run"][..], &["run", "answer"], &["admin"]] {
                let name = format!("{answers}-{}", scopes.join("-"));
                let token = mint(&served, &name, scopes, answers);
                let is_person = scopes != ["run"];
                // Over MCP the scopes make no difference.
                let mut agent = Agent::open(
                    &served,
                    &token.secret,
                    &["--elicitation-mode", "model"],
                    &json!({}),
                );
                let paused = agent.execute(ASK);
                let id = paused["structuredContent"]["executionId"].clone();
                let told = agent.call("resume", &accept(&id));
                let expected = if may { "completed" } else { "user_approval_required" };
                let status = &told["structuredContent"]["status"];
                assert_eq!(status, expected, "{ceiling} {name}: {told}");
                let id = id.as_str().unwrap();
                let given = answered_as(&served, id);
                let by_model = (name.clone(), Some("model".to_owned()));
                assert_eq!(
                    given,
                    if may { vec![by_model.clone()] } else { vec![] },
                    "{ceiling} {name}"
                );
                if !may {
                    assert!(text(&paused).contains("elicitation_mode=model is served as browser"));
                    served.client("admin").resume(id, "cancel");
                }
                agent.close();
                // Over HTTP with the token itself, the scope `answer` is enough.
                let paused = token.execute(ASK);
                let told = token.resume(&paused.question(), "accept");
                assert_eq!(
                    told.status,
                    if may || is_person { 200 } else { 403 },
                    "{ceiling} {name}"
                );
                let given = answered_as(&served, &paused.execution());
                let expected = match (is_person, may) {
                    (true, _) => vec![(name.clone(), None)],
                    (false, true) => vec![by_model],
                    (false, false) => vec![],
                };
                assert_eq!(given, expected, "{ceiling} {name}");
            }
        }
    }
}

#[test]
fn calls_are_approved_in_advance_only_by_a_token_that_may_answer() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--answers", "model"]);
    let body = json!({ "code": ASK, "autoApprove": true }).to_string();
    for (scopes, answers, expected) in [
        (&["run"][..], "person", None),
        (&["run"], "client", None),
        (&["run"], "model", Some(Some("model".to_owned()))),
        (&["run", "answer"], "person", Some(None)),
        (&["run", "answer"], "model", Some(None)),
        (&["admin"], "person", Some(None)),
    ] {
        let name = format!("{}-{answers}", scopes.join("-"));
        let token = mint(&served, &name, scopes, answers);
        let told = token.post("/api/executions", &body);
        let Some(role) = expected else {
            assert_eq!(told.status, 403, "{name}: {told:?}");
            assert!(
                told.body.contains("autoApprove needs a token with the scope answer"),
                "{told:?}"
            );
            continue;
        };
        assert_eq!(told.result()["approved"], true, "{name}");
        assert_eq!(answered_as(&served, &told.execution()), [(name, role)]);
    }
}

#[test]
fn whoever_may_not_answer_reads_nothing_that_answers() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--public-url", "https://airlock.example"]);
    let run = served.client("run");
    let mut agent = Agent::open(&served, &run.secret, &[], &json!({}));
    let tools = agent.request("tools/list", &json!({}));
    advises_nothing(&tools.to_string());
    let resume = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "resume");
    assert_eq!(resume.unwrap()["inputSchema"]["properties"].as_object().unwrap().len(), 1);
    advises_nothing(&agent.call("skills", &json!({ "name": "execute" })).to_string());
    let link =
        "return await tools.demo.link({ message: 'Go', url: 'https://x.example/?s={state}' })";
    for code in [ASK, FORM, link] {
        let paused = agent.execute(code);
        advises_nothing(&paused.to_string());
        let id = paused["structuredContent"]["executionId"].as_str().unwrap();
        let page = format!("https://airlock.example/resume/{id}");
        let shown_page = format!("{page}?mcp_session_id=none");
        assert_eq!(paused["structuredContent"]["approvalUrl"], shown_page, "the public address");
        let uri = json!({ "uri": format!("airlock://executions/{id}") });
        let paths = ["", "/questions", "/events", "/result"];
        let read = paths.map(|path| run.get(&format!("/api/executions/{id}{path}")).body);
        let resource = agent.request("resources/read", &uri).to_string();
        for text in read.iter().chain([&resource]) {
            advises_nothing(text);
            assert!(!text.contains("x.example/?s=exec_"), "the link can answer: {text}");
        }
        assert!(read[0].contains(&page) && resource.contains(&page));
        let told = run.execute(code).body;
        advises_nothing(&told);
        assert!(told.contains("https://airlock.example/resume/"), "{told}");
        // The person who decides sees the link and the instructions.
        let shown = served.client("admin").get(&format!("/api/executions/{id}")).body;
        assert!(shown.contains("\\\"accept\\\""), "{shown}");
        assert_eq!(shown.contains("x.example/?s=exec_"), code == link);
    }
    agent.close();
}

#[test]
fn a_caller_of_this_machine_reads_no_note_about_the_page_whatever_it_names_as_host() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--allowed-host", "airlock.example"]);
    let run = served.client("run");
    let params = json!({ "name": "execute", "arguments": { "code": ASK } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    for host in [None, Some(("Host", "airlock.example"))] {
        let headers: Vec<_> = headers.into_iter().chain(host).collect();
        let told = run.send("POST", "/mcp", &headers, &call.to_string()).body;
        assert!(told.contains("user_approval_required"), "{told}");
        assert!(!told.contains("The page is on the machine that runs Airlock"), "{told}");
    }
}

#[test]
fn the_older_flag_is_an_alias_of_person() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--no-model-answers"]);
    let token = mint(&served, "agent", &["run"], "model");
    let paused = token.execute(ASK);
    assert_eq!(token.resume(&paused.question(), "accept").status, 403);
    let both = airlock(&["serve", "--no-model-answers", "--answers", "model"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    let bad = airlock(&["serve", "--answers", "anybody"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("person, client or model"));
}

#[test]
fn tokens_show_their_value_and_can_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--answers", "model"]);
    mint(&served, "agent", &["run"], "client");
    let admin = served.client("admin");
    let listed = admin.get("/api/tokens").json();
    let values: Vec<_> =
        listed["tokens"].as_array().unwrap().iter().map(|token| token["answers"].clone()).collect();
    assert_eq!(values, ["person", "client", "person"], "admin, agent, run: {listed}");
    let json = [("Content-Type", "application/json")];
    let change = |answers: &str| {
        admin.send("PATCH", "/api/tokens/agent", &json, &format!(r#"{{"answers":"{answers}"}}"#))
    };
    assert_eq!(change("model").json()["answers"], "model");
    assert_eq!(change("anybody").status, 400);
    let run = served.client("run");
    let own = run.send("PATCH", "/api/tokens/run", &json, r#"{"answers":"model"}"#);
    assert_eq!(own.status, 403, "a token does not loosen itself");
    let mut set = airlock(&["token", "set", "agent", "--answers", "person", "--data-dir"]);
    let set = set.arg(dir.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&set.stdout), "agent\trun\tperson\n", "{set:?}");
}

/// A request in the protocol revision that has tasks, and its response.
fn task_request(client: &Client, method: &str, mut params: Value) -> Value {
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    let capabilities =
        json!({ "extensions": extensions, "elicitation": { "form": {}, "url": {} } });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap().to_owned();
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("Mcp-Name", &name),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let path = "/mcp?elicitation_mode=native&wait=50";
    let answer = client.send("POST", path, &headers, &body);
    let text = answer.body.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(text.unwrap_or(&answer.body)).unwrap()
}

#[test]
fn what_a_tasks_client_brings_answers_nothing_under_person() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--answers", "model"]);
    for (answers, counts) in [("person", false), ("client", true)] {
        // Over MCP a token's scopes make no difference.
        let token = mint(&served, answers, &["run", "answer"], answers);
        let code = format!("await tools.demo.sleep({{ ms: 300 }}); {WRITE}");
        let call = json!({ "name": "execute", "arguments": { "code": code } });
        let task = task_request(&token, "tools/call", call)["result"]["taskId"].clone();
        let named = || json!({ "taskId": task });
        let needed = server_fixture::wait_for(|| {
            let shown = task_request(&token, "tasks/get", named())["result"].clone();
            (shown["status"] == "input_required").then_some(shown)
        });
        let (id, asked) = needed["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(asked["params"]["mode"] == "url", !counts, "{needed}");
        let mut update = named();
        update["inputResponses"] = json!({ id: { "action": "accept", "content": {} } });
        // Under `person`, the client was asked to show the page's address and confirms that it did.
        let updated = task_request(&token, "tasks/update", update);
        assert!(updated["error"].is_null(), "{updated}");
        let execution = task.as_str().unwrap();
        if counts {
            server_fixture::wait_for(|| (written(dir.path()) == "written\n").then_some(()));
            let expected = [(answers.to_owned(), Some("client".to_owned()))];
            assert_eq!(answered_as(&served, execution), expected);
        } else {
            let path = format!("/api/executions/{execution}/questions");
            let open = served.client("admin").get(&path).json();
            assert_eq!(open["questions"].as_array().unwrap().len(), 1, "{open}");
            assert_eq!(answered_as(&served, execution), []);
            assert_eq!(written(dir.path()), "");
        }
    }
}
