//! The engine's handle: submit, follow, look up.

use crate::Clock;
use crate::actor::{Activation, ActorRequest, ExecutionActor, ReplySender};
use crate::after_loss;
use crate::alarm::WakeAlarm;
use crate::clock::ClockKeeper;
use crate::config::Config;
use crate::fault::{Error, Fault};
use crate::policies::PolicySet;
use crate::quotas::{QuotaBook, QuotaSettings};
use crate::recover;
use crate::registry::{ActorMailbox, ActorRegistry, ActorRequests, ActorSlot};
use crate::reports::ProgressReports;
use lifecycle::{
    Answer, AnswerAuthor, AnswerExtras, BuiltinCaller, CallId, CallOutcome, CallRules, CallerName,
    ExecutionId, ExecutionLimits, GivenAnswer, Intent, LimitKind, Program, QuestionId, RandomSeed,
    Rejection, ValueConvention,
};
use sandbox::Sandbox;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::Catalogue;
use uuid::Uuid;

/// Maximum number of retries of a request whose actor has just left. More indicates a bug.
const SENDS_MAX: usize = 100;

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<EngineShared>,
}

/// The state that all actors share.
pub(crate) struct EngineShared {
    pub(crate) config: Config,
    pub(crate) sandbox: Sandbox,
    pub(crate) registry: ActorRegistry,
    pub(crate) tracker: TaskTracker,
    /// Cancelled when the engine stops.
    pub(crate) closing: CancellationToken,
    /// Runners that can be released for programs that wait for one.
    pub(crate) capacity: crate::capacity::RunnerCapacity,
    pub(crate) alarm: WakeAlarm,
    /// Incremented when a question was asked or closed.
    pub(crate) questions: watch::Sender<u64>,
    /// Default limits of programs.
    pub(crate) limits: watch::Sender<ExecutionLimits>,
    /// The progress of tools.
    pub(crate) reports: ProgressReports,
    /// The usage of each caller.
    pub(crate) quotas: Arc<QuotaBook>,
    /// The state of this store's clock.
    pub(crate) clock_keeper: ClockKeeper,
    /// Unfinished executions whose journals cannot be read. Bounded by the number of unfinished executions.
    pub(crate) unreadable: Mutex<BTreeSet<ExecutionId>>,
}

/// What to run, for which caller, within which limits.
#[derive(Debug, Clone)]
pub struct ExecutionStart {
    /// The program.
    pub program: Program,
    /// The caller that starts it.
    pub caller: CallerName,
    /// Its limits.
    pub limits: ExecutionLimits,
}

impl Engine {
    /// Starts the sandbox, recovers unfinished executions and accepts work.
    pub async fn start(config: Config) -> Result<Self, Fault> {
        let engine = Self::prepare(config).await?;
        engine.recover().await?;
        Ok(engine)
    }

