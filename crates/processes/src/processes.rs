//! All processes of one server: where they are started, and where they end.

use crate::error::SpawnError;
use crate::guardian_link;
use crate::order::{Order, REPORT_BYTES, Report};
use crate::output::Output;
use crate::process::{Hold, Process};
use crate::pump::Pump;
use crate::spawn::{self, Warden};
use crate::spec::{Spec, Streams};
use crate::streams::open_streams;
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a house of processes is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whose hidden verb is the warden.
    pub program: Program,
}

impl Default for Config {
    fn default() -> Self {
        Self { program: Program::ThisBinary }
    }
}

/// A program that calls [`crate::enter_if_asked`] first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The one that is running.
    ThisBinary,
    /// Another one.
    At(PathBuf),
}

/// Starts processes. Cheap to clone; all clones share one warden.
#[derive(Debug, Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: File,
    warden: Mutex<Option<Warden>>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Processes {
    /// Starts the warden.
    pub fn start(config: &Config) -> io::Result<Self> {
        let program = spawn::open(&config.program)?;
        let warden = Mutex::new(Some(spawn::warden(&program)?));
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        Ok(Self { shared: Arc::new(Shared { program, warden, tasks, stopping }) })
    }

    /// Starts a program. Dropping what is returned kills it and all that it has started.
    pub async fn spawn(&self, spec: &Spec) -> Result<Process, SpawnError> {
        spec.check()?;
        if self.shared.stopping.is_cancelled() {
            return Err(SpawnError::Stopping);
        }
        let (ends, [stdin, stdout, stderr]) =
            open_streams(spec.streams).map_err(SpawnError::Ours)?;
        let (ours, theirs) = StdUnixStream::pair().map_err(SpawnError::Ours)?;
        self.hand_over(&[theirs.into(), stdin, stdout, stderr]).await.map_err(SpawnError::Ours)?;
        let mut link = connected(ours).map_err(SpawnError::Ours)?;
        let order = Order {
            has_terminal: matches!(spec.streams, Streams::Terminal(_)),
            argv: spec.argv.clone(),
            arg0: spec.arg0.clone(),
            cwd: spec.cwd.clone(),
            env: spec.environment(),
            cage: spec.cage.clone(),
        };
        match give(&mut link, &order).await.map_err(SpawnError::Ours)? {
            Report::Started { pid } => {
                let output = Arc::new(Output::new(spec.streams.size()));
                let stopping = self.shared.stopping.child_token();
                let terminal = ends.terminal.clone();
                let has_input = ends.input.is_some();
                let (pump, wishes) = Pump::new(link, ends, Arc::clone(&output));
                let hold = Hold { wishes, wanted: stopping.clone().drop_guard() };
                self.shared.tasks.spawn(pump.run(stopping));
                Ok(Process::new(pid, output, hold, terminal, has_input))
            }
            Report::Failed { errno } => {
                Err(SpawnError::System(io::Error::from_raw_os_error(errno)))
            }
            Report::Uncaged { wall } => Err(SpawnError::Uncaged(wall)),
            Report::Exited { .. } | Report::Exceeded { .. } | Report::Empty => {
                Err(SpawnError::Ours(io::ErrorKind::InvalidData.into()))
            }
        }
    }

    /// Where the program is that wardens run: this one, usually.
    pub fn program(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.shared.program.as_raw_fd()))
    }

    /// Ends all processes and returns when they are gone. No more are started.
    pub async fn shutdown(&self) {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let warden = self.shared.warden.lock().await.take();
        if let Some(Warden { control, mut child }) = warden {
            drop(control);
            let _ = child.wait().await;
        }
    }

    /// Gives descriptors to the warden, a new one if the last has been killed.
    async fn hand_over(&self, descriptors: &[OwnedFd; 4]) -> io::Result<()> {
        let mut warden = self.shared.warden.lock().await;
        if let Some(present) = &mut *warden
            && present.child.try_wait()?.is_none()
            && send(present, descriptors).await.is_ok()
        {
            return Ok(());
        }
        if self.shared.stopping.is_cancelled() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        tracing::warn!("the warden went away");
        let fresh = warden.insert(spawn::warden(&self.shared.program)?);
        send(fresh, descriptors).await
    }
}

async fn send(warden: &Warden, descriptors: &[OwnedFd; 4]) -> io::Result<()> {
    loop {
        match guardian_link::send(warden.control.get_ref(), descriptors) {
            Err(Errno::EAGAIN) => {}
            Err(Errno::EINTR) => continue,
            answer => return answer.map_err(io::Error::from),
        }
        let mut guard = warden.control.writable().await?;
        guard.clear_ready();
    }
}

fn connected(link: StdUnixStream) -> io::Result<UnixStream> {
    link.set_nonblocking(true)?;
    UnixStream::from_std(link)
}

/// Tells a guardian what to start and waits for how that went.
async fn give(link: &mut UnixStream, order: &Order) -> io::Result<Report> {
    link.write_all(&order.to_bytes()).await?;
    let mut bytes = [0; REPORT_BYTES];
    link.read_exact(&mut bytes).await?;
    Report::from_bytes(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
