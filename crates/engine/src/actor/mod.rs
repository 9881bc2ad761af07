//! One execution, one task. The loop: wait for an event, submit it as an intent, perform the effects.

mod admissions;
mod answers;
mod call_results;
mod calls;
mod counting;
mod deferred;
mod effects;
mod execution_clock;
mod journal_writer;
mod launch;
mod lazy_channel;
mod pending_replies;
mod program_runner;
mod progress;
mod release;
pub(crate) mod replay;
mod requests;
mod runner_messages;
mod runner_slot;
mod tool_questions;

use crate::Clock;
use crate::engine::EngineShared;
use crate::fault::{Error, Fault};
use crate::quotas::QuotaClaim;
use crate::registry::ActorMailbox;
use answers::WaitingAnswers;
use calls::{CallEnd, DispatchedCalls};
use effects::EffectQueue;
use execution_clock::ExecutionClock;
use futures_util::future::FutureExt;
use journal_writer::JournalWriter;
use lifecycle::{CallId, ExecutionId, ExecutionPhase, GivenAnswer, Intent};
use pending_replies::PendingReplies;
use program_runner::MESSAGES_PER_TURN_MAX;
use progress::ProgressChannel;
use runner_slot::{RunnerEvent, RunnerSlot};
use std::sync::Arc;
use store::StoreError;
use tokio::sync::oneshot;
use tool_questions::{ToolQuestions, ToolWish};

/// Where the outcome of a request goes.
pub(crate) type ReplySender = oneshot::Sender<Result<(), Error>>;

/// A request to an actor.
#[derive(Debug)]
pub(crate) enum ActorRequest {
    /// Decide on this intent, and reply once the result is durable.
    Submit(Intent, ReplySender),
    /// Take all of these answers or none, and reply once they are durable.
    Answer(Vec<GivenAnswer>, ReplySender),
    /// Handle what is due, and reply once the result is durable.
    Wake(ReplySender),
}

/// Why an actor is started.
#[derive(Debug)]
pub(crate) enum Activation {
    /// A new execution.
    Fresh(Intent, ReplySender),
    /// A new execution under an id that its caller chose; the id may already be in use.
    Chosen(Intent, ReplySender),
    /// Loaded from the journal for a request.
    Asked,
    /// Loaded from the journal because its previous server is gone.
    Recover,
}

/// One execution. Each part owns its fields; the actor connects them.
pub(crate) struct ExecutionActor {
    shared: Arc<EngineShared>,
    mailbox: ActorMailbox,
    /// State and journal of the execution.
    journal: JournalWriter,
    /// The effects of recorded events.
    effects: EffectQueue,
    /// Replies to decided requests.
    replies: PendingReplies,
    runner: RunnerSlot,
    /// Calls in progress.
    calls: DispatchedCalls,
    /// Questions of tools in progress.
    questions: ToolQuestions,
    /// Progress reports of tools.
    progress: ProgressChannel,
    /// Answers of people that wait until the program is restored.
    answers: WaitingAnswers,
    clock: ExecutionClock,
    /// The class that the execution counts in for its caller's quotas.
    counted: QuotaClaim,
}

/// Why a wait ended.
enum WakeReason {
    Kept(Result<(), StoreError>),
    Runner(RunnerEvent),
    Ended(CallId, CallEnd),
    Wished(ToolWish),
    Progressed(CallId, String),
    Asked(Option<ActorRequest>),
    Rang,
    Closing,
}

/// Why an actor stops.
enum LeaveReason {
    /// Nothing is left to do here; the journal is complete.
    Done,
    /// The journal failed: the state in memory may be ahead of it.
    Broken(StoreError),
}

impl ExecutionActor {
    pub(crate) fn new(
        shared: Arc<EngineShared>,
        execution: ExecutionId,
        mailbox: ActorMailbox,
    ) -> Self {
        let timeline = Arc::clone(shared.clock_keeper.timeline());
        let place = (Arc::clone(&shared.config.journal), timeline);
        let journal = JournalWriter::new(execution, place, shared.questions.clone());
        let counted = QuotaClaim::new(Arc::clone(&shared.quotas), execution);
        Self {
            shared,
            mailbox,
            journal,
            effects: EffectQueue::default(),
            replies: PendingReplies::default(),
            runner: RunnerSlot::default(),
            calls: DispatchedCalls::default(),
            questions: ToolQuestions::default(),
            progress: ProgressChannel::default(),
            answers: WaitingAnswers::default(),
            clock: ExecutionClock::default(),
            counted,
        }
    }

    /// Runs until the execution needs no actor. If the journal fails, the execution is recovered from it.
    pub(crate) async fn run(mut self, boot: Activation) {
        let execution = self.journal.execution();
        let left = match self.boot(boot).await {
            Ok(()) => self.turns().await,
            Err(leave) => leave,
        };
        // Before another actor can read the journal.
        self.leave_count(&left);
        self.shared.registry.leave(execution);
        if self.journal.state().due().is_some() {
            self.shared.alarm.reset();
        }
        match left {
            LeaveReason::Done => {}
            LeaveReason::Broken(StoreError::Conflict) => {
                tracing::warn!(%execution, "another server has taken this execution over");
            }
            LeaveReason::Broken(error) => self.collapse(error),
        }
    }

    async fn boot(&mut self, boot: Activation) -> Result<(), LeaveReason> {
        match boot {
            // The caller waits for the end or the first event: most programs produce either within a moment.
            Activation::Fresh(intent, reply) => {
                self.count_start(&intent);
                self.request(intent, reply);
            }
            Activation::Chosen(intent, reply) => {
                let loaded = self.load().await;
                match (&loaded, self.journal.state().phase) {
                    (Ok(()), ExecutionPhase::Unborn) => self.count_start(&intent),
                    (Ok(()), _) | (Err(_), _) => self.uncount_start(&intent),
                }
                loaded?;
                self.journal.hurry();
                self.request(intent, reply);
            }
            Activation::Asked => self.load().await?,
            Activation::Recover => {
                self.load().await?;
                self.recover();
            }
        }
        Ok(())
    }

