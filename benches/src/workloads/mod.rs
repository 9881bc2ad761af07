//! Typical workloads in the default mode: a new runner for each program.
//!
//! Each workload runs beside a request for a constant at the same server. With `AIRLOCK_BENCH_BEFORE=FILE` it runs beside
//! the same workload on the server of another binary instead: a ratio of 1.10 then is a loss of a tenth.

mod crowd;
mod paced;
mod paused;
mod programs;

use crate::directory::directory;
use crate::durable::client::Client;
use crate::durable::served::Served;
use anyhow::Result;
use bench::{Contender, Plan, Report};
use std::path::PathBuf;
use tempfile::TempDir;

/// Names a second binary, usually one built from an earlier commit.
const BEFORE: &str = "AIRLOCK_BENCH_BEFORE";

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let servers = Servers::start()?;
    programs::run(&servers, &mut report)?;
    paced::run(&servers, &mut report)?;
    crowd::run(&servers, &mut report)?;
    servers.stop()?;
    paused::run(&mut report)?;
    Ok(report)
}

/// The server that is measured and, where one is named, the earlier one.
struct Servers {
    subject: Served,
    before: Option<Served>,
    /// Their data directories, which must outlive them.
    _directories: Vec<TempDir>,
}

/// One operation of a client.
type Request<'a> = &'a (dyn Fn(&mut Client) -> Result<()> + Sync);

impl Servers {
    fn start() -> Result<Self> {
        let ours = directory()?;
        let subject = Served::start_with_tools(ours.path())?;
        let mut directories = vec![ours];
        let before = match std::env::var_os(BEFORE).map(PathBuf::from) {
            None => None,
            Some(binary) => {
                let theirs = directory()?;
                let served = Served::start_binary(&binary, theirs.path(), &["--demo"])?;
                directories.push(theirs);
                Some(served)
            }
        };
        Ok(Self { subject, before, _directories: directories })
    }

    /// Measures `request` by one client.
    fn compare(
        &self,
        name: &str,
        plan: Plan,
        request: Request<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let mut client = self.subject.client()?;
        let subject = Contender::new(name, || request(&mut client));
        let mut other = self.floor_client()?;
        let floor = Contender::new(self.floor_name(), || self.floor(&mut other, request));
        report.add(plan.compare(subject, floor)?, vec![]);
        Ok(())
    }

    /// A connection to the server of the floor.
    fn floor_client(&self) -> Result<Client> {
        self.before.as_ref().unwrap_or(&self.subject).client()
    }

    fn floor_name(&self) -> &'static str {
        if self.before.is_some() { "the same, before" } else { "a constant" }
    }

    fn floor(&self, client: &mut Client, request: Request<'_>) -> Result<()> {
        if self.before.is_some() { request(client) } else { client.healthz() }
    }

    fn stop(self) -> Result<()> {
        self.subject.stop()?;
        self.before.map_or(Ok(()), Served::stop)
    }
}
