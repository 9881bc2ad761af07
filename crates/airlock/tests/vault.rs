//! Secrets of connections, under the real binary: sealed at rest, used where they belong, and never seen elsewhere.
#![expect(clippy::unwrap_used, reason = "a test helper that cannot go on should say so loudly")]

mod echo;
mod served;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use echo::Echo;
use serde_json::{Value, json};
use served::{Answer, Client, Served, airlock};
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use store::Records as _;
use store::sqlite::SqliteStore;

/// Nobody says this by chance, in any encoding.
const CANARIES: [&str; 8] = [
    "canary-Bearer/9fKq+Lm2",
    "canary-Password/7Hd+Rw4",
    "canary-Header/3Jx+Pz8",
    "canary-Query/5Ny+Vb6",
    "canary-Cookie/1Tg+Sc0",
    "canary-Environment/8Uv+Ke3",
    "canary-Command/2Wa+Of7",
    "canary-Handoff/6Yi+Mb5",
];

/// What a secret looks like to whoever looks for it.
fn traces(secret: &str) -> Vec<String> {
    let form = form(secret);
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    // Inside longer base64 the middle is what stays the same, in one of three ways.
    let middle = |n: usize| {
        let encoded = STANDARD.encode(format!("{}{secret}", "x".repeat(n)));
        encoded[8..encoded.len() - 8].to_owned()
    };
    vec![
        secret.to_owned(),
        form,
        hex,
        middle(0),
        middle(1),
        middle(2),
        URL_SAFE_NO_PAD.encode(secret),
    ]
}

fn form(text: &str) -> String {
    text.replace('/', "%2F").replace('+', "%2B")
}

