//! A subreaper: the parent of one program at a time and the adopter of all its orphans.

use super::caged::{self, CageInit, CagedProgram, failed};
use super::children::children;
use super::covers::PathCovers;
use super::family::ProcessFamily;
use super::program::ExecPlan;
use super::usage::UsageMeter;
use super::{hear_an_end, vfork, wait};
use crate::spawn_order::{SpawnOrder, SubreaperReport, SubreaperRequest};
use crate::subreaper_link::take_streams;
use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Serves until the server closes the link.
pub(super) fn run(link: OwnedFd, children: &SignalFd, covers: &PathCovers) -> i32 {
    // Its own name in lists of processes.
    let _ = nix::sys::prctl::set_name(c"airlock-subreap");
    if nix::sys::prctl::set_child_subreaper(true).is_err() {
        return 1;
    }
    let link = UnixStream::from(link);
    while serve(&link, children, covers).is_ok() {}
    0
}

/// Waits for an order, starts the program and supervises its family until no process is left. An error
/// means that the server has ended.
fn serve(link: &UnixStream, children: &SignalFd, covers: &PathCovers) -> io::Result<()> {
    let (first, streams) = take_streams(link)?;
    let order = SpawnOrder::read([first].as_slice().chain(link))?;
    let meter = order.cage.as_ref().and_then(|cage| UsageMeter::new(cage.limits));
    match start(&order, streams, covers) {
        Ok((leader, init)) => Subreaper {
            link,
            leader: Some(leader),
            group: leader,
            init_pid: init.as_ref().map(|init| init.pid),
            init,
            meter,
        }
        .run_until_end(children),
        Err(report) => (&*link).write_all(&report.to_bytes()),
    }
}

/// Returns when the child has executed the program or reported why it could not.
fn start(
    order: &SpawnOrder,
    streams: [OwnedFd; 3],
    covers: &PathCovers,
) -> Result<(Pid, Option<CageInit>), SubreaperReport> {
    if covers.are_shared() && covers.renew().is_err() {
        return Err(failed(Errno::EACCES));
    }
    let plan = ExecPlan::new(order, &streams, covers.are_shared()).map_err(failed)?;
    let Some(cage) = &order.cage else {
        return Ok((vfork::start(&plan).map_err(failed)?, None));
    };
    // Building a cage allocates memory, which a child that shares ours must not do.
    let CagedProgram { leader, init } = caged::start(&plan, &covers.within(cage), streams)?;
    Ok((leader, Some(init)))
}

struct Subreaper<'a> {
    link: &'a UnixStream,
    /// The program, until it is reaped.
    leader: Option<Pid>,
    /// The process group that the program was started to lead.
    group: Pid,
    /// Held while the program lives: the first process of its cage ends when no process is left.
    init: Option<CageInit>,
    /// The number of that process, until it is reaped.
    init_pid: Option<Pid>,
    /// The limits of the program and all its descendants together.
    meter: Option<UsageMeter>,
}

/// How often the usage of a family with limits is measured, in milliseconds: a program can do little damage
/// in that time.
const LOOK_EVERY_MS: u16 = 100;

impl Subreaper<'_> {
    fn run_until_end(mut self, children: &SignalFd) -> io::Result<()> {
        self.report(SubreaperReport::Started { pid: self.group.as_raw() })?;
        let most =
            self.meter.as_ref().map_or(PollTimeout::NONE, |_| PollTimeout::from(LOOK_EVERY_MS));
        while let Ok((has_wish, _)) = wait(self.link, children, most) {
            if let Some(excess) = self.meter.as_mut().and_then(|meter| meter.excess(self.init_pid))
            {
                // The family ends whether or not the report arrives.
                let _ = self.report(SubreaperReport::Exceeded { excess });
                break;
            }
            if self.reap().is_none() {
                return self.report(SubreaperReport::Empty);
            }
            if has_wish && !self.handle_request() {
                break;
            }
        }
        self.kill_family(children)
    }

    /// Handles one request. Returns false when all processes shall end: on request, or because the server
    /// has ended.
    fn handle_request(&mut self) -> bool {
        let mut byte = [0];
        match (&*self.link).read(&mut byte) {
            Ok(1) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Ok(_) | Err(_) => return false,
        }
        match SubreaperRequest::from_byte(byte[0]) {
            Some(SubreaperRequest::Signal(signal)) => {
                // Once the program is reaped, its group's number may belong to another group.
                if let (Some(_), Ok(signal)) = (self.leader, Signal::try_from(signal.number())) {
                    let _ = killpg(self.group, signal);
                }
                true
            }
            Some(SubreaperRequest::KillAll) | None => false,
        }
    }

    /// Reaps all ended children; `None` when no child is left.
    fn reap(&mut self) -> Option<()> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Some(()),
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, code),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.ended(pid, 128 + signal as i32),
                Ok(_) | Err(Errno::EINTR) => {}
                // There are no children.
                Err(_) => return None,
            }
        }
    }

    fn ended(&mut self, pid: Pid, code: i32) {
        if self.leader == Some(pid) {
            self.leader = None;
            self.init = None;
            // If the report cannot be sent, the next read of the link fails.
            let _ = self.report(SubreaperReport::Exited { code });
        }
        if self.init_pid == Some(pid) {
            self.init_pid = None;
        }
    }

    /// Kills all descendants. An orphan becomes our child and is killed in turn, so this ends when the last
    /// descendant has.
    fn kill_family(mut self, ends: &SignalFd) -> io::Result<()> {
        if self.leader.is_some() {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
        if let Some(init) = self.init_pid {
            // The kernel kills all processes in its namespace.
            let _ = nix::sys::signal::kill(init, Signal::SIGKILL);
        }
        // All ended children are reaped before the others are searched: the cost of a search grows with
        // their number.
        while self.reap().is_some() {
            let mut family = ProcessFamily::new();
            while family.stop(children()) && self.reap().is_some() {}
            family.kill();
            hear_an_end(ends);
        }
        self.report(SubreaperReport::Empty)
    }

    fn report(&self, report: SubreaperReport) -> io::Result<()> {
        (&*self.link).write_all(&report.to_bytes())
    }
}
