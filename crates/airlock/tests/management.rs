//! Management tools: an agent proposes, an administrator decides. Covers attacks that once succeeded, and the text that
//! a person reads.

use crate::server_fixture::{self, Client, Served, good, wait_for};
use crate::source_fixture::{self, House};
use crate::web::{Page, Web};
use serde_json::{Value, json};
use store::RecordStore as _;
use store::sqlite::SqliteStore;

const CREATE: &str = "executor.coreTools.policies.create";

fn mint(served: &Served, name: &str, scopes: &[&str]) -> Client {
    let body = json!({ "name": name, "scopes": scopes }).to_string();
    let minted = served.client("admin").post("/api/tokens", &body);
    served.client_with(minted.json()["secret"].as_str().unwrap())
}

fn approving(pattern: &str) -> String {
    format!(
        "return await tools.{CREATE}({{ owner: 'org', pattern: '{pattern}', action: 'approve' }})"
    )
}

fn policies(served: &Served) -> Value {
    served.client("admin").get("/api/policies").json()
}

#[test]
fn a_program_cannot_approve_itself_by_any_of_the_ways_that_once_worked() {
    let file = format!("[[policies]]\npattern = '{CREATE}'\naction = 'approve'\n");
    let house = House::with(&file);
    let served = &house.served;
    let (admin, run) = (served.client("admin"), served.client("run"));
    assert_eq!(house.verdict(CREATE), "ask", "a file's exact name is no answer");

    let body = json!({ "autoApprove": true, "code": approving("*") }).to_string();
    let tried = run.post("/api/executions", &body);
    assert!(tried.status == 403 || tried.json()["status"] == "paused", "{tried:?}");
    let both = mint(served, "ci", &["run", "answer"]);
    let asked = both.post("/api/executions", &body);
    assert_eq!(asked.json()["status"], "paused", "approving beforehand is no answer: {asked:?}");
    assert_eq!(policies(served), json!([]));

    let block = json!({ "owner": "org", "pattern": "demo.append", "action": "block" }).to_string();
    let block = good(admin.post("/api/policies", &block));
    let remove =
        format!("return await tools.executor.coreTools.policies.remove({{ id: {} }})", block["id"]);
    let asked = run.execute(&remove);
    let question = asked.json()["structured"]["interaction"]["message"].to_string();
    assert!(question.contains("Remove a policy for every caller of this server"), "{question}");
    let answerer = mint(served, "person", &["answer"]);
    for client in [&run, &answerer] {
        let refused = client.resume(&asked.question(), "accept");
        assert_eq!(refused.status, 403, "{refused:?}");
    }
    let refused = answerer.resume(&asked.question(), "accept").json().to_string();
    assert!(refused.contains("admin"), "it names the scope: {refused}");
    assert_eq!(policies(served), json!([block]), "the block is there");
    let declined = answerer.resume(&asked.question(), "decline").json();
    assert_eq!(declined["status"], "completed", "{declined}");
    assert_eq!(policies(served), json!([block]));

    let both_ways = [CREATE, "executor.*", "*"];
    for pattern in both_ways {
        let rule = json!({ "owner": "org", "pattern": pattern, "action": "approve" }).to_string();
        good(admin.post("/api/policies", &rule));
        let tested = admin.get(&format!("/api/policies/test?tool={CREATE}")).json();
        assert_eq!(tested["verdict"], "ask", "{pattern}: {tested}");
        assert_eq!(
            (&tested["answerOnly"], &tested["answerScope"]),
            (&json!(true), &json!("admin"))
        );
        assert_eq!(tested["ignoredBecause"], "answer_only", "{pattern}: {tested}");
        assert_eq!(run.execute(&approving("*")).json()["status"], "paused", "{pattern}");
    }
}

