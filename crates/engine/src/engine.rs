//! The handle: submit, follow, look up.

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

/// How often a request is sent again because its actor left just then. More is our own mistake.
const SENDS_MAX: usize = 100;

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<EngineShared>,
}

/// What all actors share.
pub(crate) struct EngineShared {
    pub(crate) config: Config,
    pub(crate) sandbox: Sandbox,
    pub(crate) registry: ActorRegistry,
    pub(crate) tracker: TaskTracker,
    /// Cancelled when the engine stops.
    pub(crate) closing: CancellationToken,
    /// Runners that may be given to programs that wait for one.
    pub(crate) capacity: crate::capacity::RunnerCapacity,
    pub(crate) alarm: WakeAlarm,
    /// Rises when a question was asked or closed.
    pub(crate) questions: watch::Sender<u64>,
    /// What programs may use where nobody says otherwise.
    pub(crate) limits: watch::Sender<ExecutionLimits>,
    /// How far tools say that they are.
    pub(crate) reports: ProgressReports,
    /// What each caller uses.
    pub(crate) quotas: Arc<QuotaBook>,
    /// What is known of the clock of this store.
    pub(crate) clock_keeper: ClockKeeper,
    /// Unfinished executions whose journals cannot be read. No more than there are unfinished ones.
    pub(crate) unreadable: Mutex<BTreeSet<ExecutionId>>,
}

/// What to run, for whom, within what.
#[derive(Debug, Clone)]
pub struct ExecutionStart {
    /// The program.
    pub program: Program,
    /// Who wants it.
    pub caller: CallerName,
    /// What it may use.
    pub limits: ExecutionLimits,
}

impl Engine {
    /// Starts the sandbox, brings back what was unfinished and is ready for work.
    pub async fn start(config: Config) -> Result<Self, Fault> {
        let engine = Self::prepare(config).await?;
        engine.recover().await?;
        Ok(engine)
    }

    /// Starts the sandbox and nothing else. What was unfinished goes on with [`Self::recover`], once every tool
    /// that it may call is in the catalogue.
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

    /// Brings back what was unfinished, and does from now on what is due. Once, after [`Self::prepare`].
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

