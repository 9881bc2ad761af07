//! Starts and ends all processes of one server.

use crate::error::SpawnError;
use crate::output::ProcessOutput;
use crate::process::{Process, PumpHold};
use crate::protected::{ProtectedPaths, ProtectionScope};
use crate::pump::ProcessPump;
use crate::spawn;
use crate::spawn_order::{REPORT_BYTES, SpawnOrder, SubreaperReport};
use crate::spec::{ProcessSpec, ProcessStreams};
use crate::streams::open_streams;
use crate::subreaper_pool::SubreaperPool;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The configuration of a process spawner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// The program whose hidden verb starts the fork server.
    pub program: SelfProgram,
    /// Paths that processes must not use.
    pub protected: ProtectedPaths,
}

/// A program that calls [`crate::enter_if_asked`] first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SelfProgram {
    /// The program that is running.
    #[default]
    ThisBinary,
    /// The program at this path.
    At(PathBuf),
}

/// Starts processes. Cheap to clone; all clones share one fork server.
#[derive(Debug, Clone)]
pub struct ProcessSpawner {
    shared: Arc<SpawnerShared>,
}

#[derive(Debug)]
struct SpawnerShared {
    subreapers: Arc<SubreaperPool>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl ProcessSpawner {
    /// Starts the fork server.
    pub fn start(config: &Config) -> io::Result<Self> {
        let subreapers = Arc::new(SubreaperPool::start(
            spawn::open(&config.program)?,
            config.protected.clone(),
        )?);
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        Ok(Self { shared: Arc::new(SpawnerShared { subreapers, tasks, stopping }) })
    }

    /// Starts a program. Dropping the result kills it and all its descendants.
    pub async fn spawn(&self, spec: &ProcessSpec) -> Result<Process, SpawnError> {
        spec.validate()?;
        if self.shared.stopping.is_cancelled() {
            return Err(SpawnError::Stopping);
        }
        let (ends, streams) = open_streams(spec.streams).map_err(SpawnError::Ours)?;
        let order = SpawnOrder {
            has_terminal: matches!(spec.streams, ProcessStreams::Terminal(_)),
            argv: spec.argv.clone(),
            arg0: spec.arg0.clone(),
            cwd: spec.cwd.clone(),
            env: spec.environment(),
            cage: spec.cage.clone(),
        };
        let subreapers = &self.shared.subreapers;
        let given = subreapers.give(&order.to_bytes(), &streams).await;
        let mut link = given.map_err(SpawnError::Ours)?;
        // A stream ends when its other end is closed, so ours must be.
        drop(streams);
        match heard(&mut link.stream).await.map_err(SpawnError::Ours)? {
            SubreaperReport::Started { pid } => {
                let output = Arc::new(ProcessOutput::new(spec.streams.size()));
                let stopping = self.shared.stopping.child_token();
                let terminal = ends.terminal.clone();
                let has_input = ends.input.is_some();
                let (pump, wishes) =
                    ProcessPump::new(link, Arc::clone(subreapers), ends, Arc::clone(&output));
                let hold = PumpHold { wishes, wanted: stopping.clone().drop_guard() };
                self.shared.tasks.spawn(pump.run(stopping));
                let subreapers = Arc::clone(subreapers);
                self.shared.tasks.spawn(async move { subreapers.prepare().await });
                Ok(Process::new(pid, output, hold, terminal, has_input))
            }
            SubreaperReport::Failed { errno } => {
                subreapers.return_subreaper(link);
                Err(SpawnError::System(io::Error::from_raw_os_error(errno)))
            }
            SubreaperReport::Uncaged { wall } => {
                subreapers.return_subreaper(link);
                Err(SpawnError::Uncaged(wall))
            }
            SubreaperReport::Exited { .. }
            | SubreaperReport::Exceeded { .. }
            | SubreaperReport::Empty => Err(SpawnError::Ours(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Whether programs without a cage are denied protected paths, too, if the system allows it.
    pub fn protects_every_program(&self) -> bool {
        let protected = self.shared.subreapers.protected();
        protected.scope == ProtectionScope::EveryProgram && !protected.is_empty()
    }

    /// The path of the program that fork servers run: usually this one.
    pub fn program(&self) -> io::Result<PathBuf> {
        self.shared.subreapers.program()
    }

    /// Ends all processes and returns when they have ended. No more are started.
    pub async fn shutdown(&self) {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.subreapers.shut_down().await;
    }
}

/// Waits for a subreaper's report about its order.
async fn heard(link: &mut UnixStream) -> io::Result<SubreaperReport> {
    let mut bytes = [0; REPORT_BYTES];
    link.read_exact(&mut bytes).await?;
    SubreaperReport::from_bytes(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
