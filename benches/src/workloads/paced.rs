//! Clients that send a request every 20 ms: the server is mostly idle, also when a request arrives.

use super::{Request, Servers};
use crate::durable::client::Client;
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(20);

/// A round is half a second for each contender.
const PLAN: Plan = Plan {
    warm_up_ops: 5,
    n_rounds: 15,
    round_ops: 25,
    round_time_max: Duration::from_millis(500),
};

const N_CLIENTS: usize = 8;

pub(super) fn run(servers: &Servers, report: &mut Report) -> Result<()> {
    let run = |client: &mut Client| {
        ensure!(client.execute("return 1")? == 1, "one is not one");
        Ok(())
    };
    one_client(servers, &run, report)?;
    eight_clients(servers, &run, report)
}

fn one_client(servers: &Servers, run: Request<'_>, report: &mut Report) -> Result<()> {
    let (mut client, mut other) = (servers.subject.client()?, servers.floor_client()?);
    let subject = Contender::timed("return 1, a request every 20 ms, 1 client", || {
        paced(|| run(&mut client))
    });
    let floor = Contender::timed(servers.floor_name(), || paced(|| servers.floor(&mut other, run)));
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}

/// The requests of eight clients are spread over the period; the time of one request counts.
fn eight_clients(servers: &Servers, run: Request<'_>, report: &mut Report) -> Result<()> {
    let clients = || (0..N_CLIENTS).map(|_| servers.subject.client()).collect::<Result<Vec<_>>>();
    let others = || (0..N_CLIENTS).map(|_| servers.floor_client()).collect::<Result<Vec<_>>>();
    let (mut ours, mut theirs) = (clients()?, others()?);
    let name = "return 1, a request every 20 ms, 8 clients, time for each";
    let subject = Contender::timed(name, || spread(&mut ours, &|client| run(client)));
    let floor = Contender::timed(servers.floor_name(), || {
        spread(&mut theirs, &|client| servers.floor(client, run))
    });
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}

/// Waits for the rest of the period first.
fn paced(mut request: impl FnMut() -> Result<()>) -> Result<Duration> {
    std::thread::sleep(PERIOD);
    let began = Instant::now();
    request()?;
    Ok(began.elapsed())
}

/// The mean time of the clients' requests, which begin one eighth of the period apart.
fn spread(clients: &mut [Client], request: Request<'_>) -> Result<Duration> {
    let apart = PERIOD / u32::try_from(clients.len())?;
    let n_clients = u32::try_from(clients.len())?;
    let total = Mutex::new(Duration::ZERO);
    std::thread::scope(|scope| {
        let workers: Vec<_> = clients
            .iter_mut()
            .zip(1..)
            .map(|(client, turn)| {
                let total = &total;
                scope.spawn(move || -> Result<()> {
                    std::thread::sleep(apart * turn);
                    let began = Instant::now();
                    request(client)?;
                    *total.lock().expect("no client panics with the sum") += began.elapsed();
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().ok().context("a client panicked")?)
    })?;
    Ok(total.into_inner().expect("no client panics with the sum") / n_clients)
}
