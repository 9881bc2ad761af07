//! Concurrent load: eight clients back to back, and a quiet caller beside four hostile ones.

use super::Servers;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::{Context, Result, ensure};
use bench::{Contender, Plan, Report};
use serde_json::json;
use std::time::Duration;

const PLAN: Plan =
    Plan { warm_up_ops: 1, n_rounds: 15, round_ops: 4, round_time_max: Duration::from_millis(500) };

/// Requests of the quiet caller: enough for a p99.
const QUIET_PLAN: Plan =
    Plan { warm_up_ops: 5, n_rounds: 15, round_ops: 40, round_time_max: Duration::from_secs(4) };

/// Requests of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 128;
const N_CLIENTS: usize = 8;

/// Each is sent by a separate caller, several times.
const HOSTILE: [(&str, &str); 4] = [
    ("loops", "for (;;) {}"),
    ("sleeps", "await new Promise(done => setTimeout(done, 60_000))"),
    ("fills-memory", "const all = []; for (;;) all.push('x'.repeat(1000) + all.length)"),
    ("floods-logs", "for (let n = 0; n < 1e9; n++) console.log('line ' + n)"),
];

/// Concurrent programs of each hostile caller.
const N_EACH: usize = 4;

pub(super) fn run(servers: &Servers, report: &mut Report) -> Result<()> {
    eight_clients(servers, report)?;
    beside_hostile_callers(servers, report)
}

fn return_one(client: &mut Client) -> Result<()> {
    ensure!(client.execute("return 1")? == 1, "one is not one");
    Ok(())
}

fn eight_clients(servers: &Servers, report: &mut Report) -> Result<()> {
    let mut ours = (0..N_CLIENTS).map(|_| servers.subject.client()).collect::<Result<Vec<_>>>()?;
    let mut theirs = (0..N_CLIENTS).map(|_| servers.floor_client()).collect::<Result<Vec<_>>>()?;
    let n = usize::try_from(BATCH)?;
    let subject = Contender::new("return 1, 8 clients, time for each", || {
        share_out(&mut ours, n, return_one).map(drop)
    });
    let floor = Contender::new(servers.floor_name(), || {
        share_out(&mut theirs, n, |client| servers.floor(client, &return_one)).map(drop)
    });
    report.add(PLAN.compare(subject.batch(BATCH), floor.batch(BATCH))?, vec![]);
    Ok(())
}

/// The p99 of the subject beside that of its floor is the figure: a core that others use doubles the median anyway.
fn beside_hostile_callers(servers: &Servers, report: &mut Report) -> Result<()> {
    let mut quiet = servers.subject.client()?;
    let name = "return 1, a quiet caller alone";
    let mut other = servers.subject.client()?;
    let alone = QUIET_PLAN.compare(
        Contender::new(name, || return_one(&mut quiet)),
        Contender::new("a constant", || other.healthz()),
    )?;
    report.add(alone, vec![]);
    let hostile = HostileCallers::start(&servers.subject)?;
    let beside = QUIET_PLAN.compare(
        Contender::new("return 1, a quiet caller beside four hostile ones", || {
            return_one(&mut quiet)
        }),
        Contender::new("a constant, beside them", || other.healthz()),
    );
    hostile.end()?;
    report.add(beside?, vec![]);
    Ok(())
}

/// Threads that send hostile programs repeatedly.
struct HostileCallers {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    address: String,
    secret: String,
}

impl HostileCallers {
    fn start(served: &Served) -> Result<Self> {
        let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let (address, secret) = (served.address().to_owned(), served.secret().to_owned());
        let mut threads = vec![];
        for (name, code) in HOSTILE {
            let body = json!({ "name": name, "scopes": ["run"] });
            let token = served.client()?.post("/api/tokens", &body)?;
            let token = token["secret"].as_str().context("a token has a secret")?.to_owned();
            for _ in 0..N_EACH {
                let (stop, address, token) =
                    (std::sync::Arc::clone(&stop), address.clone(), token.clone());
                threads.push(std::thread::spawn(move || {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        // Such a caller expects refusals and failures.
                        let sent = Client::connect(&address, &token).and_then(|mut client| {
                            client.post("/api/executions", &json!({ "code": code }))
                        });
                        if sent.is_err() {
                            std::thread::sleep(Duration::from_millis(50));
                        }
                    }
                }));
            }
        }
        Ok(Self { stop, threads, address, secret })
    }

    /// Cancels the running programs, so that the threads' last requests return.
    fn end(self) -> Result<()> {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut admin = Client::connect(&self.address, &self.secret)?;
        for thread in self.threads {
            while !thread.is_finished() {
                cancel_running(&mut admin)?;
                std::thread::sleep(Duration::from_millis(50));
            }
            ensure!(thread.join().is_ok(), "a hostile caller panicked");
        }
        Ok(())
    }
}

fn cancel_running(admin: &mut Client) -> Result<()> {
    let list = admin.get("/api/executions?status=running&limit=100")?;
    for execution in list["executions"].as_array().into_iter().flatten() {
        if let Some(id) = execution["id"].as_str() {
            // It may have ended in the meantime.
            drop(admin.post(&format!("/api/executions/{id}/cancel"), &json!({})));
        }
    }
    Ok(())
}
