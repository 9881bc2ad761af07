//! One execution, one task. The loop: wait for something, submit it as an intent, do what is owed.

mod admissions;
mod asking;
mod call_results;
mod calls;
mod counting;
mod deferred;
mod inlet;
mod launch;
mod ledger;
mod program_runner;
mod progress;
mod release;
pub(crate) mod replay;
mod requests;
mod runner_messages;
mod time;

use crate::Clock;
use crate::engine::Shared;
use crate::fault::{Error, Fault};
use crate::quotas::QuotaClaim;
use crate::registry::Mailbox;
use asking::{Asking, Wished};
use calls::{CallEnd, Calls};
use futures_util::future::FutureExt;
use ledger::{Duty, Gate, Ledger};
use lifecycle::{
    CallId, CallOutcome, Effect, Event, ExecutionId, FailureCode, InputIndex, Intent, Phase,
    QuestionId, Rejection, Runs, Strength, Timestamp,
};
use program_runner::{MESSAGES_PER_TURN_MAX, ProgramRunner};
use progress::Telling;
use release::Released;
use sandbox::{Lease, LeaseError, LeaseRequest, RunnerMessage};
use std::collections::VecDeque;
use std::sync::Arc;
use store::StoreError;
use time::Clockwork;
use tokio::sync::oneshot;

/// Where the outcome of a request goes.
pub(crate) type Reply = oneshot::Sender<Result<(), Error>>;

/// What others want of an actor.
#[derive(Debug)]
pub(crate) enum Request {
    /// Decide on this, and answer once it is kept.
    Submit(Intent, Reply),
    /// Take all of these answers or none, and answer once they are kept.
    AnswerAll(Vec<Intent>, Reply),
    /// Look at the clock, and answer once what came of it is kept.
    Wake(Reply),
}

/// How an actor comes to life.
#[derive(Debug)]
pub(crate) enum Boot {
    /// With a new execution.
    Fresh(Intent, Reply),
    /// The same under an id that somebody chose, who may have chosen it before.
    Chosen(Intent, Reply),
    /// From the journal, because somebody wants something of it.
    Asked,
    /// From the journal, because whoever ran it is gone.
    Recover,
}

/// Something owed, behind the gate it must wait for.
struct Due {
    gate: Option<Gate>,
    act: Act,
}

enum Act {
    Dispatch(CallId),
    AwaitSource(CallId),
    Tell(QuestionId),
    Deliver { index: InputIndex, event: Event, at: Timestamp },
}

pub(crate) struct Actor {
    shared: Arc<Shared>,
    ledger: Ledger,
    mailbox: Mailbox,
    runner: Option<ProgramRunner>,
    launching: Option<LeaseRequest>,
    /// It gave its runner to others while it only waited.
    released: Option<Released>,
    /// Processor time that it used in runners that it gave up.
    cpu_spent_ms: u64,
    /// Since when it only waits, if it does.
    rests_since: Option<Timestamp>,
    calls: Calls,
    /// Tools at work that ask something.
    asking: Asking,
    /// Tools at work that say how far they are.
    telling: Telling,
    due: VecDeque<Due>,
    replies: VecDeque<(Gate, Reply)>,
    /// Answers that are accepted only once the program is back where it was.
    waiting: Vec<(Vec<Intent>, Reply)>,
    /// Brought back after a restart and not yet proved to work.
    recovering: bool,
    clockwork: Clockwork,
    /// What the execution counts as in its caller's quotas.
    counted: QuotaClaim,
}

/// What ended a wait.
enum Turn {
    Kept(Result<(), StoreError>),
    RunnerMessages(Vec<RunnerMessage>),
    Ended(CallId, CallEnd),
    Wished(Wished),
    Progressed(CallId, String),
    Asked(Option<Request>),
    Leased(Result<Lease, LeaseError>),
    Rang,
    RunnerWanted,
    Closing,
}

