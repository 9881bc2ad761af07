//! Canaries in every kind of secret, an API that repeats everything it receives in every encoding, and a search through
//! every byte that the server sends or stores.

use crate::echo::{Echo, connect};
use crate::issuer::{self, Browser, Issuer};
use crate::repl_client::Spoken;
use crate::server_fixture::{Answer, Client, Served, good};
use crate::traces::{CANARIES, form, unseen, unseen_below};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// One connection for each kind of secret.
const NAMES: [&str; 11] = [
    "bearer",
    "basic",
    "header",
    "query",
    "cookie",
    "environment",
    "command",
    "handoff",
    "machine",
    "known",
    "device",
];

/// Connections with static values.
fn connect_values(admin: &Client, dir: &Path) {
    let plain = |template: &str, value: &str| json!({ "name": template, "template": template, "value": value });
    connect(admin, plain("bearer", CANARIES[0]));
    let basic = json!({ "user": "ann", "password": CANARIES[1] });
    connect(admin, json!({ "name": "basic", "template": "basic", "values": basic }));
    connect(admin, json!({ "name": "header", "template": "apikey-0", "value": CANARIES[2] }));
    let query = json!({ "name": "key", "value": CANARIES[3] });
    connect(admin, json!({ "name": "query", "template": "query", "values": query }));
    let file = dir.join("cookie.txt");
    std::fs::write(&file, format!("{}\n", CANARIES[4])).unwrap();
    let from = json!({ "provider": "file", "id": file });
    let cookie = json!({ "name": "sid" });
    connect(
        admin,
        json!({ "name": "cookie", "template": "cookie", "values": cookie, "from": from }),
    );
    let from = json!({ "provider": "env", "id": "SECRET_OF_A_TEST" });
    connect(admin, json!({ "name": "environment", "template": "bearer", "from": from }));
    let printed = dir.join("printed.txt");
    std::fs::write(&printed, CANARIES[6]).unwrap();
    let from = json!({ "provider": "cmd", "id": format!("cat {}", printed.display()) });
    connect(admin, json!({ "name": "command", "template": "bearer", "from": from }));
    let made = connect(admin, json!({ "name": "handoff", "template": "bearer", "handoff": true }));
    let state = made["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let nobody = Client { secret: String::new(), ..admin.clone() };
    let asked = good(nobody.get(&format!("/api/handoffs/{state}")));
    assert_eq!(asked["fields"], json!(["value"]), "{asked}");
    let body = json!({ "values": { "value": CANARIES[7] } }).to_string();
    good(nobody.post(&format!("/api/handoffs/{state}"), &body));
    let again = nobody.post(&format!("/api/handoffs/{state}"), &body);
    assert_eq!(again.status, 404, "it is good once");
}

/// Connections that obtain tokens: as a client for itself, by code as a client with a secret, and as a device.
fn connect_tokens(served: &Served) {
    let admin = served.client("admin");
    let client = |id: &str, secret: &str| json!({ "client_id": id, "client_secret": secret });
    let mut machine = client("machine", CANARIES[8]);
    machine["flow"] = "client_credentials".into();
    machine["scopes"] = json!(["read"]);
    connect(&admin, json!({ "name": "machine", "template": "oauth", "oauth": machine }));
    let mut known = client("known", CANARIES[9]);
    known["scopes"] = json!(["openid", "offline_access", "read"]);
    connect(&admin, json!({ "name": "known", "template": "oauth", "oauth": known }));
    let device = json!({ "flow": "device", "scopes": ["openid", "offline_access", "read"] });
    connect(&admin, json!({ "name": "device", "template": "oauth", "oauth": device }));
    let begin = |name: &str| {
        let body = json!({ "integration": "things", "name": name }).to_string();
        let url = good(admin.post("/api/oauth/start", &body))["url"].as_str().unwrap().to_owned();
        Browser::default().visit(&url, &served.url)
    };
    let back = begin("known").unwrap();
    let nobody = Client { secret: String::new(), ..admin.clone() };
    let done = nobody.get(back.strip_prefix(&served.url).unwrap());
    assert_eq!(done.status, 200, "{done:?}");
    begin("device");
    // The device flow polls every few seconds whether its person has consented.
    let health = || good(admin.post("/api/connections/org/things/device/health", "{}"));
    while health()["code"] == "oauth_connection_missing" {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Everything that the server sent: heads and bodies.
#[derive(Default)]
struct Told(String);

impl Told {
    fn hear(&mut self, answer: &Answer) {
        for (name, value) in &answer.headers {
            self.0.push_str(&format!("{name}: {value}\n"));
        }
        self.0.push_str(&answer.body);
        self.0.push('\n');
    }
}

/// A program that repeats everything it receives, by every means it has.
fn parrot(name: &str) -> String {
    format!(
        "const said = await tools.things.org.{name}.t.list({{}}); const no = await tools.things.org.{name}.t.fail({{}});\n\
         console.log(said, no); console.error(JSON.stringify(no)); emit(said);\n\
         emit({{ _tag: 'ToolFile', mimeType: 'text/plain', encoding: 'base64', data: said.data.base64, name: 'x.txt' }});\n\
         if (!said.ok || no.ok) throw new Error('it did not answer: ' + JSON.stringify([said, no]));\n\
         return {{ said, no }}"
    )
}

/// Runs the program over HTTP, enclave and MCP.
fn everywhere(client: &Client, name: &str, told: &mut Told) {
    let answer = client.execute(&parrot(name));
    assert_eq!(answer.result()["said"]["ok"], true, "{name}: {answer:?}");
    let execution = answer.execution();
    for what in ["/journal", "/events", "/result", "/questions", ""] {
        told.hear(&client.get(&format!("/api/executions/{execution}{what}")));
    }
    told.hear(&answer);
    let thrown = client
        .execute(&parrot(name).replace("return", "throw new Error(JSON.stringify(said)); return"));
    assert!(thrown.body.contains("isError"), "{thrown:?}");
    told.hear(&thrown);
    let session = client.post("/sessions", &json!({ "code": parrot(name) }).to_string());
    assert!(session.body.contains("\"ok\":true"), "{name}: {session:?}");
    told.hear(&session);
    let accept = ("Accept", "application/json, text/event-stream");
    let kind = ("Content-Type", "application/json");
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about });
    let greeted = client.send("POST", "/mcp", &[accept, kind], &hello.to_string());
    let id = greeted.header("mcp-session-id").unwrap_or_default().to_owned();
    let params = json!({ "name": "execute", "arguments": { "code": parrot(name) } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let headers = [accept, kind, ("Mcp-Session-Id", id.as_str())];
    let called = client.send("POST", "/mcp", &headers, &call.to_string());
    assert!(called.body.contains("structuredContent"), "{name}: {called:?}");
    told.hear(&called);
}

/// Asserts that the secrets arrived, each in its place, and that the API repeated them in every way it can.
fn arrived(api: &Echo) {
    let heard = api.heard();
    let basic = STANDARD.encode(format!("ann:{}", CANARIES[1]));
    for in_place in [
        format!("authorization: Bearer {}", CANARIES[0]),
        format!("authorization: Basic {basic}"),
        format!("x-key: {}", CANARIES[2]),
        format!("?key={}", form(CANARIES[3])),
        format!("cookie: sid={}", CANARIES[4]),
        format!("authorization: Bearer {}", CANARIES[5]),
        format!("authorization: Bearer {}", CANARIES[6]),
        format!("authorization: Bearer {}", CANARIES[7]),
    ] {
        assert!(heard.contains(&in_place), "{in_place} did not arrive");
    }
}

/// Requests every page and every list of the server.
fn look_around(admin: &Client, told: &mut Told) {
    let described = admin.get("/api/openapi.json").json();
    let paths = described["paths"].as_object().unwrap();
    let lists = paths.iter().filter(|(path, ways)| ways["get"].is_object() && !path.contains('{'));
    let more = [
        "/",
        "/connect",
        "/metrics",
        "/api/nothing",
        "/api/integrations/things",
        "/api/providers/vault/items",
    ];
    let paths: Vec<_> = lists.map(|(path, _)| path.as_str()).chain(more).collect();
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        told.hear(&admin.get(path));
    }
    for name in NAMES {
        told.hear(&admin.get(&format!("/api/connections/org/things/{name}")));
        told.hear(&admin.post(&format!("/api/connections/org/things/{name}/health"), "{}"));
    }
    // If a request contains a secret that the response would repeat, the response contains a redacted text.
    told.hear(&admin.get(&format!("/api/{}", CANARIES[0])));
    told.hear(&admin.get(&format!("/api/executions/{}", form(CANARIES[1]))));
    let backup = json!({ "passphrase": "a passphrase for a test" }).to_string();
    told.hear(&admin.post("/api/vault/export", &backup));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaves_the_server_whoever_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let (data, log) = (dir.path().join("data"), dir.path().join("log.txt"));
    let (api, port) = (Echo::start(), issuer::free_port());
    api.names(&format!("http://127.0.0.1:{port}"));
    let issuer = Issuer::start(port, 3_600, &api.url);
    let served = Served::telling(&data, &[], File::create(&log).unwrap(), CANARIES[5]);
    let admin = served.client("admin");
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    connect_values(&admin, dir.path());
    connect_tokens(&served);

    let mut told = Told::default();
    let secret = admin.secret.clone();
    let mut repl =
        Spoken::connect(&format!("{}/repl", served.url.replacen("http", "ws", 1)), &secret).await;
    for name in NAMES {
        everywhere(&admin, name, &mut told);
        let code = format!("(await tools.things.org.{name}.t.list({{}}))");
        let frame = repl.eval(&code).await;
        assert!(frame.to_string().contains("redacted"), "{name}: {frame}");
        told.0.push_str(&frame.to_string());
    }
    arrived(&api);
    look_around(&admin, &mut told);
    let mut secrets = issuer.secrets();
    assert!(secrets.len() >= 9, "tokens of three kinds, codes and what proves them");
    secrets.extend(CANARIES.map(str::to_owned));
    unseen(told.0.as_bytes(), &secrets, "an answer");
    assert!(told.0.matches("[redacted]").count() > 500, "the API repeated them all");
    // Journal, write-ahead log and blobs, while the server runs and after it has stopped.
    assert!(unseen_below(&data, &secrets) > 3);
    assert_eq!(served.stop(), Some(0));
    unseen_below(&data, &secrets);
    let logged = std::fs::read(&log).unwrap();
    assert!(logged.len() > 10_000, "everything is logged");
    unseen(&logged, &secrets, "the log");
}
