//! The clocks of one execution: active time, total time, timers, processor time, warm pauses.

use super::ExecutionActor;
use super::program_runner::ProgramRunner;
use crate::Clock;
use futures_util::future::{BoxFuture, FutureExt};
use lifecycle::{
    CallOutcome, ExecutionPhase, Failure, FailureCode, Intent, LimitKind, State, TimerId, Timestamp,
};

/// How much later than the runner the actor checks the processor time. The runner stops programs that
/// yield; this check stops those that do not.
const CPU_GRACE_MS: u64 = 250;

/// How long a program may be busy without a break before it yields to others. Most finish long before; those that
/// compute for longer do not delay all others.
const BUSY_MS_MAX: u64 = 100;

/// Maximum time of a replay. It repeats without pause what took tools and people much longer.
const REPLAY_MS_MAX: u64 = 120_000;

#[derive(Default)]
pub(super) struct ExecutionClock {
    /// Active time used so far.
    active_ms: u64,
    /// When the active clock was started, if it runs.
    since: Option<Timestamp>,
    /// When to check the runner's processor time.
    cpu_check: Option<Timestamp>,
    /// When the present runner received its program.
    began: Option<Timestamp>,
    /// Until when a busy program need not yield.
    busy_until: Option<Timestamp>,
    /// Since when the program has waited for people.
    paused: Option<Timestamp>,
    alarm: Option<(Timestamp, BoxFuture<'static, ()>)>,
    warm_pause_ms: u64,
}

impl ExecutionClock {
    /// Active time used so far.
    pub(super) const fn active_ms(&self) -> u64 {
        self.active_ms
    }

    /// Continues from the journal, including a pause that counts as active.
    pub(super) fn bring_back(&mut self, state: &State) {
        self.active_ms = state.active_ms;
        self.since = state.active_at_rest();
    }

    /// How long the present runner has worked.
    pub(super) fn runner_ms(&self, now: Timestamp) -> u64 {
        self.began.map_or(0, |began| now.ms_since(began))
    }

    /// A runner starts to work.
    pub(super) fn begin_activity(&mut self, now: Timestamp) {
        self.began = Some(now);
        self.cpu_check = None;
    }

    /// Sets the alarm if it would fire too late; one that fires too early is harmless.
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

    /// When the next thing is due.
    pub(super) fn next_wake(&self, state: &State, is_replaying: bool) -> Option<Timestamp> {
        let due = state.due();
        let active = self.since.map(|since| {
            since.after_ms(state.limits().active_ms_max.saturating_sub(self.active_ms))
        });
        let replay = self.began.filter(|_| is_replaying).map(|began| began.after_ms(REPLAY_MS_MAX));
        let warm = self.paused.map(|paused| paused.after_ms(self.warm_pause_ms));
        [due, active, replay, warm, self.cpu_check, self.busy_until].into_iter().flatten().min()
    }

    /// Advances to `now`. From here on the active clock runs or stops, as given.
    fn advance(&mut self, now: Timestamp, is_active: bool) {
        if let Some(since) = self.since {
            self.active_ms += now.ms_since(since);
        }
        self.since = is_active.then_some(now);
    }

    /// Computes when the processor time of an active program must be checked. It never advances faster than the
    /// wall clock.
    fn watch_cpu(&mut self, now: Timestamp, cpu_ms_max: u64) {
        self.cpu_check.get_or_insert(now.after_ms(cpu_ms_max + CPU_GRACE_MS));
    }

    fn is_cpu_check_due(&self, now: Timestamp) -> bool {
        self.cpu_check.is_some_and(|check| now >= check)
    }

    fn check_cpu_after(&mut self, now: Timestamp, ms: u64) {
        self.cpu_check = Some(now.after_ms(ms.max(1)));
    }

    fn note_busy(&mut self, now: Timestamp, is_busy: bool) {
        let busy_until = self.busy_until.unwrap_or_else(|| now.after_ms(BUSY_MS_MAX));
        self.busy_until = is_busy.then_some(busy_until);
    }

    fn is_busy_for_long(&self, now: Timestamp) -> bool {
        self.busy_until.is_some_and(|until| now >= until)
    }

