//! A machine whose clocks are set manually, for tests.

use super::{ClockReading, MachineBoot, ProcessStart};
use lifecycle::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// A clock that shows the same time until it is advanced. Clones show the same machine and belong to the same process.
#[derive(Debug, Clone)]
pub struct ManualClock {
    machine: Arc<watch::Sender<ClockReading>>,
    start: ProcessStart,
}

impl ManualClock {
    /// The clock of a process that begins now, on a machine whose wall clock shows `now`.
    pub fn starting_at(now: Timestamp) -> Self {
        let boot = Some(MachineBoot(Uuid::from_u128(1)));
        let machine = ClockReading { wall: now, boottime_ms: 0, boot };
        let start = ProcessStart::from_reading(&machine);
        Self { machine: Arc::new(watch::Sender::new(machine)), start }
    }

    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.machine.send_modify(|machine| {
            machine.wall = machine.wall.after_ms(ms);
            machine.boottime_ms = machine.boottime_ms.saturating_add(ms);
        });
    }

    /// Sets the wall clock of the machine. No time passes.
    pub fn set_wall(&self, wall: Timestamp) {
        self.machine.send_modify(|machine| machine.wall = wall);
    }

    /// Starts the machine again. Only clocks of [`Self::next_process`] are of use after it.
    pub fn reboot(&self) {
        self.machine.send_modify(|machine| {
            let boot = machine.boot.map_or(0, |boot| boot.0.as_u128());
            machine.boot = Some(MachineBoot(Uuid::from_u128(boot + 1)));
            machine.boottime_ms = 0;
        });
    }

    /// The clock of another process that begins now, on the same machine.
    #[must_use]
    pub fn next_process(&self) -> Self {
        let start = ProcessStart::from_reading(&self.machine.borrow());
        Self { machine: Arc::clone(&self.machine), start }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.start.timestamp_at(self.machine.borrow().boottime_ms)
    }

    pub(super) fn reading(&self) -> ClockReading {
        *self.machine.borrow()
    }

    pub(super) async fn wait_until(&self, due: Timestamp) {
        let mut machine = self.machine.subscribe();
        // The clock outlives this wait: it holds a sender itself.
        let _ =
            machine.wait_for(|machine| self.start.timestamp_at(machine.boottime_ms) >= due).await;
    }
}