    async fn load(&mut self) -> Result<(), LeaveReason> {
        let now = self.shared.config.clock.now();
        self.journal.load(now).await.map_err(LeaveReason::Broken)?;
        self.clock.bring_back(self.journal.state());
        self.counted.loaded(self.journal.state());
        Ok(())
    }

    async fn turns(&mut self) -> LeaveReason {
        loop {
            self.act();
            // A runner that is ready works during the write.
            if let Some(lease) = self.runner.try_leased()
                && let Err(error) = self.leased(lease).await
            {
                return LeaveReason::Broken(error);
            }
            // Before the events are visible: clients compute the age of a pause from their time.
            self.keep_time();
            self.update_count();
            self.journal.flush(&self.shared.config.clock);
            if self.may_leave() {
                return LeaveReason::Done;
            }
            // An append that completes immediately, as for the end of a small program, needs no wait.
            let turn = match self.journal.keep_one().now_or_never() {
                Some(kept) => WakeReason::Kept(kept),
                None => self.wait().await,
            };
            self.keep_time();
            if let Err(leave) = self.take(turn).await {
                return leave;
            }
        }
    }

    async fn take(&mut self, turn: WakeReason) -> Result<(), LeaveReason> {
        // With a manual clock, delayed entries would be held back forever.
        let time_passes = matches!(self.shared.config.clock, Clock::System(_));
        let is_lease = matches!(turn, WakeReason::Runner(RunnerEvent::Leased(_)));
        if matches!(turn, WakeReason::Asked(_)) || !(time_passes || is_lease) {
            self.journal.hurry();
        }
        match turn {
            WakeReason::Kept(result) => {
                result.map_err(LeaveReason::Broken)?;
                self.replies.send_kept(&self.journal);
            }
            WakeReason::Runner(RunnerEvent::Messages(messages)) => {
                let has_more = messages.len() >= MESSAGES_PER_TURN_MAX;
                messages.into_iter().for_each(|message| self.handle_runner_message(message));
                // A program that prints continuously would never yield the thread, on which its client and
                // others wait.
                if has_more {
                    tokio::task::yield_now().await;
                } else {
                    tokio::task::consume_budget().await;
                }
            }
            WakeReason::Ended(call, end) => self.end_call(call, end),
            WakeReason::Wished(wished) => self.ask_for_tool(wished),
            WakeReason::Progressed(call, text) => self.record_progress(call, text),
            WakeReason::Asked(Some(ActorRequest::Submit(intent, reply))) => {
                self.request(intent, reply)
            }
            WakeReason::Asked(Some(ActorRequest::Answer(answers, reply))) => {
                self.answer_question(answers, reply)
            }
            WakeReason::Asked(Some(ActorRequest::Wake(reply))) => self.wake(reply),
            WakeReason::Rang => self.look_at_clock(),
            WakeReason::Runner(RunnerEvent::Leased(lease)) => {
                self.leased(*lease).await.map_err(LeaveReason::Broken)?;
            }
            WakeReason::Runner(RunnerEvent::Wanted) => self.release_runner(),
            WakeReason::Asked(None) | WakeReason::Closing => return Err(self.close().await),
        }
        Ok(())
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> WakeReason {
        let alarm = self.clock.next_wake(self.journal.state(), self.runner.is_replaying());
        let alarm = alarm.into_iter().chain(self.journal.held_until()).min();
        self.clock.arm(&self.shared.config.clock, alarm);
        self.offer_runner();
        let has_room = self.journal.has_room();
        let has_calls = !self.calls.is_empty();
        tokio::select! {
            biased; // a chatty guest must not keep people and clocks waiting
            request = self.mailbox.recv() => WakeReason::Asked(request.map(|request| *request)),
            () = self.shared.closing.cancelled() => WakeReason::Closing,
            () = self.clock.ring() => WakeReason::Rang,
            // Before messages of the runner: a client may wait for this, and a program may print continuously.
            kept = self.journal.keep_one() => WakeReason::Kept(kept),
            event = self.runner.next(has_room) => WakeReason::Runner(event),
            Some((call, end)) = self.calls.next(), if has_calls => WakeReason::Ended(call, end),
            wished = self.questions.next() => WakeReason::Wished(wished),
            (call, text) = self.progress.next(), if has_room => WakeReason::Progressed(call, text),
        }
    }

    /// Whether nothing is left that requires an actor.
    fn may_leave(&self) -> bool {
        let idle = self.journal.is_quiet()
            && self.effects.is_empty()
            && self.calls.is_empty()
            && self.replies.is_empty()
            && self.answers.is_empty()
            && self.runner.is_empty()
            && self.mailbox.is_empty();
        match self.journal.state().phase {
            ExecutionPhase::Unborn
            | ExecutionPhase::Parked
            | ExecutionPhase::Finished
            | ExecutionPhase::Paused => idle,
            ExecutionPhase::Running => false,
        }
    }

    /// The journal failed. Discards the state, and reloads it from what the journal really contains.
    fn collapse(mut self, error: StoreError) {
        let is_damaged = matches!(error, StoreError::Damaged(_));
        let fault = Fault::from(error);
        self.stop();
        self.replies.fail(&fault);
        self.answers.fail(&fault);
        match is_damaged {
            true => crate::after_loss::park_unread_later(&self.shared, self.journal.execution()),
            false => crate::recover::again_later(&self.shared, self.journal.execution()),
        }
    }
}
