//! Neighbours of a program that never yields: the smallest program and a health request, with and without it.

use super::rival::{Rival, VERSION};
use super::trivial::return_one;
use crate::directory::directory;
use crate::durable::client::Client;
use crate::durable::served::Served;
use anyhow::{Context, Result};
use bench::{Contender, Plan, Report, Target};
use serde_json::json;
use std::time::{Duration, Instant};

const PLAN: Plan =
    Plan { warm_up_ops: 1, n_rounds: 9, round_ops: 5, round_time_max: Duration::from_millis(800) };

/// A core is taken, and on a small machine that is half of it. A process that is busy for long gets a lower priority,
/// so that neighbours notice less than that.
const RATIO_MAX: f64 = 1.5;

/// The time after which it is measured: in its first moments it is a program like any other.
const UNDER_WAY: Duration = Duration::from_millis(150);

/// Sequential requests of a neighbour beside it.
const N_ASKS: u64 = 20;

/// Never yields, and never reaches the engine's own interrupt hook either.
const HOSTILE: &str = "for (;;) [].sort.call({ length: 2 ** 32 })";

/// The duration of the rival's hostile program, which the rival does not end.
const BUSY_MS: u64 = 2_000;

/// One request of a neighbour.
type Ask = fn(&mut Client) -> Result<()>;

pub(super) fn run(rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    let (quiet, loud) = (directory()?, directory()?);
    let (quiet, loud) = (Served::start(quiet.path())?, Served::start(loud.path())?);
    for (what, ask) in [("health", Client::health as Ask), ("return 1", return_one)] {
        let (mut calm, mut beside) = (quiet.client()?, loud.client()?);
        let subject = Contender::timed(format!("{what} beside a hostile program"), || {
            let hostile = Hostile::start(&loud)?;
            std::thread::sleep(UNDER_WAY);
            let took = asked(&mut beside, ask)?;
            hostile.end()?;
            Ok(took)
        });
        let floor = Contender::timed(format!("{what} beside a program that returns"), || {
            return_one(&mut calm)?;
            std::thread::sleep(UNDER_WAY);
            asked(&mut calm, ask)
        });
        let measured = PLAN.compare(subject.batch(N_ASKS), floor.batch(N_ASKS))?;
        report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    }
    if let Some(rival) = rival {
        beside_rival(&loud, rival, report)?;
    }
    quiet.stop()?;
    loud.stop()
}

/// The time of all requests of a neighbour.
fn asked(client: &mut Client, ask: Ask) -> Result<Duration> {
    let began = Instant::now();
    for _ in 0..N_ASKS {
        ask(client)?;
    }
    Ok(began.elapsed())
}

fn beside_rival(loud: &Served, rival: &Rival, report: &mut Report) -> Result<()> {
    let plan = Plan { warm_up_ops: 0, n_rounds: 3, round_ops: 1, ..PLAN };
    let mut ours = loud.client()?;
    let subject = Contender::timed("health beside a hostile program", || {
        let hostile = Hostile::start(loud)?;
        let began = Instant::now();
        ours.health()?;
        let took = began.elapsed();
        hostile.end()?;
        Ok(took)
    });
    let mut theirs = rival.client()?;
    let floor = Contender::timed(format!("executor {VERSION}, busy for {BUSY_MS} ms"), || {
        let mut busy = rival.client()?;
        let code =
            format!("const end = Date.now() + {BUSY_MS}; while (Date.now() < end); return 1");
        std::thread::scope(|scope| {
            let running = scope.spawn(move || busy.execute(&code).map(drop));
            // Long enough for the request to arrive, far shorter than the program.
            std::thread::sleep(Duration::from_millis(BUSY_MS / 10));
            let began = Instant::now();
            theirs.sign_of_life()?;
            let took = began.elapsed();
            running.join().ok().context("a client panicked")??;
            Ok(took)
        })
    });
    report.add(plan.compare(subject, floor)?, vec![]);
    Ok(())
}

/// A hostile program that runs until it is ended.
struct Hostile {
    client: Client,
    id: String,
}

impl Hostile {
    fn start(served: &Served) -> Result<Self> {
        let mut client = served.client()?;
        let body = json!({ "code": HOSTILE });
        let answer = client.post("/api/executions?wait=5", &body)?;
        let id = answer["structured"]["executionId"].as_str().or(answer["executionId"].as_str());
        let id = id.with_context(|| format!("it does not run: {answer}"))?.to_owned();
        Ok(Self { client, id })
    }

    fn end(mut self) -> Result<()> {
        self.client.post(&format!("/api/executions/{}/cancel", self.id), &json!({})).map(drop)
    }
}