/// Why an actor leaves.
enum Leave {
    /// Nothing is left to do here; the journal has it all.
    Done,
    /// The journal failed: what we remember may be more than it knows.
    Broken(StoreError),
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, execution: ExecutionId, mailbox: Mailbox) -> Self {
        let timeline = Arc::clone(shared.clock_keeper.timeline());
        let place = (Arc::clone(&shared.config.journal), timeline);
        let ledger = Ledger::new(execution, place, shared.questions.clone());
        let counted = QuotaClaim::new(Arc::clone(&shared.quotas), execution);
        Self {
            shared,
            ledger,
            mailbox,
            runner: None,
            launching: None,
            released: None,
            cpu_spent_ms: 0,
            rests_since: None,
            calls: Calls::default(),
            asking: Asking::default(),
            telling: Telling::default(),
            due: VecDeque::new(),
            replies: VecDeque::new(),
            waiting: vec![],
            recovering: false,
            clockwork: Clockwork::default(),
            counted,
        }
    }

    /// Lives until the execution needs nobody. A broken journal sends it through recovery.
    pub(crate) async fn run(mut self, boot: Boot) {
        let execution = self.ledger.execution;
        let left = match self.boot(boot).await {
            Ok(()) => self.turns().await,
            Err(leave) => leave,
        };
        // Before another actor can read the journal.
        self.leave_count(&left);
        self.shared.registry.leave(execution);
        if self.ledger.state.due().is_some() {
            self.shared.alarm.reset();
        }
        match left {
            Leave::Done => {}
            Leave::Broken(StoreError::Conflict) => {
                tracing::warn!(%execution, "another server has taken this execution over");
            }
            Leave::Broken(error) => self.collapse(error),
        }
    }

    async fn boot(&mut self, boot: Boot) -> Result<(), Leave> {
        match boot {
            // Whoever asked waits for the end, or for its first news: most programs have either within a moment.
            Boot::Fresh(intent, reply) => {
                self.count_start(&intent);
                self.request(intent, reply);
            }
            Boot::Chosen(intent, reply) => {
                let loaded = self.load().await;
                match (&loaded, self.ledger.state.phase) {
                    (Ok(()), Phase::Unborn) => self.count_start(&intent),
                    (Ok(()), _) | (Err(_), _) => self.uncount_start(&intent),
                }
                loaded?;
                self.ledger.hurry();
                self.request(intent, reply);
            }
            Boot::Asked => self.load().await?,
            Boot::Recover => {
                self.load().await?;
                self.recover();
            }
        }
        Ok(())
    }

    async fn load(&mut self) -> Result<(), Leave> {
        let now = self.shared.config.clock.now();
        self.ledger.load(now).await.map_err(Leave::Broken)?;
        self.clockwork.bring_back(&self.ledger.state);
        self.counted.loaded(&self.ledger.state);
        Ok(())
    }

    async fn turns(&mut self) -> Leave {
        loop {
            self.act();
            // A runner that is ready works while we write.
            if let Some(lease) = self.launching.as_mut().and_then(FutureExt::now_or_never)
                && let Err(error) = self.leased(lease).await
            {
                return Leave::Broken(error);
            }
            // Before anybody hears of it: a pause is as old as they think it is.
            self.keep_time();
            self.update_count();
            self.ledger.flush(&self.shared.config.clock);
            if self.may_leave() {
                return Leave::Done;
            }
            // What is kept at once, as the end of a small program is, needs nobody who waits.
            let turn = match self.ledger.keep_one().now_or_never() {
                Some(kept) => Turn::Kept(kept),
                None => self.wait().await,
            };
            self.keep_time();
            if let Err(leave) = self.take(turn).await {
                return leave;
            }
        }
    }

    async fn take(&mut self, turn: Turn) -> Result<(), Leave> {
        // A clock that is wound by hand would hold back for ever what the program has said.
        let time_passes = matches!(self.shared.config.clock, Clock::System(_));
        if matches!(turn, Turn::Asked(_)) || !(time_passes || matches!(turn, Turn::Leased(_))) {
            self.ledger.hurry();
        }
        match turn {
            Turn::Kept(result) => {
                result.map_err(Leave::Broken)?;
                self.answer_kept();
            }
            Turn::RunnerMessages(messages) => {
                let has_more = messages.len() >= MESSAGES_PER_TURN_MAX;
                messages.into_iter().for_each(|message| self.handle_runner_message(message));
                // A program that never stops talking would never let go of the thread: whoever submitted it, and
                // others, wait there.
                if has_more {
                    tokio::task::yield_now().await;
                } else {
                    tokio::task::consume_budget().await;
                }
            }
            Turn::Ended(call, end) => self.end_call(call, end),
            Turn::Wished(wished) => self.ask(wished),
            Turn::Progressed(call, text) => self.progress(call, text),
            Turn::Asked(Some(Request::Submit(intent, reply))) => self.request(intent, reply),
            Turn::Asked(Some(Request::AnswerAll(intents, reply))) => {
                self.answer_all(intents, reply);
            }
            Turn::Asked(Some(Request::Wake(reply))) => self.wake(reply),
            Turn::Rang => self.look_at_clock(),
            Turn::Leased(lease) => self.leased(lease).await.map_err(Leave::Broken)?,
            Turn::RunnerWanted => self.release_runner(),
            Turn::Asked(None) | Turn::Closing => return Err(self.close().await),
        }
        Ok(())
    }

    /// Waits for the next thing that happens.
    async fn wait(&mut self) -> Turn {
        let alarm = self.clockwork.next_wake(&self.ledger.state, self.runner.as_ref());
        let alarm = alarm.into_iter().chain(self.ledger.held_until()).min();
        self.clockwork.arm(&self.shared.config.clock, alarm);
        self.offer_runner();
        let has_room = self.ledger.has_room();
        let has_calls = !self.calls.is_empty();
        let listen = async {
            match &mut self.runner {
                Some(runner) => runner.messages(has_room).await,
                None => std::future::pending().await,
            }
        };
        let leased = async {
            match &mut self.launching {
                Some(launching) => launching.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased; // a chatty guest must not keep people and clocks waiting
            request = self.mailbox.recv() => Turn::Asked(request.map(|request| *request)),
            () = self.shared.closing.cancelled() => Turn::Closing,
            () = self.clockwork.ring() => Turn::Rang,
            // Before what is said: somebody may wait for this, and a chatty guest always has said something.
            kept = self.ledger.keep_one() => Turn::Kept(kept),
            messages = listen => messages.map_or(Turn::RunnerWanted, Turn::RunnerMessages),
            Some((call, end)) = self.calls.next(), if has_calls => Turn::Ended(call, end),
            wished = self.asking.next() => Turn::Wished(wished),
            (call, text) = self.telling.next(), if has_room => Turn::Progressed(call, text),
            lease = leased => Turn::Leased(lease),
        }
    }

    /// Submits an intent of our own making and does what is owed because of it.
    fn submit(&mut self, intent: Intent) -> Result<Gate, Rejection> {
        let at = self.shared.config.clock.now();
        let policy = self.shared.config.policies.live();
        let (duties, gate) = self.ledger.submit(&policy, at, intent)?;
        for duty in duties {
            self.owe(duty, at, gate);
        }
        Ok(gate)
    }

    fn owe(&mut self, duty: Duty, at: Timestamp, gate: Gate) {
        let gate = match duty.strength {
            Strength::Synced => Some(gate),
            Strength::Written => None,
        };
        let mut wait_for = |act| self.due.push_back(Due { gate, act });
        match (duty.effect, duty.input) {
            (Effect::Arm(..) | Effect::Disarm(_), _) => {} // the alarm reads the state
            (Effect::Launch, _) => self.launch(),
            (Effect::Dispatch(call), _) => wait_for(Act::Dispatch(call)),
            (Effect::AwaitSource(call), _) => wait_for(Act::AwaitSource(call)),
            (Effect::Tell(question), _) => wait_for(Act::Tell(question)),
            (Effect::Deliver, Some((index, event))) => {
                wait_for(Act::Deliver { index, event, at });
            }
            (Effect::Deliver, None) => {} // what is delivered is an input
            (Effect::Stop, _) => self.stop(),
        }
    }

    /// Does what is owed, as far as the gates are open, in order.
    fn act(&mut self) {
        loop {
            while let Some(due) = self.due.pop_front() {
                match due.gate {
                    Some(gate) if !self.ledger.is_open(gate) => {
                        self.due.push_front(due);
                        break;
                    }
                    Some(_) | None => self.perform(due.act),
                }
            }
            if self.calls.is_empty() {
                return;
            }
            // A tool that answers at once saves a turn: its result joins the same append.
            match self.calls.next().now_or_never().flatten() {
                Some((call, end)) => self.end_call(call, end),
                None => return,
            }
        }
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Dispatch(call) => self.dispatch(call),
            Act::AwaitSource(call) => self.await_source(call),
            Act::Tell(question) => self.tell(question),
            Act::Deliver { index, event, at } => match (&mut self.runner, event.input()) {
                (Some(runner), Some(input)) => runner.deliver(index, input, at),
                (None, _) => self.launch(),
                (Some(_), None) => {}
            },
        }
    }

    fn dispatch(&mut self, call: CallId) {
        let state = &self.ledger.state;
        let (Some(known), Some(args), Some(origin)) =
            (state.calls.get(&call), state.args(call), state.origin.as_ref())
        else {
            return;
        };
        if known.nature.runs == Runs::AtCaller {
            return; // whoever follows the journal has heard of it
        }
        if !self.is_callable(call, known) {
            // It has not reached its tool: it waits for its source, and an accept that it has is not used up.
            let _ = self.submit(Intent::Defer { call });
            return;
        }
        let at_work = self.calls.at_work(self.ledger.execution);
        let request = tools::Request {
            execution: self.ledger.execution,
            call,
            attempt: known.attempts,
            tool: known.tool.clone(),
            args,
            caller: origin.caller.clone(),
            cancelled: at_work.abandoned.clone().into(),
            person: self.asking.person(call),
            progress: at_work.reporter.measured(self.telling.progress(call), &self.shared),
        };
        let catalogue = &self.shared.config.catalogue;
        let calling = match &known.alias {
            Some(_) => catalogue.call_unwrapped(request),
            None => catalogue.call(request),
        };
        at_work.push(calling.map(move |outcome| (call, CallEnd::Returned(outcome))).boxed());
    }

    /// A tool of ours is done, or the source of a call was waited for.
    fn end_call(&mut self, call: CallId, end: CallEnd) {
        match end {
            CallEnd::Returned(CallOutcome::Failed(failure))
                if failure.code == FailureCode::SourceUnavailable =>
            {
                self.wait_unsent(call, failure);
            }
            CallEnd::Returned(outcome) => self.settle(call, outcome),
            CallEnd::SourceAwaited => self.admit_deferred(call),
        }
    }

    fn settle(&mut self, call: CallId, outcome: CallOutcome) {
        self.catch_up_on_progress();
        self.asking.end(call);
        self.calls.forget_reports(&self.shared);
        match self.submit(Intent::Settle { call, outcome }) {
            // Ended or answered for in the meantime: there is nobody to tell.
            Ok(_) | Err(Rejection::NotOutstanding(_) | Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, %call, "a tool's result was refused"),
        }
    }

    /// The execution is over here: the runner goes, tools at work are told.
    fn stop(&mut self) {
        self.detach_runner();
        self.launching = None;
        self.calls.stop(&self.shared);
        self.asking.forget();
        self.due.clear();
    }

    /// Whether nothing is left that only a living actor can do.
    fn may_leave(&self) -> bool {
        let idle = self.ledger.is_quiet()
            && self.due.is_empty()
            && self.calls.is_empty()
            && self.replies.is_empty()
            && self.waiting.is_empty()
            && self.launching.is_none()
            && self.runner.is_none()
            && self.mailbox.is_empty();
        match self.ledger.state.phase {
            Phase::Unborn | Phase::Parked | Phase::Finished | Phase::Paused => idle,
            Phase::Running => false,
        }
    }

    /// The journal failed us. Forget everything, and come back from what it really holds.
    fn collapse(mut self, error: StoreError) {
        let is_damaged = matches!(error, StoreError::Damaged(_));
        let fault = Fault::from(error);
        self.stop();
        for (_, reply) in self.replies.drain(..) {
            let _ = reply.send(Err(fault.clone().into()));
        }
        for (_, reply) in self.waiting.drain(..) {
            let _ = reply.send(Err(fault.clone().into()));
        }
        match is_damaged {
            true => crate::after_loss::park_unread_later(&self.shared, self.ledger.execution),
            false => crate::recover::again_later(&self.shared, self.ledger.execution),
        }
    }
}
