//! Large output: pushed over pipes and terminals, and read on request.

use super::floor::{Bare, through_terminal};
use super::peer::{Peer, Transport};
use super::{PLAN, Side, beside};
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report, Target};
use serde_json::{Value, json};
use std::path::Path;

/// The smallest share of the floor's rate.
const PIPE_SHARE: f64 = 0.6;
const TERMINAL_SHARE: f64 = 0.8;

/// The output of one operation. A megabyte is an item, so times are per megabyte.
const PIPE_MEGABYTES: u64 = 32;
const TERMINAL_MEGABYTES: u64 = 4;

/// Typical output: lines.
const LINE: &str =
    "the quick brown fox jumps over the lazy dog and then sits down in the warm sun\n";

pub(super) fn run(
    ours: &Side,
    theirs: Option<&Side>,
    transport: Transport,
    report: &mut Report,
) -> Result<()> {
    let folder = crate::directory::directory()?;
    let plan = Plan { warm_up_ops: 1, n_rounds: 7, round_ops: 4, ..PLAN };
    let named = |side: &Side, what: &str| format!("{}, {}: {what}", side.name, transport.name());

    let file = text(folder.path(), PIPE_MEGABYTES)?;
    let argv = ["/bin/cat", file.as_str()];
    let pushed = |side: &Side| -> Result<Contender<'_>> {
        let mut peer = side.connect(transport)?;
        let run = move || push(&mut peer, &argv, &json!({}), PIPE_MEGABYTES);
        Ok(Contender::new(named(side, "1 MB pushed from a pipe"), run).batch(PIPE_MEGABYTES))
    };
    let floor = || -> Result<Contender<'_>> {
        let run = move || enough(Bare::heard_apart(&argv)?, PIPE_MEGABYTES);
        Ok(Contender::new("1 MB read from a pipe", run).batch(PIPE_MEGABYTES))
    };
    let wish = vec![Target::RatioMax(1.0 / PIPE_SHARE)];
    beside(report, plan, (pushed(ours)?, wish), theirs.map(pushed).transpose()?, floor)?;

    // Only our server can be asked to wait for its reader; theirs would lose most of the output.
    let read = {
        let mut peer = ours.connect(transport)?;
        let run = move || pull(&mut peer, &argv, PIPE_MEGABYTES);
        Contender::new(named(ours, "1 MB read by process/read"), run).batch(PIPE_MEGABYTES)
    };
    beside(report, plan, (read, vec![]), None, floor)?;

    let file = text(folder.path(), TERMINAL_MEGABYTES)?;
    let argv = ["/bin/cat", file.as_str()];
    let pushed = |side: &Side| -> Result<Contender<'_>> {
        let mut peer = side.connect(transport)?;
        let run = move || push(&mut peer, &argv, &json!({"tty": true}), TERMINAL_MEGABYTES);
        Ok(Contender::new(named(side, "1 MB pushed from a terminal"), run)
            .batch(TERMINAL_MEGABYTES))
    };
    let floor = || -> Result<Contender<'_>> {
        let run = move || enough(through_terminal(&argv)?, TERMINAL_MEGABYTES);
        Ok(Contender::new("1 MB read from a terminal", run).batch(TERMINAL_MEGABYTES))
    };
    let wish = vec![Target::RatioMax(1.0 / TERMINAL_SHARE)];
    beside(report, plan, (pushed(ours)?, wish), theirs.map(pushed).transpose()?, floor)
}

/// A file of so many megabytes, and a little more.
fn text(folder: &Path, megabytes: u64) -> Result<String> {
    let path = folder.join(format!("{megabytes}.txt"));
    let n_lines = usize::try_from(megabytes)? * 1_000_000 / LINE.len() + 1;
    std::fs::write(&path, LINE.repeat(n_lines))?;
    path.into_os_string().into_string().ok().context("a path of ours is text")
}

fn enough(n_bytes: usize, megabytes: u64) -> Result<()> {
    ensure!(n_bytes as u64 >= megabytes * 1_000_000, "only {n_bytes} bytes came");
    Ok(())
}

fn push(peer: &mut Peer, argv: &[&str], more: &Value, megabytes: u64) -> Result<()> {
    peer.spawn(argv, more)?;
    enough(peer.closed()?, megabytes)
}

fn pull(peer: &mut Peer, argv: &[&str], megabytes: u64) -> Result<()> {
    let process = peer.spawn(argv, &json!({"output": "pull"}))?;
    peer.answer()?;
    let (mut after, mut n_bytes) = (0, 0);
    loop {
        let read = json!({"processId": process, "afterSeq": after, "waitMs": 10_000});
        peer.ask("process/read", &read)?;
        let page = peer.answer()?;
        for chunk in page["chunks"].as_array().into_iter().flatten() {
            let text = chunk["chunk"].as_str().context("a chunk is text")?;
            n_bytes += text.trim_end_matches('=').len() * 3 / 4;
        }
        after = page["nextSeq"].as_u64().context("a page has a number")? - 1;
        if page["closed"] == true {
            return enough(n_bytes, megabytes);
        }
    }
}
