//! A program that asks, and a person who declines: two requests.

use super::calls::ITEMS;
use super::rival::{Rival, VERSION};
use super::tool_server::ToolServer;
use crate::directory::directory;
use crate::durable::client::Client;
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report};
use std::time::Duration;

const PLAN: Plan =
    Plan { warm_up_ops: 5, n_rounds: 9, round_ops: 50, round_time_max: Duration::from_millis(500) };

pub(super) fn run(tools: &ToolServer, rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    tools.offer(&mut served.client()?)?;
    let (mut ours, mut asks, code) = (served.client()?, served.client()?, code());
    let subject = Contender::new("pause and decline", || declined(&mut ours, &code));
    let floor = Contender::new("two constants from the same server", || {
        asks.healthz()?;
        asks.healthz()
    });
    report.add(PLAN.compare(subject, floor)?, vec![]);
    if let Some(rival) = rival {
        let mut theirs = rival.client()?;
        let subject = Contender::new("pause and decline", || declined(&mut ours, &code));
        let floor = Contender::new(format!("executor {VERSION}, the same"), || {
            declined(&mut theirs, &code)
        });
        report.add(PLAN.compare(subject, floor)?, vec![]);
    }
    served.stop()
}

fn code() -> String {
    format!("try {{ await {ITEMS}.addItem({{}}) }} catch (error) {{ return 'no' }}")
}

fn declined(client: &mut Client, code: &str) -> Result<()> {
    let question = client.ask(code)?;
    let said = client.decline(&question)?;
    ensure!(said == "no", "a no arrived as {said}");
    Ok(())
}
