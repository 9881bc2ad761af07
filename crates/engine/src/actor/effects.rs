//! Effects: actions that recorded events require. They are performed in order, each as soon as its event is sufficiently
//! durable.

use super::ExecutionActor;
use super::calls::CallEnd;
use super::journal_writer::{AppendGate, JournalWriter, JournalledEffect};
use futures_util::future::FutureExt;
use lifecycle::{
    CallId, CallOutcome, Effect, Event, FailureCode, InputIndex, Intent, QuestionId, Rejection,
    Timestamp, ToolHost, WriteStrength,
};
use std::collections::VecDeque;

/// Pending effects, in order.
#[derive(Default)]
pub(super) struct EffectQueue(VecDeque<PendingEffect>);

/// An effect, and the gate that it waits for.
struct PendingEffect {
    gate: Option<AppendGate>,
    act: EffectAction,
}

/// The action.
enum EffectAction {
    Dispatch(CallId),
    AwaitSource(CallId),
    Tell(QuestionId),
    Deliver { index: InputIndex, event: Event, at: Timestamp },
}

impl EffectQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, gate: Option<AppendGate>, act: EffectAction) {
        self.0.push_back(PendingEffect { gate, act });
    }

    /// The oldest effect, if its gate is open.
    fn pop_open(&mut self, journal: &JournalWriter) -> Option<EffectAction> {
        let is_open = |effect: &PendingEffect| effect.gate.is_none_or(|gate| journal.is_open(gate));
        if !self.0.front().is_some_and(is_open) {
            return None;
        }
        Some(self.0.pop_front()?.act)
    }
}

impl ExecutionActor {
    /// Submits an intent of the actor itself and performs its effects.
    pub(super) fn submit(&mut self, intent: Intent) -> Result<AppendGate, Rejection> {
        let at = self.shared.config.clock.now();
        let policy = self.shared.config.policies.live();
        let (duties, gate) = self.journal.submit(&policy, at, intent)?;
        for duty in duties {
            self.owe(duty, at, gate);
        }
        Ok(gate)
    }

    pub(super) fn owe(&mut self, duty: JournalledEffect, at: Timestamp, gate: AppendGate) {
        let gate = match duty.strength {
            WriteStrength::Synced => Some(gate),
            WriteStrength::Written => None,
        };
        let mut wait_for = |act| self.effects.push(gate, act);
        match (duty.effect, duty.input) {
            (Effect::Arm(..) | Effect::Disarm(_), _) => {} // the alarm reads the state
            (Effect::Launch, _) => self.launch(),
            (Effect::Dispatch(call), _) => wait_for(EffectAction::Dispatch(call)),
            (Effect::AwaitSource(call), _) => wait_for(EffectAction::AwaitSource(call)),
            (Effect::Tell(question), _) => wait_for(EffectAction::Tell(question)),
            (Effect::Deliver, Some((index, event))) => {
                wait_for(EffectAction::Deliver { index, event, at });
            }
            (Effect::Deliver, None) => {} // what is delivered is an input
            (Effect::Stop, _) => self.stop(),
        }
    }

    /// Performs the effects whose gates are open, in order.
    pub(super) fn act(&mut self) {
        loop {
            while let Some(act) = self.effects.pop_open(&self.journal) {
                self.perform_effect(act);
            }
            if self.calls.is_empty() {
                return;
            }
            // The result of a tool that returns immediately joins the same append.
            match self.calls.next().now_or_never().flatten() {
                Some((call, end)) => self.end_call(call, end),
                None => return,
            }
        }
    }

    fn perform_effect(&mut self, act: EffectAction) {
        match act {
            EffectAction::Dispatch(call) => self.dispatch(call),
            EffectAction::AwaitSource(call) => self.await_source(call),
            EffectAction::Tell(question) => self.deliver_answer(question),
            EffectAction::Deliver { index, event, at } => {
                match (self.runner.get_mut(), event.input()) {
                    (Some(runner), Some(input)) => runner.deliver(index, input, at),
                    (None, _) => self.launch(),
                    (Some(_), None) => {}
                }
            }
        }
    }

    fn dispatch(&mut self, call: CallId) {
        let state = self.journal.state();
        let (Some(known), Some(args), Some(origin)) =
            (state.calls.get(&call), state.args(call), state.origin.as_ref())
        else {
            return;
        };
        if known.nature.runs == ToolHost::AtCaller {
            return; // followers of the journal have received it
        }
        if !self.is_callable(call, known) {
            // It has not reached its tool: it waits for its source, and its acceptance is not used up.
            let _ = self.submit(Intent::Defer { call });
            return;
        }
        let at_work = self.calls.at_work(self.journal.execution());
        let request = tools::ToolRequest {
            execution: self.journal.execution(),
            call,
            attempt: known.attempts,
            tool: known.tool.clone(),
            args,
            caller: origin.caller.clone(),
            cancelled: at_work.abandoned.clone().into(),
            person: self.questions.person(call),
            progress: at_work.reporter.measured(self.progress.reporter(call), &self.shared),
        };
        let catalogue = &self.shared.config.catalogue;
        let calling = match &known.alias {
            Some(_) => catalogue.call_unwrapped(request),
            None => catalogue.call(request),
        };
        at_work.push(calling.map(move |outcome| (call, CallEnd::Returned(outcome))).boxed());
    }

    /// A tool has returned, or the wait for a call's source has ended.
    pub(super) fn end_call(&mut self, call: CallId, end: CallEnd) {
        match end {
            CallEnd::Returned(CallOutcome::Failed(failure))
                if failure.code == FailureCode::SourceUnavailable =>
            {
                self.wait_unsent(call, failure);
            }
            CallEnd::Returned(outcome) => self.settle_call(call, outcome),
            CallEnd::SourceAwaited => self.admit_deferred(call),
        }
    }

    pub(super) fn settle_call(&mut self, call: CallId, outcome: CallOutcome) {
        self.catch_up_on_progress();
        self.questions.end_call(call);
        self.calls.forget_reports(&self.shared);
        match self.submit(Intent::Settle { call, outcome }) {
            // It has ended or was settled in the meantime: there is no one to notify.
            Ok(_) | Err(Rejection::NotOutstanding(_) | Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, %call, "a tool's result was refused"),
        }
    }

    /// The execution has ended here: releases the runner and signals the tools in progress.
    pub(super) fn stop(&mut self) {
        self.detach_runner();
        self.runner.withdraw_request();
        self.calls.stop(&self.shared);
        self.questions.clear_all();
        self.effects.clear();
    }
}
