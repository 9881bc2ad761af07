//! What a family of processes uses, for guardians of those that have limits.

use super::children::children_of;
use crate::cage::{CageLimits, Excess};

/// How much of a family is looked at: more are too many anyway.
const FAMILY_MAX: usize = 10_000;

/// What was used too much, if anything.
pub(super) fn excess(limits: &CageLimits) -> Option<Excess> {
    let (mut unseen, mut n_processes, mut n_pages, mut n_ticks) =
        (children_of(std::process::id()), 0_u64, 0_u64, 0_u64);
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
    if is_over(limits.memory_bytes, memory_bytes) {
        return Some(Excess::Memory);
    }
    if is_over(limits.cpu_ms, cpu_ms) {
        return Some(Excess::Cpu);
    }
    is_over(limits.processes, n_processes).then_some(Excess::Processes)
}

fn resident_pages(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let words: Vec<u64> =
        statm.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    words.get(1).copied().unwrap_or(0)
}

/// Time on processors: its own, and that of children who have ended.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, after_name)) = stat.rsplit_once(')') else { return 0 };
    let times = after_name.split_ascii_whitespace().skip(11).take(4);
    times.filter_map(|word| word.parse::<u64>().ok()).sum()
}
