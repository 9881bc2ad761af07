//! The published `executor` 1.5.9 from npm, driven through its own command line against our server.
//!
//! It is installed below the target directory, once. If npm cannot install it, the test reports that and proves
//! nothing.
#![expect(
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop; it owns and awaits its children"
)]

use crate::server_fixture::{self, Client, airlock};
use crate::source_fixture::{House, api};
use crate::web::{Page, Web};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const VERSION: &str = "1.5.9";
const BINARY: &str = "node_modules/executor-linux-x64/bin/executor";
const SECRET: &str = "from-the-environment-0123456789-abcdef";

#[test]
fn the_published_command_line_calls_pauses_and_resumes() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    assert!(server.is_found(), "this client finds servers by their catalogue over HTTP");
    let cli = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };

    cli.check(&["call", "demo", "add", r#"{"a":1,"b":2}"#], 0, "3\n");
    cli.check(&["call", "demo", "fail", r#"{"message":"no luck"}"#], 1, "");
    let found: Value =
        serde_json::from_str(&cli.says(&["tools", "search", "adds numbers"]).1).unwrap();
    assert_eq!(found["items"][0]["path"], "demo.add");
    let sources: Value = serde_json::from_str(&cli.says(&["tools", "sources"]).1).unwrap();
    assert!(sources["items"].as_array().unwrap().iter().any(|source| source["id"] == "demo"));

    let asked = cli.pauses(&["call", "demo", "ask", r#"{"text":"x"}"#]);
    let approved = json!({ "approved": true, "text": "x" });
    let resume =
        |id: &str, action: &str| cli.says(&["resume", "--execution-id", id, "--action", action]);
    for action in ["accept", "decline"] {
        // A second answer changes nothing: it receives the outcome of the first again.
        let (code, told, _) = resume(&asked, action);
        assert_eq!((code, serde_json::from_str(&told).ok()), (Some(0), Some(approved.clone())));
    }
    let asked = cli.pauses(&["call", "demo", "ask", r#"{"text":"y"}"#]);
    let (code, _, error) = resume(&asked, "decline");
    let sentence = "Tool \"demo.ask\" requires approval but the request was declined by the user.";
    assert_eq!((code, error.trim()), (Some(1), sentence));

    let form = r#"{"message":"Who?","schema":{"type":"object","required":["n"]}}"#;
    let asked = cli.pauses(&["call", "demo", "form", form]);
    let fill_in = |content: &str| {
        let (code, told, _) = cli.says(&["resume", "--execution-id", &asked, "--content", content]);
        (code, serde_json::from_str::<Value>(&told).ok())
    };
    assert_eq!(fill_in("{}").0, Some(1), "what does not fit is told");
    assert_eq!(fill_in(r#"{"n":1}"#), (Some(0), Some(json!({ "n": 1 }))));
    assert_eq!(resume("exec_00000000-0000-4000-8000-000000000001", "accept").0, Some(1));
}

#[test]
fn the_published_command_line_prints_a_result_over_a_megabyte() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let (web, text) = (Web::start(), "x".repeat(1_500_000));
    web.put("/large", Page::Text("application/json", json!(text).to_string()));
    let spec = json!({ "kind": "blob", "value": api(&[("get", "/large", "get")]) });
    let body = json!({ "slug": "big", "connect": true, "baseUrl": web.url, "spec": spec });
    let added = server.client().post("/api/openapi/specs", &body.to_string());
    assert_eq!(added.status, 200, "{added:?}");
    let cli = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };
    // The output goes into a file, because this client loses bytes that do not fit into a pipe in one write.
    let file = folder.path().join("told.json");
    let mut command = cli.command(&["call", "big", "org", "main", "t", "get", "{}"]);
    let status = command.stdout(std::fs::File::create(&file).unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    let told: Value = serde_json::from_reader(std::fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(told["data"].as_str().map(str::len), Some(text.len()), "it is whole");
}

#[test]
fn the_published_command_line_browses_tools() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let cli = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };
    let says = |words: &[&str]| {
        let (code, told, error) = cli.says(words);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?} {told}");
        told
    };
    let all = says(&["call", "--help"]);
    assert!(all.contains("Subcommands:") && all.contains("  demo "), "{all}");
    let below = says(&["call", "demo", "--help"]);
    assert!(below.contains("  append  tool, 1 path"), "{below}");
    let matching = says(&["call", "demo", "--help", "--match", "append"]);
    assert!(matching.contains("append") && !matching.contains("  echo"), "{matching}");
    let leaf = says(&["call", "demo", "add", "--help"]);
    assert!(leaf.contains("Tool: demo.add") && leaf.contains("a: number"), "{leaf}");
}

/// The same commands for our binary under the name `executor` and for the published one: same output, same exit code.
#[test]
fn a_link_named_executor_prints_and_exits_as_the_published_command_line() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let published = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };
    let ours = Cli { binary: link(folder.path()), ..published.clone() };
    let same: [&[&str]; 14] = [
        &["call", "demo", "add", r#"{"a":1,"b":2}"#],
        &["call", "demo.echo", r#"{"message":{"b":1,"a":[2]}}"#],
        &["call", "demo", "fail", r#"{"message":"no luck"}"#],
        &["call", "no", "such", "tool", "{}"],
        &["tools", "search", "adds numbers"],
        &["tools", "search", "list", "--namespace", "demo", "--limit", "2"],
        &["tools", "sources"],
        &["tools", "describe", "demo.add"],
        &["call", "demo", "--help"],
        &["call", "nowhere", "--help"],
        &["call", "no", "such", "--help", "--limit", "1"],
        &["call", "demo", "nowhere", "--help"],
        &["call", "demo", "add", "more", "--help"],
        &["call", "demo", "--help", "--limit", "2"],
    ];
    for words in same {
        assert_eq!(ours.says(words), published.says(words), "{words:?}");
    }
    // Scripts match on the first line.
    let nobody = Cli { url: "http://127.0.0.2:9".into(), ..ours.clone() };
    let there = Cli { url: nobody.url.clone(), ..published.clone() };
    let first = |cli: &Cli| {
        let (code, told, error) = cli.says(&["tools", "sources"]);
        (code, told, error.lines().next().unwrap_or_default().to_owned())
    };
    let unreachable = "Executor server is not reachable at http://127.0.0.2:9.".to_owned();
    assert_eq!(first(&nobody), (Some(1), String::new(), unreachable));
    assert_eq!(first(&nobody), first(&there));
    let (code, _, error) = ours.says(&["call", "demo", "add", "@missing.json"]);
    let missing = "Could not read argument file @missing.json: No such file or directory";
    assert_eq!(code, Some(1));
    assert!(error.starts_with(missing), "{error}");
    let (code, told, error) = ours.says(&["call", "demo", "add", "{\"a\":"]);
    assert_eq!((code, told.as_str()), (Some(1), ""));
    assert!(error.starts_with("Invalid JSON arguments: "), "{error}");
    assert!(
        published
            .says(&["call", "demo", "add", "{\"a\":"])
            .2
            .starts_with("Invalid JSON arguments: ")
    );
}

#[test]
fn a_paused_call_and_its_resume_read_the_same_under_the_name_executor() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let published = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };
    let ours = Cli { binary: link(folder.path()), ..published.clone() };
    let ask = ["call", "demo", "ask", r#"{"text":"x"}"#];
    let [(our_id, our_text), (id, text)] = [&ours, &published].map(|cli| {
        let (code, told, error) = cli.says(&ask);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{told}");
        assert!(told.starts_with("Execution paused: "), "{told}");
        let id =
            told.lines().find_map(|line| line.strip_prefix("executionId: ")).unwrap().to_owned();
        (id.clone(), told.replace(&id, "ID"))
    });
    assert_eq!(our_text, text);
    assert!(text.contains("\nRequested schema:\n") && text.contains("CLI fallback:"), "{text}");
    let decline =
        |cli: &Cli, id: &str| cli.says(&["resume", "--execution-id", id, "--action", "decline"]);
    let sentence =
        "Tool \"demo.ask\" requires approval but the request was declined by the user.\n";
    assert_eq!(decline(&ours, &our_id), (Some(1), String::new(), sentence.to_owned()));
    assert_eq!(decline(&published, &id), (Some(1), String::new(), sentence.to_owned()));
    let (code, _, error) =
        ours.says(&["resume", "--execution-id", "exec_00000000-0000-4000-8000-000000000001"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("No paused execution: "), "{error}");
}

#[test]
fn profiles_web_and_daemon_have_executors_words_under_the_name_executor() {
    let folder = tempfile::tempdir().unwrap();
    let binary = link(folder.path());
    let data = folder.path().join("data");
    let says = |words: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(words).env("AIRLOCK_DATA_DIR", &data).env("HOME", folder.path());
        let output = command.env_remove("AIRLOCK_URL").stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let good = |words: &[&str]| {
        let (code, told, error) = says(words);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?} {told}");
        told
    };
    let added =
        "Saved server profile \"away\" (http://127.0.0.1:9).\nDefault server profile: away\n";
    assert_eq!(good(&["server", "add", "away", "http://127.0.0.1:9"]), added);
    assert_eq!(good(&["server", "list"]), "* away  http  http://127.0.0.1:9  away  env-auth\n");
    let removed = "Removed server profile \"away\".\nNo default server profile is configured.\n";
    assert_eq!(good(&["server", "remove", "away"]), removed);
    let (code, _, error) = says(&["server", "use", "away"]);
    assert_eq!((code, error.as_str()), (Some(1), "No server profile named \"away\".\n"));

    assert_eq!(good(&["daemon", "status"]), "Daemon not running at http://127.0.0.1:4788.\n");
    let ready = good(&["daemon", "run", "--port", "0"]);
    let url = ready.trim().strip_prefix("Daemon ready on ").unwrap().to_owned();
    assert_eq!(good(&["daemon", "run"]), format!("Daemon already running at {url}.\n"));
    assert!(good(&["daemon", "status"]).starts_with(&format!("Daemon running at {url} (pid ")));
    let web = good(&["web"]);
    assert!(
        web.starts_with(&format!("Executor is ready.\nWeb:     {url}\nMCP:     {url}/mcp\n")),
        "{web}"
    );
    let stopped = good(&["daemon", "stop"]);
    assert!(stopped.ends_with(&format!("Daemon stopped at {url}.\n")), "{stopped}");
    assert_eq!(good(&["daemon", "stop"]), "No daemon running at http://127.0.0.1:4788.\n");
}

#[test]
fn a_result_over_a_megabyte_is_whole_and_with_a_limit_it_is_left_out() {
    let house = House::with("");
    let code = "console.log('l'); return { text: 'x'.repeat(3_000_000) }";
    let answer = house.admin().execute(code).json();
    let structured = &answer["structured"];
    assert_eq!(structured["result"]["text"].as_str().map(str::len), Some(3_000_000));
    assert_eq!((&structured["logs"], &structured["more"]), (&json!(["[log] l"]), &Value::Null));
    let body = json!({ "code": code }).to_string();
    let limited = house.admin().post("/api/executions?limit=1000", &body).json();
    assert_eq!(limited["structured"]["result"], Value::Null);
    assert_eq!(limited["structured"]["more"]["result"]["bytes"], 3_000_011);
    let small = house.admin().post("/api/executions?limit=2", r#"{"code":"return 12345"}"#).json();
    assert_eq!(small["structured"]["more"]["result"]["bytes"], 5);
}

#[test]
fn unknown_and_blocked_tools_are_values_that_name_them() {
    let house = House::with("");
    add_things(&house);
    let error = |code: &str| house.run(code)["error"].clone();
    let missing = error("return await tools.nope.org.main.x({})");
    assert_eq!(missing["code"], "tool_not_found");
    assert!(missing["message"].as_str().unwrap().starts_with("Tool not found: nope.org.main.x"));
    assert_eq!(error("return await tools.nope.x()")["code"], "tool_not_found");
    let near = error("return await tools.things.org.main.t.gett({})");
    assert_eq!(near["details"]["suggestions"], json!(["things.org.main.t.get"]));
    let without = error("return await tools.things.org.main.t.get({})");
    assert_eq!(without["code"], "invalid_tool_arguments");
    assert!(
        without["message"].as_str().unwrap().starts_with("Missing required path parameter: id")
    );

    let ask =
        json!({ "owner": "org", "pattern": "things.org.main.t.get", "action": "require_approval" });
    let policy = house.admin().post("/api/policies", &ask.to_string()).json();
    let paused =
        house.admin().execute("return await tools.things.org.main.t.get({ id: '1' })").json();
    let begins = "Execution paused: Approve tools.things.org.main.t.get? (matched policy: things.org.main.t.get)\n\n\
                  GET /things/{id}\n\nArguments:\n";
    assert!(paused["text"].as_str().unwrap().starts_with(begins), "{paused}");
    let change = json!({ "action": "block" }).to_string();
    let path = format!("/api/policies/{}", policy["id"].as_str().unwrap());
    let headers = [("Content-Type", "application/json")];
    assert_eq!(house.admin().send("PATCH", &path, &headers, &change).status, 200);
    let blocked = error("return await tools.things.org.main.t.get({ id: '1' })");
    assert_eq!(blocked["code"], "tool_blocked");
    assert_eq!(blocked["message"], "Tool blocked by policy: things.org.main.t.get");
    assert_eq!(blocked["details"]["_tag"], "ToolBlockedError");
}

#[test]
fn errors_and_logs_have_the_words_of_executors_engine() {
    let house = House::with("");
    let structured = |code: &str| house.admin().execute(code).json()["structured"].clone();
    let error = |code: &str| structured(code)["error"].as_str().unwrap().to_owned();
    let full = error("const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)");
    assert!(full.starts_with("out of memory. The program needed more than "), "{full}");
    let deep = error("function f() { return f() + 1 }\nreturn f()");
    assert!(
        deep.starts_with("RangeError: stack overflow. Maximum call stack size exceeded\n"),
        "{deep}"
    );
    let fetched = error("return await fetch('https://example.com')");
    assert!(
        fetched.starts_with("TypeError: fetch is disabled: everything outside is "),
        "{fetched}"
    );
    let logged = structured("console.log({ a: 1, b: [1, { c: 2 }] }, 'x', [1]); console.warn({})");
    assert_eq!(logged["logs"], json!([r#"[log] {"a":1,"b":[1,{"c":2}]} x [1]"#, "[warn] {}"]));
}

#[test]
fn a_question_is_shown_and_answered_in_any_session() {
    let house = House::with("");
    let admin = house.admin();
    let place = |id: &str| format!("/api/mcp-sessions/any/executions/{id}");
    for (action, status, text) in [
        ("accept", "approved", "I've approved it"),
        ("decline", "denied", "I've denied it"),
        ("cancel", "canceled", "I've canceled it"),
    ] {
        let asked = admin.execute("return await tools.demo.ask({ text: 'x' })");
        let id = asked.question();
        let shown = admin.get(&place(&id)).json();
        assert_eq!(shown["structured"]["executionId"], json!(id));
        assert!(shown["text"].as_str().unwrap().starts_with("Execution paused: "));
        let resume = format!("{}/resume", place(&id));
        let wrong = admin.post(&resume, r#"{"action":"maybe"}"#);
        assert_eq!(
            (wrong.status, wrong.json()),
            (400, json!({ "error": "Invalid approval response" }))
        );
        let told = admin.post(&resume, &json!({ "action": action }).to_string()).json();
        let structured = json!({ "status": status, "executionId": id });
        let expected = json!({ "status": "completed", "text": text, "structured": structured, "isError": false });
        assert_eq!(told, expected);
        let gone = json!({ "error": "Paused execution not found" });
        for answer in [admin.get(&place(&id)), admin.post(&resume, r#"{"action":"accept"}"#)] {
            assert_eq!((answer.status, answer.json()), (404, gone.clone()));
        }
    }
}

#[test]
fn a_link_to_the_page_names_the_mcp_session_and_resume_waits_for_the_decision() {
    let house = House::with("");
    let admin = house.admin();
    let ask = |session: &str, message: Value| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Session-Id", session),
        ];
        admin.send("POST", "/mcp?elicitation_mode=browser", &headers, &message.to_string())
    };
    // Outside native mode there are no sessions. If a client names one, its links contain that name.
    let session = "session-of-the-client";
    let call = |id: u32, tool: &str, args: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": args, "_meta": { "progressToken": id } } })
    };
    let code = json!({ "code": "return await tools.demo.ask({ text: 'x' })" });
    let without = ask("", call(1, "execute", code.clone())).body;
    assert!(without.contains("?mcp_session_id=none"), "{without}");
    let asked = ask(session, call(2, "execute", code)).body;
    let after = asked.split("/resume/").nth(1).unwrap_or_else(|| panic!("no link: {asked}"));
    let question = after.split('?').next().unwrap().to_owned();
    let link = format!("/resume/{question}?mcp_session_id={session}");
    assert!(asked.contains(&link), "{asked}");

    let waited = std::thread::scope(|scope| {
        let resume = call(3, "resume", json!({ "executionId": question }));
        let waiting = scope.spawn(|| ask(session, resume).body);
        let path = format!("/api/mcp-sessions/{session}/executions/{question}/resume");
        assert_eq!(admin.post(&path, r#"{"action":"accept"}"#).status, 200);
        waiting.join().unwrap()
    });
    assert!(waited.contains(r#""approved":true"#), "{waited}");
    let missing = call(4, "resume", json!({ "executionId": "exec_nope" }));
    let missing = ask(session, missing).body;
    assert!(missing.contains("No paused execution: exec_nope"), "{missing}");
    let tools = ask(session, json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list" })).body;
    assert!(tools.contains("\"Execute TypeScript in a sandboxed runtime"), "{tools}");
    let skill = ask(session, call(6, "skills", json!({ "name": "execute" }))).body;
    assert!(
        skill.contains("Execute TypeScript in a sandboxed runtime")
            && skill.contains("## Workflow"),
        "{skill}"
    );
}

#[test]
fn an_answer_without_a_body_is_a_bad_request() {
    let house = House::with("");
    let id = house.admin().execute("return await tools.demo.ask({ text: 'x' })").question();
    let answer = house.admin().send("POST", &format!("/api/executions/{id}/resume"), &[], "");
    assert_eq!((answer.status, answer.json()["_tag"].clone()), (400, json!("BadRequestError")));
}

#[test]
fn connections_say_which_source_is_missing_and_take_one_value() {
    let house = House::with("");
    add_things(&house);
    let connect = |more: Value| {
        let mut body = json!({ "owner": "org", "name": "second", "integration": "things" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        house.admin().post("/api/connections", &body.to_string())
    };
    let unknown = connect(json!({ "integration": "nope", "template": "none" }));
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["_tag"], "IntegrationNotFoundError");
    assert_eq!(unknown.json()["slug"], "nope");
    let twofold = connect(json!({ "template": "bearer", "value": "v", "values": { "a": "b" } }));
    assert_eq!(
        (twofold.status, twofold.json()["_tag"].clone()),
        (400, json!("InvalidConnectionInputError"))
    );
    let names = || house.admin().get("/api/connections?integration=things").json();
    assert_eq!(names().as_array().map(Vec::len), Some(1), "nothing was left behind");
    assert_eq!(connect(json!({ "template": "none", "value": "" })).status, 200);
    // An empty object of values is ignored.
    let bearer = json!({ "name": "third", "template": "bearer", "value": "v", "values": {} });
    assert_eq!(connect(bearer).status, 200);
    let path = "/api/connections/org/things/third";
    assert_eq!(house.admin().send("DELETE", path, &[], "").status, 200);
    let listed = house
        .run("return await tools.executor.coreTools.connections.list({ integration: 'things' })");
    let listed = listed["data"]["connections"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!((&listed[1]["name"], &listed[1]["owner"]), (&json!("second"), &json!("org")));
    let none = "return (await tools.executor.coreTools.connections.list({ owner: 'user' })).data.connections";
    assert_eq!(house.run(none), json!([]));
}

#[test]
fn large_and_bad_descriptions_are_answered_as_executor_does() {
    let house = House::with("");
    add_things(&house);
    let again = add_spec(&house, "things", &api(&[("get", "/x", "x")]));
    assert_eq!((again.status, again.json()["slug"].clone()), (409, json!("things")));
    let bad = add_spec(&house, "bad", "no description");
    assert_eq!((bad.status, bad.json()["_tag"].clone()), (400, json!("OpenApiParseError")));
    let missing = house.admin().get("/api/integrations/nope");
    assert_eq!((missing.status, missing.json()["slug"].clone()), (404, json!("nope")));

    let over = described_in(DESCRIPTION_BYTES_MAX + 1);
    for spec in [json!({ "kind": "blob", "value": over }), json!(over)] {
        let body = json!({ "slug": "over", "spec": spec }).to_string();
        let refused = house.admin().post("/api/openapi/specs", &body);
        let why = refused.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 400, "{why}");
        assert!(why.contains("has 33554432 bytes at most"), "{why}");
    }
    // The largest takes a debug build a minute. It takes the same path as this one, which no record of the store can
    // hold.
    let soaks = std::env::var_os("AIRLOCK_SOAK").is_some();
    let large = described_in(if soaks { DESCRIPTION_BYTES_MAX } else { 7_000_000 });
    let added = add_spec(&house, "large", &large);
    assert_eq!((added.status, added.json()["toolCount"].clone()), (200, json!(1)), "{added:?}");
    let house = house.again();
    assert_eq!(house.ready("large")["toolCount"], 1, "it is there after a restart");
    assert_eq!(house.admin().send("DELETE", "/api/integrations/large", &[], "").status, 200);
    assert!(house.again().source("large").is_none());

    let house = House::with("");
    let body =
        json!({ "spec": api(&[("get", "/things/{id}", "get"), ("post", "/things", "add")]) });
    let preview = house.admin().post("/api/openapi/preview", &body.to_string()).json();
    let first = json!({ "operationId": "get", "method": "get", "path": "/things/{id}", "summary": null,
        "tags": ["t"], "deprecated": false });
    assert_eq!((&preview["operationCount"], &preview["toolCount"]), (&json!(2), &json!(2)));
    assert!(preview["operations"].as_array().unwrap().contains(&first), "{preview}");
    for name in [
        "servers",
        "tags",
        "securitySchemes",
        "authStrategies",
        "headerPresets",
        "oauth2Presets",
        "tools",
    ] {
        assert!(preview[name].is_array(), "{name}: {preview}");
    }
}

#[test]
fn built_in_tools_and_search_results_have_executors_shape() {
    let house = House::with("");
    let tools = house.admin().get("/api/tools").json();
    let row = tools.as_array().unwrap().iter().find(|tool| tool["address"] == "demo.add").unwrap();
    assert_eq!((&row["owner"], &row["connection"]), (&json!("user"), &json!("coreTools")));
    let only =
        house.admin().get("/api/tools?owner=user&connection=coreTools&integration=demo").json();
    assert!(only.as_array().unwrap().len() > 5);
    let kinds = house.admin().get("/api/integrations").json();
    assert!(kinds.as_array().unwrap().iter().all(|source| source["kind"] == "built-in"), "{kinds}");
    let found =
        house.admin().execute("return await tools.search({ query: 'adds numbers', limit: 1 })");
    let begins = r#""result":{"items":[{"path":"demo.add","name":"demo.add","description":"#;
    assert!(found.body.contains(begins), "{}", found.body);
    assert!(found.body.contains(r#"],"total":"#) && found.body.contains(r#","nextOffset":"#));
    let told = house.run(
        "return (await tools.describe.tool({ path: 'executor.coreTools.connections.list' })).path",
    );
    assert_eq!(told, "executor.coreTools.connections.list");
}

#[test]
fn the_tools_of_executor_itself_answer_in_its_members() {
    let house = House::with("");
    add_things(&house);
    let core = |call: &str| house.run(&format!("return await tools.executor.coreTools.{call}"));
    let row = json!({
        "owner": "org", "name": "main", "integration": "things", "template": "none", "provider": "vault",
        "address": "tools.things.org.main", "description": null, "identityLabel": null, "expiresAt": null,
        "oauthClient": null, "oauthClientOwner": null, "oauthScope": null,
    });
    assert_eq!(
        core("connections.list({})"),
        json!({ "ok": true, "data": { "connections": [row] } })
    );
    let sources = core("integrations.list({})")["data"]["integrations"].clone();
    let things = sources.as_array().unwrap().iter().find(|source| source["slug"] == "things");
    assert_eq!(things.unwrap()["description"], things.unwrap()["name"], "{sources}");
    let approved = |call: &str| {
        let code = format!("return await tools.executor.coreTools.{call}");
        let asked = house.admin().execute(&code).question();
        house.admin().resume(&asked, "accept").json()["structured"]["result"]["data"].clone()
    };
    assert_eq!(approved("policies.list({})"), json!({ "policies": [] }));

    // A refusal of such a tool is a value, like its results.
    let error = |call: &str| core(call)["error"].clone();
    let unknown = error("connections.lst({})");
    assert_eq!(unknown["code"], "tool_not_found");
    let message = unknown["message"].as_str().unwrap();
    assert!(message.starts_with("Tool not found: executor.coreTools.connections.lst"), "{message}");
    assert_eq!(unknown["details"]["suggestions"][0], "executor.coreTools.connections.list");
    assert_eq!(error("connections.create({ name: 1 })")["code"], "invalid_tool_arguments");
    let path = "executor.coreTools.connections.list";
    let block = json!({ "owner": "org", "pattern": path, "action": "block" });
    assert_eq!(house.admin().post("/api/policies", &block.to_string()).status, 200);
    let details = json!({ "_tag": "ToolBlockedError", "address": path });
    let message = format!("Tool blocked by policy: {path}");
    let blocked = json!({ "code": "tool_blocked", "message": message, "details": details });
    assert_eq!(error("connections.list({})"), blocked);
}

#[test]
fn a_form_that_cannot_be_checked_says_so_to_the_person() {
    let house = House::with("");
    let code = "return await tools.demo.form({ message: 'Who?', schema: { type: 'object', properties: { a: { type: 'strnig' } } } })";
    let asked = house.admin().execute(code).json();
    let message = asked["structured"]["interaction"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Who?\n\nThe form of this question cannot be checked"), "{asked}");
}

#[test]
fn an_executor_jsonc_becomes_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("executor.jsonc");
    let text = "{ // mine\n \"sources\": [ { \"kind\": \"mcp\", \"transport\": \"stdio\", \"name\": \"files\", \"command\": \"npx\", \"args\": [\"x\"], }, ], }";
    std::fs::write(&file, text).unwrap();
    let output = airlock(&["init", "--print", "--from-executor"]).arg(&file).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(printed.contains("[sources.files]") && printed.contains("npx"), "{printed}");
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("1 sources were taken over"), "{notes}");
}

fn add_spec(house: &House, slug: &str, text: &str) -> server_fixture::Answer {
    let body = json!({ "slug": slug, "connect": true, "spec": { "kind": "blob", "value": text } });
    house.admin().post("/api/openapi/specs", &body.to_string())
}

/// The largest description that is accepted as text.
const DESCRIPTION_BYTES_MAX: usize = 32 << 20;

/// A description of this many bytes.
fn described_in(n_bytes: usize) -> String {
    let mut spec: Value = serde_json::from_str(&api(&[("get", "/x", "x")])).unwrap();
    spec["info"]["x-notes"] = "ä".into();
    let n_missing = n_bytes - spec.to_string().len();
    spec["info"]["x-notes"] = ("ä".repeat(1 + n_missing / 2) + &"x".repeat(n_missing % 2)).into();
    spec.to_string()
}

/// An API to which no request is ever sent.
fn add_things(house: &House) {
    let added = add_spec(house, "things", &api(&[("get", "/things/{id}", "get")]));
    assert_eq!(added.status, 200, "{added:?}");
}

/// Our binary under the name `executor`.
fn link(folder: &Path) -> PathBuf {
    let link = folder.join("executor");
    std::os::unix::fs::symlink(airlock(&[]).get_program(), &link).unwrap();
    link
}

#[derive(Clone)]
struct Cli {
    binary: PathBuf,
    home: PathBuf,
    url: String,
}

impl Cli {
    /// Runs the command. Returns its exit code and its output.
    fn says(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(words)
            .args(["--base-url", &self.url])
            .env("HOME", &self.home)
            .env("EXECUTOR_DATA_DIR", self.home.join("executor"))
            .env("AIRLOCK_DATA_DIR", self.home.join("airlock"))
            .env("EXECUTOR_API_KEY", SECRET)
            .stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn check(&self, words: &[&str], code: i32, printed: &str) {
        let (ended, told, error) = self.says(words);
        assert_eq!((ended, told.as_str()), (Some(code), printed), "{error}");
    }

    /// Makes a call that asks, and returns the id to resume.
    #[track_caller]
    fn pauses(&self, words: &[&str]) -> String {
        let (code, told, error) = self.says(words);
        assert_eq!(code, Some(0), "{error}");
        let id = told.lines().find_map(|line| line.strip_prefix("executionId: "));
        id.unwrap_or_else(|| panic!("it did not pause: {told}")).to_owned()
    }
}

/// A server on a loopback address that this client does not mistake for its own daemon.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data_dir: &Path) -> Self {
        let mut child = airlock(&["serve", "--listen", "127.0.0.2:0", "--demo", "--data-dir"])
            .arg(data_dir)
            .env("AIRLOCK_ADMIN_TOKEN", SECRET)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock is ready at ").unwrap().to_owned();
        Self { child, url }
    }

    /// Whether it answers the client's first request.
    fn is_found(&self) -> bool {
        self.client().get("/api/integrations").status == 200
    }

    fn client(&self) -> Client {
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        Client { address, secret: SECRET.into() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The published binary. Tests run concurrently, in separate processes: one of them installs it, and the others wait.
fn installed() -> Option<PathBuf> {
    let exe = std::env::current_exe().unwrap();
    let folder = exe.ancestors().nth(3).unwrap().join(format!("executor-{VERSION}"));
    let binary = folder.join(BINARY);
    std::fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("install.lock")).unwrap();
    lock.lock().unwrap();
    if binary.is_file() {
        return Some(binary);
    }
    let installing = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(format!("executor@{VERSION}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if installing.is_ok_and(|status| status.success()) && binary.is_file() {
        return Some(binary);
    }
    skip("npm could not install it");
    None
}

#[expect(clippy::print_stderr, reason = "a test that shows nothing must say so")]
fn skip(why: &str) {
    eprintln!("SKIPPED: executor {VERSION} against our server: {why}");
}
