//! Ten sequential HTTP tool calls: beside the same ten requests without a program, and beside the rival.

use super::rival::{Rival, VERSION};
use super::tool_server::{Direct, ToolServer};
use crate::directory::directory;
use crate::durable::client::Client;
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report, Target};
use std::time::Duration;

const PLAN: Plan =
    Plan { warm_up_ops: 5, n_rounds: 9, round_ops: 50, round_time_max: Duration::from_millis(500) };

/// The required factor over the rival.
const WISH: f64 = 20.0;

/// The path of the tools, in either server.
pub(super) const ITEMS: &str = "tools.bench.org.main.items";

pub(super) fn run(tools: &ToolServer, rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    tools.offer(&mut served.client()?)?;
    let mut direct = Direct::connect(tools.address)?;
    let (mut ours, code) = (served.client()?, code());
    let name = "ten HTTP tool calls, 1 client";
    let subject = Contender::new(name, || ten(&mut ours, &code));
    let floor =
        Contender::new("the same ten requests by hand", || (0..10).try_for_each(|_| direct.call()));
    report.add(PLAN.compare(subject, floor)?, vec![]);
    if let Some(rival) = rival {
        let mut theirs = rival.client()?;
        let subject = Contender::new(name, || ten(&mut ours, &code));
        let floor = Contender::new(format!("executor {VERSION}, the same calls"), || {
            ten(&mut theirs, &code)
        });
        report.add(PLAN.compare(subject, floor)?, vec![Target::RatioMax(1.0 / WISH)]);
    }
    served.stop()
}

fn code() -> String {
    format!(
        "let n = 0; for (let i = 0; i < 10; i++) {{ if ((await {ITEMS}.getItem({{}})).ok) n++; }} return n"
    )
}

fn ten(client: &mut Client, code: &str) -> Result<()> {
    let n = client.execute(code)?;
    ensure!(n == 10, "ten calls came to {n}");
    Ok(())
}
