//! Executors: when a runner is started, retained and released.

use crate::played::{Actor, stage};
use client::execbox::{
    ErrorCode, ExecboxFailure, ExecboxProgram, InProcess, OneShot, Options, PoolSize,
    PooledRunners, RunnerTransport,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::DuplexStream;

/// Counts the runners that were started and those that are alive.
#[derive(Default)]
struct Census {
    started: AtomicUsize,
    alive: AtomicUsize,
}

impl Census {
    fn count(&self) -> (usize, usize) {
        (self.started.load(Ordering::SeqCst), self.alive.load(Ordering::SeqCst))
    }
}

struct Alive(Arc<Census>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runners that answer with the program's text, do not answer `hang`, fail at `fail` and break at `break`.
fn counted(census: &Arc<Census>) -> InProcess {
    let census = census.clone();
    InProcess::new(move |stream| {
        census.started.fetch_add(1, Ordering::SeqCst);
        census.alive.fetch_add(1, Ordering::SeqCst);
        perform(stream, Alive(census.clone()))
    })
}

async fn perform(stream: DuplexStream, _alive: Alive) {
    let mut actor = Actor::new(stream);
    while let Some(message) = actor.hear_if_any().await {
        let Some(code) = message["code"].as_str() else { continue };
        let id = message["id"].as_str().unwrap();
        let error = match code {
            "hang" => continue,
            "die" => return,
            "fail" => json!({"code": "runtime_error", "message": "m"}),
            "break" => json!({"code": "internal_error", "message": "m"}),
            code => {
                actor.done(id, json!(code)).await;
                continue;
            }
        };
        let done = json!({"type": "done", "id": id, "ok": false, "durationMs": 1, "logs": [], "error": error});
        actor.say(&done).await;
    }
}

fn size(max_size: usize) -> PoolSize {
    PoolSize { max_size, ..PoolSize::default() }
}

async fn run(pool: &PooledRunners, code: &str) -> Result<String, ErrorCode> {
    let options = Options { timeout: Some(Duration::from_millis(50)), ..Options::default() };
    let result = pool.execute(ExecboxProgram::new(code).options(options)).await;
    result.outcome.map(|value| value.unwrap().as_text().to_owned()).map_err(|failure| failure.code)
}

#[tokio::test]
async fn a_fresh_runner_for_every_program() {
    let census = Arc::new(Census::default());
    let executor = OneShot::new(counted(&census));
    for _ in 0..3 {
        assert!(executor.execute(ExecboxProgram::new("1")).await.ok());
    }
    assert_eq!(census.count(), (3, 0));
}

#[tokio::test]
async fn one_runner_serves_many_programs() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(2));
    for code in ["1", "fail", "2"] {
        drop(run(&pool, code).await);
    }
    assert_eq!(run(&pool, "3").await, Ok("\"3\"".to_owned()));
    assert_eq!(census.count(), (1, 1));
    pool.dispose().await;
    assert_eq!(census.count(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_was_cut_off_or_broke_is_not_used_again() {
    for (code, expected) in
        [("hang", ErrorCode::Timeout), ("break", ErrorCode::Internal), ("die", ErrorCode::Internal)]
    {
        let census = Arc::new(Census::default());
        let pool = PooledRunners::new(counted(&census), size(1));
        assert_eq!(run(&pool, code).await, Err(expected));
        assert_eq!(census.count(), (1, 0), "{code}");
        assert_eq!(run(&pool, "1").await, Ok("\"1\"".to_owned()));
        assert_eq!(census.count(), (2, 1), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn programs_run_side_by_side_up_to_the_maximum() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(2));
    let start = tokio::time::Instant::now();
    let runs = (0..4).map(|_| run(&pool, "hang"));
    futures_util::future::join_all(runs).await;
    // Two programs, then the other two; each is aborted after 50 + 100 + 25 ms.
    assert_eq!((census.count(), start.elapsed().as_millis()), ((4, 0), 350));
}

#[tokio::test(start_paused = true)]
async fn runners_without_work_are_let_go_down_to_the_minimum() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), PoolSize { min_size: 1, ..size(3) });
    pool.prewarm(3).await.unwrap();
    assert_eq!(census.count(), (3, 3));
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(census.count(), (3, 3));
    // The pool uses the runner that was returned last.
    run(&pool, "1").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(census.count(), (3, 1));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(census.count(), (3, 1));
    run(&pool, "1").await.unwrap();
    assert_eq!(census.count(), (3, 1));
}

#[tokio::test]
async fn warming_up_runs_an_empty_program_and_reports_failure() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(2));
    pool.prewarm(9).await.unwrap();
    assert_eq!(census.count(), (2, 2));
    let broken = PooledRunners::new(InProcess::new(|stream| async { drop(stream) }), size(2));
    assert_eq!(broken.prewarm(1).await.unwrap_err().code, ErrorCode::Internal);
}

