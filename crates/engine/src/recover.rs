//! Bringing back what a server that is gone has left unfinished.

use crate::actor::{Boot, Request};
use crate::engine::Shared;
use crate::fault::{Error, Fault};
use crate::quotas::{class_of, load_cpu_usage};
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, Intent, Moment, Phase, Rejection, Seq, State, Strength,
    decide,
};
use std::sync::Arc;
use std::time::Duration;
use store::{Append, ListFilter, Listed, StoreError};
use uuid::Uuid;

/// How many executions are listed at once.
const LISTED_PER_READ_MAX: usize = 1_000;

/// How many entries are read at once.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// How long to wait after the journal failed before an execution is brought back.
const RETRY: Duration = Duration::from_secs(1);

/// Parks everything unfinished, where the store lost entries or may have: among those may be dispatches, and nothing may be
/// sent twice. Returns how many executions are parked because of that. They continue when a person says so.
pub(crate) async fn park_after_loss(shared: &Arc<Shared>) -> Result<usize, Fault> {
    let journal = &shared.config.journal;
    let Some(loss) = journal.data_loss().await? else { return Ok(0) };
    let mut n_parked = 0;
    // Those that are parked already first: the others join them.
    for phase in [Phase::Parked, Phase::Running, Phase::Paused] {
        let mut after = None;
        loop {
            let listed = list(shared, phase, after).await?;
            let Some(last) = listed.last() else { break };
            after = Some(last.execution);
            for listed in &listed {
                n_parked += usize::from(park(shared, listed.execution).await?);
            }
        }
    }
    journal.settle_data_loss().await?;
    tracing::warn!(n_parked, cause = %loss.cause, "unfinished executions are parked until a person continues them");
    Ok(n_parked)
}

/// Parks one of them; false where that was done before.
async fn park(shared: &Arc<Shared>, execution: ExecutionId) -> Result<bool, Fault> {
    let journal = &shared.config.journal;
    let (mut state, mut last) = (State::default(), Seq(0));
    loop {
        let entries = match journal.read(execution, last, ENTRIES_PER_READ_MAX).await {
            Ok(entries) => entries,
            Err(StoreError::Damaged(why)) => {
                // What cannot be read cannot be replayed either.
                tracing::error!(%execution, why, "an execution was not parked");
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(newest) = entries.last() else { break };
        last = newest.seq;
        entries.iter().for_each(|entry| state.apply(entry.at, &entry.event));
    }
    let at = shared.config.clock.now();
    let moment = Moment { at, entropy: Uuid::new_v4() };
    let policy = shared.config.policies.live();
    let Ok(events) = decide(&state, &policy, moment, Intent::LoseEntries) else { return Ok(false) };
    let (expected, mut seq, mut entries) = (last, last, vec![]);
    for event in events {
        seq = seq.next();
        state.apply(at, &event);
        entries.push(Entry { seq, at, event });
    }
    let Some(standing) = state.standing().filter(|_| !entries.is_empty()) else { return Ok(false) };
    let strength = Strength::Synced;
    journal.append(Append { execution, expected, entries, standing, strength }).await?;
    Ok(true)
}

/// Lets every execution continue that is parked because entries may be lost, and returns how many do.
pub(crate) async fn continue_all(shared: &Arc<Shared>, by: &CallerName) -> Result<usize, Error> {
    let (mut after, mut n_continued) = (None, 0);
    loop {
        let listed = list(shared, Phase::Parked, after).await?;
        let Some(last) = listed.last() else { return Ok(n_continued) };
        after = Some(last.execution);
        for listed in &listed {
            let execution = listed.execution;
            if !lost_entries(shared, execution).await? {
                continue;
            }
            let intent = || Intent::Continue { by: by.clone() };
            match shared.ask(execution, |reply| Request::Submit(intent(), reply)).await {
                Ok(()) => n_continued += 1,
                // Another request continued it, or ended it.
                Err(Error::Rejected(Rejection::NotParked | Rejection::AlreadyFinished)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

async fn lost_entries(shared: &Arc<Shared>, execution: ExecutionId) -> Result<bool, Fault> {
    let mut last = Seq(0);
    loop {
        let journal = &shared.config.journal;
        let entries = journal.read(execution, last, ENTRIES_PER_READ_MAX).await?;
        let Some(newest) = entries.last() else { return Ok(false) };
        last = newest.seq;
        if entries.iter().any(|entry| entry.event == Event::EntriesMayBeLost) {
            return Ok(true);
        }
    }
}

async fn list(
    shared: &Arc<Shared>,
    phase: Phase,
    after: Option<ExecutionId>,
) -> Result<Vec<Listed>, Fault> {
    let filter =
        ListFilter { phases: vec![phase], caller: None, after, n_max: LISTED_PER_READ_MAX };
    Ok(shared.config.journal.list(filter).await?)
}

/// Gives an actor to everything that was running. What waits for people stays in the journal and
/// costs nothing until it is answered or due.
pub(crate) async fn unfinished(shared: &Arc<Shared>) -> Result<(), Fault> {
    let mut after = None;
    loop {
        let listed = list(shared, Phase::Running, after).await?;
        let Some(last) = listed.last() else { return Ok(()) };
        after = Some(last.execution);
        for listed in &listed {
            shared.activate(listed.execution, Boot::Recover);
        }
    }
}

/// Counts what a former server left unfinished in the quotas of its callers.
pub(crate) async fn count_unfinished(shared: &Arc<Shared>) -> Result<(), Fault> {
    for phase in [Phase::Running, Phase::Paused, Phase::Parked] {
        let Some(class) = class_of(phase) else { continue };
        for (caller, n) in shared.config.journal.count_by_caller(phase).await? {
            shared.quotas.count_recovered(&caller, class, n);
        }
    }
    let Some(records) = &shared.config.records else { return Ok(()) };
    let (timeline, now) = (shared.clock_keeper.timeline(), shared.config.clock.now());
    load_cpu_usage(&shared.quotas, &**records, |at| timeline.translate_stamp(at, now)).await
}

/// Brings one execution back after its journal failed, once the journal may work again.
pub(crate) fn again_later(shared: &Arc<Shared>, execution: ExecutionId) {
    let again = Arc::clone(shared);
    shared.tracker.spawn(async move {
        tokio::select! {
            () = again.closing.cancelled() => {}
            () = tokio::time::sleep(RETRY) => again.activate(execution, Boot::Recover),
        }
    });
}
