//! Where guardians come from: the warden forks them. Those whose family is gone wait for another order.

use crate::guardian_link;
use crate::protected::ProtectedPaths;
use crate::spawn::{self, Warden};
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// Guardians that wait for an order: a program then need not wait for a fork, nor the next one for the end of a process.
/// They cost some pages each.
pub const SPARES_MAX: usize = 4;

/// All guardians of one server.
#[derive(Debug)]
pub(crate) struct Guardians {
    program: File,
    protected: ProtectedPaths,
    warden: Mutex<Option<Warden>>,
    spares: StdMutex<Spares>,
}

/// Those who wait. They are used only while their warden lives, who clears up after a guardian that is killed.
#[derive(Debug, Default)]
struct Spares {
    /// How many wardens there were before this one.
    warden: u64,
    links: Vec<Link>,
    is_closed: bool,
}

/// The way to a guardian, which goes when this does.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) stream: UnixStream,
    warden: u64,
}

impl Guardians {
    /// Starts a warden, and a guardian that waits.
    pub(crate) fn start(program: File, protected: ProtectedPaths) -> io::Result<Self> {
        let warden = spawn::warden(&program, &protected)?;
        let (none, spares) = (Mutex::default(), StdMutex::default());
        let guardians = Self { program, protected, warden: none, spares };
        guardians.add_spare(&warden);
        Ok(Self { warden: Mutex::new(Some(warden)), ..guardians })
    }

    /// What programs must not use.
    pub(crate) const fn protected(&self) -> &ProtectedPaths {
        &self.protected
    }

    /// Where the program is that wardens run.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
    }

    /// Gives an order to a guardian.
    pub(crate) async fn give(&self, order: &[u8], streams: &[OwnedFd; 3]) -> io::Result<Link> {
        while let Some(mut spare) = self.spare().await? {
            // One that was killed has started nothing, so the next may.
            if guardian_link::give(&mut spare.stream, order, streams).await.is_ok() {
                return Ok(spare);
            }
        }
        let mut fresh = self.fresh().await?;
        guardian_link::give(&mut fresh.stream, order, streams).await?;
        Ok(fresh)
    }

    /// Takes a guardian back whose family is gone, unless enough of them wait.
    pub(crate) fn keep(&self, link: Link) {
        let mut spares = self.spares();
        if link.warden == spares.warden && !spares.is_closed && spares.links.len() < SPARES_MAX {
            spares.links.push(link);
        }
    }

    /// Has one wait if none does: the next program may come while this one runs.
    pub(crate) async fn prepare(&self) {
        let is_ready = !self.spares().links.is_empty();
        if is_ready {
            return;
        }
        if let Some(warden) = &*self.warden.lock().await {
            self.add_spare(warden);
        }
    }

    /// Ends the warden and all who wait; none is started any more.
    pub(crate) async fn end(&self) {
        *self.spares() = Spares { is_closed: true, ..Spares::default() };
        let warden = self.warden.lock().await.take();
        if let Some(Warden { control, mut child }) = warden {
            drop(control);
            let _ = child.wait().await;
        }
    }

    /// One who waits. A warden that has been killed is replaced, and nobody waits at the new one yet.
    async fn spare(&self) -> io::Result<Option<Link>> {
        let mut warden = self.warden.lock().await;
        let Some(warden) = &mut *warden else { return Err(io::ErrorKind::NotConnected.into()) };
        if warden.child.try_wait()?.is_none() {
            return Ok(self.spares().links.pop());
        }
        tracing::warn!("the warden went away");
        *warden = spawn::warden(&self.program, &self.protected)?;
        let mut spares = self.spares();
        spares.warden += 1;
        spares.links.clear();
        Ok(None)
    }

    async fn fresh(&self) -> io::Result<Link> {
        let warden = self.warden.lock().await;
        let Some(warden) = &*warden else { return Err(io::ErrorKind::NotConnected.into()) };
        let (link, theirs) = self.link()?;
        loop {
            match guardian_link::send(warden.control.get_ref(), &theirs) {
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => continue,
                answer => return answer.map(|()| link).map_err(io::Error::from),
            }
            warden.control.writable().await?.clear_ready();
        }
    }

    /// Where it cannot be had now, the next program waits for its own.
    fn add_spare(&self, warden: &Warden) {
        if let Ok((link, theirs)) = self.link()
            && guardian_link::send(warden.control.get_ref(), &theirs).is_ok()
        {
            self.keep(link);
        }
    }

    /// Both ends of the way to a new guardian: ours, and what the warden gives to it.
    fn link(&self) -> io::Result<(Link, OwnedFd)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        Ok((Link { stream, warden: self.spares().warden }, theirs.into()))
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        // Every change is whole before the lock is let go.
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
