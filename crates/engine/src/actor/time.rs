//! The clocks of one execution: active time, total time, timers, processor time, warm pauses.

use super::Actor;
use super::program_runner::ProgramRunner;
use crate::Clock;
use futures_util::future::{BoxFuture, FutureExt};
use lifecycle::{
    CallOutcome, Failure, FailureCode, Intent, LimitKind, Phase, State, TimerId, Timestamp,
};

/// How much later than the runner's own check we look at its processor time. The runner stops what
/// yields; this stops what does not.
const CPU_GRACE_MS: u64 = 250;

/// How long a program may be busy at a stretch before it lets others go first. Most are over long before; those that
/// compute for longer do not make everybody else wait.
const BUSY_MS_MAX: u64 = 100;

/// Longest replay. It repeats in one go what took tools and people much longer.
const REPLAY_MS_MAX: u64 = 120_000;

#[derive(Default)]
pub(super) struct Clockwork {
    /// Active time used so far.
    pub(super) active_ms: u64,
    /// Since when the active clock runs.
    since: Option<Timestamp>,
    /// When to look at the runner's processor time.
    cpu_check: Option<Timestamp>,
    /// When the present runner was given its program.
    began: Option<Timestamp>,
    /// Until when a busy program need not let others go first.
    busy_until: Option<Timestamp>,
    /// Since when the program waits for people.
    paused: Option<Timestamp>,
    alarm: Option<(Timestamp, BoxFuture<'static, ()>)>,
    warm_pause_ms: u64,
}

impl Clockwork {
    /// Takes up where the journal left off, including a rest that counts as active.
    pub(super) fn bring_back(&mut self, state: &State) {
        self.active_ms = state.active_ms;
        self.since = state.active_at_rest();
    }

    /// How long the present runner has been at work.
    pub(super) fn runner_ms(&self, now: Timestamp) -> u64 {
        self.began.map_or(0, |began| now.ms_since(began))
    }

    /// A runner begins to work.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.began = Some(now);
        self.cpu_check = None;
    }

    /// Sets the alarm if it would ring too late; one that rings too early does no harm.
    pub(super) fn arm(&mut self, clock: &Clock, wake: Option<Timestamp>) {
        let Some(wake) = wake else { return };
        if self.alarm.as_ref().is_none_or(|(armed, _)| wake < *armed) {
            let clock = clock.clone();
            self.alarm = Some((wake, async move { clock.wait_until(wake).await }.boxed()));
        }
    }

    /// Waits for the alarm.
    pub(super) async fn ring(&mut self) {
        match &mut self.alarm {
            Some((_, alarm)) => alarm.await,
            None => std::future::pending().await,
        }
        self.alarm = None;
    }

    /// When something is due next.
    pub(super) fn next_wake(
        &self,
        state: &State,
        runner: Option<&ProgramRunner>,
    ) -> Option<Timestamp> {
        let due = state.due();
        let active = self.since.map(|since| {
            since.after_ms(state.limits().active_ms_max.saturating_sub(self.active_ms))
        });
        let replay = match (runner, self.began) {
            (Some(runner), Some(began)) if runner.replaying => Some(began.after_ms(REPLAY_MS_MAX)),
            (Some(_) | None, _) => None,
        };
        let warm = self.paused.map(|paused| paused.after_ms(self.warm_pause_ms));
        [due, active, replay, warm, self.cpu_check, self.busy_until].into_iter().flatten().min()
    }
}

