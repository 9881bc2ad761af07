//! The place of the execution's runner: it is empty, waits for a runner, or has one. Remembers what the program used in
//! runners that it had before.

use super::program_runner::ProgramRunner;
use futures_util::FutureExt as _;
use lifecycle::{InputIndex, Timestamp};
use sandbox::{Lease, LeaseError, LeaseRequest, RunnerMessage};

/// See the module.
#[derive(Default)]
pub(super) struct RunnerSlot {
    runner: Option<ProgramRunner>,
    request: Option<LeaseRequest>,
    /// The inputs that the program had received when it gave its runner to others, while it has none. A replay repeats
    /// these and no more: what follows is the program's own work.
    released: Option<InputIndex>,
    /// Processor time that the program used in runners that it gave up.
    cpu_spent_ms: u64,
    /// Since when the program only waits, if it does.
    waits_since: Option<Timestamp>,
    /// The program was brought back after a restart and has not yet proved to work.
    is_recovering: bool,
}

/// What happened to the runner.
pub(super) enum RunnerEvent {
    Leased(Box<Result<Lease, LeaseError>>),
    Messages(Vec<RunnerMessage>),
    /// Others want the runner of a program that only waits.
    Wanted,
}

impl RunnerSlot {
    /// Whether there is no runner and none was asked for.
    pub(super) const fn is_empty(&self) -> bool {
        self.runner.is_none() && self.request.is_none()
    }

    pub(super) const fn has_runner(&self) -> bool {
        self.runner.is_some()
    }

    pub(super) const fn is_requested(&self) -> bool {
        self.request.is_some()
    }

    /// Waits for a runner that was asked for.
    pub(super) fn request(&mut self, request: LeaseRequest) {
        self.request = Some(request);
    }

    /// The runner that was asked for, if it is there by now.
    pub(super) fn try_leased(&mut self) -> Option<Result<Lease, LeaseError>> {
        let leased = self.request.as_mut()?.now_or_never()?;
        self.request = None;
        Some(leased)
    }

    /// What happens next. Reads nothing from the runner unless there `is_room` for it. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, is_room: bool) -> RunnerEvent {
        match (&mut self.runner, &mut self.request) {
            (Some(runner), _) => {
                let messages = runner.messages(is_room).await;
                messages.map_or(RunnerEvent::Wanted, RunnerEvent::Messages)
            }
            (None, Some(request)) => {
                let leased = request.await;
                self.request = None;
                RunnerEvent::Leased(Box::new(leased))
            }
            (None, None) => std::future::pending().await,
        }
    }

    pub(super) fn put(&mut self, runner: ProgramRunner) {
        self.runner = Some(runner);
    }

    pub(super) fn take(&mut self) -> Option<ProgramRunner> {
        self.runner.take()
    }

    /// No runner is waited for any more.
    pub(super) fn withdraw_request(&mut self) {
        self.request = None;
    }

    pub(super) const fn get(&self) -> Option<&ProgramRunner> {
        self.runner.as_ref()
    }

    pub(super) const fn get_mut(&mut self) -> Option<&mut ProgramRunner> {
        self.runner.as_mut()
    }

    /// Whether the runner repeats what the journal has.
    pub(super) fn is_replaying(&self) -> bool {
        self.runner.as_ref().is_some_and(ProgramRunner::is_replaying)
    }

    /// Whether the program is where the journal left it.
    pub(super) fn is_restored(&self) -> bool {
        self.runner.as_ref().is_some_and(|runner| !runner.is_replaying())
    }

    /// Whether the program has taken all of these inputs and waits.
    pub(super) fn is_at_rest(&self, inputs: InputIndex) -> bool {
        self.runner.as_ref().is_some_and(|runner| runner.is_at_rest(inputs))
    }

    /// Processor time that the program's own work has used, in this runner and before.
    pub(super) fn cpu_ms(&mut self) -> u64 {
        self.cpu_spent_ms + self.runner.as_mut().map_or(0, ProgramRunner::cpu_ms)
    }

    /// The same, in runners before this one.
    pub(super) const fn cpu_spent_ms(&self) -> u64 {
        self.cpu_spent_ms
    }

    // ---- A runner that is given to others ----

    /// Notes that the runner goes to others after these inputs. What it used counts on, also in the next runner.
    pub(super) fn release(&mut self, inputs: InputIndex) {
        self.cpu_spent_ms = self.cpu_ms();
        self.released = Some(inputs);
    }

    /// The inputs that the next runner repeats, of those that there are.
    pub(super) fn inputs_to_repeat(&self, inputs: InputIndex) -> InputIndex {
        self.released.unwrap_or(inputs)
    }

    /// Whether the program gave its runner to others and is not back yet.
    pub(super) const fn is_released(&self) -> bool {
        self.released.is_some()
    }

    /// Whether the runner repeats what the program did before its runner went to others.
    pub(super) fn is_coming_back(&self) -> bool {
        self.is_released() && self.is_replaying()
    }

    /// Notes that a program whose runner went to others is back; returns its runner if it is one.
    pub(super) fn come_back(&mut self) -> Option<&mut ProgramRunner> {
        self.released.take()?;
        self.runner.as_mut()
    }

    /// Since when the program only waits, which it does now.
    pub(super) fn waits_since(&mut self, now: Timestamp) -> Timestamp {
        *self.waits_since.get_or_insert(now)
    }

    /// The program does not only wait.
    pub(super) fn works(&mut self) {
        self.waits_since = None;
    }

    // ---- A program that is brought back ----

    pub(super) const fn is_recovering(&self) -> bool {
        self.is_recovering
    }

    pub(super) const fn set_recovering(&mut self, is_recovering: bool) {
        self.is_recovering = is_recovering;
    }
}
