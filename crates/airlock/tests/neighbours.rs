//! Callers that share a server: programs that only wait give their runners to others, and lose nothing.

use crate::engine_fixture::{House, value};
use engine::CapacityUse;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use lifecycle::{
    CallerName, Event, ExecutionId, ExecutionLimits, ExecutionOutcome, ExecutionPhase, Json, Seq,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tools::function::FunctionSource;

/// Reached only if an event never happens.
const PATIENCE: Duration = Duration::from_secs(120);

const RUNNER_BYTES: u64 = 64 << 20;

fn busy() -> CallerName {
    CallerName("busy".into())
}

fn quiet() -> CallerName {
    CallerName("quiet".into())
}

fn n_sleepers() -> usize {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 400 } else { 40 }
}

fn sleeper(n: usize) -> String {
    format!(
        "const drawn = Math.random();
         const sum = await tools.demo.add({{ a: {n}, b: 1 }});
         await new Promise((wake) => setTimeout(wake, 20_000));
         return sum + (drawn < 1 ? 0 : 1)"
    )
}

async fn end(house: &House, execution: ExecutionId) -> ExecutionOutcome {
    tokio::time::timeout(PATIENCE, house.engine.outcome(execution)).await.unwrap().unwrap()
}

async fn quiet_end(house: &House) -> ExecutionOutcome {
    let ran = async {
        let execution = house.submit_for(quiet(), "return 1", ExecutionLimits::default()).await;
        house.engine.outcome(execution).await.unwrap()
    };
    tokio::time::timeout(PATIENCE, ran).await.expect("the quiet caller is not served")
}

async fn phase(house: &House, execution: ExecutionId) -> ExecutionPhase {
    house.engine.look_up(execution).await.unwrap().state.phase
}

fn n_failed_recoveries(entries: &[lifecycle::Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry.event, Event::RecoveryFailed { .. })).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sleepers_of_one_caller_do_not_delay_another_and_all_wake_with_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = 3 * RUNNER_BYTES;
    })
    .await;
    let sleepers: Vec<_> = (0..n_sleepers()).map(sleeper).collect();
    let submit = |source| house.submit_for(busy(), source, ExecutionLimits::default());
    let submitting = join_all(sleepers.iter().map(|source| submit(source)));
    let sleepers = tokio::time::timeout(PATIENCE, submitting).await.unwrap();
    assert_eq!(value(&quiet_end(&house).await), "1");
    for sleeper in &sleepers {
        house.until(*sleeper, |event| matches!(event, Event::TimerSet { .. })).await;
        assert_eq!(
            phase(&house, *sleeper).await,
            ExecutionPhase::Running,
            "the clock stands still"
        );
    }
    assert_eq!(value(&quiet_end(&house).await), "1");

    clock.advance(Duration::from_secs(20));
    for (n, sleeper) in sleepers.into_iter().enumerate() {
        assert_eq!(value(&end(&house, sleeper).await), (n + 1).to_string());
    }
    let used = house.engine.capacity_use();
    assert!(used.released as usize >= n_sleepers() - 3, "{used:?}");
    assert_eq!((used.replays, used.replays_failed), (used.released, 0), "{used:?}");
    assert_eq!(used.replay_cpu.keys().collect::<Vec<_>>(), ["busy"]);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_many_programs_at_work_does_not_delay_another() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = 2 * RUNNER_BYTES;
    })
    .await;
    let mut loops = vec![];
    for _ in 0..8 {
        loops.push(
            house
                .submit_for(busy(), "console.log('x'); for (;;) {}", ExecutionLimits::default())
                .await,
        );
    }
    for begun in &loops[..2] {
        house.until(*begun, |event| matches!(event, Event::Logged { .. })).await;
    }
    let waiting = house.submit_for(quiet(), "return 1", ExecutionLimits::default()).await;
    house.engine.cancel(loops[0], busy()).await.unwrap();
    assert_eq!(value(&end(&house, waiting).await), "1");
    for unfinished in &loops[1..] {
        assert_eq!(phase(&house, *unfinished).await, ExecutionPhase::Running);
        house.engine.cancel(*unfinished, busy()).await.unwrap();
    }
    assert_eq!(house.engine.capacity_use(), CapacityUse::default(), "none of them only waited");
    house.close().await;
}

