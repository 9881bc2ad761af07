//! Detects programs that wait for a clock that does not advance. The guest's clock shows the time of its
//! last input, so that a loop that waits for it to advance would never end.

use crate::usage;
use std::cell::Cell;
use std::time::Duration;

/// A program that has read the clock this often since its last input ...
pub(crate) const CLOCK_READS_MAX: u32 = 100_000;

/// ... and has used this much processor time since then is considered to be waiting for the clock.
pub(crate) const CLOCK_CPU_MAX: Duration = Duration::from_secs(1);

/// After that many reads, the processor time is checked once per this many further reads.
const CLOCK_READS_PER_LOOK: u32 = 10_000;

/// The message of the error that ends such a program.
pub(crate) const CLOCK_STANDS: &str = "the program waits for a clock that does not advance: Date.now(), new Date() and \
    performance.now() show the time of the last input, which is the start, a settled call or a fired timer. To wait, \
    use `await new Promise((done) => setTimeout(done, ms))`";

/// Watches the reads of one guest's clock.
#[derive(Default)]
pub(crate) struct ClockWatch {
    /// Processor time at the first check after the last input; `None` before that.
    busy_since: Cell<Option<Duration>>,
    /// Whether the guest is known to stop reading by itself, because it did so in the recorded run.
    is_replay: Cell<bool>,
    has_waited: Cell<bool>,
}

impl ClockWatch {
    /// An input arrived: the clock advances.
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

    /// Called by the prelude after [`CLOCK_READS_MAX`] reads, and then periodically. Returns after how many
    /// reads to call again; `None` if the guest must stop.
    pub(crate) fn check_clock_reads(&self) -> Option<u32> {
        let busy_since = self.busy_since.get().filter(|_| !self.is_replay.get());
        let has_waited =
            busy_since.is_some_and(|since| usage::cpu().saturating_sub(since) >= CLOCK_CPU_MAX);
        if has_waited {
            self.has_waited.set(true);
        }
        (!has_waited).then_some(CLOCK_READS_PER_LOOK)
    }

    /// Whether the guest was stopped because it waited for the clock.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited.get()
    }
}
