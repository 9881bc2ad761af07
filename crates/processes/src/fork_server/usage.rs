//! What a family of processes uses, for subreapers of those that have limits.

use super::children::children_of;
use super::stat::ProcessStat;
use crate::cage::{CageLimits, LimitExcess};
use nix::unistd::Pid;
use std::collections::HashMap;

/// How much of a family is looked at: more are too many anyway.
const FAMILY_MAX: usize = 10_000;

/// What a family may use, and what it has.
pub(super) struct UsageMeter {
    limits: CageLimits,
    /// What those had used who were reaped here before it came.
    ticks_before: u64,
    /// What each of those had used who were there at the last look, by number and when it began.
    seen: HashMap<(u32, u64), u64>,
    /// What those had used at the last look at them who are gone.
    ticks_gone: u64,
}

impl UsageMeter {
    /// None where there is nothing to look at.
    pub(super) fn new(limits: CageLimits) -> Option<Self> {
        let fresh = || {
            let ticks_before = reaped_ticks();
            Self { limits, ticks_before, seen: HashMap::new(), ticks_gone: 0 }
        };
        (limits != CageLimits::default()).then(fresh)
    }

    /// What was used too much, if anything. The first process of a cage is ours: only those count whom it has reaped.
    pub(super) fn excess(&mut self, init: Option<Pid>) -> Option<LimitExcess> {
        let init = init.map(|init| init.as_raw().unsigned_abs());
        let mut unseen = children_of(std::process::id());
        let (mut n_processes, mut n_pages, mut seen) = (0_u64, 0_u64, HashMap::new());
        // Whoever lost its parent was reaped here; what it used counts all the same.
        let mut n_ticks = reaped_ticks().saturating_sub(self.ticks_before);
        while let Some(pid) = unseen.pop() {
            let stat = ProcessStat::from_pid(pid);
            if init == Some(pid) {
                n_ticks += stat.map_or(0, |stat| stat.reaped_ticks);
            } else if let Some(stat) = stat {
                n_ticks += stat.own_ticks + stat.reaped_ticks;
                seen.insert((pid, stat.begun), stat.own_ticks);
            }
            if init != Some(pid) {
                n_processes += 1;
                n_pages += resident_pages(pid);
            }
            if unseen.len() < FAMILY_MAX {
                unseen.extend(children_of(pid));
            }
        }
        // SAFETY: it takes a number and gives one; both names are known everywhere.
        let number = |name| unsafe { libc::sysconf(name) }.max(1).unsigned_abs();
        let memory_bytes = n_pages * number(libc::_SC_PAGESIZE);
        let cpu_ms = self.ticks(n_ticks, seen) * 1_000 / number(libc::_SC_CLK_TCK);
        let is_over = |most: Option<u64>, used: u64| most.is_some_and(|most| used > most);
        if is_over(self.limits.memory_bytes, memory_bytes) {
            return Some(LimitExcess::Memory);
        }
        if is_over(self.limits.cpu_ms, cpu_ms) {
            return Some(LimitExcess::Cpu);
        }
        is_over(self.limits.processes, n_processes).then_some(LimitExcess::Processes)
    }

    /// Time on processors, of two ways to count it the one that finds more. Parents account for children that they reaped,
    /// however short they lived; what was seen also counts where a parent had its children reaped by nobody.
    fn ticks(&mut self, accounted: u64, seen: HashMap<(u32, u64), u64>) -> u64 {
        let before = std::mem::replace(&mut self.seen, seen);
        let gone = before.iter().filter(|(process, _)| !self.seen.contains_key(process));
        self.ticks_gone += gone.map(|(_, ticks)| ticks).sum::<u64>();
        accounted.max(self.ticks_gone + self.seen.values().sum::<u64>())
    }
}

fn resident_pages(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let words: Vec<u64> =
        statm.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    words.get(1).copied().unwrap_or(0)
}

/// That of children of this process who have ended.
fn reaped_ticks() -> u64 {
    ProcessStat::from_pid(std::process::id()).map_or(0, |stat| stat.reaped_ticks)
}
