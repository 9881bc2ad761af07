//! What is unfinished after the store lost entries, or may have: it is parked until a person lets it continue, also where
//! its journal cannot be read.

use crate::actor::Request;
use crate::engine::{Engine, Shared};
use crate::fault::{Error, Fault};
use crate::reading::Snapshot;
use crate::recover::list;
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, Intent, Moment, Phase, Rejection, Seq, Standing,
    Strength, Timestamp, decide,
};
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use store::{Append, ExecutionOverview, Listed, StoreError};
use uuid::Uuid;

/// How many entries are read at once.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// What came of parking an execution.
enum Parking {
    Parked,
    /// It was parked before, or is over.
    Unneeded,
    /// Its journal cannot be read.
    Unreadable,
}

/// Parks everything unfinished, where the store lost entries or may have: among those may be dispatches, and nothing may be
/// sent twice. They continue when a person says so.
pub(crate) async fn park_after_loss(shared: &Arc<Shared>) -> Result<(), Fault> {
    let journal = &shared.config.journal;
    let Some(loss) = journal.data_loss().await? else { return Ok(()) };
    let mut n_parked = 0;
    // Those that are parked already first: the others join them.
    for phase in [Phase::Parked, Phase::Running, Phase::Paused] {
        let mut after = None;
        loop {
            let listed = list(shared, phase, after).await?;
            let Some(last) = listed.last() else { break };
            after = Some(last.execution);
            for Listed { execution, .. } in &listed {
                match park(shared, *execution).await? {
                    Parking::Parked => n_parked += 1,
                    Parking::Unneeded => {}
                    Parking::Unreadable => park_unread(shared, *execution).await,
                }
            }
        }
    }
    journal.settle_data_loss().await?;
    let n_unreadable = shared.unreadable().len();
    tracing::warn!(n_parked, n_unreadable, cause = %loss.cause, "unfinished executions are parked until a person continues them");
    Ok(())
}

/// Parks one of them.
async fn park(shared: &Arc<Shared>, execution: ExecutionId) -> Result<Parking, Fault> {
    let journal = &shared.config.journal;
    let Snapshot { mut state, last, .. } = match Snapshot::read(&**journal, execution).await {
        Ok(snapshot) => snapshot,
        Err(StoreError::Damaged(_)) => return Ok(Parking::Unreadable),
        Err(error) => return Err(error.into()),
    };
    let at = shared.config.clock.now();
    let moment = Moment { at, entropy: Uuid::new_v4() };
    let policy = shared.config.policies.live();
    let Ok(events) = decide(&state, &policy, moment, Intent::LoseEntries) else {
        return Ok(Parking::Unneeded);
    };
    events.iter().for_each(|event| state.apply(at, event));
    let Some(standing) = state.standing().filter(|_| !events.is_empty()) else {
        return Ok(Parking::Unneeded);
    };
    journal.append(append_after(last, (execution, standing), at, events)).await?;
    Ok(Parking::Parked)
}

/// Parks an unfinished execution whose journal cannot be read: what it did is not known, and it cannot be replayed. The
/// index lists it from then on as parked, and no timer wakes it.
pub(crate) async fn park_unread(shared: &Arc<Shared>, execution: ExecutionId) {
    let parked = async {
        let journal = &shared.config.journal;
        let Some(ExecutionOverview { listed, .. }) = journal.overview(execution).await? else {
            return Ok(false);
        };
        let standing = match listed.standing.phase {
            Phase::Unborn | Phase::Finished => return Ok(false),
            Phase::Parked => return Ok(true),
            Phase::Running | Phase::Paused => {
                Standing { phase: Phase::Parked, due: None, ..listed.standing }
            }
        };
        let at = shared.config.clock.now();
        let events = vec![Event::EntriesMayBeLost, Event::Parked];
        journal.append(append_after(listed.last, (execution, standing), at, events)).await?;
        Ok::<_, StoreError>(true)
    };
    match parked.await {
        Ok(false) => return,
        Ok(true) => tracing::error!(%execution, "an execution cannot be read, and was parked"),
        Err(error) => {
            tracing::error!(%execution, %error, "an execution can be neither read nor parked");
        }
    }
    shared.unreadable().insert(execution);
}

/// The same beside everything else. What cannot be read now cannot be read in a moment either.
pub(crate) fn park_unread_later(shared: &Arc<Shared>, execution: ExecutionId) {
    let parking = Arc::clone(shared);
    shared.tracker.spawn(async move { park_unread(&parking, execution).await });
}

fn append_after(
    expected: Seq,
    (execution, standing): (ExecutionId, Standing),
    at: Timestamp,
    events: Vec<Event>,
) -> Append {
    let mut seq = expected;
    let entry = |event| {
        seq = seq.next();
        Entry { seq, at, event }
    };
    let entries = events.into_iter().map(entry).collect();
    Append { execution, expected, entries, standing, strength: Strength::Synced }
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

/// Whether an execution was parked because of a loss. One that cannot be read does not keep the others from continuing.
async fn lost_entries(shared: &Arc<Shared>, execution: ExecutionId) -> Result<bool, Fault> {
    let mut last = Seq(0);
    loop {
        let journal = &shared.config.journal;
        let entries = match journal.read(execution, last, ENTRIES_PER_READ_MAX).await {
            Ok(entries) => entries,
            Err(StoreError::Damaged(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let Some(newest) = entries.last() else { return Ok(false) };
        last = newest.seq;
        if entries.iter().any(|entry| entry.event == Event::EntriesMayBeLost) {
            return Ok(true);
        }
    }
}

impl Engine {
    /// Unfinished executions whose journals were found to be unreadable since the server started. They do not continue.
    pub fn unreadable(&self) -> Vec<ExecutionId> {
        self.shared.unreadable().iter().copied().collect()
    }
}

impl Shared {
    fn unreadable(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
