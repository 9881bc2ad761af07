//! GraphQL tools against a real server, which the test starts and stops.

use lifecycle::{CallId, CallerName, Json, ToolPath};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tools::graphql::{GraphqlError, GraphqlIntegration, Options, import, introspect};
use tools::http::ApiClient;
use tools::{
    CancelSignal, Integration as _, PersonHandle, ProgressHandle, ToolCredential, ToolRequest,
    ToolSpec,
};

struct Server(Child, u16);

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the test ends this child")]
    fn start() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = here.join("../../target/npm");
        assert!(modules.join("node_modules/graphql-http").is_dir(), "run `cargo xtask packages`");
        let mut child = Command::new("node")
            .arg(here.join("tests/graphql_server.mjs"))
            .arg(modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().parse().unwrap())
    }

    async fn import(&self) -> GraphqlIntegration {
        let endpoint = format!("http://127.0.0.1:{}/graphql", self.1).parse().unwrap();
        let options = Options { endpoint, client: ApiClient::default() };
        let text =
            introspect(&options, &ToolCredential::none(), &CancelSignal::never()).await.unwrap();
        import(&text, options).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn request(tool: &str, args: &Value) -> ToolRequest {
    ToolRequest {
        execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
        call: CallId(1),
        attempt: 1,
        tool: ToolPath::parse(tool).unwrap(),
        args: Json::from_value(args).unwrap(),
        caller: CallerName("test".into()),
        cancelled: CancelSignal::never(),
        person: PersonHandle::absent(),
        progress: ProgressHandle::unwatched(),
    }
}

async fn call(api: &GraphqlIntegration, tool: &str, args: Value) -> Value {
    let credential = ToolCredential::bearer("secret-token");
    let said = api.call(tool, &credential, request(tool, &args)).await.unwrap().unwrap();
    let mut said: Value = serde_json::from_str(said.as_text()).unwrap();
    said.as_object_mut().unwrap().remove("http");
    said
}

fn tool<'t>(tools: &'t [ToolSpec], name: &str) -> &'t ToolSpec {
    tools.iter().find(|tool| tool.name == name).unwrap()
}

#[tokio::test]
async fn queries_are_free_mutations_ask_and_arguments_are_typed() {
    let server = Server::start();
    let tools = server.import().await.tools();
    let mut names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.asks)).collect();
    names.sort_unstable();
    let expected = [
        ("mutation.rename", true),
        ("query.broken", false),
        ("query.greet", false),
        ("query.people", false),
        ("query.person", false),
        ("query.who", false),
    ];
    assert_eq!(names, expected);
    let greet = tool(&tools, "query.greet");
    assert_eq!(greet.description, "Greets somebody.");
    let expected = json!({
        "type": "object", "additionalProperties": false, "required": ["greeting"],
        "properties": {"greeting": {"$ref": "#/$defs/Greeting"}},
        "$defs": {
            "Greeting": {
                "type": "object", "additionalProperties": false, "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "volume": {"anyOf": [{"$ref": "#/$defs/Volume"}, {"type": "null"}]},
                    "times": {"type": ["array", "null"], "items": {"type": "integer"}},
                },
            },
            "Volume": {"enum": ["QUIET", "LOUD"]},
        },
    });
    assert_eq!(greet.input.as_ref().unwrap().whole(), expected);
}

#[tokio::test]
async fn calls_send_variables_and_select_what_ends() {
    let server = Server::start();
    let api = server.import().await;
    let greeting = json!({"greeting": {"name": "x\"}", "volume": "LOUD", "times": [1, 2]}});
    assert_eq!(
        call(&api, "query.greet", greeting).await,
        json!({"ok": true, "data": "LOUD:x\"}:1+2"})
    );
    let ann = call(&api, "query.person", json!({"id": "1"})).await;
    let friend = json!({"id": "2", "name": "Bob", "friend": {"id": "1", "name": "Ann"}});
    assert_eq!(ann["data"], json!({"id": "1", "name": "Ann", "friend": friend}));
    let selected = json!({"id": 1, "select": "name friends(first: 2) { name }"});
    let expected = json!({"name": "Ann", "friends": [{"name": "Ann"}, {"name": "Bob"}]});
    assert_eq!(call(&api, "query.person", selected).await["data"], expected);
    assert_eq!(
        call(&api, "query.person", json!({"id": "9"})).await,
        json!({"ok": true, "data": null})
    );
    let renamed =
        call(&api, "mutation.rename", json!({"id": 2, "name": "Eve", "select": "name"})).await;
    assert_eq!(renamed["data"], json!({"name": "Eve"}));
    let who = call(&api, "query.who", json!({})).await;
    assert_eq!(who["data"], "[redacted]", "the credential arrived, and does not come back");
}

#[tokio::test]
async fn what_the_server_refuses_is_told_in_its_words() {
    let server = Server::start();
    let api = server.import().await;
    let broken = call(&api, "query.broken", json!({})).await;
    assert_eq!((&broken["ok"], &broken["error"]["code"]), (&json!(false), &json!("graphql_error")));
    assert_eq!(broken["error"]["message"], "out of order");
    assert_eq!(broken["error"]["details"]["data"], json!({"broken": null}));
    let unknown = call(&api, "query.people", json!({"select": "shoeSize"})).await;
    assert_eq!(unknown["error"]["message"], "Cannot query field \"shoeSize\" on type \"Person\".");
    let escape = call(&api, "query.people", json!({"select": "name } broken { x"})).await;
    assert_eq!(escape["error"]["code"], "invalid_tool_arguments");
}

#[tokio::test]
async fn an_api_that_is_down_or_no_graphql_is_told() {
    let nobody = "http://127.0.0.1:1/graphql".parse().unwrap();
    let options = Options { endpoint: nobody, client: ApiClient::default() };
    let why =
        introspect(&options, &ToolCredential::none(), &CancelSignal::never()).await.unwrap_err();
    assert_eq!(why.to_string(), "127.0.0.1:1 cannot be reached: Connection refused");
    for (text, expected) in [
        ("<html>", "the answer is no GraphQL introspection: expected value at line 1 column 1"),
        ("{}", "the answer is no GraphQL introspection: it has no __schema"),
        (r#"{"errors": [{"message": "off"}]}"#, "the answer is no GraphQL introspection: off"),
        (r#"{"data": {"__schema": {"types": []}}}"#, "the API has neither queries nor mutations"),
    ] {
        let why: GraphqlError = import(text, options.clone()).unwrap_err();
        assert_eq!(why.to_string(), expected);
    }
}
