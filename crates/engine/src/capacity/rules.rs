//! Which waiting programs may be released and replayed later. Pure.

use lifecycle::Timestamp;
use std::time::Duration;

/// A program whose replay takes more processor time is never released.
const REPLAY_CPU_MAX: Duration = Duration::from_millis(100);

/// A program whose replay reads more of the journal is never released.
const REPLAY_JOURNAL_BYTES_MAX: u64 = 1 << 20;

/// A program whose timer is due within this time is not released.
const DUE_SOON_MS: u64 = 1_000;

/// A replayed program is not released again for this many times the cost of the replay.
const STAY_FACTOR: u32 = 10;

/// What an idle program waits for, and what restoring it would cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitState {
    /// When it became idle.
    pub(crate) since: Timestamp,
    /// When its next timer is due.
    pub(crate) due: Option<Timestamp>,
    /// Whether it has calls in progress, which may return at any moment.
    pub(crate) has_calls: bool,
    /// Size of the journal that a replay reads, estimated.
    pub(crate) journal_bytes: u64,
    /// When it was last replayed to free capacity, and the processor time that this took.
    pub(crate) came_back: Option<(Timestamp, Duration)>,
}

/// Whether a runner may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseDecision {
    Now,
    /// From this time on, if the program still waits then.
    From(Timestamp),
    /// Not during this wait.
    Never,
}

/// Whether the runner of a program that waits may be taken now. `replay_cpu` is what its replay would cost.
pub(crate) fn may_release(
    waiting: &WaitState,
    replay_cpu: Duration,
    now: Timestamp,
) -> ReleaseDecision {
    let is_costly = replay_cpu > REPLAY_CPU_MAX || waiting.journal_bytes > REPLAY_JOURNAL_BYTES_MAX;
    let is_due_soon =
        |now: Timestamp| waiting.due.is_some_and(|due| due <= now.after_ms(DUE_SOON_MS));
    if is_costly || is_due_soon(now) {
        return ReleaseDecision::Never;
    }
    let stays = waiting
        .came_back
        .map(|(at, cost)| at.after_ms(millis_up(cost.saturating_mul(STAY_FACTOR))));
    // A tool may be quick: releasing pays once the wait has taken as long as the replay will.
    let calls = waiting.has_calls.then(|| waiting.since.after_ms(millis_up(replay_cpu)));
    match stays.into_iter().chain(calls).max() {
        Some(from) if from > now && is_due_soon(from) => ReleaseDecision::Never,
        Some(from) if from > now => ReleaseDecision::From(from),
        Some(_) | None => ReleaseDecision::Now,
    }
}

fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    const CHEAP: Duration = Duration::from_millis(2);

    fn waiting() -> WaitState {
        let (due, journal_bytes) = (Some(NOW.after_ms(20_000)), 1_000);
        WaitState { since: NOW, due, has_calls: false, journal_bytes, came_back: None }
    }

    #[test]
    fn a_program_that_waits_for_a_distant_timer_or_a_person_may_be_released() {
        assert_eq!(may_release(&waiting(), CHEAP, NOW), ReleaseDecision::Now);
        assert_eq!(
            may_release(&WaitState { due: None, ..waiting() }, CHEAP, NOW),
            ReleaseDecision::Now
        );
    }

    #[test]
    fn costly_replays_and_timers_that_are_due_soon_are_left_alone() {
        let costs = |ms| may_release(&waiting(), Duration::from_millis(ms), NOW);
        assert_eq!((costs(100), costs(101)), (ReleaseDecision::Now, ReleaseDecision::Never));
        let reads =
            |journal_bytes| may_release(&WaitState { journal_bytes, ..waiting() }, CHEAP, NOW);
        assert_eq!(
            (reads(1 << 20), reads((1 << 20) + 1)),
            (ReleaseDecision::Now, ReleaseDecision::Never)
        );
        let due_in =
            |ms| may_release(&WaitState { due: Some(NOW.after_ms(ms)), ..waiting() }, CHEAP, NOW);
        assert_eq!((due_in(1_001), due_in(1_000)), (ReleaseDecision::Now, ReleaseDecision::Never));
    }

    #[test]
    fn a_program_that_came_back_stays_for_ten_times_the_cost_of_its_replay() {
        let came_back = Some((NOW, Duration::from_micros(2_500)));
        let back = WaitState { came_back, ..waiting() };
        let until = NOW.after_ms(25);
        assert_eq!(may_release(&back, CHEAP, NOW), ReleaseDecision::From(until));
        assert_eq!(may_release(&back, CHEAP, until), ReleaseDecision::Now);
        let costly = Some((NOW, Duration::from_millis(95)));
        let due = Some(NOW.after_ms(1_900));
        let never = WaitState { came_back: costly, due, ..waiting() };
        assert_eq!(
            may_release(&never, CHEAP, NOW),
            ReleaseDecision::Never,
            "its timer is due soon then"
        );
    }

    #[test]
    fn a_tool_is_waited_for_as_long_as_a_replay_takes() {
        let calls = WaitState { has_calls: true, due: None, ..waiting() };
        assert_eq!(may_release(&calls, CHEAP, NOW), ReleaseDecision::From(NOW.after_ms(2)));
        assert_eq!(may_release(&calls, CHEAP, NOW.after_ms(2)), ReleaseDecision::Now);
    }
}
