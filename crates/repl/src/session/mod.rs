//! One session: a task that owns its runner, its client and all pending requests. Every client request is answered
//! from here under its id exactly once; only requests to the evaluator wait for the evaluator.

mod calls;
mod commands;
mod configured;
mod evals;
mod jobs;
mod lookups;
mod registered;
mod runner_messages;
mod visitor;
mod watches;

use super::call::CallSaid;
use super::client::{ClientMessage, ReplConnection};
use super::evaluator::SessionRunner;
use super::messages::StopReason;
use super::repl_store::{EntryWritten, ReplStore, TaskFile};
use calls::PendingToolCall;
use configured::InstalledCommands;
use engine::HeldRunner;
use evals::QueuedEval;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll};
use lifecycle::CallerName;
use protocols::hotrepl::ValueProfile;
use protocols::hotrepl::inbound::ReplRequest;
use protocols::hotrepl::wire::FromServer;
use registered::RegisteredCommand;
use serde_json::Value;
use sources::config::ReplCommands;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use transport::{MessageReader, MessageWriter};
use watches::SessionWatch;

/// Maximum number of queued notices to a session.
const NOTES_MAX: usize = 64;

/// The default number of entries that a journal query returns.
const ENTRIES_USUAL: f64 = 100.0;

/// How long a session without a client retains its definitions.
const UNATTENDED_MAX: Duration = Duration::from_secs(3_600);

/// Maximum compute time of a turn that no task's timeout limits.
const TURN_MAX: Duration = Duration::from_secs(10);

/// Maximum number of errands of one client in progress: lookups and file writes.
const ERRANDS_MAX: usize = 256;

/// A notice to a session from other tasks.
pub(super) enum SessionNotice {
    /// A client attaches.
    Attach(Box<AttachRequest>),
    /// Cancels a job of its guest.
    CancelJob(String),
}

/// A client that attaches to a session.
pub struct AttachRequest {
    /// Receives the client's messages.
    pub reader: Box<dyn MessageReader>,
    /// Sends messages to the client.
    pub writer: Box<dyn MessageWriter>,
    /// How values are serialized for it.
    pub profile: ValueProfile,
    /// The host by which the client addresses this server, for links.
    pub host: String,
    /// Resolves when the client's connection must end with its credential.
    pub ended: BoxFuture<'static, ()>,
}

impl std::fmt::Debug for AttachRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attach").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// A handle to a session.
#[derive(Clone)]
pub(super) struct SessionHandle {
    notes: mpsc::Sender<SessionNotice>,
}