/// A tool that counts its calls and returns when it is released.
fn bell(rung: &Arc<AtomicU32>, let_go: &Arc<Notify>) -> Arc<dyn tools::Source> {
    let (rung, let_go) = (Arc::clone(rung), Arc::clone(let_go));
    let source = FunctionSource::new("bell").tool("ring", json!({}), move |_: Json| {
        let (rung, let_go) = (Arc::clone(&rung), Arc::clone(&let_go));
        async move {
            let n_rung = rung.fetch_add(1, Ordering::SeqCst) + 1;
            let_go.notified().await;
            Ok(n_rung)
        }
    });
    Arc::new(source.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_a_tool_gives_its_runner_up_and_the_tool_is_called_once() {
    let folder = tempfile::tempdir().unwrap();
    let (rung, let_go) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let house = House::open_with(folder.path(), vec![bell(&rung, &let_go)], |config| {
        config.sandbox.memory_budget_bytes = RUNNER_BYTES;
    })
    .await;
    let source = "console.log('before'); const n = await tools.bell.ring({}); return [n, 'after']";
    let waiting = house.submit_for(busy(), source, ExecutionLimits::default()).await;
    house.until(waiting, |event| matches!(event, Event::CallDispatched { .. })).await;
    assert_eq!(value(&quiet_end(&house).await), "1");
    assert_eq!(house.engine.capacity_use().released, 1);
    let_go.notify_one();
    assert_eq!(value(&end(&house, waiting).await), r#"[1,"after"]"#);
    assert_eq!(rung.load(Ordering::SeqCst), 1);
    let printed = house.engine.entries(waiting, Seq(0), 100).await.unwrap();
    let printed = printed.iter().filter(|entry| matches!(entry.event, Event::Logged { .. }));
    assert_eq!(printed.count(), 1);
    let used = house.engine.capacity_use();
    assert_eq!((used.released, used.replays, used.replays_failed), (1, 1, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_freed_capacity_is_charged_to_the_caller_and_not_to_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = RUNNER_BYTES;
    })
    .await;
    // Some milliseconds of work, and almost none after the wait.
    let source = "let sum = 0; for (let n = 0; n < 300_000; n++) sum += n % 7;
        await new Promise((wake) => setTimeout(wake, 20_000)); return sum";
    let limits = ExecutionLimits { cpu_ms_max: 2_000, ..ExecutionLimits::default() };
    let sleeping = house.submit_for(busy(), source, limits).await;
    house.until(sleeping, |event| matches!(event, Event::TimerSet { .. })).await;
    assert_eq!(value(&quiet_end(&house).await), "1");
    assert_eq!(house.engine.capacity_use().released, 1);
    let worked = house.engine.quotas().cpu_used(&busy());
    assert!(worked > Duration::ZERO);
    clock.advance(Duration::from_secs(20));
    end(&house, sleeping).await;
    let replayed = house.engine.capacity_use().replay_cpu["busy"];
    let charged = house.engine.quotas().cpu_used(&busy());
    // The account counts whole microseconds.
    assert!(
        charged + Duration::from_micros(3) >= worked + replayed,
        "{worked:?} {replayed:?} {charged:?}"
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_timer_is_due_soon_keeps_its_runner() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = RUNNER_BYTES;
    })
    .await;
    let source = "await new Promise((wake) => setTimeout(wake, 1_000)); return 'awake'";
    let soon = house.submit_for(busy(), source, ExecutionLimits::default()).await;
    house.until(soon, |event| matches!(event, Event::TimerSet { .. })).await;
    let mut quiet = Box::pin(quiet_end(&house));
    // The quiet program waits for the runner until the timer has fired.
    while house.engine.load().waiting == 0 {
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut quiet).await.is_err());
    }
    clock.advance(Duration::from_secs(1));
    assert_eq!(value(&quiet.await), "1");
    assert_eq!(value(&end(&house, soon).await), "\"awake\"");
    assert_eq!(house.engine.capacity_use(), CapacityUse::default());
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn active_time_passes_for_a_sleeper_without_a_runner() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = RUNNER_BYTES;
    })
    .await;
    let limits = ExecutionLimits { active_ms_max: 10_000, ..ExecutionLimits::default() };
    let sleeping = house.submit_for(busy(), &sleeper(1), limits).await;
    house.until(sleeping, |event| matches!(event, Event::TimerSet { .. })).await;
    assert_eq!(value(&quiet_end(&house).await), "1");
    assert_eq!(house.engine.capacity_use().released, 1);
    clock.advance(Duration::from_secs(11));
    let ExecutionOutcome::Failed(failure) = end(&house, sleeping).await else {
        panic!("it did not end")
    };
    assert_eq!(failure.message, "The program ran longer than 10000 ms.");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_program_that_cannot_be_replayed_is_parked_and_counted_and_does_not_end() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = RUNNER_BYTES;
    })
    .await;
    let source = "const sum = await tools.demo.add({ a: 1, b: 2 });
        await tools.demo.echo({ message: `${sum}` });
        await new Promise((wake) => setTimeout(wake, 20_000)); return sum";
    let sleeping = house.submit_for(busy(), source, ExecutionLimits::default()).await;
    house.until(sleeping, |event| matches!(event, Event::TimerSet { .. })).await;
    assert_eq!(value(&quiet_end(&house).await), "1");
    house.mischief.altered.store(true, Ordering::SeqCst);
    clock.advance(Duration::from_secs(20));
    house.until(sleeping, |event| matches!(event, Event::Parked)).await;
    assert_eq!(phase(&house, sleeping).await, ExecutionPhase::Parked);
    assert_eq!(house.engine.capacity_use().replays_failed, 3);
    house.engine.cancel(sleeping, busy()).await.unwrap();
    house.close().await;
}

