//! Servers that stop, die and start again.

use super::{fresh, lines, message};
use crate::server_fixture::{Served, read};
use lifecycle::{Entry, Event, Seq, State, WriteStrength};
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use store::sqlite::SqliteStore;
use store::{Journal as _, JournalAppend};

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
    // Opening a pipe without a reader blocks for ever: the tool runs until the server dies.
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

/// A data directory as `kill -9` leaves it between an accept and the call: the journal of a real server up to the
/// dispatch, in a new directory. Accept and dispatch are one append, so no crash falls between these two entries.
async fn cut_behind_the_dispatch(from: &Path, to: &Path, execution: &str) {
    let (whole, cut) = (SqliteStore::open(from).unwrap(), SqliteStore::open(to).unwrap());
    let execution = execution.parse().unwrap();
    let mut entries = whole.read(execution, Seq(0), 1_000).await.unwrap();
    let is_accept = |entry: &Entry| matches!(entry.event, Event::CallAnswered { .. });
    let accept = entries.iter().position(is_accept).unwrap();
    let next = &entries[accept + 1].event;
    assert!(matches!(next, Event::CallDispatched { .. }), "{next:?}");
    entries.truncate(accept + 2);
    let mut state = State::default();
    entries.iter().for_each(|entry| state.apply(entry.at, &entry.event));
    let standing = state.standing().unwrap();
    let (expected, strength) = (Seq(0), WriteStrength::Synced);
    cut.append(JournalAppend { execution, expected, entries, standing, strength }).await.unwrap();
    tokio::join!(whole.close(), cut.close());
}

#[tokio::test]
async fn an_accepted_call_that_may_not_have_gone_out_is_asked_about_and_made_once() {
    let (dir, served) = fresh(&[]);
    let client = served.client("run");
    let code = "const done = await tools.demo.append({ line: 'once' }); return [done.appended]";
    let paused = client.execute(code);
    assert_eq!(client.resume(&paused.question(), "accept").result(), json!([true]));
    let execution = paused.execution();
    served.kill();
    let killed = dir.path().join("killed");
    cut_behind_the_dispatch(&dir.path().join("data"), &killed, &execution).await;

    let served = Served::start(&killed, &[]);
    let client = served.client("admin");
    let asked = client.get(&format!("/api/executions/{execution}?wait=20000"));
    let retry = json!({ "action": "accept", "content": { "choice": "retry" } }).to_string();
    assert_eq!(lines(&killed), [""; 0], "a person says whether it goes out again");
    let done = client.post(&format!("/api/executions/{}/resume", asked.question()), &retry);
    assert_eq!((done.result(), lines(&killed)), (json!([true]), vec!["once".to_owned()]));
}
