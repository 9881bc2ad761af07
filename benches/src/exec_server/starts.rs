//! From the request for a program to the notification of its end, one at a time and sixteen.

use super::floor::{Bare, RoundTrip};
use super::peer::{Peer, Said, Transport};
use super::{PLAN, Side, beside};
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report, Target};
use serde_json::json;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A program that does nothing.
const NOTHING: &[&str] = &["/bin/true"];

/// The largest multiple of the bare loop's time for a start, apart from a round trip.
const START_SHARE: f64 = 1.5;

/// Programs of one operation with several in flight.
const BATCH: usize = 64;
const IN_FLIGHT: usize = 16;

pub(super) fn run(
    ours: &Side,
    theirs: Option<&Side>,
    transport: Transport,
    report: &mut Report,
) -> Result<()> {
    let name = |side: &Side, what: &str| format!("{}, {}: {what}", side.name, transport.name());
    let trip = RefCell::new(RoundTrip::new(transport)?);
    let one = |side: &Side| -> Result<Contender<'_>> {
        let mut peer = side.connect(transport)?;
        Ok(Contender::timed(name(side, "start to exited"), move || start_to_exited(&mut peer)))
    };
    let floor = || -> Result<Contender<'_>> {
        let trip = &trip;
        Ok(Contender::timed("1.5 bare fork and exec, and a round trip", move || {
            let began = Instant::now();
            Bare::start(NOTHING)?.finish()?;
            let bare = began.elapsed();
            let began = Instant::now();
            trip.borrow_mut().go()?;
            Ok(bare.mul_f64(START_SHARE) + began.elapsed())
        }))
    };
    let wish = vec![Target::RatioMax(1.0)];
    beside(report, PLAN, (one(ours)?, wish), theirs.map(one).transpose()?, floor)?;

    for n_at_once in [1, IN_FLIGHT] {
        let what = format!("a start, {n_at_once} under way");
        let many = |side: &Side| -> Result<Contender<'_>> {
            let mut peer = side.connect(transport)?;
            let run = move || starts(&mut peer, n_at_once);
            Ok(Contender::new(name(side, &what), run).batch(BATCH as u64))
        };
        let floor = || -> Result<Contender<'_>> {
            let floor = format!("bare fork and exec, {n_at_once} under way");
            Ok(Contender::new(floor, move || bare_starts(n_at_once)).batch(BATCH as u64))
        };
        let plan = Plan { warm_up_ops: 1, n_rounds: 5, round_ops: 8, ..PLAN };
        beside(report, plan, (many(ours)?, vec![]), theirs.map(many).transpose()?, floor)?;
    }
    Ok(())
}

fn start_to_exited(peer: &mut Peer) -> Result<Duration> {
    let began = Instant::now();
    peer.spawn(NOTHING, &json!({}))?;
    while peer.next()? != Said::Exited {}
    let took = began.elapsed();
    // Some servers report the end of the streams first.
    peer.ask("environment/status", &json!({}))?;
    peer.answer()?;
    Ok(took)
}

/// Starts programs, a new one whenever one ends.
fn starts(peer: &mut Peer, n_at_once: usize) -> Result<()> {
    for _ in 0..n_at_once {
        peer.spawn(NOTHING, &json!({}))?;
    }
    let (mut n_started, mut n_ended) = (n_at_once, 0);
    while n_ended < BATCH {
        if peer.next()? != Said::Exited {
            continue;
        }
        n_ended += 1;
        if n_started < BATCH {
            n_started += 1;
            peer.spawn(NOTHING, &json!({}))?;
        }
    }
    ensure!(n_started == BATCH, "a batch is no multiple of what is under way");
    Ok(())
}

fn bare_starts(n_at_once: usize) -> Result<()> {
    let mut under_way = std::collections::VecDeque::new();
    for _ in 0..BATCH {
        if under_way.len() == n_at_once
            && let Some(first) = under_way.pop_front()
        {
            Bare::finish(first)?;
        }
        under_way.push_back(Bare::start(NOTHING)?);
    }
    under_way.into_iter().try_for_each(|bare| bare.finish().map(drop))
}
