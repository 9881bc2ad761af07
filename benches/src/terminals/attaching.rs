//! From the request to attach to a named terminal to its screen, over a WebSocket.

use super::PLAN;
use crate::exec_server::peer::{Peer, Transport};
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report, Target};
use serde_json::json;
use std::cell::RefCell;

/// A delay that a person does not notice.
const ATTACH_NS_MAX: f64 = 10e6;

/// The output of the terminal before the first attach.
const SAYS: &str = "for n in $(seq 3000); do echo $n the quick brown fox jumps over the lazy dog; done; \
                    printf ready; exec sleep 1000";

pub(super) fn run(report: &mut Report) -> Result<()> {
    let mut peer = Peer::start(&crate::durable::binary()?, Transport::WebSocket)?;
    let more = json!({ "tty": true, "name": "bench" });
    let process = peer.spawn(&["/bin/sh", "-c", SAYS], &more)?;
    peer.answer()?;
    peer.ask("process/waitFor", &json!({ "processId": process, "text": "ready" }))?;
    peer.answer()?;
    let peer = RefCell::new(peer);
    let attach = || {
        let mut peer = peer.borrow_mut();
        let name = peer.name();
        let params = json!({ "processId": name, "name": "bench", "readOnly": true });
        peer.ask("process/attach", &params)?;
        let told = peer.answer()?;
        let paint = told["paint"].as_str().context("it is painted")?;
        ensure!(paint.len() > 1_000, "little stands on it: {paint}");
        Ok(())
    };
    let nothing = || {
        let mut peer = peer.borrow_mut();
        peer.ask("environment/status", &json!({}))?;
        peer.answer().map(drop)
    };
    // Attached viewers remain: some hundred of them at one terminal are enough.
    let plan = Plan { n_rounds: 7, round_ops: 20, ..PLAN };
    let attach = Contender::new("attach to a terminal and see it", attach);
    let measured = plan.compare(attach, Contender::new("a request that does nothing", nothing))?;
    report.add(measured, vec![Target::MedianNsMax(ATTACH_NS_MAX)]);
    Ok(())
}
