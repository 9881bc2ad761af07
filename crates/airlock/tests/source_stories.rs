//! Sources as people use them: added at the terminal, detected, previewed, read page by page and again; and the effects
//! of a source that is slow, floods, lies or is far too large.

use crate::server_fixture::{self, wait_for};
use crate::source_fixture::{House, api};
use crate::web::{Page, Web};
use serde_json::{Value, json};
use std::path::PathBuf;

fn things() -> String {
    api(&[("get", "/a", "readA"), ("post", "/b", "makeB")])
}

fn odd(how: &str) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/source_fixture/odd.mjs");
    vec!["node".to_owned(), script.to_str().unwrap().to_owned(), how.to_owned()]
}

#[test]
fn sources_are_added_listed_refreshed_and_removed_at_the_terminal() {
    let web = Web::start();
    let url = web.put("/openapi.json", Page::Text("application/json", things()));
    let house = House::with("[sources.written.tools.ok]\nargv = ['true']\n");
    let (code, printed, _) = house.says(&["source", "add", &url]);
    assert_eq!((code, printed.as_str()), (Some(0), "things\t2 tools at tools.things.org.main\n"));
    let (_, listed, _) = house.says(&["source", "list"]);
    assert!(listed.lines().any(|line| line == "things\topenapi\t2"), "{listed}");
    let (code, _, noted) = house.says(&["source", "add", &url]);
    assert_eq!(code, Some(1));
    assert!(noted.contains("there is a source things already"), "{noted}");

    let (code, printed, _) = house.says(&["source", "refresh", "things"]);
    assert_eq!((code, printed.as_str()), (Some(0), ""), "nothing has changed");
    web.put("/openapi.json", Page::Text("application/json", api(&[("get", "/c", "readC")])));
    let (_, printed, _) = house.says(&["source", "refresh", "things"]);
    assert_eq!(printed, "+ t.readC\n- t.makeB\n- t.readA\n");
    let (code, _, noted) = house.says(&["source", "refresh", "nothing"]);
    assert_eq!(code, Some(1));
    assert!(noted.contains("there is no source nothing"), "{noted}");

    let house = house.again();
    house.ready("things");
    let (code, _, _) = house.says(&["source", "remove", "things"]);
    assert_eq!((code, house.source("things")), (Some(0), None));
    let (code, _, noted) = house.says(&["source", "remove", "written"]);
    assert_eq!(code, Some(1));
    assert!(noted.contains("stands in a configuration file"), "{noted}");
    let page = web.put("/page", Page::Text("text/html", "<html></html>".into()));
    let (code, _, noted) = house.says(&["source", "add", &page]);
    assert_eq!(code, Some(1));
    assert!(noted.starts_with("error: Nothing was recognised at http://"), "{noted}");
    assert!(
        noted.contains(": neither OpenAPI (") && noted.contains("), nor GraphQL, nor MCP ("),
        "{noted}"
    );
    assert!(noted.contains("HTTP 404") && !noted.contains("rmcp::"), "{noted}");
    let words: Vec<_> = ["source", "add", "--name", "odd", "--data-dir"].map(str::to_owned).into();
    let data_dir = house.served.data_dir.to_str().unwrap().to_owned();
    let words = [words, vec![data_dir, "--".into()], odd("pages")].concat();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let added = server_fixture::airlock(&words).output().unwrap();
    assert_eq!(String::from_utf8(added.stdout).unwrap(), "odd\t251 tools at tools.odd.org.main\n");
}

#[test]
fn what_is_at_an_address_is_detected_and_a_description_is_previewed() {
    let web = Web::start();
    let house = House::with("");
    let detect = |url: &str| {
        house.admin().post("/api/integrations/detect", &json!({ "url": url }).to_string())
    };
    let url = web.put("/api.json", Page::Text("application/json", things()));
    let expected = json!([{ "kind": "openapi", "confidence": "high", "endpoint": url,
        "name": "Things", "slug": "things" }]);
    assert_eq!(detect(&url).json(), expected);
    let two_words = things().replace("Things", "Harness Items");
    let url = web.put("/two-words.json", Page::Text("application/json", two_words));
    assert_eq!(detect(&url).json()[0]["slug"], "harness_items", "as Executor proposes it");
    assert_eq!(detect(&format!("{}/nothing", web.url)).json(), json!([]));
    assert_eq!(detect(&format!("http://{}", "x".repeat(2_048))).status, 400);

    let preview = |spec: &str| {
        house.admin().post("/api/openapi/preview", &json!({ "spec": spec }).to_string())
    };
    let told = preview(&things()).json();
    assert_eq!(told["operationCount"], 2, "{told}");
    assert_eq!(told["tools"], json!(["t.readA", "t.makeB"]), "{told}");
    let broken = preview("swagger: '2.0'");
    assert_eq!((broken.status, &broken.json()["_tag"]), (400, &json!("OpenApiParseError")));
    assert_eq!(house.source("things"), None, "looking adds nothing");
}

