//! Policies through the real binary: over HTTP, at the terminal, across restarts.

use crate::server_fixture::{self, Served, airlock};
use serde_json::{Value, json};

fn patch(client: &server_fixture::Client, path: &str, body: &Value) -> server_fixture::Answer {
    client.send("PATCH", path, &[("Content-Type", "application/json")], &body.to_string())
}

#[test]
fn policies_are_made_changed_listed_and_removed_over_http() {
    let dir = tempfile::tempdir().unwrap();
    let server = Served::start(dir.path(), &[]);
    let admin = server.client("admin");
    let body = json!({ "owner": "org", "pattern": "demo.*", "action": "block" });
    let made = admin.post("/api/policies", &body.to_string());
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert_eq!((&made["position"], &made["owner"]), (&json!("a0"), &json!("org")));
    assert_eq!(admin.get("/api/policies").json(), json!([made]));

    let blocked = admin.execute("return await tools.demo.add({ a: 1, b: 2 })").json();
    assert!(
        blocked["text"].as_str().unwrap().contains("Tool blocked by policy: demo.add"),
        "{blocked}"
    );
    let found =
        admin.execute("return await tools.search({ query: 'add', namespace: 'demo' })").json();
    assert_eq!(found["structured"]["result"]["total"], 0, "{found}");

    let changed = patch(&admin, &format!("/api/policies/{id}"), &json!({ "action": "approve" }));
    assert_eq!((changed.status, &changed.json()["action"]), (200, &json!("approve")));
    assert_eq!(admin.execute("return (await tools.demo.ask({ text: 'x' })).text").result(), "x");
    let found =
        admin.execute("return await tools.search({ query: 'add', namespace: 'demo' })").json();
    assert_eq!(found["structured"]["result"]["total"], 1, "{found}");

    let tested = admin.get("/api/policies/test?tool=demo.ask").json();
    assert_eq!((&tested["verdict"], &tested["policy"]["id"]), (&json!("allow"), &json!(id)));
    let path = format!("/api/policies/{id}");
    let others = admin.send("DELETE", &path, &[], r#"{"owner":"user"}"#);
    assert_eq!((others.status, &others.json()["_tag"]), (404, &json!("PolicyNotFoundError")));
    let removed = admin.send("DELETE", &path, &[], r#"{"owner":"org"}"#);
    assert_eq!(removed.json(), json!({ "removed": true }));
    assert_eq!(admin.get("/api/policies").json(), json!([]));
    assert_eq!(
        admin.execute("return await tools.demo.ask({ text: 'x' })").json()["status"],
        "paused"
    );
}

#[test]
fn what_is_wrong_with_a_policy_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let server = Served::start(dir.path(), &[]);
    let (admin, run) = (server.client("admin"), server.client("run"));
    let cases = [
        (
            r#"{"owner":"org","pattern":"a..b","action":"block"}"#,
            "The member \"pattern\" is no pattern: a pattern has no empty names.",
        ),
        (
            r#"{"owner":"org","pattern":"*.b","action":"block"}"#,
            "The member \"pattern\" is no pattern: a pattern starts with a name, unless it is the lone *.",
        ),
        (
            r#"{"owner":"org","pattern":"a.b*","action":"block"}"#,
            "The member \"pattern\" is no pattern: * stands for whole names only.",
        ),
        (
            r#"{"owner":"me","pattern":"*","action":"block"}"#,
            "The member \"owner\" must be \"org\" or \"user\", not a string like this.",
        ),
        (
            r#"{"owner":"org","pattern":"*"}"#,
            "The member \"action\" is missing; it is \"approve\", \"require_approval\" or \"block\".",
        ),
        (
            r#"{"owner":"org","pattern":"*","action":"block","position":"0"}"#,
            "The member \"position\" is wrong: a position has 1 to 256 letters and digits, not all of them 0.",
        ),
    ];
    for (body, message) in cases {
        let refused = admin.post("/api/policies", body);
        assert_eq!((refused.status, &refused.json()["message"]), (400, &json!(message)), "{body}");
    }
    let good = r#"{"owner":"org","pattern":"*","action":"approve"}"#;
    let refused = run.post("/api/policies", good);
    assert_eq!(refused.status, 403, "an agent must not be able to approve itself");
    assert_eq!(run.get("/api/policies").status, 403);
    let unknown = patch(&admin, "/api/policies/policy_x", &json!({ "action": "block" }));
    assert_eq!(
        (unknown.status, &unknown.json()["message"]),
        (404, &json!("There is no policy policy_x."))
    );
}

#[test]
fn the_terminal_says_who_may_call_what_with_and_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| {
        let output = airlock(words).arg("--data-dir").arg(dir.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        (output.status.code(), text)
    };
    let (code, offline) = said(&["policy", "add", "demo.append", "block"]);
    assert_eq!(code, Some(0));
    let server = Served::start(dir.path(), &[]);
    let admin = server.client("admin");
    let gone = admin.execute("return await tools.demo.append({ line: 'x' })").json();
    assert!(
        gone["text"].as_str().unwrap().contains("Tool blocked by policy: demo.append"),
        "{gone}"
    );
    let (code, online) = said(&["policy", "add", "demo.add", "require_approval"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        admin.execute("return await tools.demo.add({ a: 1, b: 2 })").json()["status"],
        "paused"
    );
    let listed = said(&["policy", "list"]).1;
    let expected = format!(
        "{online}\torg\tdemo.add\trequire_approval\tZz\n{offline}\torg\tdemo.append\tblock\ta0"
    );
    assert_eq!(listed, expected);
    assert_eq!(said(&["policy", "test", "demo.add"]).1, format!("ask\tdemo.add\t{online}"));
    assert_eq!(said(&["policy", "remove", &online]), (Some(0), String::new()));
    assert_eq!(said(&["policy", "remove", &online]).0, Some(1));
    assert_eq!(said(&["policy", "test", "demo.add"]).1, "allow");
    assert_eq!(said(&["policy", "add", "demo.a*", "block"]).0, Some(2));
}

#[test]
fn who_approved_and_when_is_in_the_journal_and_remembering_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let server = Served::start(dir.path(), &[]);
    let code = "const out = []; for (const line of ['a', 'b', 'c']) { \
                out.push(await tools.demo.append({ line })); await tools.demo.ask({ text: line }); } \
                return out.length";
    let asked = server.client("run").execute(code);
    let (run, first) = (asked.execution(), asked.question());
    let body = json!({ "action": "accept", "remember": "execution" }).to_string();
    let second = server.client("admin").post(&format!("/api/executions/{first}/resume"), &body);
    server.kill();
    let server = Served::start(dir.path(), &[]);
    let mut told = server.client("admin").resume(&second.question(), "accept");
    let mut n_asked = 2;
    while told.json()["status"] == "paused" {
        let message = told.json()["structured"]["interaction"]["message"].to_string();
        assert!(message.contains("demo.ask"), "asked again: {message}");
        n_asked += 1;
        told = server.client("admin").resume(&told.question(), "accept");
    }
    assert_eq!((told.result(), n_asked), (json!(3), 4), "one for append, three for ask");
    let events = server.client("admin").get(&format!("/api/executions/{run}/events")).json();
    let answers: Vec<_> =
        events["events"].as_array().unwrap().iter().filter(|e| e["type"] == "answer").collect();
    assert_eq!(answers.len(), 4);
    assert!(
        answers.iter().all(|answer| answer["by"] == "admin" && answer["at"].as_i64().unwrap() > 0)
    );
    assert_eq!(answers[0]["remember"], "execution");
    assert_eq!(std::fs::read_to_string(dir.path().join("demo-append.txt")).unwrap(), "a\nb\nc\n");
}