    /// Starts only the sandbox. Unfinished executions continue with [`Self::recover`], once every tool
    /// that they may call is in the catalogue.
    pub async fn prepare(config: Config) -> Result<Self, Fault> {
        let sandbox = Sandbox::start(config.sandbox.clone())
            .await
            .map_err(|error| Fault::new(&error, error.to_string()))?;
        let limits = watch::Sender::new(config.limits);
        let quotas = QuotaBook::new(config.clock.clone(), config.quotas.clone());
        let quotas = Arc::new(quotas);
        let (clock, records) = (config.clock.clone(), config.records.clone());
        let clock_keeper = ClockKeeper::open(clock, records, &*config.journal).await?;
        let shared = Arc::new(EngineShared {
            limits,
            config,
            sandbox,
            registry: ActorRegistry::default(),
            tracker: TaskTracker::new(),
            closing: CancellationToken::new(),
            capacity: crate::capacity::RunnerCapacity::default(),
            alarm: WakeAlarm::default(),
            questions: watch::Sender::new(0),
            reports: ProgressReports::default(),
            quotas,
            clock_keeper,
            unreadable: Mutex::default(),
        });
        shared.tracker.spawn(crate::capacity::watch(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Recovers unfinished executions, and starts the timers. Call once, after [`Self::prepare`].
    pub async fn recover(&self) -> Result<(), Fault> {
        let shared = &self.shared;
        after_loss::park_after_loss(shared).await?;
        recover::count_unfinished(shared).await?;
        recover::unfinished(shared).await?;
        shared.tracker.spawn(crate::clock::run_clock_keeper(Arc::clone(shared)));
        shared.tracker.spawn(crate::clock::correct_dues(Arc::clone(shared)));
        shared.tracker.spawn(crate::alarm::watch(Arc::clone(shared)));
        shared.tracker.spawn(crate::retention::watch(Arc::clone(shared)));
        Ok(())
    }

    /// Starts an execution. It is in the journal when this returns.
    pub async fn submit(&self, start: ExecutionStart) -> Result<ExecutionId, Error> {
        self.begin_execution(
            ExecutionId::from_uuid(Uuid::now_v7()),
            start,
            CallRules::default(),
            Activation::Fresh,
        )
        .await
    }

    /// Starts an execution with an id and rules that its protocol chose. An id can be used once.
    pub async fn submit_as(
        &self,
        execution: ExecutionId,
        start: ExecutionStart,
        terms: CallRules,
    ) -> Result<ExecutionId, Error> {
        self.begin_execution(execution, start, terms, Activation::Chosen).await
    }

    async fn begin_execution(
        &self,
        execution: ExecutionId,
        start: ExecutionStart,
        terms: CallRules,
        boot: fn(Intent, ReplySender) -> Activation,
    ) -> Result<ExecutionId, Error> {
        if self.shared.closing.is_cancelled() {
            return Err(Rejection::ShuttingDown.into());
        }
        let seed = random_seed()?;
        let ExecutionStart { program, caller, limits } = start;
        self.shared.quotas.admit_start(&caller)?;
        let (reply, kept) = oneshot::channel();
        let intent = Intent::Start { program, caller, limits, seed, terms: Box::new(terms) };
        let actor = match self.shared.registry.desk(execution) {
            ActorSlot::Vacant(_, mailbox) => {
                self.shared.spawn_actor(execution, mailbox, boot(intent, reply))
            }
            // A request for it arrived before it began; the existing actor decides.
            ActorSlot::Staffed(_) => {
                if let Intent::Start { caller, .. } = &intent {
                    self.shared.quotas.release_start(caller);
                }
                return self.submit_intent(execution, intent).await.map(|()| execution);
            }
        };
        match kept.await {
            Ok(started) => started.map(|()| execution),
            Err(_) if self.shared.closing.is_cancelled() => Err(Rejection::ShuttingDown.into()),
            Err(_) => match actor.await {
                // Another request was first with this id, here or on another server.
                Ok(()) => Err(Rejection::AlreadyStarted.into()),
                Err(panic) => Err(Fault::new(panic, "try again").into()),
            },
        }
    }

    /// Starts a program that contains `return`, with the default limits, for the embedding program itself.
    pub async fn run(&self, source: &str) -> Result<ExecutionId, Error> {
        let program =
            Program { source: source.to_owned(), convention: ValueConvention::ExplicitReturn };
        let caller = BuiltinCaller::Embedder.into();
        self.submit(ExecutionStart { program, caller, limits: self.limits() }).await
    }

    /// Answers a question. The answer is durable when this returns; exactly one answer per question is recorded.
    pub async fn answer_question(
        &self,
        question: QuestionId,
        answer: Answer,
        by: impl Into<AnswerAuthor>,
    ) -> Result<ExecutionId, Error> {
        self.answer_with(question, answer, by, AnswerExtras::Nothing).await
    }

    /// The same, with the extras of an acceptance: remembering it, or other arguments.
    pub async fn answer_with(
        &self,
        question: QuestionId,
        answer: Answer,
        by: impl Into<AnswerAuthor>,
        rider: AnswerExtras,
    ) -> Result<ExecutionId, Error> {
        let execution = self.asked_by(question).await?;
        self.answer_all(execution, vec![(question, answer, rider)], by).await?;
        Ok(execution)
    }

    /// Answers several questions of one execution, all or none; for questions that are already answered, the
    /// first answer wins. The answers are durable when this returns.
    pub async fn answer_all(
        &self,
        execution: ExecutionId,
        answers: Vec<(QuestionId, Answer, AnswerExtras)>,
        by: impl Into<AnswerAuthor>,
    ) -> Result<(), Error> {
        let by = by.into();
        let given = |(question, answer, rider): (QuestionId, Answer, AnswerExtras)| {
            let by = by.clone();
            GivenAnswer { question, answer, by, rider }
        };
        let answers: Vec<_> = answers.into_iter().map(given).collect();
        let request = |reply| ActorRequest::Answer(answers.clone(), reply);
        self.shared.submit_request(execution, request).await
    }

    /// Deletes an execution that has ended, and everything about it.
    pub async fn delete_execution(&self, execution: ExecutionId) -> Result<(), Error> {
        if self.shared.config.journal.delete_execution(execution).await? {
            return Ok(());
        }
        self.overview(execution).await?;
        Err(Rejection::NotFinished.into())
    }

    /// Whether there was such an execution that has been deleted.
    pub async fn was_forgotten(&self, execution: ExecutionId) -> Result<bool, Fault> {
        Ok(self.shared.config.journal.was_forgotten(execution).await?)
    }

    /// Ends an execution: its runner is killed, its questions are closed.
    pub async fn cancel(&self, execution: ExecutionId, by: CallerName) -> Result<(), Error> {
        self.cancel_because(execution, by, None).await
    }

    /// The same, with a reason that is recorded with the end.
    pub async fn cancel_because(
        &self,
        execution: ExecutionId,
        by: CallerName,
        reason: Option<String>,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Cancel { by, reason, active_ms: 0 }).await
    }

    /// Lets a parked execution continue. Calls that were in progress, or may have been, become questions.
    pub async fn continue_parked(
        &self,
        execution: ExecutionId,
        by: CallerName,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Continue { by }).await
    }

    /// How often the clock of this store was found set back. Values that were written before expire by a clock that is
    /// no longer valid.
    pub fn clock_generation(&self) -> u64 {
        self.shared.clock_keeper.generation()
    }

    /// Continues all executions that were parked because the store lost entries, or may have; returns their number.
    pub async fn continue_all(&self, by: &CallerName) -> Result<usize, Error> {
        after_loss::continue_all(&self.shared, by).await
    }

    /// Reports how a call that the caller runs has ended. The first report wins; it is durable when this returns.
    pub async fn settle_call(
        &self,
        execution: ExecutionId,
        call: CallId,
        outcome: CallOutcome,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Settle { call, outcome }).await
    }

