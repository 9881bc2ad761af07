//! Quotas: what one caller may use at a time, who counts it, and what a refusal says.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

mod served;
mod support;

use engine::{Error, ManualClock, QuotaSettings};
use lifecycle::{Event, Limits, Outcome, QuotaKind, Quotas, Rejection, Timestamp};
use serde_json::{Value, json};
use served::Served;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::ListFilter;
use support::{House, me, value};

const ASKS: &str = "return (await tools.demo.ask({ text: 'may I?' })).approved";

const SLEEPS: &str = "await tools.demo.sleep({ ms: 600_000 })";

const PLENTY: Quotas = Quotas {
    running_max: 1_000,
    waiting_max: 1_000,
    cpu_seconds_per_hour_max: 1_000,
    held_runners_max: 1_000,
};

fn settings(usual: Quotas) -> QuotaSettings {
    QuotaSettings { usual, ..QuotaSettings::default() }
}

async fn submit(house: &House, source: &str) -> Result<lifecycle::ExecutionId, Rejection> {
    let convention = lifecycle::Convention::ExplicitReturn;
    let program = lifecycle::Program { source: source.to_owned(), convention };
    let start = engine::Start { program, caller: me(), limits: Limits::default() };
    match house.engine.submit(start).await {
        Ok(execution) => Ok(execution),
        Err(Error::Rejected(rejection)) => Err(rejection),
        Err(Error::Fault(fault)) => panic!("{fault}"),
    }
}

fn reached(quota: QuotaKind, max: u64) -> Rejection {
    Rejection::QuotaReached { quota, max }
}

/// Executions of `me` that are counted as running and as waiting.
fn counted(house: &House) -> (u64, u64) {
    let report = house.engine.quotas().report();
    let line = report.iter().find(|line| line.caller == Some(me()));
    line.map_or((0, 0), |line| (line.used[&QuotaKind::Running], line.used[&QuotaKind::Waiting]))
}

