//! A runner's process, referred to by its pidfd: unlike a number, it cannot come to mean another process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The nice value of a process that has been busy for long: it gets a third of the others' processor time.
const BUSY_NICE: i32 = 5;

/// A process that cannot be confused with a later one.
#[derive(Debug)]
pub(crate) struct PinnedProcess {
    pidfd: OwnedFd,
    /// Read when it is first needed: most runners end before.
    pid: OnceLock<Option<i32>>,
    /// The nice values for its own work and for its caller's use of processors. The higher one applies.
    busy_nice: AtomicI32,
    caller_nice: AtomicI32,
}

impl PinnedProcess {
    pub(crate) fn new(pidfd: OwnedFd) -> Self {
        let (busy_nice, caller_nice) = (AtomicI32::new(0), AtomicI32::new(0));
        Self { pidfd, pid: OnceLock::new(), busy_nice, caller_nice }
    }

    /// Its number as this process sees it; `None` if /proc does not show it.
    pub(crate) fn pid(&self) -> Option<i32> {
        *self.pid.get_or_init(|| pid_of(&self.pidfd))
    }

    /// Kills the process. Has no effect on one that has already ended.
    pub(crate) fn kill(&self) {
        // The only other error means that the process has ended.
        drop(self.signal(libc::SIGKILL));
    }

    /// Processor time that it has used so far; `None` once it is reaped.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        // The kernel's number of a process's clock: the pid inverted, then "process, scheduler time".
        let clock = (!self.pid()?) << 3 | 2;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one timespec, which is what is there.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return None;
        }
        // The clock is addressed by number. If the pidfd is still valid, the number belonged to this
        // process.
        self.signal(0).ok()?;
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }

    /// Total time for which it was ready to run and had no processor; `None` if the system does not report
    /// it.
    pub(crate) fn wait_time(&self) -> Option<Duration> {
        let told = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid()?)).ok()?;
        // As with `cpu_time`: the file is addressed by number.
        self.signal(0).ok()?;
        Some(Duration::from_nanos(told.split_whitespace().nth(1)?.parse().ok()?))
    }

    /// Lowers its priority, which matters if processors are scarce.
    pub(crate) fn step_back(&self) {
        self.busy_nice.store(BUSY_NICE, Ordering::Relaxed);
        self.apply_nice();
    }

    /// Sets the nice value for its caller's use of processors. Lowering it needs a privilege; without it,
    /// the value stays.
    pub(crate) fn set_caller_nice(&self, nice: u8) {
        if self.caller_nice.swap(i32::from(nice), Ordering::Relaxed) != i32::from(nice) {
            self.apply_nice();
        }
    }

    fn apply_nice(&self) {
        let nice = self.busy_nice.load(Ordering::Relaxed);
        let nice = nice.max(self.caller_nice.load(Ordering::Relaxed));
        if let Some(pid) = self.pid()
            && self.signal(0).is_ok()
        {
            // SAFETY: numbers only. The process is addressed by number just after the pidfd was valid: at
            // worst another process gets a lower priority.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, pid.cast_unsigned(), nice) };
        }
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is a pidfd that we own; a null info is allowed and means "as kill does".
        let answer = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal, no_info, 0)
        };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn pid_of(pidfd: &OwnedFd) -> Option<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    (pid > 0).then_some(pid)
}
