//! Requests of callers and people to an execution.

use super::calls::CallEnd;
use super::{ExecutionActor, LeaveReason, ReplySender};
use lifecycle::{CallStage, ExecutionPhase, Intent, Rejection, ToolHost};
use std::time::Duration;

/// How long a stopping server waits for calls in progress, so that fewer calls end in doubt.
const CLOSING_GRACE: Duration = Duration::from_secs(3);

impl ExecutionActor {
    /// Handles what is due, and replies once the result is durable.
    pub(super) fn wake(&mut self, reply: ReplySender) {
        self.look_at_clock();
        self.replies.push(self.journal.newest_gate(), reply);
        self.replies.send_kept(&self.journal);
    }

    /// Decides on a request, and replies once the result is durable.
    pub(super) fn request(&mut self, mut intent: Intent, reply: ReplySender) {
        if let Intent::Cancel { active_ms, .. } | Intent::Expire { active_ms, .. } = &mut intent {
            *active_ms = self.clock.active_ms();
        }
        if let Intent::Settle { call, .. } = intent
            && self
                .journal
                .state()
                .calls
                .get(&call)
                .is_some_and(|call| call.nature.runs == ToolHost::Here)
        {
            // Calls that run here are settled here: no client may report how they ended.
            let _ = reply.send(Err(Rejection::NotOutstanding(call).into()));
            return;
        }
        // It is restored as after a restart.
        if matches!(intent, Intent::Continue { .. })
            && self.journal.state().phase == ExecutionPhase::Parked
        {
            self.runner.set_recovering(true);
        }
        match self.is_known(&intent).and_then(|()| self.submit(intent)) {
            Ok(_) => {
                self.replies.push(self.journal.newest_gate(), reply);
                self.replies.send_kept(&self.journal);
            }
            Err(rejection) => drop(reply.send(Err(rejection.into()))),
        }
    }

    /// The server stops: lets calls in progress end, records their results, and leaves. The journal has the rest.
    pub(super) async fn close(&mut self) -> LeaveReason {
        self.answers.refuse(&Rejection::ShuttingDown);
        self.detach_runner();
        self.runner.withdraw_request();
        let _ = tokio::time::timeout(CLOSING_GRACE, self.let_tools_end()).await;
        self.calls.abandon();
        match self.journal.flush_appends().await {
            Ok(()) => {
                self.replies.send_kept(&self.journal);
                LeaveReason::Done
            }
            Err(error) => LeaveReason::Broken(error),
        }
    }

    async fn let_tools_end(&mut self) {
        let harmful = |actor: &Self| {
            actor.journal.state().calls.values().any(|call| {
                matches!(call.stage, CallStage::Dispatched(_))
                    && !call.nature.read_only
                    && call.nature.runs == ToolHost::Here
            })
        };
        while harmful(self)
            && let Some((call, end)) = self.calls.next().await
        {
            // A call that waits for its source waits again after the next start.
            let CallEnd::Returned(outcome) = end else { continue };
            self.settle_call(call, outcome);
            self.journal.flush(&self.shared.config.clock);
        }
    }

    /// An execution that was never started accepts only a start.
    fn is_known(&self, intent: &Intent) -> Result<(), Rejection> {
        match (self.journal.state().phase, intent) {
            (ExecutionPhase::Unborn, Intent::Start { .. }) => Ok(()),
            (ExecutionPhase::Unborn, _) => {
                Err(Rejection::UnknownExecution(self.journal.execution()))
            }
            _ => Ok(()),
        }
    }
}
