//! The engine's guarantees under failures: disks, servers, replays, and slow people.

use crate::engine_fixture::journal::Mischief;
use crate::engine_fixture::{House, me, value};
use engine::Error;
use lifecycle::{
    Answer, CallOutcome, Event, ExecutionLimits, ExecutionOutcome, ExecutionPhase, Json,
    QuestionKind, Rejection,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tools::function::FunctionSource;

const ASKS: &str = "const sum = await tools.demo.add({ a: 1, b: 2 });
    const said = await tools.demo.ask({ text: `is it ${sum}?` });
    return said.approved ? sum : -1";

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_a_program_at_once_and_says_what_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let execution =
        house.submit("await tools.demo.sleep({ ms: 60000 })", ExecutionLimits::default()).await;
    house.until(execution, |event| matches!(event, Event::CallDispatched { .. })).await;
    house.engine.cancel(execution, me()).await.unwrap();
    assert_eq!(
        house.engine.outcome(execution).await.unwrap(),
        ExecutionOutcome::Cancelled { by: me(), reason: None }
    );
    house
        .until(execution, |event| {
            matches!(event, Event::CallSettled { outcome: CallOutcome::Unknown, .. })
        })
        .await;
    let again = house.engine.cancel(execution, me()).await;
    assert!(matches!(again, Err(Error::Rejected(Rejection::AlreadyFinished))), "{again:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_program_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    for source in
        ["for (;;) {}", "for (;;) console.log('x')", "[].sort.call({ length: 2 ** 53 - 1 })"]
    {
        let execution = house.submit(source, ExecutionLimits::default()).await;
        house.engine.cancel(execution, me()).await.unwrap();
        let outcome = house.engine.outcome(execution).await.unwrap();
        assert_eq!(outcome, ExecutionOutcome::Cancelled { by: me(), reason: None }, "{source}");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_when_the_server_stopped_goes_on_when_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source = "const sum = await tools.demo.add({ a: 1, b: 2 });
        const [slept, late] = await Promise.all([
            tools.demo.sleep({ ms: 300 }), new Promise((done) => setTimeout(() => done('late'), 300))]);
        return [sum, slept, late]";
    let execution = house.submit(source, ExecutionLimits::default()).await;
    house.until(execution, |event| matches!(event, Event::TimerSet { .. })).await;
    house.close().await;

    let house = House::open(folder.path(), |_| {}).await;
    let outcome = house.engine.outcome(execution).await.unwrap();
    assert_eq!(value(&outcome), r#"[3,{"slept":300},"late"]"#);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_and_work_goes_on_when_it_is_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let execution = house.submit(ASKS, ExecutionLimits::default()).await;
    let question = house.question(execution).await;
    house.mischief.full.store(true, Ordering::SeqCst);
    let answer = Answer::Accept { content: None };
    let refused = house.engine.answer_question(question.id, answer, me()).await;
    let Err(Error::Fault(fault)) = refused else { panic!("{refused:?}") };
    assert!(fault.to_string().contains("the disk is full"), "{fault}");
    house.mischief.full.store(false, Ordering::SeqCst);
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "3");
    house.close().await;
}

/// A tool that must not be called twice, and whose call waits until it is released.
fn bell(rung: &Arc<AtomicU32>, let_go: &Arc<Notify>) -> FunctionSource {
    let (rung, let_go) = (Arc::clone(rung), Arc::clone(let_go));
    FunctionSource::new("bell")
        .tool("ring", json!({}), move |_: Json| {
            let (rung, let_go) = (Arc::clone(&rung), Arc::clone(&let_go));
            async move {
                let n_rung = rung.fetch_add(1, Ordering::SeqCst) + 1;
                let_go.notified().await;
                Ok(n_rung)
            }
        })
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_result_was_lost_becomes_a_question() {
    for (content, expected) in [
        (r#"{"choice":"supply","result":7}"#, "7"),
        (r#"{"choice":"retry"}"#, "2"),
        (r#"{"choice":"fail"}"#, r#""given up""#),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (rung, let_go) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let sources: Vec<Arc<dyn tools::Source>> = vec![Arc::new(bell(&rung, &let_go))];
        let house = House::open_with(folder.path(), sources, |_| {}).await;
        let source = "return await tools.bell.ring({}).catch(() => 'given up')";
        let execution = house.submit(source, ExecutionLimits::default()).await;
        house.until(execution, |event| matches!(event, Event::CallDispatched { .. })).await;
        house.mischief.full.store(true, Ordering::SeqCst);
        let_go.notify_one();
        // Its result cannot be written, so the journal still records the call as under way.
        while house.engine.n_live() > 0 {
            tokio::task::yield_now().await;
        }
        house.mischief.full.store(false, Ordering::SeqCst);

        let question = house.question(execution).await;
        assert_eq!(question.kind, QuestionKind::InDoubt);
        assert_eq!(rung.load(Ordering::SeqCst), 1, "nobody has said that it may ring again");
        let bare =
            house.engine.answer_question(question.id, Answer::Accept { content: None }, me()).await;
        assert!(matches!(bare, Err(Error::Rejected(Rejection::BadAnswer(_)))), "{bare:?}");
        let_go.notify_one();
        let answer = Answer::Accept { content: Some(Json::parse(content.into()).unwrap()) };
        house.engine.answer_question(question.id, answer, me()).await.unwrap();
        assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), expected);
        house.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_calls_nothing_is_written_once_and_one_that_takes_long_is_there_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |_| {}).await;
    let before = house.mischief.n_appends.load(Ordering::SeqCst);
    assert_eq!(value(&house.run("return 1", ExecutionLimits::default()).await), "1");
    assert_eq!(house.mischief.n_appends.load(Ordering::SeqCst), before + 1);
    // The program never reports anything, not even that it began.
    let engine = house.engine.clone();
    let mut submitting = std::pin::pin!(engine.run("[].sort.call({ length: 2 ** 53 - 1 })"));
    let silent = loop {
        tokio::select! {
            submitted = &mut submitting => break submitted.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => clock.advance(Duration::from_millis(1)),
        }
    };
    assert_eq!(house.engine.look_up(silent).await.unwrap().state.phase, ExecutionPhase::Running);
    house.engine.cancel(silent, me()).await.unwrap();
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_prints_is_there_although_nothing_else_happens() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let printing = house.submit("console.log('here'); for (;;);", ExecutionLimits::default()).await;
    house.until(printing, |event| matches!(event, Event::Logged { .. })).await;
    house.engine.cancel(printing, me()).await.unwrap();
    house.close().await;
}

/// The nice value of each runner of an engine.
fn stepped_back(house: &House) -> Vec<i64> {
    let zygote = i64::from(house.engine.sandbox().zygote_pid().unwrap());
    let mut known = vec![];
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<i64>() else { continue };
        let Ok(told) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        // The name may contain anything, so parse after it: the parent is the second field, the nice value the
        // seventeenth.
        let words: Vec<&str> = told.rsplit_once(')').unwrap().1.split_whitespace().collect();
        known.push((pid, words[1].parse::<i64>().unwrap(), words[16].parse::<i64>().unwrap()));
    }
    let parent = |of: i64| known.iter().find(|(pid, ..)| *pid == of).map(|(_, parent, _)| *parent);
    let is_ours =
        |pid: i64| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|it| it == zygote);
    known.iter().filter(|(pid, ..)| is_ours(*pid)).map(|(.., nice)| *nice).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_busy_for_long_lets_others_go_first_and_one_that_waits_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |_| {}).await;
    let waits = "await tools.demo.sleep({ ms: 600_000 })";
    let waits = house.submit(waits, ExecutionLimits::default()).await;
    house.until(waits, |event| matches!(event, Event::CallDispatched { .. })).await;
    let busy = house.submit("console.log('x'); for (;;) {}", ExecutionLimits::default()).await;
    house.until(busy, |event| matches!(event, Event::Logged { .. })).await;
    let n_back = || stepped_back(&house).into_iter().filter(|nice| *nice == 5).count();
    assert_eq!(n_back(), 0, "it has only begun");
    while n_back() == 0 {
        clock.advance(Duration::from_millis(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(n_back(), 1, "one is busy and the other is not");
    for execution in [waits, busy] {
        house.engine.cancel(execution, me()).await.unwrap();
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_gives_its_runner_back_after_a_while_and_is_replayed_when_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (house, clock) = House::wound(folder.path(), |_| {}).await;
    let execution = house.submit(ASKS, ExecutionLimits::default()).await;
    let question = house.question(execution).await;
    assert_eq!(house.engine.n_live(), 1, "warm: an early answer finds its program ready");
    while house.engine.n_live() > 0 {
        clock.advance(Duration::from_secs(11));
        tokio::task::yield_now().await;
    }
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "3");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_people_makes_room_for_one_that_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| {
        config.sandbox.memory_budget_bytes = 64 << 20;
        config.warm_pause_ms = 3_600_000;
    })
    .await;
    let first = house.submit(ASKS, ExecutionLimits::default()).await;
    let question = house.question(first).await;
    assert_eq!(value(&house.run("return 1 + 1", ExecutionLimits::default()).await), "2");
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(first).await.unwrap()), "3");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_refused_before_it_is_lost_to_a_replay_that_takes_another_path() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let execution = house.submit(ASKS, ExecutionLimits::default()).await;
    let question = house.question(execution).await;
    house.close().await;

    let house = House::open(folder.path(), |_| {}).await;
    house.mischief.twisted.store(true, Ordering::SeqCst);
    let refused = house.engine.answer_question(question.id, Answer::Decline, me()).await;
    let Err(Error::Rejected(Rejection::Diverged { what })) = refused else { panic!("{refused:?}") };
    assert_eq!(what, "call 1 (demo.add)");
    house.mischief.twisted.store(false, Ordering::SeqCst);
    while house.engine.n_live() > 0 {
        tokio::task::yield_now().await;
    }
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "3");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_brought_back_three_times_is_parked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source = "await tools.demo.add({ a: 1, b: 2 }); await tools.demo.sleep({ ms: 60000 })";
    let execution = house.submit(source, ExecutionLimits::default()).await;
    let sleeps = |event: &Event| matches!(event, Event::CallDispatched { call, .. } if call.0 == 2);
    house.until(execution, sleeps).await;
    house.close().await;

    let twisted = Mischief { twisted: true.into(), ..Mischief::default() };
    let house = House::open_mischievous(folder.path(), vec![], twisted, |_| {}).await;
    house.until(execution, |event| matches!(event, Event::Parked)).await;
    let state = house.engine.look_up(execution).await.unwrap().state;
    assert_eq!((state.phase, state.recoveries_failed), (ExecutionPhase::Parked, 3));
    house.engine.cancel(execution, me()).await.unwrap();
    assert_eq!(
        house.engine.outcome(execution).await.unwrap(),
        ExecutionOutcome::Cancelled { by: me(), reason: None }
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_program_takes_no_answer_and_says_what_can_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source =
        "const asked = tools.demo.ask({ text: 'well?' }); await tools.demo.sleep({ ms: 60000 })";
    let execution = house.submit(source, ExecutionLimits::default()).await;
    let sleeps = |event: &Event| matches!(event, Event::CallDispatched { call, .. } if call.0 == 2);
    house.until(execution, sleeps).await;
    house.close().await;

    let twisted = Mischief { twisted: true.into(), ..Mischief::default() };
    let house = House::open_mischievous(folder.path(), vec![], twisted, |_| {}).await;
    house.until(execution, |event| matches!(event, Event::Parked)).await;
    let state = house.engine.look_up(execution).await.unwrap().state;
    let question = state.open_questions().next().unwrap().id;
    let refused = house.engine.answer_question(question, Answer::Decline, me()).await;
    assert!(matches!(refused, Err(Error::Rejected(Rejection::NotRestored(_)))), "{refused:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kept_runner_used_for_earlier_programs_is_not_held_against_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| config.sandbox.reuse = true).await;
    let limits = ExecutionLimits { cpu_ms_max: 300, ..ExecutionLimits::default() };
    // Together they use more than one may, but each one is short enough for its runner to be reused.
    let busy = "let n = 0; while (n < 2_500_000) n++; return n";
    for _ in 0..25 {
        assert_eq!(value(&house.run(busy, limits).await), "2500000");
    }
    // Long enough for the watchdog to check the clock.
    let waits = "await new Promise((wake) => setTimeout(wake, 900)); return 'fine'";
    assert_eq!(value(&house.run(waits, limits).await), "\"fine\"");
    house.close().await;
}
