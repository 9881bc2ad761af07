//! A thousand recorded calls, replayed in a new server before an answer can be applied.

use super::pauses::{ASKING, answer, asked};
use super::served::Served;
use crate::directory::directory;
use anyhow::Result;
use bench::{Contender, Plan, Report, Target};
use std::time::Duration;

/// From the answer to the result, everything included.
const REPLAY_NS_MAX: f64 = 30e6;

/// There is no warm-up: every execution is answered once.
const PLAN: Plan =
    Plan { warm_up_ops: 0, n_rounds: 15, round_ops: 1, round_time_max: Duration::MAX };

/// Makes a thousand sequential calls, and then asks a question.
const CALLING: &str = "let sum = 0;
    for (let n = 0; n < 1000; n++) sum = await tools.demo.add({ a: sum, b: 1 });
    const { approved } = await tools.demo.ask({ text: `${sum}?` });
    return approved && sum === 1000";

pub(super) fn run(report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start_with_tools(directory.path())?;
    let mut long = asked(&served, PLAN.n_rounds, CALLING)?.into_iter();
    let mut short = asked(&served, PLAN.n_rounds, ASKING)?.into_iter();
    served.stop()?;
    let served = Served::start_with_tools(directory.path())?;
    let (mut answers_long, mut answers_short) = (served.client()?, served.client()?);
    let subject = Contender::timed("answer after a restart and 1,000 calls", || {
        answer(&mut answers_long, &mut long)
    });
    let floor = Contender::timed("answer after a restart and no calls", || {
        answer(&mut answers_short, &mut short)
    });
    report.add(PLAN.compare(subject, floor)?, vec![Target::MedianNsMax(REPLAY_NS_MAX)]);
    served.stop()
}
