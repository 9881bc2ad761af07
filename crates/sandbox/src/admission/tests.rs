//! The rules of sharing, without runners.

use super::budget::AdmissionQueue;
use super::fair_queue::{CallerKey, DemandTicket, FairQueue, OVERTAKEN_MAX};
use super::release_plan::{QueueReleaseOffer, plan_releases};
use crate::error::LeaseError;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZero;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const ONE: NonZero<u32> = NonZero::<u32>::MIN;

fn caller(name: &str) -> CallerKey {
    Some(Arc::from(name))
}

/// Enqueues `n` demands of one unit.
fn ask(queue: &mut FairQueue, name: &str, n: usize) -> Vec<DemandTicket> {
    (0..n).map(|_| queue.enqueue(&caller(name), ONE, 1)).collect()
}

/// The callers whose demands are granted, in order.
fn granted(queue: &mut FairQueue) -> String {
    let names = std::iter::from_fn(|| queue.next_grant());
    names.map(|grant| grant.caller.unwrap().to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_caller_with_many_demands_does_not_delay_another_callers_first() {
    let mut queue = FairQueue::new(3);
    ask(&mut queue, "busy", 400);
    assert_eq!(granted(&mut queue), "busy busy busy");
    ask(&mut queue, "quiet", 1);
    queue.release(&caller("busy"), 1, false);
    assert_eq!(granted(&mut queue), "quiet");
    queue.release(&caller("quiet"), 1, false);
    assert_eq!(granted(&mut queue), "busy");
}

#[test]
fn callers_that_hold_the_same_are_served_in_turns_and_demands_of_one_in_their_order() {
    let mut queue = FairQueue::new(1);
    let tickets = ask(&mut queue, "ann", 2);
    ask(&mut queue, "bob", 2);
    ask(&mut queue, "cyd", 1);
    let mut order = vec![];
    while let Some(grant) = queue.next_grant() {
        queue.release(&grant.caller, grant.units, false);
        order.push((grant.caller.unwrap().to_string(), grant.ticket));
    }
    let names: Vec<_> = order.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ann", "bob", "cyd", "ann", "bob"]);
    assert_eq!([order[0].1, order[3].1], [tickets[0], tickets[1]]);
}

#[test]
fn a_weight_is_a_multiple_of_the_share() {
    let mut queue = FairQueue::new(8);
    for _ in 0..10 {
        queue.enqueue(&caller("heavy"), NonZero::new(3).unwrap(), 1);
        queue.enqueue(&caller("light"), ONE, 1);
    }
    while queue.next_grant().is_some() {}
    assert_eq!((queue.held(&caller("heavy")), queue.held(&caller("light"))), (6, 2));
    let shares = BTreeMap::from([(caller("heavy"), 6), (caller("light"), 2)]);
    assert_eq!(queue.shares(), shares);
}

#[test]
fn a_large_demand_is_overtaken_by_other_callers_only_so_often_and_never_by_its_own() {
    let mut queue = FairQueue::new(2);
    ask(&mut queue, "small", 1);
    assert_eq!(granted(&mut queue), "small");
    queue.enqueue(&caller("large"), ONE, 2);
    queue.enqueue(&caller("large"), ONE, 1);
    for n in 0..OVERTAKEN_MAX {
        assert_eq!(queue.head_of(&caller("large")), Some((2, false)), "{n}");
        ask(&mut queue, "small", 1);
        assert_eq!(granted(&mut queue), "small", "{n}");
        queue.release(&caller("small"), 1, false);
    }
    ask(&mut queue, "small", 1);
    assert_eq!(granted(&mut queue), "", "memory is saved for the large one");
    queue.release(&caller("small"), 1, false);
    assert_eq!(granted(&mut queue), "large");
}

#[test]
fn shares_give_small_wishes_in_full_and_divide_the_rest() {
    let mut queue = FairQueue::new(10);
    ask(&mut queue, "one", 1);
    ask(&mut queue, "many", 50);
    ask(&mut queue, "more", 70);
    let shares: Vec<_> = queue.shares().into_values().collect();
    assert_eq!(shares, [5, 5, 1], "many, more, one; a half is rounded up");
}

proptest! {
    /// Random demands, releases and withdrawals: the budget is never exceeded, no demand that fits waits
    /// without a reason, and once all runners end, every demand is served.
    #[test]
    fn nothing_starves_and_nothing_that_fits_waits(
        steps in prop::collection::vec((0..4_u8, 0..5_usize, 1..=8_u64), 1..200),
    ) {
        let mut queue = FairQueue::new(8);
        let mut waiting = BTreeMap::new();
        let mut running = VecDeque::new();
        for (what, who, units) in steps {
            let key = caller(&who.to_string());
            match what {
                0 | 1 => {
                    let weight = NonZero::new(1 + u32::try_from(who).unwrap()).unwrap();
                    waiting.insert(queue.enqueue(&key, weight, units), key);
                }
                2 => {
                    if let Some((caller, units)) = running.pop_front() {
                        queue.release(&caller, units, false);
                    }
                }
                _ => {
                    if let Some((ticket, caller)) = waiting.pop_first() {
                        queue.withdraw(&caller, ticket);
                    }
                }
            }
            grant(&mut queue, &mut waiting, &mut running);
        }
        // At most one release for each waiting demand and each unit is needed.
        while let Some((caller, units)) = running.pop_front() {
            queue.release(&caller, units, false);
            grant(&mut queue, &mut waiting, &mut running);
        }
        prop_assert!(waiting.is_empty(), "{queue:?}");
        prop_assert_eq!((queue.free(), queue.shares().len()), (8, 0));
    }
}

/// Grants what may start, and checks that the remaining demands have a reason to wait.
fn grant(
    queue: &mut FairQueue,
    waiting: &mut BTreeMap<DemandTicket, CallerKey>,
    running: &mut VecDeque<(CallerKey, u64)>,
) {
    while let Some(grant) = queue.next_grant() {
        assert!(waiting.remove(&grant.ticket).is_some());
        running.push_back((grant.caller, grant.units));
    }
    let used: u64 = running.iter().map(|(_, units)| *units).sum();
    assert_eq!(queue.free(), 8 - used);
    for caller in queue.order() {
        let (units, is_saved_for) = queue.head_of(&caller).unwrap();
        assert!(units > queue.free(), "{queue:?}");
        if is_saved_for {
            break;
        }
    }
}

fn offer(name: &str, replay_ms: u64) -> QueueReleaseOffer {
    let replay_cpu = Duration::from_millis(replay_ms);
    QueueReleaseOffer { caller: caller(name), units: 1, replay_cpu, is_asked: false }
}

#[test]
fn runners_are_taken_from_callers_above_their_share_the_cheapest_replay_first() {
    let mut queue = FairQueue::new(4);
    ask(&mut queue, "modest", 1);
    ask(&mut queue, "greedy", 3);
    assert_eq!(granted(&mut queue), "modest greedy greedy greedy");
    let offers = [offer("modest", 1), offer("greedy", 9), offer("greedy", 5), offer("greedy", 7)];
    assert!(plan_releases(&queue, &offers).is_empty(), "no demand waits");
    ask(&mut queue, "quiet", 1);
    assert_eq!(plan_releases(&queue, &offers), [2]);
    ask(&mut queue, "quiet", 1);
    assert_eq!(plan_releases(&queue, &offers), [2], "then greedy holds no more than its share");
    let asked = [
        offers[0].clone(),
        offers[1].clone(),
        QueueReleaseOffer { is_asked: true, ..offers[2].clone() },
    ];
    assert!(plan_releases(&queue, &asked).is_empty(), "one was asked to end");
    queue.mark_ending(&caller("greedy"), 1);
    assert!(plan_releases(&queue, &offers[..2]).is_empty(), "one is about to be free");
}

#[test]
fn a_caller_makes_room_for_its_own_demands_and_never_for_a_demand_that_still_would_not_fit() {
    let mut queue = FairQueue::new(2);
    ask(&mut queue, "ann", 12);
    assert_eq!(granted(&mut queue), "ann ann");
    assert_eq!(plan_releases(&queue, &[offer("ann", 3), offer("ann", 2)]), [1, 0]);
    let mut queue = FairQueue::new(2);
    ask(&mut queue, "ann", 2);
    assert_eq!(granted(&mut queue), "ann ann");
    queue.enqueue(&caller("bob"), ONE, 2);
    assert!(plan_releases(&queue, &[offer("ann", 3)]).is_empty());
}

#[test]
fn an_attacker_with_many_demands_takes_nothing_from_a_caller_within_its_share() {
    let mut queue = FairQueue::new(4);
    ask(&mut queue, "victim", 2);
    assert_eq!(granted(&mut queue), "victim victim");
    ask(&mut queue, "attacker", 400);
    assert_eq!(granted(&mut queue), "attacker attacker");
    let offers = [offer("victim", 1), offer("victim", 1)];
    assert!(plan_releases(&queue, &offers).is_empty());
}

#[test]
fn a_dropped_demand_leaves_the_queue_and_a_closed_budget_refuses() {
    let mut context = Context::from_waker(Waker::noop());
    let admission = AdmissionQueue::new(4 * MIB, BTreeMap::new());
    let ann = caller("ann");
    let first = admission.try_admit(&ann, 3 * MIB).unwrap().unwrap();
    let mut large = Box::pin(admission.admit_caller(&ann, 4 * MIB));
    let mut small = pin!(admission.admit_caller(&ann, MIB));
    assert!(large.as_mut().poll(&mut context).is_pending());
    assert!(small.as_mut().poll(&mut context).is_pending());
    assert_eq!((admission.runners(), admission.bytes(), admission.waiting()), (1, 3 * MIB, 2));
    drop(large);
    assert!(matches!(small.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
    drop(first);
    assert_eq!(admission.waiting(), 0);
    let all = admission.try_admit(&None, 4 * MIB).unwrap().unwrap();
    let mut waiting = Box::pin(admission.admit_caller(&ann, MIB));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    admission.close();
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Err(LeaseError::Closed))));
    drop((all, waiting));
    assert_eq!((admission.runners(), admission.bytes(), admission.waiting()), (0, 0, 0));
}

#[test]
fn what_can_never_fit_is_refused() {
    let admission = AdmissionQueue::new(4 * MIB + 5, BTreeMap::new());
    for asked_bytes in [4 * MIB + 1, 4 * MIB + 6, u64::MAX] {
        let refused = LeaseError::TooLarge { asked_bytes, budget_bytes: 4 * MIB + 5 };
        assert_eq!(admission.try_admit(&None, asked_bytes).unwrap_err(), refused);
    }
    assert!(admission.try_admit(&None, 0).unwrap().is_some());
}
