//! The kernel's accounting of this process.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time of this thread so far.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    // Every Linux has this clock.
    time.map_or(Duration::ZERO, Duration::from)
}

/// The peak memory use of this process, in bytes; 0 if the kernel does not report it.
pub(crate) fn memory_peak_bytes() -> u64 {
    let peak_kib = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss());
    u64::try_from(peak_kib).unwrap_or_default().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_numbers_are_there() {
        assert!(super::memory_peak_bytes() > 0);
        let before = super::cpu();
        while super::cpu() == before {}
    }
}
