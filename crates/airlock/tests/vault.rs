//! Secrets of connections, under the real binary: sealed at rest, used where they belong, and visible nowhere else.

use crate::echo::{Echo, connect};
use crate::server_fixture::{Client, Served, airlock, good, wait_for};
use crate::traces::{CANARIES, files, unseen};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use store::RecordStore as _;
use store::sqlite::SqliteStore;

#[test]
fn no_file_of_the_data_directory_holds_a_secret_and_old_ones_are_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let api = Echo::start();
    // The format of earlier versions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&data).unwrap();
        let source = json!({ "kind": "openapi", "text": api.description() }).to_string();
        store.put("source", "things", source, 0).await.unwrap();
        let old = json!({ "bearer": CANARIES[0] }).to_string();
        store.put("connection", "things/old", old, 0).await.unwrap();
        store.close().await;
    });
    let served = Served::with_model_answers(&data, &[]);
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
        unseen(&std::fs::read(&file).unwrap(), &CANARIES, &name);
    }
}

#[test]
fn a_lost_key_gives_advice_and_destroys_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, key) = (dir.path().join("data"), dir.path().join("data/vault.key"));
    let api = Echo::start();
    let served = Served::with_model_answers(&data, &[]);
    let admin = served.client("admin");
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    connect(&admin, json!({ "name": "main", "template": "bearer", "value": CANARIES[0] }));
    assert_eq!(served.stop(), Some(0));
    let kept = dir.path().join("kept.key");
    std::fs::rename(&key, &kept).unwrap();

    let served = Served::with_model_answers(&data, &[]);
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
    unseen(&std::fs::read(&export).unwrap(), &CANARIES, "the export");
    assert_eq!(std::fs::metadata(&export).unwrap().permissions().mode() & 0o777, 0o600);
    let elsewhere = dir.path().join("elsewhere");
    let output = airlock(&["vault", "import", file, "--passphrase", words])
        .arg("--data-dir")
        .arg(&elsewhere)
        .output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "1 added, 0 kept\n");
    let served = Served::with_model_answers(&elsewhere, &[]);
    let admin = served.client("admin");
    let ok = wait_for(|| {
        let result = admin.execute(call).json()["structured"]["result"]["ok"].clone();
        (result == true).then_some(result)
    });
    assert_eq!(ok, true);
}

#[test]
fn a_connection_is_checked_and_a_missing_secret_is_asked_of_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let api = Echo::start();
    let served = Served::with_model_answers(&dir.path().join("data"), &[]);
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

    // The agent's program pauses with a link; a person enters the secret; the same call continues.
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
    unseen(
        admin.get(&format!("/api/executions/{id}/journal")).body.as_bytes(),
        &CANARIES,
        "the journal",
    );
    // A program is stored unchanged; text that is returned to the caller is redacted.
    let thrown = admin.execute(&format!("throw new Error('{}')", CANARIES[7]));
    assert!(thrown.body.contains("[redacted]"), "{thrown:?}");
    unseen(thrown.body.as_bytes(), &CANARIES, "an answer");
}