#[track_caller]
fn unseen(bytes: &[u8], what: &str) {
    for canary in CANARIES {
        for trace in traces(canary) {
            let is_there = bytes.windows(trace.len()).any(|part| part == trace.as_bytes());
            assert!(!is_there, "{what} says {trace}");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn good(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn connect(admin: &Client, body: Value) -> Value {
    let mut whole = json!({ "integration": "things", "owner": "org" });
    whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    good(admin.post("/api/connections", &whole.to_string()))
}

/// Every connection that there can be, each with a canary of its own.
fn connect_all(admin: &Client, dir: &Path) {
    let plain = |template: &str, value: &str| json!({ "name": template, "template": template, "value": value });
    connect(admin, plain("bearer", CANARIES[0]));
    let basic = json!({ "user": "ann", "password": CANARIES[1] });
    connect(admin, json!({ "name": "basic", "template": "basic", "values": basic }));
    connect(admin, json!({ "name": "header", "template": "apikey-1", "value": CANARIES[2] }));
    let query = json!({ "name": "key", "value": CANARIES[3] });
    connect(admin, json!({ "name": "query", "template": "query", "values": query }));
    let file = dir.join("cookie.txt");
    std::fs::write(&file, format!("{}\n", CANARIES[4])).unwrap();
    let from = json!({ "provider": "file", "id": file });
    connect(
        admin,
        json!({ "name": "cookie", "template": "cookie", "values": { "name": "sid" }, "from": from }),
    );
    let from = json!({ "provider": "env", "id": "SECRET_OF_A_TEST" });
    connect(admin, json!({ "name": "environment", "template": "bearer", "from": from }));
    let from = json!({ "provider": "cmd", "id": format!("printf {}", CANARIES[6]) });
    connect(admin, json!({ "name": "command", "template": "bearer", "from": from }));
    let url =
        connect(admin, json!({ "name": "handoff", "template": "bearer", "handoff": true }))["url"]
            .clone();
    let state = url.as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let nobody = Client { secret: String::new(), ..admin.clone() };
    let asked = good(nobody.get(&format!("/api/handoffs/{state}")));
    assert_eq!(asked["fields"], json!(["value"]), "{asked}");
    let body = json!({ "values": { "value": CANARIES[7] } }).to_string();
    good(nobody.post(&format!("/api/handoffs/{state}"), &body));
    assert_eq!(
        nobody.post(&format!("/api/handoffs/{state}"), &body).status,
        404,
        "it is good once"
    );
}

#[test]
fn no_secret_leaves_the_server_whoever_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let (data, log) = (dir.path().join("data"), dir.path().join("log.txt"));
    let api = Echo::start();
    let served = Served::telling(&data, &[], File::create(&log).unwrap(), CANARIES[5]);
    let admin = served.client("admin");
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    connect_all(&admin, dir.path());

    let names =
        ["bearer", "basic", "header", "query", "cookie", "environment", "command", "handoff"];
    let mut told = vec![];
    for name in names {
        let code = format!(
            "const said = await tools.things.org.{name}.t.list({{}}); console.log(said); emit(said); return said"
        );
        let answer = admin.execute(&code);
        assert_eq!(answer.json()["structured"]["result"]["ok"], true, "{answer:?}");
        let execution = answer.execution();
        for what in ["journal", "events", "result", ""] {
            told.push(admin.get(&format!("/api/executions/{execution}/{what}")).body);
        }
        told.push(answer.body);
    }
    // They arrived, each in its place, and the API repeated them in every way that it knows.
    let heard = api.heard();
    for (canary, in_place) in [
        (0, format!("authorization: Bearer {}", CANARIES[0])),
        (1, format!("authorization: Basic {}", STANDARD.encode(format!("ann:{}", CANARIES[1])))),
        (2, format!("x-key: {}", CANARIES[2])),
        (3, format!("?key={}", form(CANARIES[3]))),
        (4, format!("cookie: sid={}", CANARIES[4])),
        (5, format!("authorization: Bearer {}", CANARIES[5])),
        (6, format!("authorization: Bearer {}", CANARIES[6])),
        (7, format!("authorization: Bearer {}", CANARIES[7])),
    ] {
        assert!(heard.contains(&in_place), "{} did not arrive", CANARIES[canary]);
    }
    for path in [
        "/api/connections",
        "/api/tools",
        "/metrics",
        "/api/questions",
        "/",
        "/api/vault",
        "/api/nothing",
        "/api/integrations/things",
        "/api/providers/vault/items",
        "/api/executions",
    ] {
        told.push(admin.get(path).body);
    }
    // Who puts a secret into what we send back reads a blot.
    told.push(admin.get(&format!("/api/{}", CANARIES[0])).body);
    told.push(admin.execute(&format!("throw new Error('{}')", CANARIES[0])).body);
    let backup = json!({ "passphrase": "a passphrase for a test" }).to_string();
    told.push(good(admin.post("/api/vault/export", &backup)).to_string());
    unseen(told.join("\n").as_bytes(), "an answer");
    assert_eq!(served.stop(), Some(0));
    let logged = std::fs::read(&log).unwrap();
    assert!(logged.len() > 10_000, "everything is logged");
    unseen(&logged, "the log");
}

#[test]
fn no_file_of_the_data_directory_holds_a_secret_and_old_ones_are_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let api = Echo::start();
    // As earlier versions kept it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&data).unwrap();
        let source = json!({ "kind": "openapi", "text": api.description() }).to_string();
        store.put("source", "things", source, 0).await.unwrap();
        let old = json!({ "bearer": CANARIES[0] }).to_string();
        store.put("connection", "things/old", old, 0).await.unwrap();
        store.close().await;
    });
    let served = Served::start(&data, &[]);
    let admin = served.client("admin");
    let code = "const ready = await tools.search({ query: 'list', namespace: 'things' }); \
                return (await tools.things.org.old.t.list({})).ok";
    let done = (0..100).find_map(|_| {
        let answer = admin.execute(code).json();
        (answer["structured"]["result"] == true).then_some(())
    });
    assert!(done.is_some(), "the old connection works");
    assert!(api.heard().contains(&format!("authorization: Bearer {}", CANARIES[0])));
    connect(&admin, json!({ "name": "new", "template": "bearer", "value": CANARIES[1] }));
    connect(&admin, json!({ "name": "new", "template": "bearer", "value": CANARIES[2] }));
    connect(
        &admin,
        json!({ "name": "new", "owner": "user", "template": "bearer", "value": CANARIES[3] }),
    );
    let listed = good(admin.get("/api/connections"));
    let addresses: Vec<_> =
        listed.as_array().unwrap().iter().map(|view| view["address"].clone()).collect();
    assert_eq!(
        addresses,
        ["tools.things.org.new", "tools.things.org.old", "tools.things.user.new"]
    );
    assert_eq!(served.stop(), Some(0));
    for file in files(&data) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        let name = file.strip_prefix(&data).unwrap().display().to_string();
        let is_secret = name == "vault.key" || name.starts_with("tokens/");
        assert!(!is_secret || mode == 0o600, "{name} has mode {mode:o}");
        unseen(&std::fs::read(&file).unwrap(), &name);
    }
}

