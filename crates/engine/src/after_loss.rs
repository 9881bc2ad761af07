//! Parks unfinished executions after the store lost entries, or may have, until a person lets them continue, also if
//! their journal cannot be read.

use crate::actor::ActorRequest;
use crate::engine::{Engine, EngineShared};
use crate::fault::{Error, Fault};
use crate::reading::ExecutionSnapshot;
use crate::recover::list_unfinished;
use lifecycle::{
    CallerName, DecisionMoment, Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary,
    Intent, Rejection, Seq, Timestamp, WriteStrength, decide,
};
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use store::{ExecutionOverview, JournalAppend, ListedExecution, StoreError};
use uuid::Uuid;

/// Entries per read.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// The outcome of parking an execution.
enum ParkingOutcome {
    Parked,
    /// It was parked before, or has ended.
    Unneeded,
    /// Its journal cannot be read.
    Unreadable,
}

/// Parks everything unfinished if the store lost entries or may have: dispatches may be among them, and no call may be
/// sent twice. They continue when a person requests it.
pub(crate) async fn park_after_loss(shared: &Arc<EngineShared>) -> Result<(), Fault> {
    let journal = &shared.config.journal;
    let Some(loss) = journal.data_loss().await? else { return Ok(()) };
    let mut n_parked = 0;
    // Those that are already parked come first: the others join them.
    for phase in [ExecutionPhase::Parked, ExecutionPhase::Running, ExecutionPhase::Paused] {
        let mut after = None;
        loop {
            let listed = list_unfinished(shared, phase, after).await?;
            let Some(last) = listed.last() else { break };
            after = Some(last.execution);
            for ListedExecution { execution, .. } in &listed {
                match park(shared, *execution).await? {
                    ParkingOutcome::Parked => n_parked += 1,
                    ParkingOutcome::Unneeded => {}
                    ParkingOutcome::Unreadable => park_unread(shared, *execution).await,
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
async fn park(shared: &Arc<EngineShared>, execution: ExecutionId) -> Result<ParkingOutcome, Fault> {
    let journal = &shared.config.journal;
    let ExecutionSnapshot { mut state, last, .. } =
        match ExecutionSnapshot::read(&**journal, execution).await {
            Ok(snapshot) => snapshot,
            Err(StoreError::Damaged(_)) => return Ok(ParkingOutcome::Unreadable),
            Err(error) => return Err(error.into()),
        };
    let at = shared.config.clock.now();
    let moment = DecisionMoment { at, entropy: Uuid::new_v4() };
    let policy = shared.config.policies.live();
    let Ok(events) = decide(&state, &policy, moment, Intent::LoseEntries) else {
        return Ok(ParkingOutcome::Unneeded);
    };
    events.iter().for_each(|event| state.apply(at, event));
    let Some(standing) = state.standing().filter(|_| !events.is_empty()) else {
        return Ok(ParkingOutcome::Unneeded);
    };
    journal.append(append_after(last, (execution, standing), at, events)).await?;
    Ok(ParkingOutcome::Parked)
}

/// Parks an unfinished execution whose journal cannot be read: its effects are unknown, and it cannot be replayed. From
/// then on the index lists it as parked, and no timer wakes it.
pub(crate) async fn park_unread(shared: &Arc<EngineShared>, execution: ExecutionId) {
    let parked = async {
        let journal = &shared.config.journal;
        let Some(ExecutionOverview { listed, .. }) = journal.overview(execution).await? else {
            return Ok(false);
        };
        let standing = match listed.standing.phase {
            ExecutionPhase::Unborn | ExecutionPhase::Finished => return Ok(false),
            ExecutionPhase::Parked => return Ok(true),
            ExecutionPhase::Running | ExecutionPhase::Paused => {
                ExecutionSummary { phase: ExecutionPhase::Parked, due: None, ..listed.standing }
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

/// The same, in the background: what cannot be read now cannot be read a moment later either.
pub(crate) fn park_unread_later(shared: &Arc<EngineShared>, execution: ExecutionId) {
    let parking = Arc::clone(shared);
    shared.tracker.spawn(async move { park_unread(&parking, execution).await });
}

fn append_after(
    expected: Seq,
    (execution, standing): (ExecutionId, ExecutionSummary),
    at: Timestamp,
    events: Vec<Event>,
) -> JournalAppend {
    let mut seq = expected;
    let entry = |event| {
        seq = seq.next();
        Entry { seq, at, event }
    };
    let entries = events.into_iter().map(entry).collect();
    JournalAppend { execution, expected, entries, standing, strength: WriteStrength::Synced }
}

/// Lets every execution continue that was parked because entries may be lost, and returns their number.
pub(crate) async fn continue_all(
    shared: &Arc<EngineShared>,
    by: &CallerName,
) -> Result<usize, Error> {
    let (mut after, mut n_continued) = (None, 0);
    loop {
        let listed = list_unfinished(shared, ExecutionPhase::Parked, after).await?;
        let Some(last) = listed.last() else { return Ok(n_continued) };
        after = Some(last.execution);
        for listed in &listed {
            let execution = listed.execution;
            if !lost_entries(shared, execution).await? {
                continue;
            }
            let intent = || Intent::Continue { by: by.clone() };
            match shared
                .submit_request(execution, |reply| ActorRequest::Submit(intent(), reply))
                .await
            {
                Ok(()) => n_continued += 1,
                // Another request continued or ended it.
                Err(Error::Rejected(Rejection::NotParked | Rejection::AlreadyFinished)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether an execution was parked because of a loss. An unreadable one does not prevent the others from continuing.
async fn lost_entries(shared: &Arc<EngineShared>, execution: ExecutionId) -> Result<bool, Fault> {
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

impl EngineShared {
    fn unreadable(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
