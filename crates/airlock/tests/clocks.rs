//! Clocks that are set while a server runs, between two servers, and between two boots.

use crate::engine_fixture::{House, value};
use engine::{ManualClock, clock_generation};
use futures_util::StreamExt as _;
use lifecycle::{Event, ExecutionId, ExecutionLimits, ExecutionPhase, Seq, Timestamp};
use std::path::Path;
use std::time::Duration;
use store::sqlite::SqliteStore;

const START: i64 = 1_700_000_000_000;

const DAY_MS: i64 = 24 * 3_600_000;

const SLEEPS: &str = "await new Promise((done) => setTimeout(done, 4_000)); return 'slept'";

/// Waits for a person and for a timer. It is paused, so only the list of executions shows when the timer is due.
const RACES: &str = "const late = new Promise((done) => setTimeout(done, 4_000, 'late'));
    return await Promise.race([late, tools.demo.ask({ text: 'in time?' })])";

async fn open(folder: &Path, clock: &ManualClock) -> House {
    House::open_noting(folder, clock, |config| config.warm_pause_ms = 0).await
}

async fn has_fired(house: &House, execution: ExecutionId) -> bool {
    let entries = house.engine.entries(execution, Seq(0), 1_000).await.unwrap();
    entries.iter().any(|entry| matches!(entry.event, Event::TimerFired { .. }))
}

/// Starts a program, lets a second pass, stops the server, changes the machine's clock, and starts another server.
/// Returns the milliseconds until the timer fires.
async fn slept_ms(source: &str, phase: ExecutionPhase, to_the_clock: fn(&ManualClock)) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let machine = ManualClock::starting_at(Timestamp(START));
    let house = open(folder.path(), &machine).await;
    let execution = house.submit(source, ExecutionLimits::default()).await;
    house.until(execution, |event| matches!(event, Event::TimerSet { .. })).await;
    if phase == ExecutionPhase::Paused {
        house.question(execution).await;
    }
    machine.advance(Duration::from_secs(1));
    house.close().await;

    to_the_clock(&machine);
    let clock = machine.next_process();
    let house = open(folder.path(), &clock).await;
    let mut passed_ms = 0;
    let mut entries = house.engine.follow(execution, Seq(0));
    loop {
        tokio::select! {
            entry = entries.next() => {
                if matches!(entry.unwrap().unwrap().event, Event::TimerFired { .. }) {
                    break;
                }
            }
            // Long enough for the server to notice a due timer. On a busy machine the result only becomes larger.
            () = tokio::time::sleep(Duration::from_millis(50)) => {
                assert!(passed_ms < 3_600_000, "it sleeps too long");
                let ms = if passed_ms < 10_000 { 500 } else { 60_000 };
                clock.advance(Duration::from_millis(ms));
                passed_ms += ms;
            }
        }
    }
    house.close().await;
    passed_ms
}

