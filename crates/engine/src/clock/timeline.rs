//! Wall clocks that were set between two servers on one store: earlier timestamps are translated, so that timers
//! count elapsed time and not the difference of the clocks. Pure.
//!
//! Each server's timestamps come from a wall clock that is continuous while it runs. A *step* is a start at which the wall
//! clock differs from its expected time. The steps divide time into *epochs*; a timestamp of an earlier
//! epoch is translated by all later steps.

use super::{ClockReading, MachineBoot};
use lifecycle::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A smaller difference is drift, not a step.
const STEP_MS_MIN: u64 = 1_000;

/// A clock that a restart finds earlier by this much was set back; less is a correction, which ends no browser session.
const SET_BACK_MS_MIN: u64 = 60_000;

/// Retention trusts a clock that is at most this much ahead of what the store last saw.
const JUMP_MS_MAX: u64 = 24 * 3_600_000;

/// How long retention deletes nothing after a larger jump.
pub(super) const HOLD_MS: u64 = 3_600_000;

/// Maximum number of recorded steps. An execution ends within 30 days unless a limit allows more, and clocks are rarely set.
const STEPS_MAX: usize = 32;

/// Timestamps of an epoch may be later than its known end by this much: a server that is killed has not recorded its
/// last minutes.
const SLACK_MS: u64 = 11 * 60_000;

/// The clock as the store last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenClock {
    /// The server's clock.
    pub(super) time: Timestamp,
    pub(super) boottime_ms: u64,
    pub(super) boot: Option<MachineBoot>,
}

/// One instant, on the clock before and after it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClockStep {
    before: Timestamp,
    after: Timestamp,
}

/// The known history of this store's wall clock. The format of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockTimeline {
    /// None before the first server that records it.
    pub(super) seen: Option<SeenClock>,
    /// Oldest first.
    pub(super) steps: Vec<ClockStep>,
    /// How often the clock was set back. Sessions, codes and tickets of an earlier number have ended.
    pub(super) generation: u64,
    /// Whether dues in the list of executions may be those of an earlier epoch.
    pub(super) has_stale_dues: bool,
    /// How long retention still deletes nothing.
    pub(super) hold_ms: u64,
}

/// How the clock has changed at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockChange {
    /// The clock shows the expected time, as far as that is known.
    Continuous,
    /// It was set forward by this many milliseconds, or the machine was off for that long.
    Forward(u64),
    /// It was set back by this many milliseconds.
    Back(u64),
}

impl ClockTimeline {
    /// Begins an epoch at a start, and returns how the clock has changed.
    pub(super) fn start(&mut self, now: &ClockReading) -> ClockChange {
        let Some(seen) = self.seen else {
            self.see(now.wall, now);
            return ClockChange::Continuous;
        };
        let is_same_boot = seen.boot.is_some() && seen.boot == now.boot;
        // A machine restored from a snapshot has the old boot id, and an earlier time since boot.
        let elapsed_ms = now.boottime_ms.checked_sub(seen.boottime_ms).filter(|_| is_same_boot);
        let expected = elapsed_ms.map_or(seen.time, |ms| seen.time.after_ms(ms));
        let (ahead_ms, behind_ms) = (now.wall.ms_since(expected), expected.ms_since(now.wall));
        // After a reboot, the wall clock is the only evidence of elapsed time.
        let is_forward_step = elapsed_ms.is_some() && ahead_ms >= STEP_MS_MIN;
        if is_forward_step || behind_ms >= STEP_MS_MIN {
            self.steps.push(ClockStep { before: expected, after: now.wall });
            let n_forgotten = self.steps.len().saturating_sub(STEPS_MAX);
            self.steps.drain(..n_forgotten);
            self.has_stale_dues = true;
        }
        if behind_ms >= SET_BACK_MS_MIN {
            self.generation += 1;
        }
        if ahead_ms > JUMP_MS_MAX || behind_ms > JUMP_MS_MAX {
            self.hold_ms = HOLD_MS;
        }
        self.see(now.wall, now);
        match (ahead_ms, behind_ms) {
            (_, STEP_MS_MIN..) => ClockChange::Back(behind_ms),
            (ahead_ms, _) if is_forward_step || ahead_ms > JUMP_MS_MAX => {
                ClockChange::Forward(ahead_ms)
            }
            (_, _) => ClockChange::Continuous,
        }
    }

    /// Records what the clocks show while the server runs.
    pub(super) fn see(&mut self, time: Timestamp, now: &ClockReading) {
        let ClockReading { boottime_ms, boot, .. } = *now;
        self.seen = Some(SeenClock { time, boottime_ms, boot });
    }

