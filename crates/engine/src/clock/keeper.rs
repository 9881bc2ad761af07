//! Records in the store what the clock showed, so that the next start can detect whether it was set.

use super::timeline::{ClockChange, ClockTimeline, HOLD_MS, SeenClock};
use super::{Clock, ClockReading};
use crate::actor::ActorRequest;
use crate::engine::EngineShared;
use crate::fault::Fault;
use crate::quotas::save_cpu_usage;
use lifecycle::{ExecutionPhase, Timestamp};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Journal, ListFilter, RecordStore, StoreError};

const KIND: &str = "clock";

/// One server has one store.
const KEY: &str = "this_server";

/// How often the wall clock is compared with the time since boot.
const LOOK_EVERY_MS: u64 = 60_000;

/// How often the record is written: each write reaches the disk. After a kill, the record is at most this old.
const WRITE_EVERY_MS: u64 = 10 * 60_000;

/// A wall clock that was set by less while the server runs is not reported.
const REPORTED_MS_MIN: u64 = 60_000;

/// Executions per page of a list.
const LISTED_PER_READ_MAX: usize = 1_000;

/// The engine's knowledge of its store's clock.
pub(crate) struct ClockKeeper {
    clock: Clock,
    records: Option<Arc<dyn RecordStore>>,
    /// As this server found it. Its steps do not change while the server runs.
    timeline: Arc<ClockTimeline>,
    state: Mutex<KeeperState>,
}

struct KeeperState {
    /// The value to write next.
    timeline: ClockTimeline,
    /// Until when retention deletes nothing.
    hold_until: Timestamp,
    /// How far the wall clock was ahead of ours at the last check.
    ahead_ms: i64,
}

impl ClockKeeper {
    /// Compares the clock with what the store last saw, and records its present time.
    pub(crate) async fn open(
        clock: Clock,
        records: Option<Arc<dyn RecordStore>>,
        journal: &dyn Journal,
    ) -> Result<Self, Fault> {
        let now = clock.now();
        let mut timeline = ClockTimeline::default();
        if let Some(records) = &records {
            timeline = read(&**records).await?.unwrap_or_default();
            if timeline.seen.is_none() {
                timeline.seen = newest_stamp(journal).await?;
            }
            let change = timeline.start(&ClockReading { wall: now, ..clock.reading() });
            report(change, &timeline);
        }
        let hold_until = now.after_ms(timeline.hold_ms);
        let ahead_ms = ahead_ms(&clock);
        let state = KeeperState { timeline: timeline.clone(), hold_until, ahead_ms };
        let timeline = Arc::new(timeline);
        let keeper = Self { clock, records, timeline, state: Mutex::new(state) };
        keeper.write().await;
        Ok(keeper)
    }

    pub(crate) const fn timeline(&self) -> &Arc<ClockTimeline> {
        &self.timeline
    }

    /// How often the clock of this store was found set back; see [`clock_generation`].
    pub(crate) fn generation(&self) -> u64 {
        self.timeline.generation
    }

    /// Until when retention deletes nothing, if it must wait.
    pub(crate) fn retention_held_until(&self) -> Option<Timestamp> {
        self.check_wall_clock();
        let hold_until = self.lock().hold_until;
        (hold_until > self.clock.now()).then_some(hold_until)
    }

    /// Checks whether the wall clock was set since the last check. A clock that is set again is not steady: if
    /// retention waited then, it waits for another hour.
    fn check_wall_clock(&self) {
        let ahead_ms = ahead_ms(&self.clock);
        let mut state = self.lock();
        let set_by_ms = ahead_ms.saturating_sub(state.ahead_ms);
        if set_by_ms.unsigned_abs() < REPORTED_MS_MIN {
            return;
        }
        state.ahead_ms = ahead_ms;
        if state.timeline.hold_ms > 0 {
            state.hold_until = self.clock.now().after_ms(HOLD_MS);
        }
        tracing::warn!(
            set_by_ms,
            "the system's clock was set; timers count elapsed time, and Airlock's clock follows at its next start"
        );
    }

