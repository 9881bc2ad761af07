//! A call from guest to engine and back, beside the same bytes on a socket.

use super::{PLAN, lines, on};
use crate::apart::Apart;
use crate::directory::directory;
use crate::floor_process::Helper;
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report, Target};
use engine::{Config, Engine};
use futures_util::future;
use lifecycle::{ExecutionOutcome, Json, ToolHost, ToolNature, ToolPath};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::sqlite::SqliteStore;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tools::demo::DemoTools;
use tools::function::FunctionSource;
use tools::{Catalogue, Tool};

/// Decoding, deciding, validating, the journal and two turns of the guest cost at most two round trips.
const RATIO_MAX: f64 = 3.0;

/// Calls of one program.
const CALLS: u64 = 200;

/// Marks in the channel: the one at the beginning, the one at the end.
const MARKS_MAX: usize = 2;

pub(super) fn run(runtime: &Runtime, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let store = SqliteStore::open(&directory.path().join("data"))?;
    let (stopwatch, mut marks) = stopwatch()?;
    let demo = DemoTools::new(directory.path());
    let catalogue = Catalogue::new(vec![Arc::new(demo), Arc::new(stopwatch)])?;
    let config = Config::new(store.clone(), catalogue);
    let engine = on(runtime, async { Engine::start(config).await.map_err(anyhow::Error::from) })?;
    let (call, result) = lines::call_and_result()?;
    let mut echo = Helper::echo(&result, &call)?;

    let _apart = Apart::asking()?;
    let plan = Plan { warm_up_ops: 3, ..PLAN };
    let subject = Contender::timed("read-only call, guest to engine to guest", || {
        runtime.block_on(time_calls(&engine, &mut marks))
    });
    let floor = Contender::new("the same bytes on a socket", || {
        (0..CALLS).try_for_each(|_| echo.ask(&result))
    });
    let measured = plan.compare(subject.batch(CALLS), floor.batch(CALLS))?;
    report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    runtime.block_on(async {
        engine.shutdown().await;
        store.close().await;
    });
    Ok(())
}

/// Runs a program that calls `demo.add` between two marks. It has no follower before the second mark, so that only the
/// calls are counted. From mark to mark it is one round trip more than there are calls between them.
async fn time_calls(engine: &Engine, marks: &mut mpsc::Receiver<Instant>) -> Result<Duration> {
    let calls = CALLS - 1;
    let execution = engine
        .run(&format!(
            "await tools.bench.mark();
            for (let n = 0; n < {calls}; n++) await tools.demo.add({{ a: 1, b: 2 }});
            await tools.bench.mark();"
        ))
        .await?;
    let first = marks.recv().await.context("the program marks its beginning")?;
    let second = marks.recv().await.context("the program marks its end")?;
    let outcome = engine.outcome(execution).await?;
    ensure!(
        matches!(outcome, ExecutionOutcome::Completed { .. }),
        "the program failed: {outcome:?}"
    );
    Ok(second - first)
}

/// A tool that reports the time of its call.
fn stopwatch() -> Result<(FunctionSource, mpsc::Receiver<Instant>)> {
    let (mark, marks) = mpsc::channel(MARKS_MAX);
    let nature = ToolNature { read_only: true, runs: ToolHost::Here };
    let tool = Tool { nature, ..Tool::new(ToolPath::parse("bench.mark")?) };
    let source = FunctionSource::new("bench").add(tool, move |_: Json| {
        // A surplus mark means a program that was run twice, which its outcome shows.
        let _ = mark.try_send(Instant::now());
        future::ready(Ok(()))
    });
    Ok((source, marks))
}
