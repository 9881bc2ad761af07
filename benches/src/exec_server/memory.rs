//! The memory of a server: idle, and with two hundred programs that wait.

use super::Side;
use super::children::{Weight, weigh};
use super::peer::{Peer, Transport};
use anyhow::Result;
use bench::{Count, Report, Size};
use serde_json::json;
use std::time::Duration;

/// All processes of an idle server.
const IDLE_BYTES_MAX: f64 = 20e6;

const N_CHILDREN: u32 = 200;

/// How long a server gets to become idle.
const COMING_TO_REST: Duration = Duration::from_millis(300);

pub(super) fn run(
    ours: &Side,
    theirs: Option<&Side>,
    transport: Transport,
    report: &mut Report,
) -> Result<()> {
    for (side, is_ours) in [(Some(ours), true), (theirs, false)] {
        let Some(side) = side else { continue };
        let name = |what: &str| format!("{}, {}: {what}", side.name, transport.name());
        let mut peer = side.connect(transport)?;
        let idle = at_rest(&peer)?;
        let bytes_max = is_ours.then_some(IDLE_BYTES_MAX);
        report.add_size(Size { name: name("idle"), bytes: idle.bytes, bytes_max });
        for (tty, kind) in [(false, "pipe"), (true, "terminal")] {
            let before = at_rest(&peer)?;
            fill(&mut peer, tty)?;
            let after = at_rest(&peer)?;
            let each = (after.bytes - before.bytes) / f64::from(N_CHILDREN);
            let what = format!("each of {N_CHILDREN} idle children with a {kind}, programs apart");
            report.add_size(Size { name: name(&what), bytes: each, bytes_max: None });
            let what = format!("threads more for {N_CHILDREN} children with a {kind}");
            // A thread of the pool may start or end, independently of the children.
            let n_max = is_ours.then_some(POOL_THREADS_MAX);
            report.add_count(Count {
                name: name(&what),
                n: after.n_threads - before.n_threads,
                n_max,
            });
        }
    }
    Ok(())
}

/// Threads for file work start on demand and end after a while; a child needs none.
const POOL_THREADS_MAX: f64 = 4.0;

fn at_rest(peer: &Peer) -> Result<Weight> {
    std::thread::sleep(COMING_TO_REST);
    weigh(peer.child.id(), "sleep")
}

fn fill(peer: &mut Peer, tty: bool) -> Result<()> {
    for _ in 0..N_CHILDREN {
        peer.spawn(&["/bin/sleep", "1000"], &json!({"tty": tty}))?;
        peer.answer()?;
    }
    Ok(())
}