/// All processes below the zygote of an engine.
fn below_zygote(house: &House) -> Vec<i64> {
    let parent_of = |stat: &str| stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok();
    let mut found: Vec<i64> = vec![];
    let mut open = vec![i64::from(house.engine.sandbox().zygote_pid().unwrap())];
    while let Some(pid) = open.pop() {
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(child) = process.file_name().to_string_lossy().parse::<i64>() else { continue };
            let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            if parent_of(&stat) == Some(pid) {
                open.push(child);
                found.push(child);
            }
        }
    }
    found
}

/// Kills the only runner of an engine from outside, as soon as there is one. `idle` are the processes that exist
/// without runners.
#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
async fn kill_runner(house: &House, idle: &[i64]) {
    let runner = loop {
        match below_zygote(house).into_iter().find(|pid| !idle.contains(pid)) {
            Some(runner) => break runner,
            None => tokio::task::yield_now().await,
        }
    };
    let killed = std::process::Command::new("kill").args(["-9", &runner.to_string()]).status();
    assert!(killed.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_killed_from_outside_is_replaced_and_the_third_time_its_program_is_parked()
{
    let folder = tempfile::tempdir().unwrap();
    let (rung, let_go) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let house = House::open_with(folder.path(), vec![bell(&rung, &let_go)], |config| {
        config.sandbox.warm_runners = 0;
    })
    .await;
    let idle = below_zygote(&house);
    let source = "const sum = await tools.demo.add({ a: 1, b: 2 });
        return [sum, await tools.bell.ring({})]";
    for (n_kills, expected) in [(1, Some("[3,1]")), (3, None)] {
        rung.store(0, Ordering::SeqCst);
        let execution = house.submit_for(busy(), source, ExecutionLimits::default()).await;
        let waits =
            |event: &Event| matches!(event, Event::CallDispatched { call, .. } if call.0 == 2);
        house.until(execution, waits).await;
        let mut entries = house.engine.follow(execution, Seq(0));
        for _ in 0..n_kills {
            kill_runner(&house, &idle).await;
            while !matches!(
                entries.next().await.unwrap().unwrap().event,
                Event::RecoveryFailed { .. }
            ) {}
        }
        let_go.notify_one();
        match expected {
            Some(expected) => assert_eq!(value(&end(&house, execution).await), expected),
            None => {
                house.until(execution, |event| matches!(event, Event::Parked)).await;
                assert_eq!(phase(&house, execution).await, ExecutionPhase::Parked);
                house.engine.cancel(execution, busy()).await.unwrap();
            }
        }
        let entries = house.engine.entries(execution, Seq(0), 100).await.unwrap();
        assert_eq!(n_failed_recoveries(&entries), n_kills);
        assert_eq!(rung.load(Ordering::SeqCst), 1, "the call is made once");
    }
    house.close().await;
}
