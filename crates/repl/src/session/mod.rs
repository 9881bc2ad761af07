//! One session: a task that owns its runner, its client and everything that waits. What a client asks is answered from
//! here and under its id exactly once; nothing that is asked waits for the evaluator, unless it is the evaluator's.

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
use super::repl_store::{EntryWritten, ReplStore, TaskFile};
use super::words::StopReason;
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

/// What a session is told by others at a time.
const NOTES_MAX: usize = 64;

/// Entries that a journal query gives where it does not say how many.
const ENTRIES_USUAL: f64 = 100.0;

/// How long a session without a client keeps its definitions.
const UNATTENDED_MAX: Duration = Duration::from_secs(3_600);

/// How long a turn that no task's time limits may compute.
const TURN_MAX: Duration = Duration::from_secs(10);

/// Errands of one client that are under way: looking things up, writing files.
const ERRANDS_MAX: usize = 256;

/// What a session is told by others.
pub(super) enum SessionNotice {
    /// A client wants it.
    Attach(Box<AttachRequest>),
    /// A job of its guest is to end.
    CancelJob(String),
}

/// A client that wants a session.
pub struct AttachRequest {
    /// What it sends.
    pub reader: Box<dyn MessageReader>,
    /// What it is sent.
    pub writer: Box<dyn MessageWriter>,
    /// How values are written for it.
    pub profile: ValueProfile,
    /// What it calls this server, for links.
    pub host: String,
    /// Resolves when the client's connection must end with its credential.
    pub ended: BoxFuture<'static, ()>,
}

impl std::fmt::Debug for AttachRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attach").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// A session, for those who want something of it.
#[derive(Clone)]
pub(super) struct SessionHandle {
    notes: mpsc::Sender<SessionNotice>,
}

impl SessionHandle {
    /// Hands a client over; gives it back where the session has just ended.
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

/// What every session is made of.
#[derive(Clone)]
pub(super) struct SessionSetup {
    pub(super) store: Arc<ReplStore>,
    pub(super) stopping: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// What somebody waits for, in the evaluator.
struct SessionTask {
    what: TaskKind,
    /// The client's name for it.
    id: String,
    /// Which client.
    client: u64,
    started: Instant,
    timeout: Option<Duration>,
    /// Waiting for people does not count.
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
    /// A text that every new evaluator is given first.
    Script,
    /// A text of the configuration that is a command, which is the task's id.
    Install,
}

/// What an errand brings.
enum ErrandResult {
    /// An answer for a client.
    Answer { client: u64, frame: Box<FromServer> },
    /// A command of the guest's is over, with its files.
    Command(Box<commands::FinishedCommand>),
    /// A job of the guest's is over, with its files.
    Job(Box<jobs::FinishedJob>),
    /// It is done, and that is all.
    Nothing,
}

pub(super) struct ReplSession {
    setting: SessionSetup,
    caller: CallerName,
    /// It holds a runner as long as it lasts.
    _held: HeldRunner,
    /// Where its journal is.
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
    /// Commands of the configuration, and what of them is in the evaluator.
    configured: watch::Receiver<Arc<ReplCommands>>,
    installed: InstalledCommands,
    /// Requests that wait until the first scripts have run.
    deferred: Vec<(u64, ReplRequest)>,
    calls: SelectAll<BoxStream<'static, (u64, CallSaid)>>,
    pending: BTreeMap<u64, PendingToolCall>,
    n_calls: u64,
    errands: FuturesUnordered<BoxFuture<'static, ErrandResult>>,
    /// The newest entry on its way into the journal.
    noted: Option<EntryWritten>,
    began: Instant,
}

impl ReplSession {
    /// Begins one, and says how to reach it.
    pub(super) fn begin(
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

    /// Everything that waits is told; what was under way goes on in the engine, or is lost.
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

    /// The alarm is only ever set earlier here: most deadlines never come, and setting it costs.
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

    /// The alarm went off. Says whether nobody needs the session any more.
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
