//! Decides which waiting programs give up their runners so that demands of callers below their share can start. Pure.

use super::fair_queue::{CallerKey, FairQueue};
use std::time::Duration;

/// A runner whose program only waits and could be replayed later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseOffer {
    /// The caller that the runner is charged to, as in [`crate::LeaseDemand::caller`].
    pub caller: Option<String>,
    /// The memory that the runner was leased with.
    pub memory_bytes: u64,
    /// Processor time that a replay would take.
    pub replay_cpu: Duration,
    /// Whether its holder was already asked to give it up.
    pub is_asked: bool,
}

/// The same offer in the queue's units.
#[derive(Debug, Clone)]
pub(super) struct QueueReleaseOffer {
    pub(super) caller: CallerKey,
    pub(super) units: u64,
    pub(super) replay_cpu: Duration,
    pub(super) is_asked: bool,
}

/// Indexes of the offers to take, the cheapest to replay first. Offers come only from callers above their
/// fair share, or from the caller whose own demand waits. Runners that are ending, or asked to end, already
/// count as free, and no offer is taken for a demand that would still not fit.
pub(super) fn plan_releases(queue: &FairQueue, offers: &[QueueReleaseOffer]) -> Vec<usize> {
    if offers.is_empty() {
        return vec![];
    }
    let mut future = queue.shortened(offers.len().saturating_add(1));
    future.complete_endings();
    let mut taken: Vec<_> = (0..offers.len()).filter(|at| offers[*at].is_asked).collect();
    let n_asked = taken.len();
    for at in &taken {
        future.release(&offers[*at].caller, offers[*at].units, false);
    }
    loop {
        while future.next_grant().is_some() {}
        let Some(more) = releases_for_next(&future, offers, &taken) else {
            return taken.split_off(n_asked);
        };
        for at in more {
            future.release(&offers[at].caller, offers[at].units, false);
            taken.push(at);
        }
    }
}

/// The offers that allow the most entitled of the demands that can be helped to start.
fn releases_for_next(
    queue: &FairQueue,
    offers: &[QueueReleaseOffer],
    taken: &[usize],
) -> Option<Vec<usize>> {
    for caller in queue.order() {
        let (units, is_saved_for) = queue.head_of(&caller)?;
        if let Some(enough) = enough_for(queue, offers, taken, (&caller, units)) {
            return Some(enough);
        }
        if is_saved_for {
            return None; // what others gave up would be saved for this demand
        }
    }
    None
}

fn enough_for(
    queue: &FairQueue,
    offers: &[QueueReleaseOffer],
    taken: &[usize],
    (beneficiary, units): (&CallerKey, u64),
) -> Option<Vec<usize>> {
    let shares = queue.shares();
    let mut free = queue.free();
    let mut enough = vec![];
    while free < units {
        let given_up = |caller: &CallerKey| -> u64 {
            let mine = enough.iter().filter(|at: &&usize| offers[**at].caller == *caller);
            mine.map(|at| offers[*at].units).sum()
        };
        let may_take = |at: &usize| {
            let caller = &offers[*at].caller;
            let held = queue.held(caller).saturating_sub(given_up(caller));
            let is_above = held > shares.get(caller).copied().unwrap_or(0);
            !taken.contains(at) && !enough.contains(at) && (caller == beneficiary || is_above)
        };
        let cheapest =
            (0..offers.len()).filter(may_take).min_by_key(|at| offers[*at].replay_cpu)?;
        free += offers[cheapest].units;
        enough.push(cheapest);
    }
    Some(enough)
}
