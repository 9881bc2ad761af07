//! Servers that stop, die and come back.

use crate::served::{Served, read};
use crate::{fresh, lines, message};
use serde_json::json;
use std::io::Write as _;
use std::path::Path;

#[test]
fn a_stopping_server_tells_those_who_wait_and_goes_on_later() {
    let (dir, served) = fresh(&[]);
    let client = served.client("run");
    let paused = client.execute("return await tools.demo.append({ line: 'later' })");
    let begun = |code: &str| {
        let body = json!({ "code": code }).to_string();
        let mut stream = client.connect();
        let json = [("Content-Type", "application/json")];
        let head = client.head("POST", "/api/executions", &json, body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream
    };
    let waiting = begun("return await tools.demo.sleep({ ms: 60000 })");
    while client.get("/api/executions?status=running").json()["executions"] == json!([]) {}
    let mut stuck = client.connect();
    stuck
        .write_all(
            client
                .head("POST", "/api/executions", &[("Content-Type", "application/json")], 99)
                .as_bytes(),
        )
        .unwrap();

    assert_eq!(served.stop(), Some(0));
    let told = read(waiting);
    assert_eq!((told.status, message(&told).1), (503, "ShuttingDownError".into()));
    assert_eq!(lines(&dir.path().join("data")), [""; 0]);

    let served = Served::with_model_answers(&dir.path().join("data"), &[]);
    let client = served.client("run");
    assert_eq!(client.resume(&paused.question(), "accept").result(), json!({ "appended": true }));
    assert_eq!(lines(&served.data_dir), ["later"]);
    let running = client.get(&format!("/api/executions/{}", told.execution()));
    assert_eq!(running.json()["status"], "running", "it sleeps again: sleeping twice does no harm");
}

#[test]
fn a_killed_server_loses_nothing_and_repeats_nothing() {
    let (dir, served) = fresh(&[]);
    let client = served.client("run");
    let code = "const sum = await tools.demo.add({ a: 20, b: 22 });
                const drawn = Math.random();
                const first = await tools.demo.append({ line: 'first' });
                const second = await tools.demo.append({ line: 'second' });
                return [sum, typeof drawn, first.appended, second.appended]";
    let paused = client.execute(code);
    let next = client.resume(&paused.question(), "accept");
    served.kill();
    assert_eq!(lines(&dir.path().join("data")), ["first"]);

    let served = Served::with_model_answers(&dir.path().join("data"), &[]);
    let client = served.client("run");
    assert_eq!(client.resume(&paused.question(), "decline").body, next.body, "told the same again");
    let ended = client.resume(&next.question(), "accept");
    assert_eq!(ended.result(), json!([42, "number", true, true]));
    assert_eq!(lines(&served.data_dir), ["first", "second"]);
}

#[test]
fn a_call_that_may_have_run_is_asked_about() {
    let (dir, served) = fresh(&[]);
    let client = served.client("run");
    let file = served.data_dir.join("demo-append.txt");
    // Opening a pipe that nobody reads takes for ever: the tool is at work until the server dies.
    make_pipe(&file);
    let paused = client.execute("return await tools.demo.append({ line: 'once' })");
    let (id, run) = (paused.question(), paused.execution());
    let resume = format!("/api/executions/{id}/resume");
    assert_eq!(client.post(&format!("{resume}?wait=0"), r#"{"action":"accept"}"#).status, 202);
    let events = format!("/api/executions/{run}/events");
    while !client.get(&events).body.contains("\"type\":\"dispatched\"") {}
    served.kill();
    std::fs::remove_file(&file).unwrap();

    let served = Served::with_model_answers(&dir.path().join("data"), &[]);
    let client = served.client("run");
    let doubt = client.post(&resume, r#"{"action":"accept"}"#);
    let asked = &doubt.json()["structured"]["interaction"];
    assert_eq!(asked["requestedSchema"]["required"], json!(["choice"]), "{doubt:?}");
    let refused = message(&client.resume(&doubt.question(), "accept"));
    assert_eq!(refused.0, 400);
    assert!(refused.2.contains(r#"{"choice":"retry"}"#), "{}", refused.2);
    let retry = r#"{"action":"accept","content":{"choice":"retry"}}"#;
    let ended = client.post(&format!("/api/executions/{}/resume", doubt.question()), retry);
    assert_eq!(ended.result(), json!({ "appended": true }));
    assert_eq!(lines(&served.data_dir), ["once"]);
}

#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