    /// Starts an execution under an id and on terms that its door chose. An id serves once.
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
            // Somebody wanted something of it before it began; whoever is there says what it is.
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
                // Somebody else was first with this id, here or on another server.
                Ok(()) => Err(Rejection::AlreadyStarted.into()),
                Err(panic) => Err(Fault::new(panic, "try again").into()),
            },
        }
    }

    /// Starts a program that says `return`, with the usual limits, for the embedding program itself.
    pub async fn run(&self, source: &str) -> Result<ExecutionId, Error> {
        let program =
            Program { source: source.to_owned(), convention: ValueConvention::ExplicitReturn };
        let caller = BuiltinCaller::Embedder.into();
        self.submit(ExecutionStart { program, caller, limits: self.limits() }).await
    }

    /// Answers a question. Kept for good when this returns; exactly one answer ever is.
    pub async fn answer_question(
        &self,
        question: QuestionId,
        answer: Answer,
        by: impl Into<AnswerAuthor>,
    ) -> Result<ExecutionId, Error> {
        self.answer_with(question, answer, by, AnswerExtras::Nothing).await
    }

    /// The same, with what comes with a yes: the tool need not ask again, or other arguments.
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

    /// Answers several questions of one execution, all or none; of those that are answered already the
    /// first answer stands. Kept for good when this returns.
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

    /// Removes an execution that is over, and everything about it.
    pub async fn delete_execution(&self, execution: ExecutionId) -> Result<(), Error> {
        if self.shared.config.journal.delete_execution(execution).await? {
            return Ok(());
        }
        self.overview(execution).await?;
        Err(Rejection::NotFinished.into())
    }

    /// Whether there was such an execution that is no longer kept.
    pub async fn was_forgotten(&self, execution: ExecutionId) -> Result<bool, Fault> {
        Ok(self.shared.config.journal.was_forgotten(execution).await?)
    }

    /// Ends an execution: its runner is killed, its questions are closed.
    pub async fn cancel(&self, execution: ExecutionId, by: CallerName) -> Result<(), Error> {
        self.cancel_because(execution, by, None).await
    }

    /// The same, with a reason that is kept with the end.
    pub async fn cancel_because(
        &self,
        execution: ExecutionId,
        by: CallerName,
        reason: Option<String>,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Cancel { by, reason, active_ms: 0 }).await
    }

    /// Lets a parked execution continue. Calls that were under way, or may have been, become questions.
    pub async fn continue_parked(
        &self,
        execution: ExecutionId,
        by: CallerName,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Continue { by }).await
    }

    /// How often the clock of this store was found set back. What was written before that expires by a clock that no longer
    /// counts.
    pub fn clock_generation(&self) -> u64 {
        self.shared.clock_keeper.generation()
    }

    /// The same for all that are parked because the store lost entries, or may have; returns how many those were.
    pub async fn continue_all(&self, by: &CallerName) -> Result<usize, Error> {
        after_loss::continue_all(&self.shared, by).await
    }

    /// Says how a call that the caller runs ended. The first word stands; it is kept when this returns.
    pub async fn settle_call(
        &self,
        execution: ExecutionId,
        call: CallId,
        outcome: CallOutcome,
    ) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Settle { call, outcome }).await
    }

    /// Ends an execution because a limit that its door watches was reached.
    pub async fn expire(&self, execution: ExecutionId, limit: LimitKind) -> Result<(), Error> {
        self.submit_intent(execution, Intent::Expire { limit, active_ms: 0 }).await
    }

    /// Who may call what: the rules, and what they say now.
    pub fn policies(&self) -> &PolicySet {
        &self.shared.config.policies
    }

    /// What programs can call.
    pub fn catalogue(&self) -> &Catalogue {
        &self.shared.config.catalogue
    }

    /// What programs may use where nobody says otherwise.
    pub fn limits(&self) -> ExecutionLimits {
        *self.shared.limits.borrow()
    }

    /// Says so anew, for executions that start from now on.
    pub fn set_limits(&self, limits: ExecutionLimits) {
        self.shared.limits.send_replace(limits);
    }

    /// What each caller uses, and what refuses more.
    pub fn quotas(&self) -> &Arc<QuotaBook> {
        &self.shared.quotas
    }

    /// Replaces the quotas, for what starts from now on.
    pub fn set_quotas(&self, quotas: QuotaSettings) {
        self.shared.quotas.set(quotas);
    }

    /// What time it is here.
    pub fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    /// Tells when a question of any execution in this process was asked or closed; the number means
    /// nothing. Whoever hears of it looks at the journal.
    pub fn question_changes(&self) -> watch::Receiver<u64> {
        self.shared.questions.subscribe()
    }

    /// How busy the sandbox is.
    pub fn load(&self) -> sandbox::SandboxLoad {
        self.shared.sandbox.load()
    }

    /// Where programs run, for doors whose programs are not the engine's. One sandbox has one budget.
    pub fn sandbox(&self) -> &Sandbox {
        &self.shared.sandbox
    }

    /// How many executions are in memory.
    pub fn n_live(&self) -> usize {
        self.shared.registry.len()
    }

    /// Takes no more work, parks what runs and stops. Whatever was under way is in the journal.
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

/// The randomness of one program.
fn random_seed() -> Result<RandomSeed, Fault> {
    let mut bytes = [0; size_of::<RandomSeed>()];
    getrandom::fill(&mut bytes).map_err(|e| Fault::new(e, "no randomness; try again"))?;
    Ok(RandomSeed(bytes))
}

impl EngineShared {
    /// Starts the task of an actor. The engine waits for it when it stops.
    fn spawn_actor(
        self: &Arc<Self>,
        execution: ExecutionId,
        mailbox: ActorMailbox,
        boot: Activation,
    ) -> JoinHandle<()> {
        self.tracker.spawn(ExecutionActor::new(Arc::clone(self), execution, mailbox).run(boot))
    }

    /// Puts an actor where there is none.
    pub(crate) fn activate(self: &Arc<Self>, execution: ExecutionId, boot: Activation) {
        if let ActorSlot::Vacant(_, mailbox) = self.registry.desk(execution) {
            drop(self.spawn_actor(execution, mailbox, boot));
        }
    }

    /// Sends a request to the execution's actor, bringing one to life if need be.
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
            tokio::task::yield_now().await; // it left just then: let it, and ask the next one
        }
        Err(Fault::new("an actor keeps leaving", "try again").into())
    }
}

/// What an actor says to a request in its mailbox; none where it left without a word. A request that comes while it leaves
/// may lie in there for as long as anybody could send another one, so its answer is not all that is waited for.
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
        // It lies there: the sender is still in our hands.
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
