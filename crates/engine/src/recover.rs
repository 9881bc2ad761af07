//! Recovers what a former server left unfinished.

use crate::actor::Activation;
use crate::engine::EngineShared;
use crate::fault::Fault;
use crate::quotas::{class_of, load_cpu_usage};
use lifecycle::{ExecutionId, ExecutionPhase};
use std::sync::Arc;
use std::time::Duration;
use store::{ListFilter, ListedExecution};

/// Executions per page of a list.
const LISTED_PER_READ_MAX: usize = 1_000;

/// Delay before an execution is recovered after its journal failed.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) async fn list_unfinished(
    shared: &Arc<EngineShared>,
    phase: ExecutionPhase,
    after: Option<ExecutionId>,
) -> Result<Vec<ListedExecution>, Fault> {
    let filter =
        ListFilter { phases: vec![phase], caller: None, after, n_max: LISTED_PER_READ_MAX };
    Ok(shared.config.journal.list_executions(filter).await?)
}

/// Starts an actor for everything that was running. Executions that wait for people stay in the journal and
/// cost nothing until they are answered or due.
pub(crate) async fn unfinished(shared: &Arc<EngineShared>) -> Result<(), Fault> {
    let mut after = None;
    loop {
        let listed = list_unfinished(shared, ExecutionPhase::Running, after).await?;
        let Some(last) = listed.last() else { return Ok(()) };
        after = Some(last.execution);
        for listed in &listed {
            shared.activate(listed.execution, Activation::Recover);
        }
    }
}

/// Counts unfinished executions of a former server in the quotas of their callers.
pub(crate) async fn count_unfinished(shared: &Arc<EngineShared>) -> Result<(), Fault> {
    for phase in [ExecutionPhase::Running, ExecutionPhase::Paused, ExecutionPhase::Parked] {
        let Some(class) = class_of(phase) else { continue };
        for (caller, n) in shared.config.journal.count_by_caller(phase).await? {
            shared.quotas.count_recovered(&caller, class, n);
        }
    }
    let Some(records) = &shared.config.records else { return Ok(()) };
    let (timeline, now) = (shared.clock_keeper.timeline(), shared.config.clock.now());
    load_cpu_usage(&shared.quotas, &**records, |at| timeline.translate_stamp(at, now)).await
}

/// Recovers one execution after its journal failed, once the journal may work again.
pub(crate) fn again_later(shared: &Arc<EngineShared>, execution: ExecutionId) {
    let again = Arc::clone(shared);
    shared.tracker.spawn(async move {
        tokio::select! {
            () = again.closing.cancelled() => {}
            () = tokio::time::sleep(RETRY) => again.activate(execution, Activation::Recover),
        }
    });
}
