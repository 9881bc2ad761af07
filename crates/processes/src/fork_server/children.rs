//! Lists the present children of this process. Their numbers are unambiguous: they are not reused before
//! the children are reaped, and only this process reaps them.

use super::stat::ProcessStat;
use nix::unistd::Pid;

/// The children of this process.
pub(super) fn children() -> impl Iterator<Item = Pid> {
    let own = std::process::id();
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let pids = match listed {
        Ok(listed) => listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // Not every kernel provides the list.
        Err(_) => searched(own),
    };
    pids.into_iter().map(Pid::from_raw)
}

/// The children of any process, of all its threads.
pub(super) fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
    let threads = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    threads.flat_map(|thread| children_of_thread(pid, thread)).collect()
}

/// The children of one thread of any process.
pub(super) fn children_of_thread(pid: u32, thread: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
    let listed = listed.unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// All processes whose parent is `own`.
fn searched(own: u32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return vec![] };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: &i32| ProcessStat::from_pid(pid.unsigned_abs()).map(|stat| stat.parent);
    pids.filter(|pid| parent(pid) == Some(own)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_look_find_the_same() {
        #[expect(clippy::disallowed_methods, reason = "the test is the owner and waits for it")]
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // Other tests of this program have children, too.
        let (listed, searched) =
            (children().any(|child| child.as_raw() == pid), searched(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        // The list is that of the main thread, which is the only thread of a fork server.
        let _ = listed;
        assert!(searched.contains(&pid));
    }
}