#[tokio::test(start_paused = true)]
async fn two_that_warm_up_at_once_do_not_wait_for_each_other() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(4));
    let (a, b) = tokio::join!(pool.prewarm(4), pool.prewarm(4));
    assert_eq!((a, b, census.count()), (Ok(()), Ok(()), (4, 4)));
}

#[tokio::test]
async fn a_program_that_is_cancelled_before_touches_no_runner() {
    let census = Arc::new(Census::default());
    let execution = ExecboxProgram::new("1");
    execution.cancel.cancel();
    let one_shot = OneShot::new(counted(&census)).execute(execution.clone()).await;
    let pooled = PooledRunners::new(counted(&census), size(1)).execute(execution).await;
    let timeout =
        ExecboxFailure { code: ErrorCode::Timeout, message: "Execution timed out".into() };
    for result in [one_shot, pooled] {
        assert_eq!((result.outcome, result.duration_ms), (Err(timeout.clone()), 0));
    }
    assert_eq!(census.count(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_waits_for_a_runner_can_be_cancelled() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(1));
    let waiting = ExecboxProgram::new("1");
    let cancel = waiting.cancel.clone();
    let (_, waited, ()) =
        tokio::join!(run(&pool, "hang"), pool.execute(waiting), async { cancel.cancel() });
    assert_eq!((waited.outcome.unwrap_err().code, census.count()), (ErrorCode::Timeout, (1, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_nobody_awaits_takes_its_runner_along() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(1));
    let abandoned = tokio::time::timeout(Duration::from_millis(10), run(&pool, "hang")).await;
    assert!(abandoned.is_err());
    assert_eq!(run(&pool, "1").await, Ok("\"1\"".to_owned()));
    assert_eq!(census.count(), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_disposed_pool_refuses_those_who_wait() {
    let census = Arc::new(Census::default());
    let pool = PooledRunners::new(counted(&census), size(1));
    let (running, waiting, ()) = tokio::join!(run(&pool, "hang"), run(&pool, "1"), pool.dispose());
    assert_eq!((running, waiting), (Err(ErrorCode::Timeout), Err(ErrorCode::Internal)));
    assert_eq!((run(&pool, "1").await, census.count()), (Err(ErrorCode::Internal), (1, 0)));
}

#[tokio::test]
async fn a_runner_that_died_while_idle_is_replaced_unnoticed() {
    let census = Arc::new(Census::default());
    let noted = census.clone();
    // Each runner serves one program and exits.
    let pool = PooledRunners::new(
        InProcess::new(move |stream| {
            noted.started.fetch_add(1, Ordering::SeqCst);
            async {
                let mut actor = Actor::new(stream);
                let id = actor.hear_execute().await;
                actor.done(&id, json!(1)).await;
            }
        }),
        size(1),
    );
    for _ in 0..3 {
        assert_eq!(run(&pool, "1").await, Ok("1".to_owned()));
        tokio::task::yield_now().await;
    }
    assert_eq!(census.count(), (3, 0));
}

#[tokio::test]
async fn a_runner_that_cannot_be_reached_is_an_internal_error() {
    let nobody =
        || async { Err::<Box<dyn RunnerTransport>, _>(std::io::Error::other("nobody is there")) };
    let result = OneShot::new(nobody).execute(ExecboxProgram::new("1")).await;
    let expected = ExecboxFailure { code: ErrorCode::Internal, message: "nobody is there".into() };
    assert_eq!((result.outcome, result.duration_ms), (Err(expected), 0));
}

#[tokio::test]
async fn a_channel_is_let_go_after_its_program() {
    let (channel, mut actor, endings) = stage();
    let channel = std::sync::Mutex::new(Some(channel));
    let executor = OneShot::new(move || {
        let channel = channel.lock().unwrap().take().unwrap();
        async { Ok(channel) }
    });
    let runner = async {
        let id = actor.hear_execute().await;
        actor.done(&id, json!(1)).await;
    };
    let (result, ()) = tokio::join!(executor.execute(ExecboxProgram::new("1")), runner);
    assert_eq!((result.ok(), endings.disposed(), endings.terminated()), (true, 1, 0));
}

#[test]
fn limits_come_from_the_program_then_from_the_executor() {
    let executors =
        Options { max_log_lines: Some(5), max_log_chars: Some(6), ..Options::default() };
    let programs = Options { max_log_lines: Some(7), ..Options::default() };
    let expected = Options { max_log_lines: Some(7), max_log_chars: Some(6), ..Options::default() };
    assert_eq!(programs.or(executors), expected);
}
