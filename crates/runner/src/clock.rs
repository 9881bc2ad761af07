//! Programs that wait for a clock that does not advance. The guest's clock shows the time of its last input, so that a
//! loop which waits for it to move would never end.

use crate::usage;
use std::cell::Cell;
use std::time::Duration;

/// A program that has read the clock so often since its last input ...
pub(crate) const CLOCK_READS_MAX: u32 = 100_000;

/// ... and has used so much processor time since then, waits for the clock.
pub(crate) const CLOCK_CPU_MAX: Duration = Duration::from_secs(1);

/// Once it has read the clock so often, the processor time is looked at after as many further reads.
const CLOCK_READS_PER_LOOK: u32 = 10_000;

/// What such a program is told.
pub(crate) const CLOCK_STANDS: &str = "the program waits for a clock that does not advance: Date.now(), new Date() and \
    performance.now() show the time of the last input, which is the start, a settled call or a fired timer. To wait, \
    use `await new Promise((done) => setTimeout(done, ms))`";

/// Watches the reads of one guest's clock.
#[derive(Default)]
pub(crate) struct ClockWatch {
    /// Processor time when the engine first asked after the last input; `None` before that.
    busy_since: Cell<Option<Duration>>,
    /// Whether it is known that the guest stops reading by itself, because it did so before.
    is_replay: Cell<bool>,
    has_waited: Cell<bool>,
}

impl ClockWatch {
    /// An input came: the clock advances.
    pub(crate) fn advance(&self, is_replay: bool) {
        self.busy_since.set(None);
        self.is_replay.set(is_replay);
        self.has_waited.set(false);
    }

    /// Called while the guest is busy.
    pub(crate) fn tick(&self) {
        if self.busy_since.get().is_none() {
            self.busy_since.set(Some(usage::cpu()));
        }
    }

    /// Called by the prelude after [`CLOCK_READS_MAX`] reads, and then again and again. Says after how many reads to
    /// ask again; `None` if the guest must stop.
    pub(crate) fn check_clock_reads(&self) -> Option<u32> {
        let busy_since = self.busy_since.get().filter(|_| !self.is_replay.get());
        let has_waited =
            busy_since.is_some_and(|since| usage::cpu().saturating_sub(since) >= CLOCK_CPU_MAX);
        if has_waited {
            self.has_waited.set(true);
        }
        (!has_waited).then_some(CLOCK_READS_PER_LOOK)
    }

    /// Whether the guest was stopped because of it.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited.get()
    }
}
