//! A server whose data directory lost data: it refuses to start, and continues after `airlock store recover` without
//! sending anything twice. These tests use the real binary.

use crate::server_fixture::{self, Served, airlock};
use serde_json::{Value, json};
use std::path::Path;

/// Runs a verb on a data directory. Returns its exit code and its output.
fn verb(words: &[&str], data_dir: &Path) -> (Option<i32>, String) {
    let output = airlock(words).arg("--data-dir").arg(data_dir).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Flips a bit in the middle of the log.
fn flip_log(data_dir: &Path, part: usize) {
    let path = data_dir.join("store.db-wal");
    let mut log = std::fs::read(&path).unwrap();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap();
    log[used * part / 8] ^= 1;
    std::fs::write(path, log).unwrap();
}

fn status_of(served: &Served, execution: &str) -> Value {
    served.client("admin").get(&format!("/api/executions/{execution}")).json()["status"].clone()
}

#[test]
fn a_damaged_directory_is_refused_or_unharmed_and_continues_by_the_word_of_a_person() {
    let parts = if std::env::var_os("AIRLOCK_SOAK").is_some() { 1..8 } else { 4..5 };
    for part in parts {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::with_model_answers(folder.path(), &[]);
        let client = served.client("run");
        let ended = client.execute("return 7").execution();
        let asked = client.execute("return await tools.demo.append({ line: 'x' })");
        let (paused, question) = (asked.execution(), asked.question());
        served.kill();
        flip_log(folder.path(), part);

        let (code, text) = verb(&["serve", "--listen", "127.0.0.1:0"], folder.path());
        assert_eq!(code, Some(5), "{text}");
        assert!(
            text.contains("airlock store check") && text.contains("airlock store recover"),
            "{text}"
        );
        let (code, text) = verb(&["store", "check"], folder.path());
        assert_eq!(code, Some(5), "{text}");
        assert!(text.contains("MISSING   store.db-wal"), "{text}");
        let (code, text) = verb(&["store", "recover"], folder.path());
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("Policies, tokens and settings are known"), "{text}");
        let is_lossless = !text.contains("LOST");
        assert_eq!(verb(&["store", "check"], folder.path()).0, Some(0));

        let served = Served::start(folder.path(), &["--answers", "model"]);
        let admin = served.client_with(server_fixture::ENVIRONMENT_SECRET);
        if !is_lossless {
            assert_eq!(served.stop(), Some(0));
            continue;
        }
        assert_eq!(status_of(&served, &ended), "completed");
        assert_eq!(status_of(&served, &paused), "parked");
        let refused = admin.resume(&question, "accept");
        assert_eq!(refused.status, 409, "{refused:?}");
        let continued = admin.post("/api/executions/continue", "{}");
        assert_eq!(continued.json(), json!({ "continued": 1 }));
        // The approval is accepted, and the call asks again, because it may already have run.
        let asked = admin.resume(&question, "accept").json();
        assert_eq!(asked["status"], "paused", "{asked}");
        assert!(asked.to_string().contains("may or may not have run"), "{asked}");
        assert_eq!(served.stop(), Some(0));
    }
}

/// Overwrites a text everywhere in the database.
fn overwrite(data_dir: &Path, text: &str) {
    let path = data_dir.join("store.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let found: Vec<_> = (0..bytes.len() - text.len())
        .filter(|at| bytes[*at..].starts_with(text.as_bytes()))
        .collect();
    assert!(!found.is_empty(), "the database holds the program");
    found.iter().for_each(|at| bytes[*at] ^= 1);
    std::fs::write(path, bytes).unwrap();
}

fn parked(admin: &server_fixture::Client) -> Vec<String> {
    let listed = admin.get("/api/executions?status=parked").json();
    let ids = listed["executions"].as_array().unwrap().iter();
    ids.map(|one| one["executionId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_execution_that_cannot_be_read_is_parked_and_named_and_the_others_continue() {
    for is_restored in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (data_dir, log) = (folder.path().join("data"), folder.path().join("log"));
        let served = Served::with_model_answers(&data_dir, &[]);
        let client = served.client("run");
        let asks = "return (await tools.demo.ask({ text: 'may I?' })).approved";
        let unreadable = client.execute(&format!("const text = 'overwritten-later'; {asks}"));
        let unreadable = unreadable.execution();
        let other = client.execute(asks);
        assert_eq!(served.stop(), Some(0));
        overwrite(&data_dir, "overwritten-later");
        if is_restored {
            std::fs::remove_file(data_dir.join("store.mark")).unwrap();
        }

        let stderr = std::fs::File::create(&log).unwrap();
        let served = Served::start_with(&data_dir, &["--answers", "model"], stderr.into(), None);
        let admin = served.client_with(server_fixture::ENVIRONMENT_SECRET);
        if is_restored {
            let text = std::fs::read_to_string(&log).unwrap();
            assert!(
                text.contains("the journals of 1 unfinished executions cannot be read"),
                "{text}"
            );
            assert!(text.contains(&unreadable), "{text}");
            let mut expected = vec![other.execution(), unreadable.clone()];
            expected.sort_unstable();
            let mut listed = parked(&admin);
            listed.sort_unstable();
            assert_eq!(listed, expected);
            let continued = admin.post("/api/executions/continue", "{}");
            assert_eq!(continued.json(), json!({ "continued": 1 }));
        } else {
            let cancel = format!("/api/executions/{unreadable}/cancel");
            assert_eq!(admin.post(&cancel, "").status, 500);
        }
        server_fixture::wait_for(|| (parked(&admin) == [unreadable.clone()]).then_some(()));
        let answered = admin.resume(&other.question(), "accept").json();
        assert_eq!(answered["status"], "completed", "{answered}");
        assert_eq!(served.stop(), Some(0));
    }
}