    fn note_warm_pause(&mut self, now: Timestamp, is_warm_pause: bool, warm_pause_ms: u64) {
        self.warm_pause_ms = warm_pause_ms;
        self.paused = is_warm_pause.then(|| self.paused.unwrap_or(now));
    }

    fn is_warm_pause_over(&self, now: Timestamp) -> bool {
        self.paused.is_some_and(|since| now >= since.after_ms(self.warm_pause_ms))
    }

    fn is_replay_overdue(&self, now: Timestamp) -> bool {
        self.began.is_some_and(|began| now >= began.after_ms(REPLAY_MS_MAX))
    }
}

impl ExecutionActor {
    /// Advances the clocks to the present. Called before and after every wait.
    pub(super) fn keep_time(&mut self) {
        let now = self.shared.config.clock.now();
        let is_active = self.is_active();
        self.clock.advance(now, is_active);
        if is_active {
            self.clock.watch_cpu(now, self.journal.state().limits().cpu_ms_max);
        }
        self.clock.note_busy(now, self.runner.get().is_some_and(ProgramRunner::is_in_the_way));
        let is_warm_pause = self.is_warm_pause();
        self.clock.note_warm_pause(now, is_warm_pause, self.shared.config.warm_pause_ms);
    }

    /// Does everything that is due.
    pub(super) fn look_at_clock(&mut self) {
        let now = self.shared.config.clock.now();
        if let Some(limit) = self.limit_reached(now) {
            let active_ms = self.clock.active_ms();
            return self.end_with(Intent::Expire { limit, active_ms });
        }
        if self.clock.is_busy_for_long(now)
            && let Some(runner) = self.runner.get_mut()
        {
            runner.step_back();
        }
        if self.runner.is_replaying() && self.clock.is_replay_overdue(now) {
            let what = "its replay, which takes too long".to_owned();
            return self.not_restored(lifecycle::Rejection::Diverged { what });
        }
        for call in self.journal.state().calls_overdue(now) {
            let state = self.journal.state();
            let Some(known) = state.calls.get(&call) else { continue };
            let (tool, ms) = (known.said(), state.limits().call_ms_max);
            let sentence = format!("Tool \"{tool}\" did not answer within {ms} ms.");
            let failure = Failure::new(FailureCode::Timeout, sentence);
            self.settle_call(call, CallOutcome::Failed(failure));
        }
        for timer in self.timers_due(now) {
            let _ = self.submit(Intent::Fire { timer });
        }
        if self.clock.is_warm_pause_over(now) {
            self.cool_down();
        }
    }

    fn limit_reached(&mut self, now: Timestamp) -> Option<LimitKind> {
        let state = self.journal.state();
        let origin = state.origin.as_ref()?;
        if matches!(state.phase, ExecutionPhase::Finished | ExecutionPhase::Parked) {
            return None;
        }
        if now >= origin.at.after_ms(origin.limits.total_ms_max) {
            return Some(LimitKind::Total);
        }
        if self.clock.active_ms() >= origin.limits.active_ms_max {
            return Some(LimitKind::Active);
        }
        if state.idle_until().is_some_and(|until| now >= until) {
            return Some(LimitKind::Idle);
        }
        if self.clock.is_cpu_check_due(now) {
            let cpu_ms_max = origin.limits.cpu_ms_max + CPU_GRACE_MS;
            let used = self.runner.cpu_ms();
            if used >= cpu_ms_max {
                return Some(LimitKind::Cpu);
            }
            self.clock.check_cpu_after(now, cpu_ms_max - used);
        }
        None
    }

    fn timers_due(&self, now: Timestamp) -> Vec<TimerId> {
        let mut due: Vec<_> =
            self.journal.state().timers.iter().filter(|(_, due)| **due <= now).collect();
        due.sort_by_key(|(timer, due)| (**due, **timer));
        due.into_iter().map(|(timer, _)| *timer).collect()
    }

    /// Whether the active clock runs: the guest works, or waits only for its own timers.
    fn is_active(&self) -> bool {
        let state = self.journal.state();
        if !self.runner.has_runner() {
            return self.is_active_without_runner();
        }
        if self.runner.is_replaying() || state.phase == ExecutionPhase::Finished {
            return false;
        }
        if !self.is_at_rest() {
            return true;
        }
        self.does_wait_count()
    }
}