#[test]
fn a_list_comes_page_by_page_and_is_read_anew_when_the_server_says_so() {
    let house = House::with(&format!("[sources.odd]\ncommand = {}\n", json!(odd("pages"))));
    let source = house.ready("odd");
    assert_eq!(source["toolCount"], 251, "{source}");
    let rule = json!({ "owner": "org", "pattern": "odd.*", "action": "approve" });
    house.admin().post("/api/policies", &rule.to_string());
    assert_eq!(house.run("return (await tools.odd.org.main.tool_249()).ok"), true);
    assert_eq!(house.run("return (await tools.odd.org.main.grow()).ok"), true);
    wait_for(|| (house.source("odd")?["toolCount"] == 252).then_some(()));
    assert_eq!(house.verdict("odd.org.main.drop_all"), "ask", "nobody approved what is new");
    let tools = house.admin().get("/api/tools?query=drop_all").json();
    assert!(tools[0]["addedAt"].as_i64().unwrap() > 0, "{tools}");
}

#[test]
fn a_server_that_is_slow_or_floods_holds_up_nobody() {
    let fine = "[sources.fine.tools.ok]\nargv = ['echo', '1']\nread_only = true\n";
    let config = format!(
        "[sources.slow]\ncommand = {}\n[sources.flood]\ncommand = {}\n{fine}",
        json!(odd("silence")),
        json!(odd("flood")),
    );
    let house = House::with(&config);
    house.ready("fine");
    assert_eq!(house.run("return (await tools.fine.org.main.ok()).data"), 1);
    // Requests about sources do not wait for the slow one either.
    assert_eq!(house.admin().get("/api/connections").status, 200);
    assert_eq!(house.source("slow").unwrap()["trouble"], "it is being read");
    let why = trouble(&house, "flood");
    assert!(why.starts_with("source flood cannot be read: "), "{why}");
    assert_eq!(house.served.stop(), Some(0), "a server in trouble does not hold up stopping");
}

#[test]
fn a_description_that_is_too_large_lies_or_never_comes_is_told_by_name() {
    let web = Web::start();
    let padded = format!("{}{}", things(), " ".repeat(50_000_000));
    let pages = [
        ("large", Page::Text("application/json", padded)),
        ("endless", Page::Flood),
        ("liar", Page::Text("application/json", "<html>Sign in</html>".into())),
        ("honest", Page::Text("image/png", things())),
    ];
    let mut config = String::new();
    for (name, page) in pages {
        let url = web.put(&format!("/{name}"), page);
        config += &format!("[sources.{name}]\nkind = 'openapi'\nurl = '{url}'\n");
    }
    let house = House::with(&config);
    house.ready("honest");
    for (name, reason) in [("large", "41943040"), ("endless", "41943040"), ("liar", "<html>")] {
        let why = trouble(&house, name);
        assert!(why.starts_with(&format!("source {name} cannot be read: ")), "{why}");
        assert!(why.contains(reason), "{why}");
    }
    let sources = house.run("return (await tools.executor.sources.list({ query: 'liar' })).items");
    assert!(sources[0]["trouble"].as_str().unwrap().contains("source liar"), "{sources}");
}

/// The reason why a source cannot be read, once it is known.
fn trouble(house: &House, slug: &str) -> String {
    wait_for(|| {
        let why = house.source(slug)?["trouble"].as_str()?.to_owned();
        (why != "it is being read").then_some(why)
    })
}

