//! The description of the API at `/api/openapi.json`: every listed operation is served, and every response matches its
//! description.

use crate::server_fixture::{Answer, Client, Served};
use lifecycle::Json;
use serde_json::{Value, json};

struct Described {
    document: Value,
    client: Client,
}

impl Described {
    /// Sends a request and validates the answer against its description.
    #[track_caller]
    fn check(&self, method: &str, route: &str, path: &str, body: &Value) -> Answer {
        let operation = &self.document["paths"][route][method];
        assert!(operation.is_object(), "{method} {route} is not described");
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.client.send(
            &method.to_uppercase(),
            path,
            &[("Content-Type", "application/json")],
            &text,
        );
        let responses = &operation["responses"];
        let status = answer.status.to_string();
        let response = responses.get(&status).unwrap_or(&responses["default"]);
        if let schema @ Value::Object(_) = &response["content"]["application/json"]["schema"] {
            self.fits(schema, &answer.json());
        }
        if !body.is_null() && answer.status < 300 {
            self.fits(&operation["requestBody"]["content"]["application/json"]["schema"], body);
        }
        answer
    }

    #[track_caller]
    fn fits(&self, schema: &Value, value: &Value) {
        let mut whole = schema.clone();
        whole["components"] = self.document["components"].clone();
        let json = |value: &Value| Json::parse(value.to_string()).unwrap();
        let nothing = tools::misfit(&json(&whole), &json(&json!("no such answer")));
        let takes_anything = schema["$ref"] == "#/components/schemas/Any";
        assert!(nothing.is_some() || takes_anything, "the schema {schema} refuses nothing");
        assert_eq!(tools::misfit(&json(&whole), &json(value)), None, "{schema} {value}");
    }
}

fn described(served: &Served) -> Described {
    let client = served.client("admin");
    let document = client.get("/api/openapi.json").json();
    Described { document, client }
}

#[test]
fn everything_described_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let described = described(&served);
    let mut ids = std::collections::BTreeSet::new();
    for (route, methods) in described.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{method} {route} is called {id} as well");
            let path = route.replace("{id}", "run_00000000-0000-7000-8000-000000000001");
            let path = path.replace("{name}", "nobody");
            let answer = described.check(method, route, &path, &Value::Null);
            assert_ne!(answer.status, 405, "{method} {route}");
            let is_lost = answer.status == 404 && answer.body.contains("There is nothing at");
            assert!(!is_lost, "{method} {route}");
        }
    }
}

#[test]
fn real_answers_fit_what_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let api = described(&served);
    let executions = "/api/executions";
    let run = |code: &str| api.check("post", executions, executions, &json!({ "code": code }));
    let about = |method: &str, what: &str, id: &str, body: Value| {
        let route = format!("/api/executions/{{id}}{what}");
        api.check(method, &route, &route.replace("{id}", id), &body)
    };
    run("emit('x'); console.log('l'); return { a: 1 }");
    run("throw new Error('no')");
    run("return 'x'.repeat(2000000)");
    let asked = run("return await tools.demo.ask({ text: 'x' })").question();
    about("get", "", &asked, Value::Null);
    about("get", "/questions", &asked, Value::Null);
    about("get", "/result", &asked, Value::Null);
    about("get", "/events", &asked, Value::Null);
    let answers = json!({ "answers": [{ "executionId": asked, "action": "accept" }] });
    about("post", "/answers", &asked, answers);
    about("get", "", &asked, Value::Null);
    about("get", "/result", &asked, Value::Null);
    about("get", "/journal", &asked, Value::Null);
    about("delete", "", &asked, Value::Null);
    let linked = "return await tools.demo.link({ message: 'Go', url: 'https://a.example' })";
    let linked = run(linked).question();
    about("post", "/resume", &linked, json!({ "action": "decline" }));
    let form = "return await tools.demo.form({ message: 'Who?', schema: { type: 'object', required: ['n'] } })";
    let form = run(form).question();
    assert_eq!(about("post", "/resume", &form, json!({ "action": "accept" })).status, 400);
    about("post", "/cancel", &form, Value::Null);
    api.check("get", executions, executions, &Value::Null);
    api.check("post", "/api/tokens", "/api/tokens", &json!({ "name": "ann", "scopes": ["run"] }));
    api.check("get", "/api/tokens", "/api/tokens", &Value::Null);
    api.check("get", "/api/session", "/api/session", &Value::Null);
    api.check("get", "/api/questions", "/api/questions", &Value::Null);
    let codes = "/api/sign-in/codes";
    let code = api.check("post", codes, codes, &Value::Null).json()["code"].clone();
    api.check("get", "/api/sign-in", "/api/sign-in", &Value::Null);
    let session = api.check("post", "/api/sign-in", "/api/sign-in", &json!({ "code": code }));
    api.check("get", "/api/sessions", "/api/sessions", &Value::Null);
    api.check("post", "/api/tickets", "/api/tickets", &json!({ "path": "/api/questions" }));
    let session = format!("/api/sessions/{}", session.json()["session"].as_str().unwrap());
    api.check("delete", "/api/sessions/{id}", &session, &Value::Null);
    let rule = json!({ "owner": "org", "pattern": "demo.*", "action": "block" });
    api.check("post", "/api/policies", "/api/policies", &rule);
    api.check("get", "/api/policies", "/api/policies", &Value::Null);
    api.check("get", "/api/policies/test", "/api/policies/test?tool=demo.add", &Value::Null);
}