    /// Ends an execution because it reached a limit that its protocol enforces.
    pub async fn expire(&self, execution: ExecutionId, limit: LimitKind) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Expire { limit, active_ms: 0 }).await
    }

    /// The policies.
    pub fn policies(&self) -> &PolicySet {
        &self.shared.config.policies
    }

    /// What programs can call.
    pub fn catalogue(&self) -> &Catalogue {
        &self.shared.config.catalogue
    }

    /// Default limits of programs.
    pub fn limits(&self) -> ExecutionLimits {
        *self.shared.limits.borrow()
    }

    /// Replaces the default limits, for executions that start from now on.
    pub fn set_limits(&self, limits: ExecutionLimits) {
        self.shared.limits.send_replace(limits);
    }

    /// The usage of each caller, and the quotas.
    pub fn quotas(&self) -> &Arc<QuotaBook> {
        &self.shared.quotas
    }

    /// Replaces the quotas, for what starts from now on.
    pub fn set_quotas(&self, quotas: QuotaSettings) {
        self.shared.quotas.set(quotas);
    }

    /// The engine's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    /// Notifies when a question of any execution in this process was asked or closed. The number has no
    /// meaning; receivers read the journal.
    pub fn question_changes(&self) -> watch::Receiver<u64> {
        self.shared.questions.subscribe()
    }

    /// The load of the sandbox.
    pub fn load(&self) -> sandbox::SandboxLoad {
        self.shared.sandbox.load()
    }

    /// The sandbox, for protocols that run programs outside of the engine. All share its budget.
    pub fn sandbox(&self) -> &Sandbox {
        &self.shared.sandbox
    }

    /// The number of executions in memory.
    pub fn n_live(&self) -> usize {
        self.shared.registry.len()
    }

    /// Accepts no more work, parks running executions and stops. Everything in progress is in the journal.
    pub async fn shutdown(&self) {
        self.shared.closing.cancel();
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
        self.shared.sandbox.shutdown().await;
    }

    async fn submit_intent(&self, execution: ExecutionId, intent: Intent) -> Result<(), Error> {
        let request = |reply| ActorRequest::Submit(intent.clone(), reply);
        self.shared.submit_request(execution, request).await
    }
}

