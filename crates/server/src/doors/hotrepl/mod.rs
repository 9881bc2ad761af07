//! hotrepl: sessions whose definitions stay, at `/repl`. One client holds a session; the next one takes it over.

mod call;
mod client;
mod completion;
mod discreet;
mod evaluator;
mod session;
mod shelf;
mod words;

pub(crate) use shelf::{Places, Shelf};

use crate::app::App;
use crate::auth::Caller;
use crate::error::Problem;
use crate::query::Query;
use crate::tasks::Tasks;
use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use lifecycle::CallerName;
use protocols::hotrepl::wire::{ControlInfo, EvaluatorInfo, Handshake, HostInfo, LimitsInfo};
use protocols::hotrepl::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Profile, RESULT_BYTES_MAX};
use session::{Attach, Handle, Session, Setting};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use transport::{FrameBounds, accept_upgrade};

/// Requests of one client that wait for the evaluator.
const QUEUED_MAX: usize = 32;

/// How long an eval may take that does not say.
const EVAL_TIME: Duration = Duration::from_secs(10);

/// How long an eval may ask for.
const EVAL_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Jobs of one session that run at a time.
const JOBS_MAX: usize = 4;

/// Watches of one session.
const WATCHES_MAX: usize = 8;

/// Sessions of a server: each holds a runner.
const SESSIONS_MAX: usize = 256;

/// Longest name of a session.
const NAME_BYTES_MAX: usize = 128;

/// Largest frame that is read at all: one that is a little too long is answered, not cut off.
const FRAME_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

/// What an operator can choose.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Texts that every new evaluator is given first; they may register commands.
    pub scripts: Arc<Vec<String>>,
    /// Where files lie, if clients may know.
    pub artifact_paths: Option<PathBuf>,
    /// Whether `demo.artifact` is a command.
    pub demo: bool,
    /// How fast the clock of watches ticks.
    pub frames_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let scripts = Arc::default();
        Self { scripts, artifact_paths: None, demo: false, frames_per_second: 60 }
    }
}

/// All sessions of a server.
pub(crate) struct Repl {
    setting: Setting,
    sessions: Mutex<HashMap<(CallerName, String), Handle>>,
}

impl Repl {
    pub(crate) fn new(shelf: Shelf, stopping: CancellationToken, tasks: Tasks) -> Self {
        let shelf = Arc::new(shelf);
        let paying = Arc::clone(&shelf);
        let paid = async move { paying.pay_what_is_owed().await };
        tasks.spawn(stopping.clone().run_until_cancelled_owned(paid));
        let setting = Setting { shelf, stopping, tasks };
        Self { setting, sessions: Mutex::default() }
    }

    /// The session of that name, begun if need be, unless there are too many.
    fn session(&self, caller: &CallerName, name: &str) -> Result<Handle, Problem> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| !session.is_over());
        let key = (caller.clone(), name.to_owned());
        if let Some(session) = sessions.get(&key) {
            return Ok(session.clone());
        }
        if sessions.len() >= SESSIONS_MAX {
            return Err(Problem::no_channel(SESSIONS_MAX));
        }
        let account = self.setting.shelf.engine.quotas().account(caller);
        let held = account.hold_runner().map_err(engine::Error::from)?;
        let session = Session::begin(&self.setting, (caller.clone(), held), name);
        sessions.insert(key, session.clone());
        Ok(session)
    }

    fn forget(&self, caller: &CallerName, name: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&(caller.clone(), name.to_owned()));
    }
}

/// The door, and where its files are.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/repl", get(open))
        .route("/repl/artifacts/{capability}/{name}", get(artifact))
}

/// `GET /repl`: becomes a WebSocket with one JSON object per text frame.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    caller.may_run().map_err(|denied| Problem::denied(denied, ""))?;
    let name = query.text("session").unwrap_or_default().to_owned();
    if name.len() > NAME_BYTES_MAX {
        let message = format!("The name of a session has at most {NAME_BYTES_MAX} bytes.");
        return Err(Problem::bad_request(message));
    }
    let profile = match query.text("values") {
        Some("native") => Profile::Native,
        Some(_) | None => Profile::Text,
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let host = host.to_owned();
    app.repl.session(&caller.name, &name)?;
    let token = app.tasks.token();
    let bounds = FrameBounds::strict(FRAME_BYTES_MAX);
    Ok(accept_upgrade(upgrade, bounds, async move |reader, writer| {
        let (watching, owner) = (Arc::clone(&app), caller.clone());
        let ended = Box::pin(async move { watching.credential_end(&owner).await });
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        let mut attach = Box::new(Attach { reader, writer, profile, host, ended });
        // A session that ended just now makes way for another.
        while let Ok(session) = app.repl.session(&caller.name, &name) {
            match session.attach(attach).await {
                Ok(()) => break,
                Err(back) => attach = back,
            }
            app.repl.forget(&caller.name, &name);
        }
        drop(token);
    }))
}

/// `GET /repl/artifacts/{capability}/{name}`: the file that the capability opens. Knowing it is the right to it.
pub(crate) async fn artifact(
    State(app): State<Arc<App>>,
    Path((capability, _)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let found = app.repl.setting.shelf.files.open(&capability).await;
    let (kept, bytes) = found.ok_or_else(|| Problem::no_route("/repl/artifacts"))?;
    Response::builder()
        .status(StatusCode::OK)
        .header(CONTENT_TYPE, header_safe(&kept.content_type))
        // A guest wrote it: a browser must not show it as a page of ours.
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", kept.name))
        .header("Content-Security-Policy", "sandbox; default-src 'none'")
        .body(Body::from(bytes))
        .map_err(|error| Problem::broken(&error))
}

fn header_safe(content_type: &str) -> &str {
    let is_safe = content_type.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_safe { content_type } else { "application/octet-stream" }
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
