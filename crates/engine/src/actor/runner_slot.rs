//! The slot of the execution's runner: empty, waiting, or occupied. Records what the program used in
//! previous runners.

use super::program_runner::ProgramRunner;
use futures_util::FutureExt as _;
use lifecycle::{InputIndex, Timestamp};
use sandbox::{Lease, LeaseError, LeaseRequest, RunnerMessage};

/// The slot of an execution's runner.
#[derive(Default)]
pub(super) struct RunnerSlot {
    runner: Option<ProgramRunner>,
    request: Option<LeaseRequest>,
    /// The inputs that the program had received when it released its runner, while it has none. A replay repeats
    /// exactly these: what follows is the program's own work.
    released: Option<InputIndex>,
    /// Processor time that the program used in released runners.
    cpu_spent_ms: u64,
    /// Since when the program only waits, if it does.
    waits_since: Option<Timestamp>,
    /// The program was restored after a restart and has not yet proved to work.
    is_recovering: bool,
}

/// What happened to the runner.
pub(super) enum RunnerEvent {
    Leased(Box<Result<Lease, LeaseError>>),
    Messages(Vec<RunnerMessage>),
    /// Others need the runner of a program that only waits.
    Wanted,
}

impl RunnerSlot {
    /// Whether there is no runner and none was requested.
    pub(super) const fn is_empty(&self) -> bool {
        self.runner.is_none() && self.request.is_none()
    }

    pub(super) const fn has_runner(&self) -> bool {
        self.runner.is_some()
    }

    pub(super) const fn is_requested(&self) -> bool {
        self.request.is_some()
    }

    /// Waits for a requested runner.
    pub(super) fn request(&mut self, request: LeaseRequest) {
        self.request = Some(request);
    }

    /// The requested runner, if it has arrived.
    pub(super) fn try_leased(&mut self) -> Option<Result<Lease, LeaseError>> {
        let leased = self.request.as_mut()?.now_or_never()?;
        self.request = None;
        Some(leased)
    }

    /// The next event. Reads nothing from the runner unless there `is_room` for it. Cancel-safe: dropping the future
    /// loses nothing.
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

    /// Cancels the request for a runner.
    pub(super) fn withdraw_request(&mut self) {
        self.request = None;
    }

    pub(super) const fn get(&self) -> Option<&ProgramRunner> {
        self.runner.as_ref()
    }

    pub(super) const fn get_mut(&mut self) -> Option<&mut ProgramRunner> {
        self.runner.as_mut()
    }

    /// Whether the runner repeats recorded inputs.
    pub(super) fn is_replaying(&self) -> bool {
        self.runner.as_ref().is_some_and(ProgramRunner::is_replaying)
    }

    /// Whether the program is restored to the state of the journal.
    pub(super) fn is_restored(&self) -> bool {
        self.runner.as_ref().is_some_and(|runner| !runner.is_replaying())
    }

    /// Whether the program has consumed all of these inputs and waits.
    pub(super) fn is_at_rest(&self, inputs: InputIndex) -> bool {
        self.runner.as_ref().is_some_and(|runner| runner.is_at_rest(inputs))
    }

    /// Processor time of the program's own work, in this runner and before.
    pub(super) fn cpu_ms(&mut self) -> u64 {
        self.cpu_spent_ms + self.runner.as_mut().map_or(0, ProgramRunner::cpu_ms)
    }

    /// Processor time of the program's own work in previous runners.
    pub(super) const fn cpu_spent_ms(&self) -> u64 {
        self.cpu_spent_ms
    }

    // ---- Releasing the runner ----

    /// Records that the runner is released after these inputs. Its processor time remains charged to the program.
    pub(super) fn release(&mut self, inputs: InputIndex) {
        self.cpu_spent_ms = self.cpu_ms();
        self.released = Some(inputs);
    }

    /// How many of these inputs the next runner repeats.
    pub(super) fn inputs_to_repeat(&self, inputs: InputIndex) -> InputIndex {
        self.released.unwrap_or(inputs)
    }

    /// Whether the program released its runner and is not restored yet.
    pub(super) const fn is_released(&self) -> bool {
        self.released.is_some()
    }

    /// Whether the runner repeats what the program did before it was released.
    pub(super) fn is_coming_back(&self) -> bool {
        self.is_released() && self.is_replaying()
    }

    /// Records that a released program is restored; returns its runner if it was one.
    pub(super) fn come_back(&mut self) -> Option<&mut ProgramRunner> {
        self.released.take()?;
        self.runner.as_mut()
    }

    /// Since when the program only waits; sets it to `now` if it did not wait before.
    pub(super) fn waits_since(&mut self, now: Timestamp) -> Timestamp {
        *self.waits_since.get_or_insert(now)
    }

    /// The program does not only wait.
    pub(super) fn works(&mut self) {
        self.waits_since = None;
    }

    // ---- Restoring the program ----

    pub(super) const fn is_recovering(&self) -> bool {
        self.is_recovering
    }

    pub(super) const fn set_recovering(&mut self, is_recovering: bool) {
        self.is_recovering = is_recovering;
    }
}