/// The random seed of one program.
fn random_seed() -> Result<RandomSeed, Fault> {
    let mut bytes = [0; size_of::<RandomSeed>()];
    getrandom::fill(&mut bytes).map_err(|e| Fault::new(e, "no randomness; try again"))?;
    Ok(RandomSeed(bytes))
}

impl EngineShared {
    /// Starts the task of an actor. The engine waits for it on shutdown.
    fn spawn_actor(
        self: &Arc<Self>,
        execution: ExecutionId,
        mailbox: ActorMailbox,
        boot: Activation,
    ) -> JoinHandle<()> {
        self.tracker.spawn(ExecutionActor::new(Arc::clone(self), execution, mailbox).run(boot))
    }

    /// Starts an actor if there is none.
    pub(crate) fn activate(self: &Arc<Self>, execution: ExecutionId, boot: Activation) {
        if let ActorSlot::Vacant(_, mailbox) = self.registry.desk(execution) {
            drop(self.spawn_actor(execution, mailbox, boot));
        }
    }

    /// Sends a request to the execution's actor, and starts one if necessary.
    pub(crate) async fn submit_request(
        self: &Arc<Self>,
        execution: ExecutionId,
        request: impl Fn(oneshot::Sender<Result<(), Error>>) -> ActorRequest,
    ) -> Result<(), Error> {
        for _ in 0..SENDS_MAX {
            if self.closing.is_cancelled() {
                return Err(Rejection::ShuttingDown.into());
            }
            let sender = match self.registry.desk(execution) {
                ActorSlot::Staffed(sender) => sender,
                ActorSlot::Vacant(sender, mailbox) => {
                    drop(self.spawn_actor(execution, mailbox, Activation::Asked));
                    sender
                }
            };
            let (reply, outcome) = oneshot::channel();
            if sender.send(Box::new(request(reply))).await.is_ok()
                && let Some(outcome) = actor_reply(&sender, outcome).await
            {
                return outcome;
            }
            tokio::task::yield_now().await; // the actor has just left: wait, and send to the next one
        }
        Err(Fault::new("an actor keeps leaving", "try again").into())
    }
}

/// The reply of an actor; none if it left without replying. A request that arrives while the actor leaves
/// may stay in the mailbox as long as a sender exists, so waiting for its reply alone is not sufficient.
async fn actor_reply<T>(sender: &ActorRequests, mut outcome: oneshot::Receiver<T>) -> Option<T> {
    tokio::select! {
        biased;
        told = &mut outcome => told.ok(),
        () = sender.closed() => outcome.try_recv().ok(),
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("live", &self.n_live()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_request_that_comes_while_its_actor_leaves_waits_for_nobody() {
        let (sender, mailbox) = mpsc::channel(1);
        let (reply, outcome) = oneshot::channel();
        let on_its_way = sender.reserve().await.unwrap();
        drop(mailbox);
        on_its_way.send(Box::new(ActorRequest::Wake(reply)));
        // It stays in the mailbox: this test still holds a sender.
        assert!(actor_reply(&sender, outcome).await.is_none());
    }

    #[tokio::test]
    async fn the_last_word_of_an_actor_is_heard() {
        let (sender, mut mailbox) = mpsc::channel(1);
        let (reply, outcome) = oneshot::channel();
        sender.send(Box::new(ActorRequest::Wake(reply))).await.unwrap();
        let Some(request) = mailbox.recv().await else { panic!("nothing came") };
        let ActorRequest::Wake(reply) = *request else { panic!("something else came") };
        reply.send(Ok(())).unwrap();
        drop(mailbox);
        assert!(matches!(actor_reply(&sender, outcome).await, Some(Ok(()))));
    }
}
