//! Finished executions stay readable for a limited time and within a limited size, and can be replayed.

use crate::engine_fixture::{House, value};
use crate::server_fixture;
use engine::RetentionPolicy;
use lifecycle::{ExecutionId, ExecutionLimits, Rejection};
use std::time::Duration;

/// Waits until an execution is forgotten; a separate task removes it.
async fn forgotten(house: &House, execution: ExecutionId) {
    let gone = async {
        while house.engine.look_up(execution).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it is never forgotten");
    let refused = house.engine.look_up(execution).await.unwrap_err();
    assert!(matches!(
        refused,
        engine::Error::Rejected(Rejection::UnknownExecution(id)) if id == execution
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_forgotten_after_its_time_and_what_waits_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.retention = RetentionPolicy { age_ms_max: 3_600_000, ..RetentionPolicy::default() };
    })
    .await;
    let asks = "return (await tools.demo.ask({ text: 'x' })).text";
    let waits = house.submit(asks, ExecutionLimits::default()).await;
    let question = house.question(waits).await;
    let old = house.submit("return 1", ExecutionLimits::default()).await;
    house.engine.outcome(old).await.unwrap();
    clock.advance(Duration::from_secs(3_000));
    let young = house.submit("return 2", ExecutionLimits::default()).await;
    house.engine.outcome(young).await.unwrap();
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(waits).await.unwrap()), "\"x\"");
    clock.advance(Duration::from_secs(700));
    forgotten(&house, old).await;
    // It began before the forgotten one: the order is that of the ends.
    assert_eq!(value(&house.engine.outcome(waits).await.unwrap()), "\"x\"");
    assert_eq!(value(&house.engine.outcome(young).await.unwrap()), "2");
    clock.advance(Duration::from_secs(3_000));
    forgotten(&house, young).await;
    forgotten(&house, waits).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_its_size_the_journal_forgets_the_oldest_first() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.retention = RetentionPolicy { bytes_max: 1 << 20, ..RetentionPolicy::default() };
    })
    .await;
    let mut ended = vec![];
    for _ in 0..250 {
        clock.advance(Duration::from_millis(10));
        let big = house.submit("return 'x'.repeat(20_000)", ExecutionLimits::default()).await;
        house.engine.outcome(big).await.unwrap();
        ended.push(big);
    }
    clock.advance(Duration::from_secs(100));
    forgotten(&house, ended[0]).await;
    forgotten(&house, ended[150]).await;
    clock.advance(Duration::from_secs(100));
    let newest = house.engine.look_up(*ended.last().unwrap()).await;
    assert!(newest.is_ok(), "more was forgotten than needed: {newest:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_kept_for_its_caller_remembers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| config.sandbox.reuse = true).await;
    for _ in 0..5 {
        let code = "const before = globalThis.leak ?? null; globalThis.leak = 1; \
                    Array.prototype.leak = 1; return [before, typeof [].leak]";
        let outcome = house.run(code, ExecutionLimits::default()).await;
        assert_eq!(value(&outcome), r#"[null,"number"]"#);
    }
    assert_eq!(
        value(&house.run("return typeof [].leak", ExecutionLimits::default()).await),
        "\"undefined\""
    );
    house.close().await;
}

/// Runs the binary on a data directory. Returns its exit code and its output.
fn said(dir: &std::path::Path, words: &[&str]) -> (Option<i32>, String) {
    let output = server_fixture::airlock(words).arg("--data-dir").arg(dir).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn a_finished_execution_is_lived_through_again_without_calling_a_tool() {
    let dir = tempfile::tempdir().unwrap();
    let server = server_fixture::Served::start(dir.path(), &[]);
    let code = "console.log('began', Math.random() < 2); \
                const [a, b] = await Promise.all([tools.demo.append({ line: 'once' }), tools.demo.add({ a: 1, b: 2 })]); \
                emit({ kind: 'card' }); console.warn('half'); \
                await new Promise((done) => setTimeout(done, 5)); \
                return [a.appended, b, Date.now() > 0]";
    let client = server.client("admin");
    let asked = client.execute(code);
    let run = asked.execution();
    client.resume(&asked.question(), "accept");
    let whole =
        "[log] began true\n[warn] half\nemitted {\"kind\":\"card\"}\nreturned [true,3,true]";
    let online = said(dir.path(), &["executions", "replay", &run]);
    assert_eq!(online, (Some(0), whole.to_owned()));
    let journal = client.get(&format!("/api/executions/{run}/journal")).json();
    let other = server_fixture::Client { secret: "nobody".into(), ..client.clone() };
    assert_eq!(other.get(&format!("/api/executions/{run}/journal")).status, 401);
    server.kill();
    let appended = || std::fs::read_to_string(dir.path().join("demo-append.txt")).unwrap();
    assert_eq!(said(dir.path(), &["executions", "replay", &run]), (Some(0), whole.to_owned()));
    assert_eq!(appended(), "once\n", "a replay called a tool");

    let entries = journal["entries"].as_array().unwrap();
    let asked_at = entries.iter().position(|e| e["event"].get("call_asked").is_some()).unwrap() + 1;
    let (code, text) =
        said(dir.path(), &["executions", "replay", &run, "--until", &asked_at.to_string()]);
    let question = asked.question();
    let expected = format!(
        "[log] began true\ncall 1 waits for an answer: demo.append {{\"line\":\"once\"}}\n\
         {question} asks: Approve demo.append?\nstopped after event {asked_at}"
    );
    assert_eq!((code, text), (Some(0), expected));
    let until = asked_at.to_string();
    let (_, text) = said(dir.path(), &["executions", "replay", &run, "--until", &until, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&told["lastEvent"], &told["calls"][0]["stage"]),
        (&asked_at.into(), &"held".into())
    );
    assert_eq!(told["calls"][0]["args"]["line"], "once");
    assert_eq!(told["questions"][0]["id"], question.as_str());
    let (_, text) = said(dir.path(), &["executions", "replay", &run, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["result"], serde_json::json!([true, 3, true]), "{told}");
    assert_eq!(told["printed"][1], serde_json::json!({ "level": "warn", "line": "half" }));
    assert_eq!(told["emitted"], serde_json::json!([{ "kind": "card" }]));
    let unknown = "run_00000000-0000-0000-0000-000000000001";
    assert_eq!(said(dir.path(), &["executions", "replay", unknown]).0, Some(1));
}

#[test]
fn executions_that_failed_or_were_cancelled_can_be_replayed_too() {
    let dir = tempfile::tempdir().unwrap();
    let server = server_fixture::Served::start(dir.path(), &[]);
    let client = server.client("admin");
    let threw = client.execute("console.log(1); throw new RangeError('no')").execution();
    let broken = client.execute("return (").execution();
    let asked = client.execute("console.log(2); await tools.demo.ask({ text: 'x' })");
    let cancelled = asked.execution();
    let open = client.get(&format!("/api/executions/{cancelled}/journal"));
    assert_eq!(open.status, 409, "a program that is not over must not be foretold");
    client.post(&format!("/api/executions/{cancelled}/cancel"), "{}");
    server.kill();
    let replayed = |run: &str| said(dir.path(), &["executions", "replay", run]);
    assert_eq!(replayed(&threw), (Some(0), "[log] 1\nfailed: no".to_owned()));
    assert_eq!(replayed(&broken).0, Some(0));
    let (code, text) = replayed(&cancelled);
    assert_eq!(code, Some(0));
    assert!(
        text.starts_with("[log] 2\ncall 1 waits") && text.ends_with("did not end by itself"),
        "{text}"
    );
}

#[test]
fn two_executions_are_compared_by_what_they_did() {
    let dir = tempfile::tempdir().unwrap();
    let server = server_fixture::Served::start(dir.path(), &[]);
    let client = server.client("admin");
    let code = |n: u32| format!("await tools.demo.add({{ a: 1, b: {n} }}); return 7");
    let runs = [1, 1, 2].map(|n| client.execute(&code(n)).execution());
    assert_eq!(
        said(dir.path(), &["executions", "diff", &runs[0], &runs[1]]),
        (Some(0), String::new())
    );
    let (code, told) = said(dir.path(), &["executions", "diff", &runs[0], &runs[2]]);
    assert_eq!(code, Some(1));
    let signs: String = told.lines().filter_map(|line| line.chars().next()).collect();
    assert!(told.contains("\"b\":2") && signs.contains('-') && signs.contains('+'), "{told}");
    server.kill();
    assert_eq!(said(dir.path(), &["executions", "diff", &runs[0], &runs[1]]).0, Some(0));
}