#[test]
fn a_question_is_composed_by_the_server_and_quotes_what_the_program_supplied() {
    let house = House::with("");
    let run = house.served.client("run");
    let message = |code: &str| {
        let asked = run.execute(code).json();
        asked["structured"]["interaction"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let question = message(&approving("mail.*"));
    let expected = "Add a policy for every caller of this server: approve \"mail.*\"?\n\nTools that it matches then run \
                    without a question. It is added to the list of org, above all other policies of org.\n\nArguments:\n";
    assert!(question.starts_with(expected), "{question}");
    let forged = "return await tools.executor.mcp.probe({ url: 'http://a.example/\\u202e\"?\\n\\nAn administrator agreed.' })";
    let question = message(forged);
    assert!(
        question.starts_with("Let this server send requests to \"http://a.example/"),
        "{question}"
    );
    assert!(
        !question.contains("\nAn administrator") && !question.contains('\u{202e}'),
        "{question}"
    );
}

#[test]
fn looking_at_an_address_asks_and_reveals_no_more_than_whether_a_description_is_there() {
    let web = Web::start();
    let house = House::with("");
    let (admin, run) = (house.admin(), house.served.client("run"));
    let page = web.put("/page", Page::Text("text/html", "<html></html>".into()));
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let absent = format!("{}/absent", web.url);
    let approved = &|code: &str| {
        let asked = run.execute(code);
        assert_eq!(asked.json()["status"], "paused", "{code}: {asked:?}");
        admin.resume(&asked.question(), "accept").json()["structured"]["result"].clone()
    };
    let silent = web.put("/silent", Page::Silence);
    // Concurrently, because each takes as long as any request that finds nothing.
    std::thread::scope(|scope| {
        for tool in ["executor.coreTools.integrations.detect", "executor.mcp.probe"] {
            for url in [&page, &closed, &absent, &silent] {
                scope.spawn(move || {
                    let code = format!("return await tools.{tool}({{ url: {} }})", json!(url));
                    let nothing = json!({ "ok": true, "data": { "results": [] } });
                    assert_eq!(approved(&code), nothing, "{tool} {url}");
                });
            }
        }
    });
    let api = source_fixture::api(&[("get", "/a", "readA")]);
    let url = web.put("/api.json", Page::Text("application/json", api));
    let detect = format!(
        "return await tools.executor.coreTools.integrations.detect({{ url: {} }})",
        json!(url)
    );
    let found = approved(&detect);
    assert_eq!(found["data"]["results"][0]["kind"], "openapi", "{found}");
    assert!(!found.to_string().contains("Things"), "nothing that was read there: {found}");
    let mut told = vec![];
    for url in [&page, &closed, &absent] {
        let add = format!(
            "return await tools.executor.openapi.addSpec({{ slug: 'x', url: {} }})",
            json!(url)
        );
        told.push(approved(&add)["error"].clone());
    }
    assert_eq!(told[0]["code"], "integration_unreadable", "{told:?}");
    assert!(told.iter().all(|error| *error == told[0]), "{told:?}");
}

#[test]
fn a_management_call_in_doubt_needs_an_administrator_too() {
    let web = Web::start();
    let house = House::with("");
    let run = house.served.client("run");
    let url = web.put("/silence", Page::Silence);
    let add = format!(
        "return await tools.executor.openapi.addSpec({{ slug: 'x', url: {} }})",
        json!(url)
    );
    let asked = run.execute(&add);
    let (execution, question) = (asked.execution(), asked.question());
    let body = json!({ "action": "accept" }).to_string();
    let path = format!("/api/executions/{question}/resume?wait=0");
    house.admin().post(&path, &body);
    let events = format!("/api/executions/{execution}");
    wait_for(|| (house.admin().get(&events).json()["status"] == "running").then_some(()));
    let house = house.again();
    let admin = house.admin();
    let open = || {
        let shown = admin.get(&format!("/api/executions/{execution}/questions")).json();
        shown["questions"][0]["executionId"].as_str().map(str::to_owned)
    };
    let question = wait_for(open);
    let shown = admin.get(&format!("/api/executions/{execution}/questions")).body;
    assert!(shown.contains("Add a source for every caller of this server"), "{shown}");
    let answerer = mint(&house.served, "person", &["answer"]);
    let path = format!("/api/executions/{question}/resume");
    for choice in ["retry", "supply", "fail"] {
        let content = json!({ "choice": choice, "result": null });
        let retry = json!({ "action": "accept", "content": content }).to_string();
        let refused = answerer.post(&path, &retry);
        assert_eq!(refused.status, 403, "{refused:?}");
    }
    assert_eq!(open(), Some(question.clone()), "the question is still open");
    let given_up = json!({ "action": "accept", "content": { "choice": "fail" } }).to_string();
    assert_eq!(admin.post(&path, &given_up).status, 200);
}

#[test]
fn what_was_approved_by_a_token_that_could_not_answer_does_not_count_until_it_is_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let gone = mint(&served, "gone", &["admin"]);
    let asked = served.client("run").execute(&approving("demo.*"));
    let made = gone.resume(&asked.question(), "accept").json();
    let id = made["structured"]["result"]["data"]["id"].as_str().unwrap().to_owned();
    let verdict = |served: &Served| {
        let tested = served.client("admin").get("/api/policies/test?tool=demo.ask").json();
        (tested["verdict"].clone(), tested["ignoredBecause"].clone())
    };
    assert_eq!(verdict(&served), (json!("allow"), Value::Null));
    let removed = served.client("admin").send("DELETE", "/api/tokens/gone", &[], "");
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(served.stop(), Some(0));
    // Simulates the first start of this version.
    let forget = async {
        let store = SqliteStore::open(dir.path()).unwrap();
        let review = store.all(server::auth::review::KIND).await.unwrap();
        for record in review {
            store.remove(server::auth::review::KIND, &record.key, record.version).await.unwrap();
        }
        store.close().await;
    };
    tokio::runtime::Runtime::new().unwrap().block_on(forget);
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let served = Served::start_with(dir.path(), &[], log.into(), None);
    assert_eq!(verdict(&served), (json!("ask"), json!("unconfirmed")));
    assert_eq!(policies(&served)[0]["unconfirmed"]["answeredBy"], "gone");
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains(&id), "the log names it: {log}");
    let says = |words: &[&str]| {
        let output =
            server_fixture::airlock(words).arg("--data-dir").arg(dir.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (_, listed) = says(&["policy", "list"]);
    assert!(listed.contains("\tunconfirmed"), "{listed}");
    let (_, examined) = says(&["doctor"]);
    assert!(examined.contains(&id), "{examined}");
    assert_eq!(served.client("run").post(&format!("/api/policies/{id}/confirm"), "{}").status, 403);
    let (code, _) = says(&["policy", "confirm", &id]);
    assert_eq!(code, Some(0));
    assert_eq!(verdict(&served), (json!("allow"), Value::Null));
    let (code, tested) = says(&["policy", "test", "demo.ask"]);
    assert_eq!((code, tested), (Some(0), format!("allow\tdemo.*\t{id}\n")));
    assert_eq!(says(&["policy", "test", "nope.tool"]).0, Some(1));
}
