//! What a family of processes uses, for guardians of those that have limits.

use super::children::children_of;
use crate::cage::{CageLimits, Excess};

/// How much of a family is looked at: more are too many anyway.
const FAMILY_MAX: usize = 10_000;

/// What a family may use, and what it has.
pub(super) struct Meter {
    limits: CageLimits,
    /// What those had used who were reaped here before it came.
    ticks_before: u64,
}

impl Meter {
    /// None where there is nothing to look at.
    pub(super) fn new(limits: CageLimits) -> Option<Self> {
        (limits != CageLimits::default()).then(|| Self { limits, ticks_before: reaped_ticks() })
    }

    /// What was used too much, if anything.
    pub(super) fn excess(&self) -> Option<Excess> {
        let (mut unseen, mut n_processes, mut n_pages) =
            (children_of(std::process::id()), 0_u64, 0_u64);
        // Whoever lost its parent was reaped here; what it used counts all the same.
        let mut n_ticks = reaped_ticks().saturating_sub(self.ticks_before);
        while let Some(pid) = unseen.pop() {
            n_processes += 1;
            n_pages += resident_pages(pid);
            n_ticks += ticks(pid);
            if unseen.len() < FAMILY_MAX {
                unseen.extend(children_of(pid));
            }
        }
        // SAFETY: it takes a number and gives one; both names are known everywhere.
        let number = |name| unsafe { libc::sysconf(name) }.max(1).unsigned_abs();
        let memory_bytes = n_pages * number(libc::_SC_PAGESIZE);
        let cpu_ms = n_ticks * 1_000 / number(libc::_SC_CLK_TCK);
        let is_over = |most: Option<u64>, used: u64| most.is_some_and(|most| used > most);
        if is_over(self.limits.memory_bytes, memory_bytes) {
            return Some(Excess::Memory);
        }
        if is_over(self.limits.cpu_ms, cpu_ms) {
            return Some(Excess::Cpu);
        }
        is_over(self.limits.processes, n_processes).then_some(Excess::Processes)
    }
}

fn resident_pages(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let words: Vec<u64> =
        statm.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    words.get(1).copied().unwrap_or(0)
}

/// Time on processors: its own, and that of children who have ended.
fn ticks(pid: u32) -> u64 {
    times(pid).iter().sum()
}

/// That of children of this process who have ended.
fn reaped_ticks() -> u64 {
    let [_, _, user, system] = times(std::process::id());
    user + system
}

/// Of its own as a user and in the system, and of children who have ended, the same.
fn times(pid: u32) -> [u64; 4] {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut times = [0; 4];
    if let Some((_, after_name)) = stat.rsplit_once(')') {
        let words = after_name.split_ascii_whitespace().skip(11);
        for (time, word) in times.iter_mut().zip(words) {
            *time = word.parse().unwrap_or(0);
        }
    }
    times
}
