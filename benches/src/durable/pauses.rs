//! A program that asks a question, answered while its runner waits and answered after a restart.

use super::client::{Client, share_out};
use super::served::Served;
use crate::directory::directory;
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report};
use std::time::{Duration, Instant};

/// Asks, and returns whether the answer was an approval.
pub(super) const ASKING: &str = "return (await tools.demo.ask({ text: 'well?' })).approved";

const PLAN: Plan = Plan {
    warm_up_ops: 10,
    n_rounds: 15,
    round_ops: 20,
    // Questions are asked beforehand: rounds end by their number.
    round_time_max: Duration::MAX,
};

pub(super) fn run(report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start_with_tools(directory.path())?;
    at_once(&served, report)?;
    let n_questions = PLAN.warm_up_ops + PLAN.n_rounds * PLAN.round_ops;
    let questions = asked(&served, n_questions, ASKING)?;
    served.stop()?;
    let served = Served::start_with_tools(directory.path())?;
    after_a_restart(&served, questions, report)?;
    served.stop()
}

/// Opens `n` questions by as many programs, with a few clients.
pub(super) fn asked(served: &Served, n: usize, code: &str) -> Result<Vec<String>> {
    let mut clients = (0..4).map(|_| served.client()).collect::<Result<Vec<_>>>()?;
    share_out(&mut clients, n, |client| client.ask(code))
}

/// Answers the next question, and returns the time until the result.
pub(super) fn answer(
    client: &mut Client,
    questions: &mut impl Iterator<Item = String>,
) -> Result<Duration> {
    let question = questions.next().context("all questions are answered")?;
    let began = Instant::now();
    let approved = client.accept(&question)?;
    let took = began.elapsed();
    ensure!(approved == true, "a yes arrived as {approved}");
    Ok(took)
}

fn at_once(served: &Served, report: &mut Report) -> Result<()> {
    let (mut asks, mut checks) = (served.client()?, served.client()?);
    let subject = Contender::new("pause and answer, two requests, runner kept", || {
        let question = asks.ask(ASKING)?;
        ensure!(asks.accept(&question)? == true, "a yes did not arrive");
        Ok(())
    });
    let floor = Contender::new("two constants from the same server", || {
        checks.healthz()?;
        checks.healthz()
    });
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}

fn after_a_restart(served: &Served, questions: Vec<String>, report: &mut Report) -> Result<()> {
    let (mut cold, mut warm) = (served.client()?, served.client()?);
    let mut questions = questions.into_iter();
    let subject = Contender::timed("answer after a restart", || answer(&mut cold, &mut questions));
    let floor = Contender::timed("answer, runner kept", || {
        let question = warm.ask(ASKING)?;
        answer(&mut warm, &mut std::iter::once(question))
    });
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}
