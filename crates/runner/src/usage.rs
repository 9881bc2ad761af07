//! What the kernel says this process has used: two calls that fill a struct.
#![expect(unsafe_code, reason = "the standard library offers neither number")]

use std::time::Duration;

/// Processor time of this thread so far.
pub(crate) fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes of a timespec for the whole call, which keeps no copy of it. The clock
    // is one that every Linux has; were the call to fail, the zero written above would stay.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// The most memory this process has ever had in use, in bytes; 0 if the kernel will not say.
pub(crate) fn memory_peak_bytes() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writes of a rusage for the whole call, which keeps no copy of it. A rusage is
    // made of integers, for which the zeros of a failed call are a value like any other.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).unwrap_or_default().saturating_mul(1024)
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