impl Actor {
    /// Moves the clocks on to now. Called before and after every wait.
    pub(super) fn keep_time(&mut self) {
        let now = self.shared.config.clock.now();
        if let Some(since) = self.clockwork.since {
            self.clockwork.active_ms += now.ms_since(since);
        }
        let active = self.is_active();
        self.clockwork.since = active.then_some(now);
        if active && self.clockwork.cpu_check.is_none() {
            let cpu_ms_max = self.ledger.state.limits().cpu_ms_max;
            self.clockwork.cpu_check = Some(now.after_ms(cpu_ms_max + CPU_GRACE_MS));
        }
        let is_busy = self.runner.as_ref().is_some_and(ProgramRunner::is_in_the_way);
        let busy_until = self.clockwork.busy_until.unwrap_or_else(|| now.after_ms(BUSY_MS_MAX));
        self.clockwork.busy_until = is_busy.then_some(busy_until);
        self.clockwork.warm_pause_ms = self.shared.config.warm_pause_ms;
        match (self.is_warm_pause(), self.clockwork.paused) {
            (true, None) => self.clockwork.paused = Some(now),
            (false, Some(_)) => self.clockwork.paused = None,
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Does whatever the clock says is due.
    pub(super) fn look_at_clock(&mut self) {
        let now = self.shared.config.clock.now();
        if let Some(limit) = self.limit_reached(now) {
            let active_ms = self.clockwork.active_ms;
            return self.end(Intent::Expire { limit, active_ms });
        }
        if self.clockwork.busy_until.is_some_and(|until| now >= until)
            && let Some(runner) = &mut self.runner
        {
            runner.step_back();
        }
        if self.replay_takes_too_long(now) {
            let what = "its replay, which takes too long".to_owned();
            return self.not_restored(lifecycle::Rejection::Diverged { what });
        }
        for call in self.ledger.state.calls_overdue(now) {
            let state = &self.ledger.state;
            let Some(known) = state.calls.get(&call) else { continue };
            let (tool, ms) = (known.said(), state.limits().call_ms_max);
            let sentence = format!("Tool \"{tool}\" did not answer within {ms} ms.");
            let failure = Failure::new(FailureCode::Timeout, sentence);
            self.settle(call, CallOutcome::Failed(failure));
        }
        for timer in self.timers_due(now) {
            let _ = self.submit(Intent::Fire { timer });
        }
        if self
            .clockwork
            .paused
            .is_some_and(|since| now >= since.after_ms(self.clockwork.warm_pause_ms))
        {
            self.cool_down();
        }
    }

    fn limit_reached(&mut self, now: Timestamp) -> Option<LimitKind> {
        let state = &self.ledger.state;
        let origin = state.origin.as_ref()?;
        if matches!(state.phase, Phase::Finished | Phase::Parked) {
            return None;
        }
        if now >= origin.at.after_ms(origin.limits.total_ms_max) {
            return Some(LimitKind::Total);
        }
        if self.clockwork.active_ms >= origin.limits.active_ms_max {
            return Some(LimitKind::Active);
        }
        if state.idle_until().is_some_and(|until| now >= until) {
            return Some(LimitKind::Idle);
        }
        if self.clockwork.cpu_check.is_some_and(|check| now >= check) {
            let cpu_ms_max = origin.limits.cpu_ms_max + CPU_GRACE_MS;
            let used = self.cpu_spent_ms + self.runner.as_mut().map_or(0, ProgramRunner::cpu_ms);
            if used >= cpu_ms_max {
                return Some(LimitKind::Cpu);
            }
            // Processor time never runs ahead of the clock on the wall.
            self.clockwork.cpu_check = Some(now.after_ms((cpu_ms_max - used).max(1)));
        }
        None
    }

    fn replay_takes_too_long(&self, now: Timestamp) -> bool {
        let replaying = self.runner.as_ref().is_some_and(|runner| runner.replaying);
        replaying && self.clockwork.began.is_some_and(|began| now >= began.after_ms(REPLAY_MS_MAX))
    }

    fn timers_due(&self, now: Timestamp) -> Vec<TimerId> {
        let mut due: Vec<_> =
            self.ledger.state.timers.iter().filter(|(_, due)| **due <= now).collect();
        due.sort_by_key(|(timer, due)| (**due, **timer));
        due.into_iter().map(|(timer, _)| *timer).collect()
    }

    /// Whether the active clock runs: the guest works, or waits for nothing but its own timers.
    fn is_active(&self) -> bool {
        let state = &self.ledger.state;
        let Some(runner) = &self.runner else { return self.is_active_without_runner() };
        if runner.replaying || state.phase == Phase::Finished {
            return false;
        }
        if !self.is_at_rest() {
            return true;
        }
        self.does_wait_count()
    }
}
