//! A session's runner: when it exists, and what its caller is charged for it.

use super::redact;
use engine::{Clock, QuotaAccount, RunnerCharge};
use lifecycle::{RandomSeed, Rejection};
use protocols::execbox::session::{GuestTime, OpenSession, ToSession};
use protocols::hotrepl::RESULT_BYTES_MAX;
use sandbox::{
    MEMORY_BYTES_DEFAULT, RunnerDriver, RunnerLoss, RunnerMessage, Sandbox, SessionMessage,
};
use tokio::time::Instant;

/// Elements of a value's outermost list that are reported.
pub(super) const ELEMENTS_MAX: u32 = 100;

/// Maximum number of characters of a value that are serialized: enough to know that it is too long, and by about how
/// much.
const VALUE_CHARS_MAX: u32 = 4 << 20;

/// A session's runner, if it has one.
pub(super) struct SessionRunner {
    sandbox: Sandbox,
    clock: Clock,
    account: QuotaAccount,
    /// Declared before the driver: on drop it charges what the runner used before the runner is killed.
    charge: Option<RunnerCharge>,
    driver: Option<Box<RunnerDriver>>,
}

impl SessionRunner {
    pub(super) const fn new(sandbox: Sandbox, clock: Clock, account: QuotaAccount) -> Self {
        Self { sandbox, clock, account, charge: None, driver: None }
    }

    /// Whether the guest computes, or will as soon as a runner is available.
    pub(super) fn is_busy(&self) -> bool {
        self.busy_since().is_some()
    }

    /// Whether there is a runner, with everything that was defined in it.
    pub(super) const fn is_alive(&self) -> bool {
        self.driver.is_some()
    }

    /// Since when it has been continuously busy.
    pub(super) fn busy_since(&self) -> Option<Instant> {
        self.driver.as_ref().and_then(|driver| driver.busy_since())
    }

    /// Sends the runner a message; requests a runner first if there is none.
    pub(super) fn send_message(&mut self, message: &ToSession<'_>) {
        if let Some(charge) = &mut self.charge {
            charge.begin_work();
        }
        self.running().send_to_session(message);
    }

    /// Whether the caller's quotas permit another program.
    pub(super) fn admit_program(&self) -> Result<(), Rejection> {
        self.account.admit_program()
    }

    /// Requests a runner before it is needed.
    pub(super) fn warm(&mut self) {
        let _ = self.running();
    }

    /// Requests that the runner stop a task.
    pub(super) fn stop(&mut self, task: u64) {
        if let Some(driver) = &mut self.driver {
            if let Some(charge) = &mut self.charge {
                charge.begin_work();
            }
            driver.interrupt(task);
        }
    }

    /// Drops the runner, with everything that was defined in it.
    pub(super) fn drop_runner(&mut self) {
        self.charge = None;
        self.driver = None;
    }

    /// When the runner needs attention next.
    pub(super) fn alarm(&self) -> Option<Instant> {
        let driver = self.driver.as_ref().and_then(|driver| driver.alarm());
        let charge = self.charge.as_ref().and_then(RunnerCharge::due).map(Instant::from_std);
        driver.into_iter().chain(charge).min()
    }

    /// Handles the alarm: fires timers, and gives up a runner that does not stop.
    pub(super) fn look_after(&mut self, now: Instant, frame: u64) -> Option<RunnerLoss> {
        if let Some(charge) = &mut self.charge {
            charge.charge_if_due();
        }
        let driver = self.driver.as_mut()?;
        if let Some(charge) = &mut self.charge
            && driver.alarm().is_some_and(|at| at <= now)
        {
            charge.begin_work();
        }
        driver.look_after(now, GuestTime { at: self.clock.now(), frame })
    }

    /// Returns the runner's next message. Cancel safe: dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> RunnerMessage {
        let Some(driver) = &mut self.driver else { return std::future::pending().await };
        let mut message = driver.next().await;
        if let RunnerMessage::Leased = message {
            self.charge = driver.cpu_meter().map(|meter| self.account.charge_runner(meter));
            if let Some(charge) = &mut self.charge {
                charge.begin_work();
            }
        }
        if let RunnerMessage::Lost(RunnerLoss::NotLeased(error)) = &message {
            tracing::warn!(%error, "a session has no runner");
        }
        if let RunnerMessage::Session(SessionMessage::Rested) = message
            && let Some(charge) = &mut self.charge
        {
            charge.end_work();
        }
        if let RunnerMessage::Session(SessionMessage::TaskEnded { result, .. }) = &mut message {
            redact::redact_result(result);
        }
        message
    }

    fn running(&mut self) -> &mut RunnerDriver {
        self.driver.get_or_insert_with(|| {
            let mut seed = RandomSeed([0; 32]);
            // If the system has no randomness, larger failures follow anyway; the guest's seed is then constant.
            let _ = getrandom::fill(&mut seed.0);
            let request = self.sandbox.request_lease(self.account.demand(MEMORY_BYTES_DEFAULT));
            Box::new(RunnerDriver::open_session(
                request,
                OpenSession {
                    memory_bytes: MEMORY_BYTES_DEFAULT,
                    seed,
                    start_ms: self.clock.now(),
                    elements_max: ELEMENTS_MAX,
                    value_chars_max: VALUE_CHARS_MAX,
                    printed_bytes_max: u32::try_from(RESULT_BYTES_MAX).expect("far smaller"),
                },
            ))
        })
    }
}
