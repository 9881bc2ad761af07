//! Where subreapers come from: the fork server forks them. Those whose family is gone wait for another order.

use crate::protected::ProtectedPaths;
use crate::spawn::{self, ForkServerLink};
use crate::subreaper_link;
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// Subreapers that wait for an order: a program then need not wait for a fork, nor the next one for the end of a process.
/// They cost some pages each.
pub const SPARES_MAX: usize = 4;

/// All subreapers of one server.
#[derive(Debug)]
pub(crate) struct SubreaperPool {
    program: File,
    protected: ProtectedPaths,
    fork_server: Mutex<Option<ForkServerLink>>,
    spares: StdMutex<SpareSubreapers>,
}

/// Those who wait. They are used only while their fork server lives, who clears up after a subreaper that is killed.
#[derive(Debug, Default)]
struct SpareSubreapers {
    /// How many fork servers there were before the present one.
    generation: u64,
    links: Vec<SubreaperLink>,
    is_closed: bool,
}

/// The way to a subreaper, which goes when this does.
#[derive(Debug)]
pub(crate) struct SubreaperLink {
    pub(crate) stream: UnixStream,
    /// Which fork server forked it.
    generation: u64,
}

impl SubreaperPool {
    /// Starts a fork server, and a subreaper that waits.
    pub(crate) fn start(program: File, protected: ProtectedPaths) -> io::Result<Self> {
        let fork_server = spawn::fork_server(&program, &protected)?;
        let (none, spares) = (Mutex::default(), StdMutex::default());
        let subreapers = Self { program, protected, fork_server: none, spares };
        subreapers.add_spare(&fork_server);
        Ok(Self { fork_server: Mutex::new(Some(fork_server)), ..subreapers })
    }

    /// What programs must not use.
    pub(crate) const fn protected(&self) -> &ProtectedPaths {
        &self.protected
    }

    /// Where the program is that fork servers run.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
    }

    /// Gives an order to a subreaper.
    pub(crate) async fn give(
        &self,
        order: &[u8],
        streams: &[OwnedFd; 3],
    ) -> io::Result<SubreaperLink> {
        while let Some(mut spare) = self.spare().await? {
            // One that was killed has started nothing, so the next may.
            if subreaper_link::give(&mut spare.stream, order, streams).await.is_ok() {
                return Ok(spare);
            }
        }
        let mut fresh = self.fresh().await?;
        subreaper_link::give(&mut fresh.stream, order, streams).await?;
        Ok(fresh)
    }

    /// Takes a subreaper back whose family is gone, unless enough of them wait.
    pub(crate) fn return_subreaper(&self, link: SubreaperLink) {
        let mut spares = self.spares();
        if link.generation == spares.generation
            && !spares.is_closed
            && spares.links.len() < SPARES_MAX
        {
            spares.links.push(link);
        }
    }

    /// Has one wait if none does: the next program may come while this one runs.
    pub(crate) async fn prepare(&self) {
        let is_ready = !self.spares().links.is_empty();
        if is_ready {
            return;
        }
        if let Some(fork_server) = &*self.fork_server.lock().await {
            self.add_spare(fork_server);
        }
    }

    /// Ends the fork server and all who wait; none is started any more.
    pub(crate) async fn shut_down(&self) {
        *self.spares() = SpareSubreapers { is_closed: true, ..SpareSubreapers::default() };
        let fork_server = self.fork_server.lock().await.take();
        if let Some(ForkServerLink { control, mut child }) = fork_server {
            drop(control);
            let _ = child.wait().await;
        }
    }

    /// One who waits. A fork server that has been killed is replaced, and nobody waits at the new one yet.
    async fn spare(&self) -> io::Result<Option<SubreaperLink>> {
        let mut fork_server = self.fork_server.lock().await;
        let Some(fork_server) = &mut *fork_server else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if fork_server.child.try_wait()?.is_none() {
            return Ok(self.spares().links.pop());
        }
        tracing::warn!("the fork server went away");
        *fork_server = spawn::fork_server(&self.program, &self.protected)?;
        let mut spares = self.spares();
        spares.generation += 1;
        spares.links.clear();
        Ok(None)
    }

    async fn fresh(&self) -> io::Result<SubreaperLink> {
        let fork_server = self.fork_server.lock().await;
        let Some(fork_server) = &*fork_server else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (link, theirs) = self.link()?;
        loop {
            match subreaper_link::send(fork_server.control.get_ref(), &theirs) {
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => continue,
                answer => return answer.map(|()| link).map_err(io::Error::from),
            }
            fork_server.control.writable().await?.clear_ready();
        }
    }

    /// Where it cannot be had now, the next program waits for its own.
    fn add_spare(&self, fork_server: &ForkServerLink) {
        if let Ok((link, theirs)) = self.link()
            && subreaper_link::send(fork_server.control.get_ref(), &theirs).is_ok()
        {
            self.return_subreaper(link);
        }
    }

    /// Both ends of the way to a new subreaper: ours, and what the fork server gives to it.
    fn link(&self) -> io::Result<(SubreaperLink, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        Ok((SubreaperLink { stream, generation: self.spares().generation }, theirs.into()))
    }

    fn spares(&self) -> MutexGuard<'_, SpareSubreapers> {
        // Every change is whole before the lock is let go.
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