impl SessionHandle {
    /// Passes a client to the session; returns it if the session has just ended.
    pub(super) async fn attach(
        &self,
        attach: Box<AttachRequest>,
    ) -> Result<(), Box<AttachRequest>> {
        self.notes.send(SessionNotice::Attach(attach)).await.map_err(|unsent| match unsent.0 {
            SessionNotice::Attach(attach) => attach,
            SessionNotice::CancelJob(_) => unreachable!("an attach was sent"),
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.notes.is_closed()
    }
}

/// The dependencies of every session.
#[derive(Clone)]
pub(super) struct SessionSetup {
    pub(super) store: Arc<ReplStore>,
    pub(super) stopping: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// A task in the evaluator that a client waits for.
struct SessionTask {
    what: TaskKind,
    /// The client's id of the request.
    id: String,
    /// The number of the client.
    client: u64,
    started: Instant,
    timeout: Option<Duration>,
    /// The time spent waiting for people does not count.
    deadline: Option<Instant>,
    stdout: String,
    files: Vec<TaskFile>,
    stop: Option<StopReason>,
}

enum TaskKind {
    Eval {
        code: String,
    },
    Tick,
    Command {
        name: String,
        output_schema: Option<Value>,
    },
    Job {
        job: String,
        name: String,
        output_schema: Option<Value>,
    },
    /// A script that every new evaluator runs first.
    Script,
    /// A configured command's text; the task's id is the command.
    Install,
}

/// The result of an errand.
enum ErrandResult {
    /// An answer for a client.
    Answer { client: u64, frame: Box<FromServer> },
    /// A command of the guest has finished, with its files.
    Command(Box<commands::FinishedCommand>),
    /// A job of the guest has finished, with its files.
    Job(Box<jobs::FinishedJob>),
    /// The errand is done; nothing follows from it.
    Nothing,
}

pub(super) struct ReplSession {
    setting: SessionSetup,
    caller: CallerName,
    /// Counts the session's runner in the quota as long as it lasts.
    _held: HeldRunner,
    /// The name of its journal.
    book: String,
    notes: mpsc::Receiver<SessionNotice>,
    own: mpsc::WeakSender<SessionNotice>,
    client: Option<ReplConnection>,
    n_clients: u64,
    unattended_since: Instant,
    evaluator: SessionRunner,
    queue: VecDeque<QueuedEval>,
    running_eval: Option<u64>,
    tasks: BTreeMap<u64, SessionTask>,
    n_tasks: u64,
    completions: BTreeMap<u64, (String, u64, Instant)>,
    watches: BTreeMap<String, SessionWatch>,
    commands: BTreeMap<String, RegisteredCommand>,
    /// The configured commands, and those installed in the evaluator.
    configured: watch::Receiver<Arc<ReplCommands>>,
    installed: InstalledCommands,
    /// Requests that wait until the first scripts have run.
    deferred: Vec<(u64, ReplRequest)>,
    calls: SelectAll<BoxStream<'static, (u64, CallSaid)>>,
    pending: BTreeMap<u64, PendingToolCall>,
    n_calls: u64,
    errands: FuturesUnordered<BoxFuture<'static, ErrandResult>>,
    /// The newest entry that is being written to the journal.
    noted: Option<EntryWritten>,
    began: Instant,
}

impl ReplSession {
    /// Starts a session and returns a handle to it.
    pub(super) fn begin_turn(
        setting: &SessionSetup,
        (caller, held): (CallerName, HeldRunner),
        name: &str,
    ) -> SessionHandle {
        let (sender, notes) = mpsc::channel(NOTES_MAX);
        let store = &setting.store;
        let account = store.engine.quotas().account(&caller);
        let sandbox = store.engine.sandbox().clone();
        let evaluator = SessionRunner::new(sandbox, store.clock.clone(), account);
        let session = Self {
            book: format!("repl/{}/{name}", caller.0),
            setting: setting.clone(),
            caller,
            _held: held,
            notes,
            own: sender.downgrade(),
            client: None,
            n_clients: 0,
            unattended_since: Instant::now(),
            evaluator,
            queue: VecDeque::new(),
            running_eval: None,
            tasks: BTreeMap::new(),
            n_tasks: 0,
            completions: BTreeMap::new(),
            watches: BTreeMap::new(),
            commands: BTreeMap::new(),
            configured: store.commands.clone(),
            installed: InstalledCommands::default(),
            deferred: vec![],
            calls: SelectAll::new(),
            pending: BTreeMap::new(),
            n_calls: 0,
            errands: FuturesUnordered::new(),
            noted: None,
            began: Instant::now(),
        };
        setting.tasks.spawn(session.run());
        SessionHandle { notes: sender }
    }

    async fn run(mut self) {
        let stopping = self.setting.stopping.clone();
        self.setting.store.is_taken_over().await;
        let mut sleep = Box::pin(tokio::time::sleep_until(self.alarm()));
        loop {
            self.wind(&mut sleep);
            tokio::select! {
                heard = listen(&mut self.client) => self.hear_client(heard),
                message = self.evaluator.next() => self.handle_runner_message(message),
                Some((call, said)) = self.calls.next(), if !self.calls.is_empty() => {
                    self.hear_call(call, said);
                }
                Some(brought) = self.errands.next(), if !self.errands.is_empty() => {
                    self.take(brought);
                }
                note = self.notes.recv() => match note {
                    Some(SessionNotice::Attach(attach)) => self.attach(*attach),
                    Some(SessionNotice::CancelJob(job)) => self.cancel_guest_job(&job),
                    None => break,
                },
                Ok(()) = self.configured.changed() => self.commands_configured(),
                () = &mut sleep => {
                    if self.look_after() {
                        break;
                    }
                    sleep.as_mut().reset(self.alarm());
                }
                () = stopping.cancelled() => break,
            }
        }
        self.finish().await;
    }

    /// Answers every pending request; calls in progress continue in the engine, or are lost.
    async fn finish(mut self) {
        for pending in std::mem::take(&mut self.pending).into_values() {
            self.abandon(&pending);
        }
        self.end_watches("The server stops.");
        if let Some(client) = self.client.take() {
            client.dismiss().await;
        }
        if let Some(noted) = self.noted.take() {
            noted.await;
        }
    }

    /// Here the alarm is only set to an earlier time: most deadlines never pass, and setting the timer is expensive.
    fn wind(&self, sleep: &mut Pin<Box<Sleep>>) {
        let alarm = self.alarm();
        if alarm < sleep.deadline() {
            sleep.as_mut().reset(alarm);
        }
    }

    fn alarm(&self) -> Instant {
        let unattended = self.client.is_none().then(|| self.unattended_since + UNATTENDED_MAX);
        let usual = Instant::now() + UNATTENDED_MAX;
        let tasks = self.tasks.iter().filter(|(_, task)| task.stop.is_none());
        let tasks = tasks.filter_map(|(id, task)| task.deadline.filter(|_| !self.is_asking(*id)));
        let pending = self.pending.values().filter_map(PendingToolCall::alarm);
        let turn = self.evaluator.busy_since().map(|since| since + TURN_MAX);
        tasks
            .chain(pending)
            .chain(self.evaluator.alarm())
            .chain(turn)
            .chain(self.next_tick())
            .chain(unattended)
            .fold(usual, Instant::min)
    }

    /// Handles the alarm. Returns whether the session is no longer needed.
    fn look_after(&mut self) -> bool {
        let now = Instant::now();
        let late: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.stop.is_none())
            .filter(|(_, task)| task.deadline.is_some_and(|deadline| deadline <= now))
            .filter(|(task, _)| !self.is_asking(**task))
            .map(|(task, _)| *task)
            .collect();
        for task in late {
            let ms = self.tasks.get(&task).and_then(|task| task.timeout).unwrap_or_default();
            let ms = u64::try_from(ms.as_millis()).unwrap_or(u64::MAX);
            self.stop(task, StopReason::Timeout(ms));
        }
        self.end_late_calls(now);
        let is_timed = self.tasks.values().any(|task| task.deadline.is_some());
        let too_long = |since: Instant| since + TURN_MAX <= now;
        if !is_timed && self.evaluator.busy_since().is_some_and(too_long) {
            self.evaluator.stop(0);
        }
        let frame = self.frame(now);
        if let Some(loss) = self.evaluator.look_after(now, frame) {
            self.lose(&loss);
        }
        self.tick(now);
        self.client.is_none()
            && self.unattended_since + UNATTENDED_MAX <= now
            && self.tasks.is_empty()
            && self.pending.is_empty()
    }
}

async fn listen(client: &mut Option<ReplConnection>) -> ClientMessage {
    match client {
        Some(client) => client.listen().await,
        None => std::future::pending().await,
    }
}
