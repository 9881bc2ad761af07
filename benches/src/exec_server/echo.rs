//! The round trip of a key press: the latency for a person at a terminal.

use super::floor::RoundTrip;
use super::peer::{Said, Transport};
use super::{PLAN, Side, beside};
use crate::apart::Apart;
use anyhow::Result;
use bench::{Contender, Plan, Report, Target};
use serde_json::json;
use std::cell::RefCell;

/// The largest multiple of a message's round trip.
const RATIO_MAX: f64 = 3.0;

/// It reads the input: a terminal whose buffer is full accepts no more keys and echoes none.
const PROGRAM: &[&str] = &["/bin/sh", "-c", "exec cat > /dev/null"];

pub(super) fn run(
    ours: &Side,
    theirs: Option<&Side>,
    transport: Transport,
    report: &mut Report,
) -> Result<()> {
    let key = |side: &Side| -> Result<Contender<'_>> {
        let mut peer = side.connect(transport)?;
        let process = peer.spawn(PROGRAM, &json!({"tty": true}))?;
        peer.answer()?;
        let name = format!("{}, {}: a key of a terminal", side.name, transport.name());
        let mut n_keys = 0_u64;
        Ok(Contender::new(name, move || {
            n_keys += 1;
            // A line break now and then: a terminal limits the length of a line.
            let chunk = if n_keys.is_multiple_of(50) { "Cg==" } else { "eA==" };
            let write =
                json!({"processId": process, "chunk": chunk, "writeId": n_keys.to_string()});
            peer.ask("process/write", &write)?;
            let (mut is_answered, mut is_back) = (false, false);
            while !(is_answered && is_back) {
                match peer.next()? {
                    Said::Answer(_) => is_answered = true,
                    Said::Output(_) => is_back = true,
                    Said::Exited | Said::Closed => anyhow::bail!("the program ended"),
                }
            }
            Ok(())
        }))
    };
    let trip = RefCell::new(RoundTrip::new(transport)?);
    let _apart = Apart::asking()?;
    let floor = || -> Result<Contender<'_>> {
        let trip = &trip;
        Ok(Contender::new("a message there and back", move || trip.borrow_mut().go()))
    };
    let plan = Plan { warm_up_ops: 100, round_ops: 500, ..PLAN };
    let wish = vec![Target::RatioMax(RATIO_MAX)];
    beside(report, plan, (key(ours)?, wish), theirs.map(key).transpose()?, floor)
}