fn set_by(machine: &ManualClock, ms: i64) {
    let shown = machine.next_process();
    machine.set_wall(Timestamp(engine::Clock::Manual(shown).now().0 + ms));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_counts_elapsed_time_over_a_restart_whatever_the_clock_shows() {
    type Change = (&'static str, fn(&ManualClock));
    let changes: [Change; 4] = [
        ("not set", |_| {}),
        ("set back", |machine| set_by(machine, -3 * DAY_MS)),
        ("set forward", |machine| set_by(machine, 400 * DAY_MS)),
        ("set back and rebooted", |machine| {
            set_by(machine, -3 * DAY_MS);
            machine.reboot();
        }),
    ];
    for (name, change) in changes {
        for (source, phase) in [(SLEEPS, ExecutionPhase::Running), (RACES, ExecutionPhase::Paused)]
        {
            let slept_ms = slept_ms(source, phase, change).await;
            // The second before the stop is recorded, so that a server after a new boot counts it too.
            assert!((3_000..3_600_000).contains(&slept_ms), "{name}, {phase:?}: {slept_ms}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_while_a_server_runs_moves_no_timer() {
    let folder = tempfile::tempdir().unwrap();
    let machine = ManualClock::starting_at(Timestamp(START));
    let house = open(folder.path(), &machine).await;
    let execution = house.submit(SLEEPS, ExecutionLimits::default()).await;
    house.until(execution, |event| matches!(event, Event::TimerSet { .. })).await;
    machine.set_wall(Timestamp(START + 400 * DAY_MS));
    machine.advance(Duration::from_millis(3_999));
    machine.set_wall(Timestamp(START - 3 * DAY_MS));
    assert!(!has_fired(&house, execution).await);
    machine.advance(Duration::from_millis(1));
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "\"slept\"");
    house.close().await;
}

/// A folder with one finished execution, and its machine. A second server starts 400 days later by the wall clock.
async fn one_ended(folder: &Path) -> (ManualClock, ExecutionId) {
    let machine = ManualClock::starting_at(Timestamp(START));
    let house = open(folder, &machine).await;
    let execution = house.submit("return 1", ExecutionLimits::default()).await;
    house.engine.outcome(execution).await.unwrap();
    house.close().await;
    machine.set_wall(Timestamp(START + 400 * DAY_MS));
    (machine.next_process(), execution)
}

async fn until_forgotten(house: &House, execution: ExecutionId) {
    while !house.engine.was_forgotten(execution).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_forward_deletes_no_history_in_the_first_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, execution) = one_ended(folder.path()).await;
    let house = open(folder.path(), &clock).await;
    clock.advance(Duration::from_mins(30));
    assert!(!house.engine.was_forgotten(execution).await.unwrap());
    house.close().await;

    // A restart neither restarts the hour nor ends it.
    let clock = clock.next_process();
    let house = open(folder.path(), &clock).await;
    clock.advance(Duration::from_mins(29));
    assert!(!house.engine.was_forgotten(execution).await.unwrap());
    clock.advance(Duration::from_mins(2));
    until_forgotten(&house, execution).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_again_is_not_trusted_for_another_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, execution) = one_ended(folder.path()).await;
    let house = open(folder.path(), &clock).await;
    clock.advance(Duration::from_mins(50));
    clock.set_wall(Timestamp(START + 500 * DAY_MS));
    clock.advance(Duration::from_mins(20));
    let soon = Duration::from_millis(300);
    let forgotten = tokio::time::timeout(soon, until_forgotten(&house, execution)).await;
    assert!(forgotten.is_err(), "it was forgotten an hour after the first jump");
    clock.advance(Duration::from_mins(60));
    until_forgotten(&house, execution).await;
    house.close().await;
}

#[tokio::test]
async fn a_clock_that_goes_back_begins_a_generation_and_what_is_noted_is_written_seldom() {
    let folder = tempfile::tempdir().unwrap();
    let machine = ManualClock::starting_at(Timestamp(START));
    let noted = async || {
        let store = SqliteStore::open(folder.path()).unwrap();
        let generation = clock_generation(&store).await.unwrap();
        let version =
            store::RecordStore::get(&store, "clock", "this_server").await.unwrap().unwrap().version;
        store.close().await;
        (generation, version)
    };
    open(folder.path(), &machine).await.close().await;
    assert_eq!(noted().await, (0, 2), "at the start and at the end");
    set_by(&machine, -3 * DAY_MS);
    let clock = machine.next_process();
    let house = open(folder.path(), &clock).await;
    for _ in 0..60 {
        clock.advance(Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    house.close().await;
    let (generation, version) = noted().await;
    // In 20 minutes at most two records are written, besides those of the start and the end.
    assert!(generation == 1 && (4..=6).contains(&version), "{generation} {version}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_after_the_clock_was_set_shows_the_program_the_same_times() {
    let folder = tempfile::tempdir().unwrap();
    let machine = ManualClock::starting_at(Timestamp(START));
    let source = "const before = Date.now();
        await tools.demo.ask({ text: 'go on?' });
        return before";
    let house = open(folder.path(), &machine).await;
    let execution = house.submit(source, ExecutionLimits::default()).await;
    let question = house.question(execution).await;
    house.close().await;
    set_by(&machine, 400 * DAY_MS);
    let clock = machine.next_process();
    let house = open(folder.path(), &clock).await;
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), START.to_string());
    let last =
        house.engine.follow(execution, Seq(0)).map(|entry| entry.unwrap()).collect::<Vec<_>>();
    assert_eq!(last.await.last().unwrap().at.0, START + 400 * DAY_MS);
    house.close().await;
}
