//! Measures what a process family uses, for subreapers of families with limits.

use super::children::children_of;
use super::stat::ProcessStat;
use crate::cage::{CageLimits, LimitExcess};
use nix::unistd::Pid;
use std::collections::HashMap;

/// Limit of the processes that are measured: a larger family is over its limits anyway.
const FAMILY_MAX: usize = 10_000;

/// A family's limits and usage.
pub(super) struct UsageMeter {
    limits: CageLimits,
    /// The usage of children that were reaped here before this family.
    ticks_before: u64,
    /// The usage of each process at the last measurement, by number and start time.
    seen: HashMap<(u32, u64), u64>,
    /// The last measured usage of processes that have ended.
    ticks_gone: u64,
}

impl UsageMeter {
    /// `None` if there is nothing to measure.
    pub(super) fn new(limits: CageLimits) -> Option<Self> {
        let fresh = || {
            let ticks_before = reaped_ticks();
            Self { limits, ticks_before, seen: HashMap::new(), ticks_gone: 0 }
        };
        (limits != CageLimits::default()).then(fresh)
    }

    /// The limit that is exceeded, if any. The first process of a cage is ours: only the processes that it
    /// has reaped count.
    pub(super) fn excess(&mut self, init: Option<Pid>) -> Option<LimitExcess> {
        let init = init.map(|init| init.as_raw().unsigned_abs());
        let mut unseen = children_of(std::process::id());
        let (mut n_processes, mut n_pages, mut seen) = (0_u64, 0_u64, HashMap::new());
        // An orphan was reaped here; its usage counts, too.
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
        // SAFETY: it takes a number and returns one; both names exist on every system.
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

    /// Processor time, by two methods, of which the larger result counts. Parents account for children that
    /// they reaped, however short-lived; measured time also counts if a parent did not reap its children.
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

/// Processor time of this process's reaped children.
fn reaped_ticks() -> u64 {
    ProcessStat::from_pid(std::process::id()).map_or(0, |stat| stat.reaped_ticks)
}