#[test]
fn integrations_and_connections_are_changed_over_http() {
    let web = Web::start();
    let house = House::with("[sources.written.tools.ok]\nargv = ['true']\n");
    let url = web.put("/api.json", Page::Text("application/json", things()));
    let admin = house.admin();
    let added = json!({ "slug": "api", "spec": { "kind": "url", "url": url }, "connect": true });
    assert_eq!(admin.post("/api/openapi/specs", &added.to_string()).status, 200);
    let patch = |path: &str, body: Value| {
        admin.send("PATCH", path, &[("Content-Type", "application/json")], &body.to_string())
    };
    let renamed =
        patch("/api/integrations/api", json!({ "name": "My API", "description": "Mine." }));
    assert_eq!((renamed.status, &renamed.json()["name"]), (200, &json!("My API")), "{renamed:?}");
    assert_eq!(patch("/api/integrations/written", json!({ "name": "x" })).status, 409);
    assert_eq!(patch("/api/integrations/none", json!({ "name": "x" })).status, 404);
    let config = "/api/openapi/integrations/api/config";
    let told = admin.get(config).json();
    assert_eq!((&told["url"], &told["baseUrl"]), (&json!(url), &Value::Null), "{told}");
    let wish = json!({ "mode": "merge", "config": { "baseUrl": "http://127.0.0.1:9/v2" } });
    let told = admin.post(config, &wish.to_string()).json();
    assert_eq!(told["baseUrl"], "http://127.0.0.1:9/v2", "{told}");
    assert_eq!(told["changedTools"], json!(["t.makeB", "t.readA"]), "they go elsewhere: {told}");
    assert_eq!(admin.post(config, r#"{"mode":"mix"}"#).status, 400);
    // There is one route for each kind of source, and all of them behave the same.
    for same in ["/api/graphql/integrations/api/config", "/api/mcp/servers/api/config"] {
        assert_eq!(admin.get(same).json(), admin.get(config).json(), "{same}");
        assert_eq!(admin.post(same, r#"{"mode":"mix"}"#).status, 400);
    }

    let path = "/api/connections/org/api/main";
    assert_eq!(admin.get(path).json()["address"], "tools.api.org.main");
    assert_eq!(admin.get("/api/connections/user/api/main").status, 404);
    let made = patch(path, json!({ "template": "bearer", "value": "s3cret", "description": "CI" }));
    assert_eq!(
        (&made.json()["template"], &made.json()["description"]),
        (&json!("bearer"), &json!("CI"))
    );
    assert!(!made.body.contains("s3cret"), "{made:?}");
    let kept = patch(path, json!({ "description": "CI 2" })).json();
    assert_eq!(kept["template"], "bearer", "what is not named stays: {kept}");
    let run = house.served.client("run");
    assert_eq!(run.send("PATCH", path, &[("Content-Type", "application/json")], "{}").status, 403);
}

#[test]
fn a_program_manages_policies_only_with_a_person_and_no_policy_approves_that() {
    let house = House::with("");
    let admin = house.admin();
    let all = json!({ "owner": "org", "pattern": "*", "action": "approve" }).to_string();
    admin.post("/api/policies", &all);
    let create = "executor.coreTools.policies.create";
    assert_eq!(house.verdict(create), "ask", "an agent must not be able to approve itself");
    let code = format!(
        "return await tools.{create}({{ owner: 'org', pattern: 'demo.*', action: 'block' }})"
    );
    let asked = admin.execute(&code);
    assert_eq!(asked.json()["status"], "paused", "{asked:?}");
    let done = admin.resume(&asked.question(), "accept").json();
    assert_eq!(done["structured"]["result"]["data"]["pattern"], "demo.*", "{done}");
    let asked =
        admin.execute("return (await tools.executor.coreTools.policies.list()).data.policies");
    let listed = admin.resume(&asked.question(), "accept").json();
    let listed = &listed["structured"]["result"];
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    let bad =
        format!("return await tools.{create}({{ owner: 'org', pattern: 'a*', action: 'block' }})");
    let told = admin.execute(&bad).json();
    let error = &told["structured"]["result"]["error"]["code"];
    assert_eq!(error, "invalid_tool_arguments", "nobody is asked about a call that cannot be made");
    let named = json!({ "owner": "user", "pattern": create, "action": "approve" }).to_string();
    admin.post("/api/policies", &named);
    assert_eq!(house.verdict(create), "ask", "not even an exact name replaces an answer");
    let cards =
        house.run("return (await tools.executor.coreTools.integrations.list()).data.integrations");
    assert!(cards.as_array().unwrap().iter().any(|card| card["slug"] == "management"), "{cards}");
}
