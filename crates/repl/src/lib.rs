//! The REPL: sessions whose definitions persist between evals, with watches, jobs and files. The crate knows no
//! socket, token or HTTP: a transport passes in an admitted client.

mod call;
mod client;
mod completion;
mod evaluator;
mod messages;
mod redact;
mod repl_store;
mod session;

pub use session::AttachRequest;

use engine::{Clock, Engine};
use lifecycle::CallerName;
use protocols::hotrepl::wire::{ControlInfo, EvaluatorInfo, Handshake, HostInfo, LimitsInfo};
use protocols::hotrepl::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION, RESULT_BYTES_MAX};
use repl_store::ReplStore;
use session::{ReplSession, SessionHandle, SessionSetup};
use sources::config::ReplCommands;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{BlobStore, NoteStore, RecordStore};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of requests of one client that wait for the evaluator.
const QUEUED_MAX: usize = 32;

/// The default timeout of an eval.
const EVAL_TIME: Duration = Duration::from_secs(10);

/// The maximum timeout that an eval may request.
const EVAL_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Maximum number of concurrent jobs of one session.
const JOBS_MAX: usize = 4;

/// Maximum number of watches of one session.
const WATCHES_MAX: usize = 8;

/// Maximum number of sessions of a server: each holds a runner.
pub const SESSIONS_MAX: usize = 256;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct ReplSettings {
    /// Scripts that every new evaluator runs first; they may register commands.
    pub scripts: Arc<Vec<String>>,
    /// The folder where files are stored, if clients may know it.
    pub artifact_paths: Option<PathBuf>,
    /// Whether the command `demo.artifact` exists.
    pub demo: bool,
    /// The clock rate of watches.
    pub frames_per_second: u32,
}

impl Default for ReplSettings {
    fn default() -> Self {
        let scripts = Arc::default();
        Self { scripts, artifact_paths: None, demo: false, frames_per_second: 60 }
    }
}

/// The dependencies and settings of a server's sessions.
pub struct Config {
    /// The engine that runs the programs.
    pub engine: Engine,
    /// The time source.
    pub clock: Clock,
    /// The operator's settings.
    pub settings: ReplSettings,
    /// Stores jobs and the metadata of files.
    pub records: Arc<dyn RecordStore>,
    /// Stores the contents of files.
    pub blobs: Arc<dyn BlobStore>,
    /// Stores the sessions' journals.
    pub notes: Arc<dyn NoteStore>,
    /// The commands from the configuration.
    pub commands: watch::Receiver<Arc<ReplCommands>>,
    /// Cancelled when the server stops.
    pub stopping: CancellationToken,
    /// Tracks every task of every session.
    pub tasks: TaskTracker,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why a session was not opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionOpenRefusal {
    /// Each session holds a runner.
    #[error("{SESSIONS_MAX} sessions are open, and there is room for no more; close one")]
    TooMany,
    /// The caller's quota is used up, or the engine stops.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// A file that a session wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionArtifact {
    /// The name that the session gave it.
    pub name: String,
    /// The declared media type. A guest chose it.
    pub content_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// All sessions of a server. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct ReplSessions {
    setting: SessionSetup,
    sessions: Arc<Mutex<HashMap<(CallerName, String), SessionHandle>>>,
}

impl std::fmt::Debug for ReplSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repl").finish_non_exhaustive()
    }
}

impl ReplSessions {
    /// Takes over the jobs that an earlier process left, and accepts clients.
    pub fn start(config: Config) -> Self {
        let (stopping, tasks) = (config.stopping.clone(), config.tasks.clone());
        let store = Arc::new(ReplStore::new(config));
        let resuming = Arc::clone(&store);
        let resumed = async move { resuming.resume_pending().await };
        tasks.spawn(stopping.clone().run_until_cancelled_owned(resumed));
        Self { setting: SessionSetup { store, stopping, tasks }, sessions: Arc::default() }
    }

    /// Ensures that a session of that name exists and that the caller may use it.
    pub fn open(&self, caller: &CallerName, name: &str) -> Result<(), SessionOpenRefusal> {
        self.session(caller, name).map(drop)
    }

    /// Attaches a client to the session of that name.
    pub async fn attach(
        &self,
        caller: &CallerName,
        name: &str,
        attach: AttachRequest,
    ) -> Result<(), SessionOpenRefusal> {
        let mut attach = Box::new(attach);
        loop {
            match self.session(caller, name)?.attach(attach).await {
                Ok(()) => return Ok(()),
                // The session ended just now; the client is attached to a new one.
                Err(back) => attach = back,
            }
            self.forget_caller(caller, name);
        }
    }

    /// Returns the file that a capability opens; none if the file no longer exists.
    pub async fn artifact(&self, capability: &str) -> Option<SessionArtifact> {
        let (kept, bytes) = self.setting.store.files.open(capability).await?;
        Some(SessionArtifact { name: kept.name, content_type: kept.content_type, bytes })
    }

    /// Returns the session of that name; starts it if necessary, unless too many are open.
    fn session(
        &self,
        caller: &CallerName,
        name: &str,
    ) -> Result<SessionHandle, SessionOpenRefusal> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| !session.is_over());
        let key = (caller.clone(), name.to_owned());
        if let Some(session) = sessions.get(&key) {
            return Ok(session.clone());
        }
        if sessions.len() >= SESSIONS_MAX {
            return Err(SessionOpenRefusal::TooMany);
        }
        let account = self.setting.store.engine.quotas().account(caller);
        let held = account.hold_runner().map_err(engine::Error::from)?;
        let session = ReplSession::begin_turn(&self.setting, (caller.clone(), held), name);
        sessions.insert(key, session.clone());
        Ok(session)
    }

    fn forget_caller(&self, caller: &CallerName, name: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&(caller.clone(), name.to_owned()));
    }
}

fn handshake() -> Handshake {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Handshake {
        protocol_version: PROTOCOL_VERSION,
        host: HostInfo {
            name: "Airlock".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        },
        evaluator: EvaluatorInfo {
            name: "QuickJS".into(),
            language_version: "ES2023".into(),
            persistent_state: true,
            supports_completion: true,
            cancellation: "hardAbort".into(),
        },
        available_evaluators: texts(&["QuickJS"]),
        default_usings: texts(&["console", "tools", "Repl", "Time"]),
        helpers: texts(&[
            "String[] help()",
            "String inspect(Object value, Number depth = 2)",
            "String describe(Object value)",
            "String[] history(Number limit = 20)",
            "Object command(Object descriptor, Function handler)",
        ]),
        control: ControlInfo {
            supported: true,
            commands_list_changed: true,
            schema_validation: true,
        },
        limits: LimitsInfo {
            max_message_bytes: MESSAGE_BYTES_MAX as u64,
            max_queued_commands: QUEUED_MAX as u64,
            max_result_length: RESULT_BYTES_MAX as u64,
            max_enumerable_elements: u64::from(evaluator::ELEMENTS_MAX),
            default_eval_timeout_ms: EVAL_TIME.as_millis() as u64,
            max_job_concurrency: JOBS_MAX as u64,
        },
        enforces: texts(&[
            "maxMessageBytes",
            "maxQueuedCommands",
            "maxResultLength",
            "maxEnumerableElements",
            "maxJobConcurrency",
        ]),
    }
}