async fn until_counted(house: &House, expected: (u64, u64)) {
    while counted(house) != expected {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn n_listed(house: &House) -> usize {
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 100 };
    house.engine.list(filter).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_starts_for_one_place_one_is_admitted_and_the_others_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = Quotas { running_max: 1, ..PLENTY };
    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    let submitted = futures_util::future::join_all((0..20).map(|_| submit(&house, SLEEPS))).await;
    let (admitted, refused): (Vec<_>, Vec<_>) = submitted.into_iter().partition(Result::is_ok);
    assert_eq!(admitted.len(), 1);
    assert!(refused.iter().all(|one| *one == Err(reached(QuotaKind::Running, 1))), "{refused:?}");
    assert_eq!(n_listed(&house).await, 1);
    let report = house.engine.quotas().report();
    assert_eq!(report[0].refused, [(QuotaKind::Running, 19)].into());
    // The place is free as soon as the end is known.
    let running = admitted.into_iter().next().unwrap().unwrap();
    house.engine.cancel(running, me()).await.unwrap();
    for _ in 0..20 {
        let execution = submit(&house, "return 1").await.unwrap();
        assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "1");
    }
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_that_wait_are_counted_from_the_journal_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = Quotas { waiting_max: 2, ..PLENTY };
    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    let first = submit(&house, ASKS).await.unwrap();
    let second = submit(&house, ASKS).await.unwrap();
    let question = house.question(first).await;
    house.question(second).await;
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Waiting, 2)));
    house.close().await;

    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    assert_eq!(counted(&house), (0, 2));
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Waiting, 2)));
    // What waits is not refused its end.
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(first).await.unwrap()), "true");
    assert_eq!(counted(&house), (0, 1));
    submit(&house, "return 1").await.unwrap();
    house.engine.cancel(second, me()).await.unwrap();
    until_counted(&house, (0, 0)).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_its_timer_counts_as_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = Quotas { running_max: 1, ..PLENTY };
    let (house, clock) =
        House::wound(folder.path(), |config| config.quotas = settings(quotas)).await;
    let sleeps = "await new Promise((done) => setTimeout(done, 60_000)); return 1";
    let execution = submit(&house, sleeps).await.unwrap();
    until_counted(&house, (0, 1)).await;
    clock.advance(Duration::from_mins(1));
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "1");
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fails_loses_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| config.quotas = settings(PLENTY)).await;
    let execution = submit(&house, ASKS).await.unwrap();
    let question = house.question(execution).await;
    house.mischief.full.store(true, Ordering::SeqCst);
    let answer = lifecycle::Answer::Accept { content: None };
    house.engine.answer(question.id, answer, me()).await.unwrap_err();
    house.mischief.full.store(false, Ordering::SeqCst);
    until_counted(&house, (0, 1)).await;
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "true");
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_is_charged_and_a_restart_does_not_forget_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp(1_700_000_000_000));
    let quotas = Quotas { cpu_seconds_per_hour_max: 1, ..PLENTY };
    let open =
        || House::open_noting(folder.path(), &clock, |config| config.quotas = settings(quotas));
    let house = open().await;
    let limits = Limits { cpu_ms_max: 1_100, ..Limits::default() };
    let Outcome::Failed(_) = house.run("for (;;) {}", limits).await else { panic!("it ended") };
    let refused = || Err(reached(QuotaKind::CpuSeconds, 1));
    assert_eq!(submit(&house, "return 1").await, refused());
    house.close().await;

    let house = open().await;
    assert_eq!(submit(&house, "return 1").await, refused());
    clock.advance(Duration::from_mins(61));
    submit(&house, "return 1").await.unwrap();
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_does_not_use_the_places_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut quotas = settings(PLENTY);
    quotas.callers.insert(me(), Quotas { running_max: 1, ..PLENTY });
    let house = House::open(folder.path(), |config| config.quotas = quotas).await;
    let mine = submit(&house, SLEEPS).await.unwrap();
    house.until(mine, |event| matches!(event, Event::CallDispatched { .. })).await;
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Running, 1)));
    let embedders = house.engine.run("return 2").await.unwrap();
    assert_eq!(value(&house.engine.outcome(embedders).await.unwrap()), "2");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_refuses_in_its_own_words_and_metrics_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    let text = "[quotas]\nrunning_max = 1\nheld_runners_max = 1\n[quotas.callers.admin]\nrunning_max = 5\n";
    std::fs::write(&config, text).unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let served = Served::start(&folder.path().join("data"), &more);
    let agent = served.client("run");
    let sentence = "this caller has reached its quota running_max of 1 running executions; wait until one has ended, or \
                    cancel one";
    let program = json!({ "code": SLEEPS }).to_string();
    assert_eq!(agent.post("/api/executions?wait=0", &program).status, 202);

    let refused = agent.post("/api/executions?wait=0", &program);
    let body: Value = serde_json::from_str(&refused.body).unwrap();
    let expected = json!({
        "_tag": "QuotaReachedError",
        "code": "quota_reached",
        "message": format!("Nothing was started: {sentence}."),
    });
    assert_eq!((refused.status, refused.header("retry-after"), body), (429, Some("1"), expected));

    let session = agent.post("/sessions", &json!({ "code": "return 1" }).to_string());
    let body: Value = serde_json::from_str(&session.body).unwrap();
    let expected = json!({
        "code": "QUOTA_REACHED",
        "message": format!("The session was not started: {sentence}."),
    });
    assert_eq!((session.status, body), (429, expected));

    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "execute", "arguments": { "code": "return 1" } } });
    let accept =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let told = agent.send("POST", "/mcp", &accept, &call.to_string());
    assert!(told.body.contains(sentence), "{told:?}");

    let metrics = served.client("admin").get("/metrics").body;
    for line in [
        "airlock_caller_executions{caller=\"run\",state=\"running\"} 1",
        "airlock_quota_refusals_total{caller=\"run\",quota=\"running_max\"} 3",
    ] {
        assert!(metrics.lines().any(|seen| seen == line), "{line}\n{metrics}");
    }
    let another =
        served.client("admin").post("/api/executions", &json!({ "code": "return 3" }).to_string());
    assert_eq!(another.status, 200, "{another:?}");
}
