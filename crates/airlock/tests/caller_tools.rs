//! Tools that the caller runs: a call stays outstanding under one id until the first result, also if the server dies
//! meanwhile.

use crate::engine_fixture::{House, me, value};
use engine::{Clock, Error, ExecutionStart, ManualClock};
use lifecycle::{
    ActiveClock, CallId, CallOutcome, CallRules, CallerRuns, Event, ExecutionId, ExecutionLimits,
    ExecutionOutcome, ExecutionPhase, Failure, FailureCode, Json, LimitKind, Program, Rejection,
    Timestamp, ToolPath, ValueConvention,
};
use std::time::Duration;

const CALLS: &str = "const got = await callTool('users:list', { limit: 2 }); return [got, await callTool('sum', { a: 1, b: 2 })]";

fn id(n: u128) -> ExecutionId {
    ExecutionId::from_uuid(uuid::Uuid::from_u128(n))
}

fn terms() -> CallRules {
    let path = |text| ToolPath::parse(text).unwrap();
    CallRules {
        caller_runs: CallerRuns::Anything,
        codes: lifecycle::CodeDialect::Journal,
        aliases: [(path("sum"), path("demo.add"))].into(),
        note: Some(Json::parse("{\"door\":1}".into()).unwrap()),
    }
}

async fn start(
    house: &House,
    n: u128,
    source: &str,
    limits: ExecutionLimits,
) -> Result<ExecutionId, Error> {
    let program = Program { source: source.into(), convention: ValueConvention::ExplicitReturn };
    house.engine.submit_as(id(n), ExecutionStart { program, caller: me(), limits }, terms()).await
}

fn returned(text: &str) -> CallOutcome {
    CallOutcome::Returned { value: Some(Json::parse(text.into()).unwrap()) }
}

