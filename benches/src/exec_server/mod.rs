//! `airlock exec-server` as clients use it, over stdio and over a WebSocket: beside the least that could start a
//! program and read its output, and beside the current `codex exec-server` in the same run.

mod children;
mod echo;
mod floor;
mod memory;
mod output;
pub(crate) mod peer;
mod rival;
mod starts;

use anyhow::Result;
use bench::{Contender, Plan, Report, Target};
use peer::{Peer, Transport};
use std::path::PathBuf;
use std::time::Duration;

/// Enough time for a few dozen starts, or a few megabytes, in each of the rounds.
const PLAN: Plan = Plan {
    warm_up_ops: 5,
    n_rounds: 9,
    round_ops: 200,
    round_time_max: Duration::from_millis(250),
};

/// The server that is measured.
struct Side {
    name: String,
    program: PathBuf,
}

impl Side {
    fn connect(&self, transport: Transport) -> Result<Peer> {
        Peer::start(&self.program, transport)
    }
}

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let ours = Side { name: "airlock".into(), program: crate::durable::binary()? };
    let theirs = rival::installed().map(|program| Side { name: rival::name(), program });
    if let Err(why) = &theirs {
        skipped(&format!("{why:#}"));
    }
    let theirs = theirs.ok();
    for transport in [Transport::Stdio, Transport::WebSocket] {
        starts::run(&ours, theirs.as_ref(), transport, &mut report)?;
        echo::run(&ours, theirs.as_ref(), transport, &mut report)?;
        output::run(&ours, theirs.as_ref(), transport, &mut report)?;
        memory::run(&ours, theirs.as_ref(), transport, &mut report)?;
    }
    Ok(report)
}

/// One measure: ours beside the floor, with its targets, and theirs beside the same floor, without targets.
fn beside<'a>(
    report: &mut Report,
    plan: Plan,
    (ours, targets): (Contender<'a>, Vec<Target>),
    theirs: Option<Contender<'a>>,
    mut floor: impl FnMut() -> Result<Contender<'a>>,
) -> Result<()> {
    report.add(plan.compare(ours, floor()?)?, targets);
    if let Some(theirs) = theirs {
        report.add(plan.compare(theirs, floor()?)?, vec![]);
    }
    Ok(())
}

/// Prominent, so that an incomplete benchmark is not taken for a complete one.
#[expect(clippy::print_stderr, reason = "telling the user is what this function is for")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: nothing is measured beside {}: {why}", rival::name());
}
