//! What is over stays readable for a while and within a size, and can be lived through again.
#![expect(clippy::unwrap_used, reason = "a test stops when it cannot go on")]

mod support;

use engine::{Clock, ManualClock, Retention};
use lifecycle::{ExecutionId, Limits, Rejection, Timestamp};
use std::time::Duration;
use support::{House, value};

/// Waits until an execution is forgotten; the sweep is a task of its own.
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
    let clock = ManualClock::at(Timestamp(1_700_000_000_000));
    let house = House::open(folder.path(), |config| {
        config.clock = Clock::Manual(clock.clone());
        config.retention = Retention { age_ms_max: 3_600_000, ..Retention::default() };
    })
    .await;
    let asks = "return (await tools.demo.ask({ text: 'x' })).text";
    let waits = house.submit(asks, Limits::default()).await;
    let question = house.question(waits).await;
    let old = house.submit("return 1", Limits::default()).await;
    house.engine.outcome(old).await.unwrap();
    clock.advance(Duration::from_secs(3_000));
    let young = house.submit("return 2", Limits::default()).await;
    house.engine.outcome(young).await.unwrap();
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(waits).await.unwrap()), "\"x\"");
    clock.advance(Duration::from_secs(700));
    forgotten(&house, old).await;
    // It began before the forgotten one: what counts is its end.
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
    let clock = ManualClock::at(Timestamp(1_700_000_000_000));
    let house = House::open(folder.path(), |config| {
        config.clock = Clock::Manual(clock.clone());
        config.retention = Retention { bytes_max: 1 << 20, ..Retention::default() };
    })
    .await;
    let mut ended = vec![];
    for _ in 0..250 {
        clock.advance(Duration::from_millis(10));
        let big = house.submit("return 'x'.repeat(20_000)", Limits::default()).await;
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
        let outcome = house.run(code, Limits::default()).await;
        assert_eq!(value(&outcome), r#"[null,"number"]"#);
    }
    assert_eq!(
        value(&house.run("return typeof [].leak", Limits::default()).await),
        "\"undefined\""
    );
    house.close().await;
}