#[test]
fn a_lost_key_gives_advice_and_destroys_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, key) = (dir.path().join("data"), dir.path().join("data/vault.key"));
    let api = Echo::start();
    let served = Served::start(&data, &[]);
    let admin = served.client("admin");
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    connect(&admin, json!({ "name": "main", "template": "bearer", "value": CANARIES[0] }));
    assert_eq!(served.stop(), Some(0));
    let kept = dir.path().join("kept.key");
    std::fs::rename(&key, &kept).unwrap();

    let served = Served::start(&data, &[]);
    let admin = served.client("admin");
    let call = "return await tools.things.org.main.t.list({})";
    let refused = wait_for(|| {
        let result = admin.execute(call).json()["structured"]["result"].clone();
        (result["error"]["code"] != "tool_not_found").then_some(result)
    });
    assert_eq!(refused["error"]["code"], "connection_value_locked", "{refused}");
    assert!(!refused.to_string().contains("vault.key"), "programs learn no paths: {refused}");
    let status = good(admin.get("/api/vault"));
    assert_eq!(status["status"], "locked");
    assert!(status["trouble"].as_str().unwrap().contains("Put the file back"), "{status}");
    let body = json!({ "integration": "things", "name": "new", "template": "bearer", "value": "x-new-secret" });
    let refused = admin.post("/api/connections", &body.to_string());
    assert_eq!(
        (refused.status, &refused.json()["_tag"]),
        (409, &json!("VaultLockedError")),
        "{refused:?}"
    );
    let says = |words: &[&str]| {
        let output = airlock(words).arg("--data-dir").arg(&data).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = says(&["vault", "status"]);
    assert!(code == Some(1) && printed.contains("locked, 1 secrets"), "{code:?} {printed}");

    std::fs::rename(&kept, &key).unwrap();
    assert_eq!(good(admin.get("/api/vault"))["status"], "open", "without a restart");
    assert_eq!(admin.execute(call).json()["structured"]["result"]["ok"], true);
    let before = std::fs::read(&key).unwrap();
    assert_eq!(says(&["vault", "rotate"]).0, Some(0));
    assert_ne!(std::fs::read(&key).unwrap(), before);
    assert_eq!(admin.execute(call).json()["structured"]["result"]["ok"], true);
    assert_eq!(served.stop(), Some(0));

    let (passphrase, export) = (dir.path().join("passphrase"), dir.path().join("export.json"));
    std::fs::write(&passphrase, "a passphrase for a test\n").unwrap();
    let (file, words) = (export.to_str().unwrap(), passphrase.to_str().unwrap());
    assert_eq!(says(&["vault", "export", file, "--passphrase", words]).0, Some(0));
    unseen(&std::fs::read(&export).unwrap(), "the export");
    assert_eq!(std::fs::metadata(&export).unwrap().permissions().mode() & 0o777, 0o600);
    let elsewhere = dir.path().join("elsewhere");
    let output = airlock(&["vault", "import", file, "--passphrase", words])
        .arg("--data-dir")
        .arg(&elsewhere)
        .output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "1 added, 0 kept\n");
    let served = Served::start(&elsewhere, &[]);
    let admin = served.client("admin");
    let ok = wait_for(|| {
        let result = admin.execute(call).json()["structured"]["result"]["ok"].clone();
        (result == true).then_some(result)
    });
    assert_eq!(ok, true);
}

#[track_caller]
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed().as_secs() < 60, "it did not happen");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_connection_is_checked_and_a_missing_secret_is_asked_of_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let api = Echo::start();
    let served = Served::start(&dir.path().join("data"), &[]);
    let admin = served.client("admin");
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    let unknown =
        json!({ "integration": "things", "name": "x", "template": "apikey-9", "value": "v" });
    let refused = admin.post("/api/connections", &unknown.to_string());
    assert_eq!(
        (refused.status, &refused.json()["_tag"]),
        (400, &json!("InvalidConnectionInputError"))
    );
    let gone = json!({ "provider": "env", "id": "NOT_SET_AT_ALL" });
    connect(&admin, json!({ "name": "gone", "template": "bearer", "from": gone }));
    let health =
        |name: &str| good(admin.post(&format!("/api/connections/org/things/{name}/health"), "{}"));
    assert_eq!(health("gone")["code"], "connection_value_missing");
    connect(
        &admin,
        json!({ "name": "later", "template": "bearer", "handoff": true, "health": "t.list" }),
    );
    assert_eq!(health("later")["healthy"], false);

    // The agent's program pauses with a link; a person enters the secret; the same call goes on.
    let agent = served.client("run");
    let paused = agent.execute("return (await tools.things.org.later.t.change({})).ok");
    let approved = agent.resume(&paused.question(), "accept");
    let told = approved.json();
    let url = told["structured"]["interaction"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{told}"))
        .to_owned();
    let state = url.split_once("/connect#").unwrap().1;
    let nobody = Client { secret: String::new(), ..admin.clone() };
    let page = nobody.get("/connect");
    assert!(page.status == 200 && page.body.contains("handoff.js"), "{page:?}");
    assert_eq!(nobody.get("/api/handoffs/wrong").status, 404);
    let empty = json!({ "values": { "value": "" } }).to_string();
    assert_eq!(nobody.post(&format!("/api/handoffs/{state}"), &empty).status, 400);
    let entered = json!({ "values": { "value": CANARIES[7] } }).to_string();
    good(nobody.post(&format!("/api/handoffs/{state}"), &entered));
    let id = approved.execution();
    let result = wait_for(|| {
        let shown = admin.get(&format!("/api/executions/{id}/result"));
        (shown.status == 200).then(|| shown.json())
    });
    assert_eq!(result["result"], true, "{result}");
    assert!(api.heard().contains(&format!("authorization: Bearer {}", CANARIES[7])));
    assert_eq!(
        health("later"),
        json!({ "healthy": true, "code": "ok", "message": "The source takes it." })
    );
    unseen(admin.get(&format!("/api/executions/{id}/journal")).body.as_bytes(), "the journal");
}
