//! Sources as users have them: real MCP servers, programs, APIs that are added and configuration that changes, under
//! the real binary.

use crate::echo::Echo;
use crate::npm;
use crate::server_fixture::{airlock, wait_for};
use crate::source_fixture::{House, api};
use serde_json::json;
use std::path::Path;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";
const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem/dist/index.js";

fn mcp(script: &Path, args: &[&str]) -> String {
    let command: Vec<_> = ["node", script.to_str().unwrap()].iter().chain(args).copied().collect();
    format!("kind = 'mcp'\ncommand = {}\n", json!(command))
}

/// The ids of processes whose command line contains `text`.
fn processes(text: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let says = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    ids.filter(says).collect()
}

#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
fn kill(id: u32) {
    let sent = std::process::Command::new("kill").args(["-9", &id.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_real_mcp_server_is_searched_described_called_and_comes_back_after_a_crash() {
    let script = npm::file(EVERYTHING);
    let mark = format!("stdio-{}", std::process::id());
    let house = House::with(&format!("[sources.everything]\n{}", mcp(&script, &["stdio", &mark])));
    let source = house.ready("everything");
    assert!(source["toolCount"].as_u64().unwrap() > 5, "{source}");
    let told = house.run(
        "const hit = (await tools.search({query: 'echo back a message'})).items[0]; \
         const told = await tools.describe.tool({path: hit.path}); \
         const said = await tools.everything.org.main.echo({message: 'hi'}); \
         return [hit.path, told.inputTypeScript, said.ok, said.data.content[0].text]",
    );
    let expected = json!(["everything.org.main.echo", "{ message: string; }", true, "Echo: hi"]);
    assert_eq!(told, expected);

    let wrong =
        house.admin().execute("return await tools.everything.org.main.echo({message: 7})").json();
    let error = &wrong["structured"]["result"]["error"];
    assert_eq!(error["code"], "invalid_tool_arguments", "{wrong}");
    assert!(error["message"].as_str().unwrap().contains("do not fit"), "{wrong}");

    // The command lines of the reaper and of the server both contain the mark. If either dies, the next call starts
    // both again.
    processes(&mark).into_iter().for_each(kill);
    wait_for(|| processes(&mark).is_empty().then_some(()));
    let again = wait_for(|| {
        let told = house.run("return await tools.everything.org.main.echo({message: 'again'})");
        (told["ok"] == true).then_some(told)
    });
    assert_eq!(again["data"]["content"][0]["text"], "Echo: again");

    house.served.kill();
    wait_for(|| processes(&mark).is_empty().then_some(()));
}

#[test]
fn a_tool_that_destroys_asks_and_one_that_reads_does_not() {
    let script = npm::file(FILESYSTEM);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let config = format!("[sources.files]\n{}", mcp(&script, &[folder.path().to_str().unwrap()]));
    let house = House::with(&config);
    house.ready("files");
    let file = folder.path().join("a.txt");
    let read = format!("return (await tools.files.org.main.read_text_file({{path: {file:?}}})).ok");
    assert_eq!(house.run(&read), true);
    let write = format!(
        "return (await tools.files.org.main.write_file({{path: {file:?}, content: 'new'}})).ok"
    );
    let paused = house.admin().execute(&write).json();
    assert_eq!(paused["status"], "paused", "{paused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello");
    let id = paused["structured"]["executionId"].as_str().unwrap();
    let done = house
        .admin()
        .post(&format!("/api/executions/{id}/resume"), r#"{"action":"accept"}"#)
        .json();
    assert_eq!(done["structured"]["result"], true, "{done}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(house.served.stop(), Some(0));
}

#[test]
fn a_server_over_http_is_added_while_serving_and_its_questions_reach_a_person() {
    let house = House::with("");
    let server = npm::http_server(&npm::file(EVERYTHING));
    let body = json!({ "slug": "remote", "endpoint": server.url, "connect": true }).to_string();
    let added = house.admin().post("/api/mcp/servers", &body);
    assert_eq!(added.status, 200, "{added:?}");
    let said = house
        .run("return (await tools.remote.org.main.echo({message: 'far'})).data.content[0].text");
    assert_eq!(said, "Echo: far");

    let paused = house
        .admin()
        .execute("return await tools.remote.org.main.trigger_elicitation_request({})")
        .json();
    assert_eq!(paused["status"], "paused", "{paused}");
    let id = paused["structured"]["executionId"].as_str().unwrap();
    let done = house
        .admin()
        .post(&format!("/api/executions/{id}/resume"), r#"{"action":"decline"}"#)
        .json();
    assert_eq!(done["status"], "completed", "{done}");

    let again = house.admin().post("/api/mcp/servers", &body).json();
    assert_eq!(again["_tag"], "IntegrationAlreadyExistsError");
    let refused = house.served.client("run").post("/api/mcp/servers", &body);
    assert_eq!(refused.status, 403, "an agent must not add sources by itself");
    let config = "/api/mcp/servers/remote/config";
    assert_eq!(house.admin().get(config).json()["url"], server.url);
    let told = house.admin().post(config, r#"{"config":{"name":"Far away"}}"#).json();
    assert_eq!((&told["name"], &told["url"]), (&json!("Far away"), &json!(server.url)), "{told}");
}

#[test]
fn configuration_counts_when_it_is_saved_and_a_broken_edit_does_not() {
    let jq = |word: &str| {
        format!(
            "[sources.words.tools.say]\nargv = ['echo', '-n', '{word} {{who}}']\nread_only = true\n\
             [sources.words.tools.say.input]\ntype = 'object'\nrequired = ['who']\n\
             properties = {{ who = {{ type = 'string' }} }}\n"
        )
    };
    let house = House::with(&jq("hello"));
    house.ready("words");
    let say = "return (await tools.words.org.main.say({who: 'Ann'})).data";
    assert_eq!(house.run(say), "hello Ann");
    house.configure("[sources.words\n");
    house.configure(&jq("goodbye"));
    wait_for(|| (house.run(say) == "goodbye Ann").then_some(()));
    house.configure("this is not TOML");
    assert_eq!(house.run(say), "goodbye Ann");
    house.configure("");
    wait_for(|| house.source("words").is_none().then_some(()));
}

#[test]
fn a_source_that_is_down_says_why_and_harms_nobody() {
    let config = "[sources.gone]\nkind = 'mcp'\nurl = 'http://127.0.0.1:9/mcp'\n\
                  [sources.broken]\ncommand = ['/nowhere/at/all']\n\
                  [sources.fine.tools.ok]\nargv = ['echo', '1']\nread_only = true\n";
    let house = House::with_args(config, &["--source-wait", "50ms"]);
    house.ready("fine");
    let trouble = |slug: &str| {
        wait_for(|| {
            let why = house.source(slug)?["trouble"].as_str()?.to_owned();
            (why != "it is being read").then_some(why)
        })
    };
    assert!(trouble("gone").starts_with("source gone cannot be read: "), "{}", trouble("gone"));
    assert!(
        trouble("broken").starts_with("source broken cannot be read: "),
        "{}",
        trouble("broken")
    );
    assert_eq!(house.run("return (await tools.fine.org.main.ok()).data"), 1);
    let missing = house.run("return await tools.gone.org.main.anything()");
    assert_eq!(missing["error"]["code"], "source_unavailable", "{missing}");
    let message = missing["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"gone\" is not available: source gone cannot be read"), "{message}");
    let unknown = house.run("return await tools.nowhere.org.main.anything()");
    assert_eq!(unknown["error"]["code"], "tool_not_found", "{unknown}");
}

#[test]
fn a_connection_holds_a_secret_and_never_shows_it() {
    let house = House::with("[sources.c.tools.env]\nargv = ['env']\nread_only = true\n");
    house.ready("c");
    let body = json!({
        "integration": "c", "owner": "user", "name": "My Own!", "template": "bearer", "value": "s3cret-value",
    });
    let made = house.admin().post("/api/connections", &body.to_string());
    assert_eq!(made.json()["address"], "tools.c.user.myOwn", "{made:?}");
    let listed = house.admin().get("/api/connections");
    assert!(listed.body.contains("myOwn") && !listed.body.contains("s3cret"), "{listed:?}");
    let tools = house.admin().get("/api/tools?integration=c&owner=user").json();
    assert_eq!(tools[0]["address"], "tools.c.user.myOwn.env", "{tools}");
    let schema = house.admin().get("/api/tools/schema?address=tools.c.user.myOwn.env").json();
    assert_eq!(schema["name"], "env", "{schema}");
    // Programs that the server starts do not inherit its variables.
    let env = house.run("return (await tools.c.user.myOwn.env()).data");
    assert!(!env.as_str().unwrap().contains("AIRLOCK_"), "{env}");
}

#[test]
fn an_argument_that_could_not_be_sent_is_refused_before_anybody_is_asked() {
    let house = House::with("[sources.c.tools.say]\nargv = ['echo', '{text}']\n");
    house.ready("c");
    let say = |text: &str| {
        let code = format!("return await tools.c.org.main.say({{ text: {text} }})");
        house.admin().execute(&code).json()
    };
    assert_eq!(say("'hello'")["status"], "paused");
    let refused = say("'x'.repeat(200000)");
    let error = &refused["structured"]["result"]["error"];
    assert_eq!(error["code"], "invalid_tool_arguments", "{refused}");
    assert!(error["message"].as_str().unwrap().contains("131072 bytes at most"), "{refused}");
    let missing = house.run("return await tools.c.org.main.shout({})");
    assert_eq!(missing["error"]["code"], "tool_not_found", "{missing}");
    assert_eq!(missing["error"]["details"]["path"], "c.org.main.shout", "{missing}");
}

#[test]
fn policies_and_limits_of_a_file_hold_as_soon_as_it_is_saved() {
    let tool = "[sources.c.tools.one]\nargv = ['echo', '1']\nread_only = true\n";
    let rule = |action: &str| format!("{tool}[[policies]]\npattern = 'c.*'\naction = '{action}'\n");
    let house = House::with(&rule("block"));
    house.ready("c");
    let path = "c.org.main.one";
    assert_eq!(house.verdict(path), "refuse");
    let kept = json!({ "owner": "org", "pattern": "c.*", "action": "approve" }).to_string();
    house.admin().post("/api/policies", &kept);
    assert_eq!(house.verdict(path), "refuse", "nobody loosens what a file says");
    house.configure(&rule("require_approval"));
    wait_for(|| (house.verdict(path) == "ask").then_some(()));
    house.configure(&rule("nonsense"));
    house.configure(&format!("{}[limits]\ncalls_max = 2\n", rule("approve")));
    wait_for(|| (house.verdict(path) == "allow").then_some(()));
    let code = "for (let n = 0; n < 3; n++) await tools.c.org.main.one(); return 'three'";
    let limited = wait_for(|| {
        let told = house.admin().execute(code).json();
        told["text"].as_str()?.contains("more than 2 tool calls").then_some(told)
    });
    assert_eq!(limited["isError"], true, "{limited}");
}

#[test]
fn a_server_does_not_start_without_the_policies_that_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("airlock.toml");
    let bad = "[[policies]]\npattern = 'a'\naction = 'block'\n\
               [[policies]]\npattern = '*.b'\naction = 'block'\n";
    std::fs::write(&file, bad).unwrap();
    let mut serving = airlock(&["serve", "--listen", "127.0.0.1:0", "--config"]);
    let output = serving.arg(&file).arg("--data-dir").arg(dir.path().join("data")).output();
    let output = output.unwrap();
    let noted = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{noted}");
    let expected = format!("{}: policies[1].pattern \"*.b\": a pattern starts", file.display());
    assert!(noted.contains(&expected), "{noted}");
}

#[test]
fn a_refreshed_description_never_widens_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("api.json");
    std::fs::write(&spec, api(&[("get", "/a", "readA"), ("post", "/b", "makeB")])).unwrap();
    let house = House::with(&format!("[sources.api]\nfile = {spec:?}\n"));
    house.ready("api");
    let rule = json!({ "owner": "org", "pattern": "api.*", "action": "approve" });
    let rule = house.admin().post("/api/policies", &rule.to_string()).json();
    let tools = ["readA", "makeB", "dropC"].map(|name| format!("api.org.main.t.{name}"));
    let verdicts = |house: &House| tools.each_ref().map(|tool| house.verdict(tool));
    assert_eq!(verdicts(&house), ["allow"; 3], "nobody asks about what is not there");

    // An operation that only read now changes things, and another one is new.
    let wider = [("post", "/a", "readA"), ("post", "/b", "makeB"), ("delete", "/c", "dropC")];
    std::fs::write(&spec, api(&wider)).unwrap();
    let (code, printed, noted) = house.says(&["source", "refresh", "api"]);
    assert_eq!((code, printed.as_str()), (Some(0), "+ t.dropC\n~ t.readA\n"));
    assert!(noted.contains("approvals no longer cover what has grown: t.readA"), "{noted}");
    let narrowed = ["ask", "allow", "ask"];
    assert_eq!(verdicts(&house), narrowed);
    let house = house.again();
    house.ready("api");
    assert_eq!(verdicts(&house), narrowed, "also after a restart");
    let paused = house.admin().execute("return await tools.api.org.main.t.dropC()").json();
    assert_eq!(paused["status"], "paused", "{paused}");
    let (_, printed, noted) = house.says(&["policy", "test", &tools[2]]);
    assert_eq!(printed, "ask\n");
    assert!(noted.contains("the tool is newer than that approval"), "{noted}");

    // A rule for an exact name also covers later tools, and repeating a pattern covers the tools that exist by then.
    let named = json!({ "owner": "org", "pattern": tools[2], "action": "approve" });
    house.admin().post("/api/policies", &named.to_string());
    assert_eq!(verdicts(&house), ["ask", "allow", "allow"]);
    let path = format!("/api/policies/{}", rule["id"].as_str().unwrap());
    let header = [("Content-Type", "application/json")];
    let said = house.admin().send("PATCH", &path, &header, r#"{"action":"approve"}"#);
    assert_eq!(said.status, 200, "{said:?}");
    assert_eq!(verdicts(&house), ["allow"; 3]);
}

#[test]
fn a_connection_is_written_over_only_where_that_is_wanted() {
    let house = House::with("[sources.c.tools.env]\nargv = ['env']\nread_only = true\n");
    house.ready("c");
    let add = |more: &[&str]| {
        let words = ["connection", "add", "c", "mine", "--template", "bearer", "--value", "one"];
        house.says(&[&words[..], more].concat())
    };
    assert_eq!(add(&[]), (Some(0), "tools.c.org.mine\n".into(), String::new()));
    let (code, printed, noted) = add(&["--description", "new"]);
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(noted.starts_with("error: There is a connection c.org.mine already"), "{noted}");
    assert!(noted.contains("--replace"), "{noted}");
    let description =
        || house.admin().get("/api/connections/org/c/mine").json()["description"].clone();
    assert_ne!(description(), "new");
    assert_eq!(add(&["--description", "new", "--replace"]).0, Some(0));
    assert_eq!(description(), "new");
    // As Executor's clients expect, the route itself overwrites an existing connection.
    let body = json!({ "integration": "c", "name": "mine", "template": "bearer", "value": "two" });
    assert_eq!(house.admin().post("/api/connections", &body.to_string()).status, 200);
    assert_eq!(house.says(&["connection", "remove", "c", "mine"]).0, Some(0));
    let (code, _, noted) = house.says(&["connection", "remove", "c", "mine"]);
    assert_eq!(code, Some(1));
    assert!(noted.starts_with("error: there is no connection c.org.mine"), "{noted}");
}

#[test]
fn the_headers_of_an_api_are_printed_only_where_they_are_asked_for() {
    let (house, api) = (House::with(""), Echo::start());
    let spec = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    assert_eq!(house.admin().post("/api/openapi/specs", &spec.to_string()).status, 200);
    let bare = json!({ "integration": "things", "name": "main", "template": "none" });
    assert_eq!(house.admin().post("/api/connections", &bare.to_string()).status, 200);
    let call = |more: &[&str]| {
        let (code, printed, noted) =
            house.says(&[&["call", "things.org.main.t.list", "{}"], more].concat());
        assert_eq!(code, Some(0), "{noted}");
        serde_json::from_str::<serde_json::Value>(&printed).unwrap()
    };
    let (short, long) = (call(&[]), call(&["--headers"]));
    assert_eq!((&short["ok"], &short["http"]), (&json!(true), &json!(null)));
    assert_eq!(short["data"].is_null(), long["data"].is_null());
    assert_eq!(long["http"]["status"], 200, "{long}");
    let whole = call(&["--json"]);
    assert_eq!(whole["structured"]["result"]["http"]["status"], 200, "{whole}");
    // A connection without a credential contains nothing that could be lost.
    let (code, _, noted) =
        house.says(&["connection", "add", "things", "--template", "bearer", "--value", "x"]);
    assert_eq!(code, Some(0), "{noted}");
}

#[test]
fn the_defaults_of_a_commands_schema_are_its_arguments() {
    let input = "type = 'object', required = ['who'], properties = { who = { type = 'string', default = 'Ann' } }";
    let config = format!(
        "[sources.c.tools.greet]\nargv = ['echo', 'Hi {{who}}']\nread_only = true\ninput = {{ {input} }}\n"
    );
    let house = House::with(&config);
    house.ready("c");
    let greet =
        |input: &str| house.run(&format!("return (await tools.c.org.main.greet({input})).data"));
    assert_eq!(greet("{}"), "Hi Ann");
    assert_eq!(greet("{ who: 'Bo' }"), "Hi Bo");
}