async fn at_rest(house: &House, execution: ExecutionId) {
    house.until(execution, |event| matches!(event, Event::Paused { .. })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_overtakes_the_start_ends_it_as_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    for n in 1..=20 {
        let starting = start(&house, n, CALLS, ExecutionLimits::default());
        let (started, cancelled) = tokio::join!(starting, house.engine.cancel(id(n), me()));
        assert!(started.is_ok() && cancelled.is_ok(), "{started:?} {cancelled:?}");
        let outcome = house.engine.outcome(id(n)).await.unwrap();
        assert!(matches!(outcome, ExecutionOutcome::Cancelled { .. }), "{outcome:?}");
    }
    // An execution that does not exist yet cannot be cancelled, and can still be started.
    for n in 21..=40 {
        let cancelling = house.engine.cancel(id(n), me());
        let (cancelled, started) =
            tokio::join!(cancelling, start(&house, n, CALLS, ExecutionLimits::default()));
        assert!(started.is_ok(), "{started:?}");
        if cancelled.is_err() {
            house.engine.cancel(id(n), me()).await.unwrap();
        }
        let outcome = house.engine.outcome(id(n)).await.unwrap();
        assert!(matches!(outcome, ExecutionOutcome::Cancelled { .. }), "{outcome:?}");
    }
    let again = start(&house, 1, CALLS, ExecutionLimits::default()).await;
    assert!(matches!(again, Err(Error::Rejected(Rejection::AlreadyStarted))), "{again:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_result_counts_and_an_alias_finds_its_tool() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let execution = start(&house, 1, CALLS, ExecutionLimits::default()).await.unwrap();
    at_rest(&house, execution).await;
    house.engine.settle_call(execution, CallId(1), returned("[1]")).await.unwrap();
    let again = house.engine.settle_call(execution, CallId(1), returned("[2]")).await;
    assert!(matches!(again, Err(Error::Rejected(_))), "{again:?}");
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "[[1],3]");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_server_says_how_its_own_tools_ended() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source = "return await tools.demo.sleep({ ms: 60000 })";
    let execution = start(&house, 1, source, ExecutionLimits::default()).await.unwrap();
    house.until(execution, |event| matches!(event, Event::CallDispatched { .. })).await;
    let forged = house.engine.settle_call(execution, CallId(1), returned("1")).await;
    assert!(
        matches!(forged, Err(Error::Rejected(Rejection::NotOutstanding(CallId(1))))),
        "{forged:?}"
    );
    house.engine.cancel(execution, me()).await.unwrap();
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_serves_once() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let both = tokio::join!(
        start(&house, 1, "return 1", ExecutionLimits::default()),
        start(&house, 1, "return 2", ExecutionLimits::default())
    );
    let n_started = [&both.0, &both.1].into_iter().filter(|started| started.is_ok()).count();
    assert_eq!(n_started, 1, "{both:?}");
    house.engine.outcome(id(1)).await.unwrap();
    let again = start(&house, 1, "return 3", ExecutionLimits::default()).await;
    assert!(matches!(again, Err(Error::Rejected(Rejection::AlreadyStarted))), "{again:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_caller_through_a_restart_without_a_runner() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let execution = start(&house, 1, CALLS, ExecutionLimits::default()).await.unwrap();
    at_rest(&house, execution).await;
    house.close().await;

    let house = House::open(folder.path(), |_| {}).await;
    assert_eq!(house.engine.n_live(), 0, "what waits for its caller costs nothing");
    house.engine.settle_call(execution, CallId(1), returned("\"kept\"")).await.unwrap();
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), r#"["kept",3]"#);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_answer_in_time_fails_its_call_also_without_a_runner() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
    let wound = Clock::Manual(clock.clone());
    let house = House::open(folder.path(), |config| config.clock = wound).await;
    let source = "try { await callTool('slow') } catch (e) { return [e.code, e.message] }";
    let limits = ExecutionLimits { call_ms_max: 60_000, ..ExecutionLimits::default() };
    let execution = start(&house, 1, source, limits).await.unwrap();
    at_rest(&house, execution).await;
    clock.advance(Duration::from_secs(20));
    while house.engine.n_live() > 0 {
        tokio::task::yield_now().await; // the runner's warm pause is over
    }
    clock.advance(Duration::from_secs(50));
    let outcome = house.engine.outcome(execution).await.unwrap();
    assert_eq!(value(&outcome), r#"["timeout","Tool \"slow\" did not answer within 60000 ms."]"#);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_and_active_time_run_out_while_the_caller_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
    let wound = Clock::Manual(clock.clone());
    let house = House::open(folder.path(), |config| config.clock = wound).await;
    let active = ExecutionLimits {
        active_ms_max: 30_000,
        active_clock: ActiveClock::StopsForQuestions,
        ..ExecutionLimits::default()
    };
    let idle = ExecutionLimits { idle_ms_max: 30_000, ..ExecutionLimits::default() };
    for (n, limits, limit) in [(1, active, LimitKind::Active), (2, idle, LimitKind::Idle)] {
        let execution = start(&house, n, "await callTool('slow')", limits).await.unwrap();
        at_rest(&house, execution).await;
        clock.advance(Duration::from_secs(31));
        let reached = move |event: &Event| *event == Event::LimitReached { limit };
        house.until(execution, reached).await;
        let outcome = house.engine.outcome(execution).await.unwrap();
        assert!(matches!(outcome, ExecutionOutcome::Failed(_)), "{outcome:?}");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_own_code_reaches_the_program_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source =
        "try { await callTool('a') } catch (e) { console.log(e.code) } await callTool('b')";
    let execution = start(&house, 1, source, ExecutionLimits::default()).await.unwrap();
    let details = Json::parse(r#"{"code":"E_NOPE"}"#.into()).ok();
    let failure = Failure { details, ..Failure::new(FailureCode::Tool, "nope") };
    for call in [1, 2] {
        let is_out = move |event: &Event| matches!(event, Event::CallDispatched { call: n, .. } if n.0 == call);
        house.until(execution, is_out).await;
        let outcome = CallOutcome::Failed(failure.clone());
        house.engine.settle_call(execution, CallId(call), outcome).await.unwrap();
    }
    let ExecutionOutcome::Failed(seen) = house.engine.outcome(execution).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (seen.code, seen.details, seen.message),
        (failure.code, failure.details, failure.message)
    );
    let printed = |event: &Event| matches!(event, Event::Logged { line, .. } if line == "E_NOPE");
    house.until(execution, printed).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let source = "let n = 0; for (let i = 0; i < 1000000; i++) n += i; return n";
    let execution = start(&house, 1, source, ExecutionLimits::default()).await.unwrap();
    let about = |event: &Event| matches!(event, Event::Finished { iterations, .. } if (900_000..1_100_000).contains(iterations));
    house.until(execution, about).await;
    assert_eq!(
        house.engine.look_up(execution).await.unwrap().state.phase,
        ExecutionPhase::Finished
    );
    house.close().await;
}
