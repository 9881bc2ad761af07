//! The pool of subreapers. The fork server forks them; those whose family has ended are reused.

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

/// Idle subreapers: a program then need not wait for a fork, nor the next one for the end of a process.
/// Each costs a few pages.
pub const SPARES_MAX: usize = 4;

/// All subreapers of one server.
#[derive(Debug)]
pub(crate) struct SubreaperPool {
    program: File,
    protected: ProtectedPaths,
    fork_server: Mutex<Option<ForkServerLink>>,
    spares: StdMutex<SpareSubreapers>,
}

/// The idle subreapers. They are only used while their fork server lives, which cleans up after a subreaper
/// that is killed.
#[derive(Debug, Default)]
struct SpareSubreapers {
    /// The number of fork servers before the present one.
    generation: u64,
    links: Vec<SubreaperLink>,
    is_closed: bool,
}

/// The connection to a subreaper, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct SubreaperLink {
    pub(crate) stream: UnixStream,
    /// The fork server that forked it.
    generation: u64,
}

impl SubreaperPool {
    /// Starts a fork server, and an idle subreaper.
    pub(crate) fn start(program: File, protected: ProtectedPaths) -> io::Result<Self> {
        let fork_server = spawn::fork_server(&program, &protected)?;
        let (none, spares) = (Mutex::default(), StdMutex::default());
        let subreapers = Self { program, protected, fork_server: none, spares };
        subreapers.add_spare(&fork_server);
        Ok(Self { fork_server: Mutex::new(Some(fork_server)), ..subreapers })
    }

    /// Paths that programs must not use.
    pub(crate) const fn protected(&self) -> &ProtectedPaths {
        &self.protected
    }

    /// The path of the program that fork servers run.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
    }

    /// Sends an order to a subreaper.
    pub(crate) async fn give(
        &self,
        order: &[u8],
        streams: &[OwnedFd; 3],
    ) -> io::Result<SubreaperLink> {
        while let Some(mut spare) = self.spare().await? {
            // A subreaper that was killed has started nothing, so the next one may be used.
            if subreaper_link::give(&mut spare.stream, order, streams).await.is_ok() {
                return Ok(spare);
            }
        }
        let mut fresh = self.fresh().await?;
        subreaper_link::give(&mut fresh.stream, order, streams).await?;
        Ok(fresh)
    }

    /// Returns a subreaper whose family has ended to the pool, unless it is full.
    pub(crate) fn return_subreaper(&self, link: SubreaperLink) {
        let mut spares = self.spares();
        if link.generation == spares.generation
            && !spares.is_closed
            && spares.links.len() < SPARES_MAX
        {
            spares.links.push(link);
        }
    }

    /// Adds an idle subreaper if there is none: the next program may be started while this one runs.
    pub(crate) async fn prepare(&self) {
        let is_ready = !self.spares().links.is_empty();
        if is_ready {
            return;
        }
        if let Some(fork_server) = &*self.fork_server.lock().await {
            self.add_spare(fork_server);
        }
    }

    /// Ends the fork server and all idle subreapers; no more are started.
    pub(crate) async fn shut_down(&self) {
        *self.spares() = SpareSubreapers { is_closed: true, ..SpareSubreapers::default() };
        let fork_server = self.fork_server.lock().await.take();
        if let Some(ForkServerLink { control, mut child }) = fork_server {
            drop(control);
            let _ = child.wait().await;
        }
    }

    /// Takes an idle subreaper. A fork server that was killed is replaced, and the new one has none yet.
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

    /// If this fails, the next program waits for its own.
    fn add_spare(&self, fork_server: &ForkServerLink) {
        if let Ok((link, theirs)) = self.link()
            && subreaper_link::send(fork_server.control.get_ref(), &theirs).is_ok()
        {
            self.return_subreaper(link);
        }
    }

    /// Both ends of the connection to a new subreaper: ours, and the one for the fork server.
    fn link(&self) -> io::Result<(SubreaperLink, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        Ok((SubreaperLink { stream, generation: self.spares().generation }, theirs.into()))
    }

    fn spares(&self) -> MutexGuard<'_, SpareSubreapers> {
        // Every change is complete before the lock is released.
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
