//! Helpers for the tests of runners: a sandbox whose runners execute commands, and functions that watch processes.

use sandbox::{Config, Lease, LeaseDemand, LeaseMessage, RunnerExit, RunnerProgramPath, Sandbox};
use std::collections::{HashMap, HashSet};
use std::os::fd::{FromRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

pub(crate) const MIB: u64 = 1 << 20;

/// The program whose runners execute commands of the test.
pub(crate) const ATTEMPTS: &str = env!("CARGO_BIN_EXE_attempts-for-tests");

pub(crate) fn config() -> Config {
    Config { program: RunnerProgramPath::At(ATTEMPTS.into()), warm_runners: 2, ..Config::default() }
}

pub(crate) async fn start() -> Sandbox {
    Sandbox::start(config()).await.expect("the required layers exist on every host that runs tests")
}

pub(crate) async fn lease(sandbox: &Sandbox) -> Lease {
    sandbox.lease(LeaseDemand::default()).await.expect("one more runner fits")
}

/// Sends a command and returns the line that answers it.
pub(crate) async fn told(lease: &mut Lease, order: &str) -> Result<String, RunnerExit> {
    if lease.push(format!("{order}\n").as_bytes()).is_err() {
        return Err(end(lease).await);
    }
    match lease.receive().await {
        LeaseMessage::Line(line) => {
            Ok(String::from_utf8(line.to_vec()).expect("runners answer in text"))
        }
        LeaseMessage::Gone(exit) => Err(exit),
    }
}

/// Receives messages until the runner is gone, and returns how it ended.
pub(crate) async fn end(lease: &mut Lease) -> RunnerExit {
    loop {
        if let LeaseMessage::Gone(exit) = lease.receive().await {
            return exit;
        }
    }
}

/// A process that is watched through a pidfd.
pub(crate) struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// Returns `None` if there is no such process.
    #[expect(unsafe_code, reason = "a pidfd is the only way to await another's child")]
    pub(crate) fn new(pid: i32) -> Option<Self> {
        // SAFETY: pidfd_open takes numbers; the descriptor that it creates is new and owned by this code.
        let descriptor = unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
        }?;
        // SAFETY: an OwnedFd keeps its descriptor open and the same.
        let watched = unsafe { AsyncFd::register(descriptor) };
        Some(Self(watched.expect("a pidfd can be polled")))
    }

    /// Waits until the process has ended.
    pub(crate) async fn gone(&self) {
        drop(self.0.readable().await.expect("a pidfd can be polled"));
    }
}

#[expect(unsafe_code, reason = "there is no safe kill")]
pub(crate) fn kill(pid: i32) {
    // SAFETY: kill takes numbers; the process is a child or grandchild of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Returns all descendants of a process, including zombies.
pub(crate) fn descendants(ancestor: u32) -> HashSet<i32> {
    let mut parents = HashMap::new();
    for entry in std::fs::read_dir("/proc").expect("/proc is mounted").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name may contain any character; the state and the parent follow its last parenthesis.
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
        if let Some(parent) = parent.and_then(|parent| parent.parse::<i32>().ok()) {
            parents.insert(pid, parent);
        }
    }
    let ancestor = ancestor as i32;
    let is_below = |pid: i32| {
        let line =
            std::iter::successors(parents.get(&pid).copied(), |pid| parents.get(pid).copied());
        line.take(64).any(|above| above == ancestor)
    };
    parents.keys().copied().filter(|pid| is_below(*pid)).collect()
}

/// Runs `look` on a thread that has entered the mount namespace of a process, without its filter. Needs root.
#[expect(unsafe_code, reason = "there is no safe setns")]
pub(crate) fn in_mounts_of<T: Send + 'static>(
    pid: i32,
    look: impl FnOnce() -> T + Send + 'static,
) -> T {
    let mounts = std::fs::File::open(format!("/proc/{pid}/ns/mnt")).expect("root may open it");
    let inside = move || {
        // SAFETY: both calls take numbers, and change this thread alone: from here on its root directory is its own.
        let entered = unsafe {
            libc::unshare(libc::CLONE_FS) == 0
                && libc::setns(std::os::fd::AsRawFd::as_raw_fd(&mounts), libc::CLONE_NEWNS) == 0
        };
        assert!(entered, "{}", std::io::Error::last_os_error());
        look()
    };
    std::thread::spawn(inside).join().expect("the thread does not panic")
}

/// Returns the capability sets of a process: inheritable, permitted, effective, bounding, ambient.
pub(crate) fn capabilities(pid: i32) -> [u64; 5] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is alive");
    ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"].map(|name| {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(set.expect("every kernel has it").trim(), 16).expect("it is a number")
    })
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