    /// A record that cannot be written costs accuracy after the next start, and nothing now.
    async fn write(&self) {
        let Some(records) = &self.records else { return };
        let now = self.clock.now();
        let value = {
            let mut state = self.lock();
            state.timeline.hold_ms = state.hold_until.ms_since(now);
            state.timeline.see(now, &self.clock.reading());
            serde_json::to_string(&state.timeline).expect("numbers can be written as JSON")
        };
        let written = async {
            let version = records.get(KIND, KEY).await?.map_or(0, |record| record.version);
            records.put(KIND, KEY, value, version).await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "could not note what the clock shows");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the clock of this store was found set back. Values that expire by the wall clock are valid for one generation:
/// after the clock was set back they would last too long.
pub async fn clock_generation(records: &dyn RecordStore) -> Result<u64, StoreError> {
    #[derive(Deserialize)]
    struct ClockGenerationRecord {
        generation: u64,
    }
    let Some(record) = records.get(KIND, KEY).await? else { return Ok(0) };
    let read: ClockGenerationRecord = serde_json::from_str(&record.value).map_err(|_| damaged())?;
    Ok(read.generation)
}

/// Compares and records until the engine stops, and once more then.
pub(crate) async fn run_clock_keeper(shared: Arc<EngineShared>) {
    let keeper = &shared.clock_keeper;
    let clock = &keeper.clock;
    let mut written = clock.now();
    loop {
        let look = clock.now().after_ms(LOOK_EVERY_MS);
        tokio::select! {
            () = shared.closing.cancelled() => break,
            () = clock.wait_until(look) => {}
        }
        keeper.check_wall_clock();
        if clock.now().ms_since(written) >= WRITE_EVERY_MS {
            written = clock.now();
            record_clock(&shared).await;
        }
    }
    record_clock(&shared).await;
}

/// How far the wall clock is ahead of ours.
fn ahead_ms(clock: &Clock) -> i64 {
    clock.reading().wall.0.saturating_sub(clock.now().0)
}

async fn record_clock(shared: &EngineShared) {
    shared.clock_keeper.write().await;
    if let Some(records) = &shared.config.records
        && let Err(error) = save_cpu_usage(&shared.quotas, &**records).await
    {
        tracing::warn!(%error, "could not note how much processor time callers used");
    }
}

/// After the clock was set: loads each paused execution once, which corrects its due time in the list.
pub(crate) async fn correct_dues(shared: Arc<EngineShared>) {
    if !shared.clock_keeper.timeline.has_stale_dues {
        return;
    }
    let mut after = None;
    loop {
        let phases = vec![ExecutionPhase::Paused];
        let filter = ListFilter { phases, caller: None, after, n_max: LISTED_PER_READ_MAX };
        let listed = match shared.config.journal.list_executions(filter).await {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!(%error, "could not list what is due"),
        };
        let Some(last) = listed.last() else { break };
        after = Some(last.execution);
        for listed in listed.iter().filter(|listed| listed.standing.due.is_some()) {
            let woken = tokio::select! {
                woken = shared.submit_request(listed.execution, ActorRequest::Wake) => woken,
                () = shared.closing.cancelled() => return,
            };
            if let Err(error) = woken {
                tracing::warn!(execution = %listed.execution, %error, "could not correct when it is due");
                return; // the next start tries again
            }
        }
    }
    shared.clock_keeper.lock().timeline.has_stale_dues = false;
    shared.clock_keeper.write().await;
}

async fn read(records: &dyn RecordStore) -> Result<Option<ClockTimeline>, Fault> {
    let Some(record) = records.get(KIND, KEY).await? else { return Ok(None) };
    Ok(Some(serde_json::from_str(&record.value).map_err(|_| damaged())?))
}

fn damaged() -> StoreError {
    StoreError::Damaged("the record of the clock cannot be read".into())
}

/// The last time in a store without this record: that of its newest execution.
async fn newest_stamp(journal: &dyn Journal) -> Result<Option<SeenClock>, Fault> {
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 1 };
    let newest = journal.list_executions(filter).await?.into_iter().next();
    Ok(newest.map(|listed| SeenClock { time: listed.created, boottime_ms: 0, boot: None }))
}

fn report(change: ClockChange, timeline: &ClockTimeline) {
    match change {
        ClockChange::Continuous => {}
        ClockChange::Forward(ms) => tracing::warn!(
            ms,
            "the clock is ahead of what the store last saw; timers count elapsed time as far as it is known"
        ),
        ClockChange::Back(ms) => tracing::warn!(
            ms,
            "the clock was set back; timers count elapsed time as far as it is known"
        ),
    }
    if timeline.hold_ms > 0 {
        tracing::warn!(
            ms = timeline.hold_ms,
            "no history is deleted until the clock has run steadily"
        );
    }
}