    /// An entry with its timestamps translated to the present clock. A timestamp that fits two epochs
    /// counts as of the later one: a wait is then too long rather than too short, and never longer than requested.
    pub(crate) fn translate<'a>(
        &self,
        at: Timestamp,
        event: &'a Event,
        now: Timestamp,
    ) -> (Timestamp, Cow<'a, Event>) {
        let translated = self.translate_stamp(at, now);
        if let Event::TimerSet { timer, due } = event
            && translated != at
        {
            let due = translated.after_ms(due.ms_since(at));
            return (translated, Cow::Owned(Event::TimerSet { timer: *timer, due }));
        }
        (translated, Cow::Borrowed(event))
    }

    pub(crate) fn translate_stamp(&self, at: Timestamp, now: Timestamp) -> Timestamp {
        let n_steps = self.steps.len();
        // The end of each epoch: the next step, or now.
        let ends = self.steps.iter().skip(1).map(|step| step.before).chain([now]);
        let epochs: Vec<_> = self.steps.iter().map(|step| step.after).zip(ends).collect();
        let is_in = |(begin, end): &(Timestamp, Timestamp)| {
            at >= *begin && at <= end.after_ms(if *end == now { 0 } else { SLACK_MS })
        };
        let n_before = epochs.iter().rposition(is_in).map_or(0, |epoch| epoch + 1);
        let mut at = at;
        for step in self.steps.iter().take(n_steps).skip(n_before) {
            let ms_before = step.before.ms_since(at);
            at = Timestamp(step.after.0.saturating_sub_unsigned(ms_before));
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::TimerId;
    use uuid::Uuid;

    const DAY_MS: i64 = 24 * 3_600_000;
    const START: i64 = 1_000 * DAY_MS;

    fn reading(wall: i64, boottime_ms: u64, boot: u128) -> ClockReading {
        ClockReading {
            wall: Timestamp(wall),
            boottime_ms,
            boot: Some(MachineBoot(Uuid::from_u128(boot))),
        }
    }

    /// A store that saw the time `START`, 1,000 ms after the boot 1.
    fn seen() -> ClockTimeline {
        let mut timeline = ClockTimeline::default();
        assert_eq!(timeline.start(&reading(START, 1_000, 1)), ClockChange::Continuous);
        timeline
    }

    #[test]
    fn a_clock_that_was_not_set_changes_nothing() {
        for now in [
            reading(START + 5_000, 6_000, 1),
            reading(START + 5_999, 6_000, 1),
            reading(START + DAY_MS / 2, 10, 2),
            reading(START, 10, 2),
        ] {
            let mut timeline = seen();
            assert_eq!(timeline.start(&now), ClockChange::Continuous, "{now:?}");
            assert!(timeline.steps.is_empty() && timeline.hold_ms == 0 && timeline.generation == 0);
        }
    }

    #[test]
    fn a_timer_counts_elapsed_time_over_a_clock_that_was_set() {
        // Set at START with 4 s remaining; a second later there is another server.
        let due = |wall: i64, boottime_ms, boot| {
            let mut timeline = seen();
            timeline.start(&reading(wall, boottime_ms, boot));
            let timer = TimerId(1);
            let set = Event::TimerSet { timer, due: Timestamp(START + 4_000) };
            let (at, event) = timeline.translate(Timestamp(START), &set, Timestamp(wall));
            let Event::TimerSet { due, .. } = *event else { panic!("{event:?}") };
            assert_eq!(due.0 - at.0, 4_000);
            due.0 - wall
        };
        assert_eq!(due(START + 1_000, 2_000, 1), 3_000, "nothing was set");
        assert_eq!(due(START + 1_000 - 3 * DAY_MS, 2_000, 1), 3_000, "set back");
        assert_eq!(due(START + 1_000 + 400 * DAY_MS, 2_000, 1), 3_000, "set forward");
        assert_eq!(due(START + 1_000, 10, 2), 3_000, "another boot");
        assert_eq!(due(START - 3 * DAY_MS, 10, 2), 4_000, "set back, another boot: nobody knows");
        assert_eq!(due(START - 3 * DAY_MS, 10, 1), 4_000, "a restored snapshot: nobody knows");
    }

    #[test]
    fn stamps_are_translated_over_several_steps() {
        let mut timeline = seen();
        timeline.start(&reading(START + 100 * DAY_MS, 1_000, 1));
        timeline.see(Timestamp(START + 100 * DAY_MS + 5_000), &reading(0, 6_000, 1));
        timeline.start(&reading(START + 50 * DAY_MS, 7_000, 1));
        let now = Timestamp(START + 50 * DAY_MS + 500);
        let moved = |at: i64| timeline.translate_stamp(Timestamp(at), now).0 - START;
        // 2 s before the first step, which is 6 s before the second.
        assert_eq!(moved(START - 2_000), 50 * DAY_MS - 8_000);
        assert_eq!(moved(START + 100 * DAY_MS + 1_000), 50 * DAY_MS - 5_000);
        assert_eq!(moved(START + 50 * DAY_MS + 400), 50 * DAY_MS + 400, "of this epoch");
    }

    #[test]
    fn a_wait_is_never_longer_than_it_was_asked_for() {
        let mut timeline = seen();
        timeline.start(&reading(START - 3 * DAY_MS, 1_000, 1));
        // Two days later a timestamp of the day before the step fits both epochs.
        let now = Timestamp(START - DAY_MS);
        for at in [START - 2 * DAY_MS, START - DAY_MS, START - 1, START, START + 60_000] {
            assert!(timeline.translate_stamp(Timestamp(at), now) <= now, "{at}");
        }
    }

    #[test]
    fn a_jump_of_more_than_a_day_holds_retention_and_going_back_ends_sessions() {
        let held = |now: ClockReading| {
            let mut timeline = seen();
            timeline.start(&now);
            (timeline.hold_ms, timeline.generation)
        };
        assert_eq!(held(reading(START + DAY_MS, 1_000, 1)), (0, 0));
        assert_eq!(held(reading(START + DAY_MS + 1, 1_000, 1)), (HOLD_MS, 0));
        assert_eq!(held(reading(START + DAY_MS + 1, 10, 2)), (HOLD_MS, 0));
        assert_eq!(held(reading(START - 59_000, 1_000, 1)), (0, 0));
        assert_eq!(held(reading(START - 60_000, 10, 2)), (0, 1));
        assert_eq!(held(reading(START - 2 * DAY_MS, 1_000, 1)), (HOLD_MS, 1));
    }

    #[test]
    fn steps_are_bounded() {
        let mut timeline = seen();
        for n in 0..100 {
            timeline.start(&reading(START + (n % 2) * DAY_MS, 1_000, 1));
        }
        assert_eq!(timeline.steps.len(), STEPS_MAX);
    }
}
