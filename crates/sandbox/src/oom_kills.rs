//! Distinguishes a kill by the kernel's out-of-memory handling from a kill by another process, with the
//! counter of our cgroup.

use crate::memory::oom_kill_files;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An out-of-memory kill that no runner has claimed after this time was another process of the cgroup.
const UNCLAIMED_MAX: Duration = Duration::from_secs(5);

/// Counts the unexplained kills of our cgroup.
#[derive(Debug)]
pub(crate) struct OomKills {
    /// Empty if no cgroup counts kills.
    files: Vec<PathBuf>,
    state: Mutex<OomKillCounter>,
}

#[derive(Debug, Default)]
struct OomKillCounter {
    total: u64,
    unclaimed: u64,
    /// When the counter was last observed to have risen.
    since: Option<Instant>,
}

impl OomKills {
    /// Starts to watch the counter. `root` is `/`.
    pub(crate) fn watch(root: &Path) -> Self {
        let files = oom_kill_files(root);
        let total = total(&files);
        Self { files, state: Mutex::new(OomKillCounter { total, ..OomKillCounter::default() }) }
    }

    /// Reads the counter, so that a kill is not mistaken for a later one.
    pub(crate) fn observe(&self) {
        self.read(Instant::now());
    }

    /// Whether a process that was just killed was killed for lack of memory. Each kill counts once.
    pub(crate) fn claim(&self) -> bool {
        self.read(Instant::now());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_oom = state.unclaimed > 0;
        state.unclaimed = state.unclaimed.saturating_sub(1);
        is_oom
    }

    fn read(&self, now: Instant) {
        if self.files.is_empty() {
            return;
        }
        let total = total(&self.files);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = state.since.is_some_and(|since| now.duration_since(since) > UNCLAIMED_MAX);
        if total > state.total {
            state.unclaimed = total - state.total + if is_old { 0 } else { state.unclaimed };
            state.total = total;
            state.since = Some(now);
        } else if is_old {
            state.unclaimed = 0;
        }
    }
}

fn total(files: &[PathBuf]) -> u64 {
    let kills = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
    };
    files.iter().filter_map(kills).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(groups: &str, counter: &str, text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [("proc/self/cgroup", groups), (counter, text)] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_kill_counts_as_out_of_memory_once_if_the_cgroup_counted_it() {
        for (groups, counter) in [
            ("0::/a/b\n", "sys/fs/cgroup/a/b/memory.events"),
            ("0::/unseen/from/inside\n", "sys/fs/cgroup/memory.events"),
            ("4:memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.oom_control"),
            ("4:cpu,memory:/unseen\n", "sys/fs/cgroup/memory/memory.oom_control"),
        ] {
            let root = machine(groups, counter, "oom 9\noom_kill 3\n");
            let kills = OomKills::watch(root.path());
            assert!(!kills.claim(), "{counter}: nothing happened since the start");
            let counted = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n";
            std::fs::write(root.path().join(counter), counted).unwrap();
            assert_eq!([kills.claim(), kills.claim(), kills.claim()], [true, true, false]);
        }
    }

    #[test]
    fn where_nothing_counts_no_kill_is_for_lack_of_memory() {
        let root = tempfile::tempdir().unwrap();
        assert!(!OomKills::watch(root.path()).claim());
    }

    #[test]
    fn a_kill_that_nobody_claimed_in_time_was_another_process() {
        let counter = "sys/fs/cgroup/memory.events";
        let root = machine("0::/\n", counter, "oom_kill 0\n");
        let kills = OomKills::watch(root.path());
        std::fs::write(root.path().join(counter), "oom_kill 1\n").unwrap();
        kills.observe();
        kills.read(Instant::now() + UNCLAIMED_MAX + Duration::from_secs(1));
        assert!(!kills.claim());
    }
}
