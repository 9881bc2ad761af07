//! The only source of time: wall clock, time since boot, and boot id. Tests set all three manually.
//!
//! Within a process time is continuous: the wall clock at the start of the process, plus the time elapsed since then
//! (`CLOCK_BOOTTIME`, which includes suspend). If the system's wall clock is set meanwhile, nothing
//! happens until the next start, which compares ([`timeline`]) and corrects earlier timestamps.

mod keeper;
mod manual;
mod timeline;

pub use keeper::clock_generation;
pub(crate) use keeper::{ClockKeeper, correct_dues, run_clock_keeper};
pub use manual::ManualClock;
pub(crate) use timeline::ClockTimeline;

use lifecycle::Timestamp;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Longest single wait. The runtime's timers do not count during suspend, so what becomes due meanwhile is at
/// most this late.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The file with Linux's boot id.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// A source of time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock, monotonic during the life of the process.
    System(ProcessStart),
    /// A clock that is set manually.
    Manual(ManualClock),
}

/// The clocks of the machine at the start of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStart {
    wall: Timestamp,
    boottime_ms: u64,
}

/// The clocks of the machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock.
    pub wall: Timestamp,
    /// Time since boot, suspend included.
    pub boottime_ms: u64,
    /// The boot id; none if the system does not provide it.
    pub boot: Option<MachineBoot>,
}

/// Identifies one boot of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MachineBoot(Uuid);

impl From<MachineBoot> for String {
    fn from(boot: MachineBoot) -> Self {
        boot.0.to_string()
    }
}

impl TryFrom<String> for MachineBoot {
    type Error = uuid::Error;

    fn try_from(text: String) -> Result<Self, uuid::Error> {
        text.trim().parse().map(Self)
    }
}

impl ProcessStart {
    const fn from_reading(reading: &ClockReading) -> Self {
        Self { wall: reading.wall, boottime_ms: reading.boottime_ms }
    }

    const fn timestamp_at(self, boottime_ms: u64) -> Timestamp {
        self.wall.after_ms(boottime_ms.saturating_sub(self.boottime_ms))
    }
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::System(ProcessStart { wall: system_wall(), boottime_ms: system_boottime_ms() })
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System(start) => start.timestamp_at(system_boottime_ms()),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// The clocks of the machine now, including changes of the wall clock since the process began.
    pub fn reading(&self) -> ClockReading {
        match self {
            Self::System(_) => ClockReading {
                wall: system_wall(),
                boottime_ms: system_boottime_ms(),
                boot: system_boot(),
            },
            Self::Manual(clock) => clock.reading(),
        }
    }

    /// Waits until `due`, or slightly less: callers check the clock again.
    pub async fn wait_until(&self, due: Timestamp) {
        match self {
            Self::System(_) => {
                let wait = Duration::from_millis(due.ms_since(self.now()));
                tokio::time::sleep(wait.min(WAIT_MAX)).await;
            }
            Self::Manual(clock) => clock.wait_until(due).await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is engine::clock")]
fn system_wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn system_boottime_ms() -> u64 {
    let time =
        clock_gettime(ClockId::CLOCK_BOOTTIME).expect("every Linux that we support has this clock");
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let ms = u64::try_from(time.tv_nsec() / 1_000_000).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(ms)
}

fn system_boot() -> Option<MachineBoot> {
    static BOOT: OnceLock<Option<MachineBoot>> = OnceLock::new();
    *BOOT.get_or_init(|| std::fs::read_to_string(BOOT_ID_FILE).ok()?.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_which_boot_it_is_and_time_does_not_go_back() {
        let clock = Clock::system();
        let (first, reading) = (clock.now(), clock.reading());
        assert!(reading.boot.is_some() && reading.boottime_ms > 0, "{reading:?}");
        assert!(clock.now() >= first && clock.reading().boottime_ms >= reading.boottime_ms);
    }

    #[tokio::test]
    async fn a_wall_clock_that_is_set_changes_nothing_within_a_process() {
        let hands = ManualClock::starting_at(Timestamp(1_000_000));
        let clock = Clock::Manual(hands.clone());
        hands.set_wall(Timestamp(5));
        hands.advance(Duration::from_millis(4_000));
        clock.wait_until(Timestamp(1_004_000)).await;
        assert_eq!(clock.now(), Timestamp(1_004_000));
        assert_eq!(clock.reading().wall, Timestamp(4_005));
        assert_eq!(hands.next_process().now(), Timestamp(4_005), "the next process begins with it");
    }
}
