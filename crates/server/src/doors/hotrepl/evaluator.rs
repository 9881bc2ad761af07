//! The outside of a session's runner: what it is told, what it says, when it is given up.

use super::discreet;
use engine::{Clock, QuotaAccount, RunnerCharge};
use lifecycle::{Rejection, Seed};
use protocols::execbox::ToRunner;
use protocols::execbox::session::{
    Ended, FromSession, Interrupt, Now, Open, TaskFailed, TaskOutcome, ToSession, Valued, Why,
    encode,
};
use protocols::hotrepl::RESULT_BYTES_MAX;
use sandbox::{Exit, Lease, LeaseError, MEMORY_BYTES_DEFAULT, Received, Sandbox};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// Elements of a value's outermost list that are told.
pub(super) const ELEMENTS_MAX: u32 = 100;

/// Characters of a value that are written at all: enough to know that it is too long, and by about how much.
const VALUE_CHARS_MAX: u32 = 4 << 20;

/// How long a guest that was told to stop may take to do so. Longer takes only native code, or another task's turn.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// Timers that one session may have outstanding; those beyond never fire.
const TIMERS_MAX: usize = 10_000;

/// A session's runner, if it has one.
pub(super) struct Evaluator {
    sandbox: Sandbox,
    clock: Clock,
    account: QuotaAccount,
    /// Before the stage: it charges what the runner used before the runner is killed.
    charge: Option<RunnerCharge>,
    stage: Stage,
    n_sent: u64,
    n_done: u64,
    /// Since when it has not said that it rests.
    busy_since: Option<Instant>,
    /// Told to stop: what follows if it does not.
    stopping: Option<Stopping>,
    timers: BTreeMap<(Instant, u32), ()>,
    due: BTreeMap<u32, Instant>,
}

enum Stage {
    Absent,
    /// These lines are for it.
    Leasing(Leasing, Vec<u8>),
    Running(Box<Lease>),
}

type Leasing = Pin<Box<dyn Future<Output = Result<Lease, LeaseError>> + Send>>;

struct Stopping {
    at: Instant,
    /// Whatever runs was told to stop, not only one task.
    all: bool,
}

/// What a runner says, in words that outlive the line.
#[derive(Debug)]
pub(super) enum Said {
    Ended {
        task: u64,
        outcome: Outcome,
        fouled: bool,
    },
    Completed {
        task: u64,
        names: Vec<String>,
    },
    Called {
        task: u64,
        call: u32,
        tool: String,
        args: String,
    },
    Printed {
        task: u64,
        line: String,
    },
    Registered(String),
    Unregistered(String),
    Progressed {
        task: u64,
        value: String,
    },
    Wrote {
        task: u64,
        name: String,
        content_type: String,
        base64: String,
    },
    /// There is a runner now.
    Leased,
    /// It has nothing to do.
    Rested,
    /// It is gone; so is everything that was defined.
    Lost(Loss),
}

/// Why a runner is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// There was none to be had.
    NoRoom,
    /// It did not stop.
    Stubborn,
    /// It ran out of memory that was not the guest's to use.
    Memory,
    /// The guest's memory was used up and stayed so.
    Full,
    /// It broke.
    Broken,
}

/// How a task ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Value { type_name: String, json: String, bytes: usize },
    Nothing,
    Output(String),
    Failed(Failed),
}

impl Outcome {
    /// Whether the memory was used up.
    pub(super) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Failed(Failed { why: Why::Memory, .. }))
    }
}

/// Why a task has neither value nor output.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: Why,
    pub(super) message: String,
    pub(super) stack: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    pub(super) details: Option<String>,
}

impl Evaluator {
    pub(super) const fn new(sandbox: Sandbox, clock: Clock, account: QuotaAccount) -> Self {
        Self {
            sandbox,
            clock,
            account,
            charge: None,
            stage: Stage::Absent,
            n_sent: 0,
            n_done: 0,
            busy_since: None,
            stopping: None,
            timers: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    /// Whether somebody computes, or will as soon as there is a runner.
    pub(super) const fn is_busy(&self) -> bool {
        self.busy_since.is_some()
    }

    /// Whether there is a runner, with whatever was defined in it.
    pub(super) const fn is_alive(&self) -> bool {
        !matches!(self.stage, Stage::Absent)
    }

    /// Since when it has not rested.
    pub(super) const fn busy_since(&self) -> Option<Instant> {
        self.busy_since
    }

    /// Tells the runner something; gets one first where there is none.
    pub(super) fn tell(&mut self, message: &ToSession<'_>) {
        if matches!(self.stage, Stage::Absent) {
            self.begin();
        }
        self.n_sent += 1;
        self.busy_since.get_or_insert_with(Instant::now);
        if let Some(charge) = &mut self.charge {
            charge.begin_work();
        }
        match &mut self.stage {
            Stage::Absent => {}
            Stage::Leasing(_, lines) => encode(message, lines),
            Stage::Running(lease) => {
                let mut line = Vec::with_capacity(256);
                encode(message, &mut line);
                // A runner that is gone says so itself when it is listened to.
                let _ = lease.push(&line);
            }
        }
    }

    /// Whether the caller's quotas let another program begin.
    pub(super) fn admit_program(&self) -> Result<(), Rejection> {
        self.account.admit_program()
    }

    /// Gets a runner before anybody needs it.
    pub(super) fn warm(&mut self) {
        if matches!(self.stage, Stage::Absent) {
            self.begin();
        }
    }

    /// Tells the runner to stop a task.
    pub(super) fn stop(&mut self, task: u64) {
        if !self.is_alive() {
            return;
        }
        self.tell(&ToSession::Interrupt(Interrupt { task }));
        let all = task == 0;
        self.stopping.get_or_insert(Stopping { at: Instant::now() + STOP_GRACE, all });
    }

    /// Lets the runner go, with everything that was defined in it.
    pub(super) fn drop_runner(&mut self) {
        self.charge = None;
        self.stage = Stage::Absent;
        (self.n_sent, self.n_done, self.busy_since, self.stopping) = (0, 0, None, None);
        self.timers.clear();
        self.due.clear();
    }

    /// When to look after it again.
    pub(super) fn alarm(&self) -> Option<Instant> {
        let timer = self.timers.keys().next().map(|(at, _)| *at);
        let stop = self.stopping.as_ref().map(|stopping| stopping.at);
        let charge = self.charge.as_ref().and_then(RunnerCharge::due).map(Instant::from_std);
        timer.into_iter().chain(stop).chain(charge).min()
    }

    /// The alarm went off: timers fire; a runner that does not stop is given up.
    pub(super) fn look_after(&mut self, now: Instant, frame: u64) -> Option<Loss> {
        if let Some(charge) = &mut self.charge {
            charge.charge_if_due();
        }
        while let Some((at, timer)) =
            self.timers.keys().next().copied().filter(|(at, _)| *at <= now)
        {
            self.timers.remove(&(at, timer));
            self.due.remove(&timer);
            let now = Now { at: self.clock.now(), frame };
            self.tell(&ToSession::Fire(protocols::execbox::session::Fire { timer, now }));
        }
        let stopping = self.stopping.as_mut().filter(|stopping| stopping.at <= now)?;
        if matches!(self.stage, Stage::Leasing(..)) {
            // Nobody can stop what has not begun.
            stopping.at = now + STOP_GRACE;
            return None;
        }
        if stopping.all {
            return Some(Loss::Stubborn);
        }
        // Perhaps it is another task's turn: then that one must stop.
        (stopping.all, stopping.at) = (true, now + STOP_GRACE);
        self.tell(&ToSession::Interrupt(Interrupt { task: 0 }));
        None
    }

    /// What the runner says next. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Said {
        loop {
            match &mut self.stage {
                Stage::Absent => return std::future::pending().await,
                Stage::Leasing(leasing, _) => {
                    let leased = leasing.await;
                    return self.leased(leased);
                }
                Stage::Running(lease) => {
                    let said = match lease.receive().await {
                        Received::Line(line) => serde_json::from_slice(line).ok().map(owned),
                        Received::Gone(exit) => Some(Heard::Said(Said::Lost(loss(exit)))),
                    };
                    // A runner that speaks another language is no runner of ours.
                    let heard = said.unwrap_or(Heard::Said(Said::Lost(Loss::Broken)));
                    if let Some(said) = self.note(heard) {
                        return said;
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        let sandbox = self.sandbox.clone();
        let demand = self.account.demand(MEMORY_BYTES_DEFAULT);
        let leasing = Box::pin(async move { sandbox.lease(demand).await });
        let mut seed = Seed([0; 32]);
        // Without randomness of its own the machine has worse troubles; the guest's is then constant.
        let _ = getrandom::fill(&mut seed.0);
        let mut lines = vec![];
        ToRunner::Session(Open {
            memory_bytes: MEMORY_BYTES_DEFAULT,
            seed,
            start_ms: self.clock.now(),
            elements_max: ELEMENTS_MAX,
            value_chars_max: VALUE_CHARS_MAX,
            printed_bytes_max: u32::try_from(RESULT_BYTES_MAX).expect("far smaller"),
        })
        .encode(&mut lines);
        self.stage = Stage::Leasing(leasing, lines);
    }

    fn leased(&mut self, leased: Result<Lease, LeaseError>) -> Said {
        let Stage::Leasing(_, lines) = std::mem::replace(&mut self.stage, Stage::Absent) else {
            return Said::Lost(Loss::Broken);
        };
        match leased {
            Ok(mut lease) => {
                self.charge = Some(self.account.charge_runner(lease.cpu_meter()));
                if let Some(charge) = &mut self.charge {
                    charge.begin_work();
                }
                // As in `tell`.
                let _ = lease.push(&lines);
                self.stage = Stage::Running(Box::new(lease));
                Said::Leased
            }
            Err(error) => {
                tracing::warn!(%error, "a session has no runner");
                Said::Lost(Loss::NoRoom)
            }
        }
    }

    /// Keeps what is for us; passes on what is for the session.
    fn note(&mut self, heard: Heard) -> Option<Said> {
        match heard {
            Heard::TimerSet { timer, delay_ms } => {
                let delay = Duration::from_millis(delay_ms.min(u64::from(u32::MAX)));
                if self.due.len() < TIMERS_MAX {
                    let at = Instant::now() + delay;
                    self.due.insert(timer, at);
                    self.timers.insert((at, timer), ());
                }
                None
            }
            Heard::TimerCleared(timer) => {
                if let Some(at) = self.due.remove(&timer) {
                    self.timers.remove(&(at, timer));
                }
                None
            }
            Heard::Rested { lines } => {
                self.n_done = lines;
                if lines < self.n_sent {
                    return None;
                }
                (self.busy_since, self.stopping) = (None, None);
                if let Some(charge) = &mut self.charge {
                    charge.end_work();
                }
                Some(Said::Rested)
            }
            Heard::Said(said) => Some(said),
        }
    }
}

/// What is for the session, and what is for the evaluator alone.
enum Heard {
    Said(Said),
    TimerSet { timer: u32, delay_ms: u64 },
    TimerCleared(u32),
    Rested { lines: u64 },
}

fn owned(said: FromSession<'_>) -> Heard {
    Heard::Said(match said {
        FromSession::TimerSet(set) => {
            return Heard::TimerSet { timer: set.timer, delay_ms: set.delay_ms };
        }
        FromSession::TimerCleared(timer) => return Heard::TimerCleared(timer),
        FromSession::Rested { lines } => return Heard::Rested { lines },
        FromSession::Ended(Ended { task, outcome, fouled }) => {
            Said::Ended { task, outcome: discreet::outcome(owned_outcome(outcome)), fouled }
        }
        FromSession::Completed(completed) => Said::Completed {
            task: completed.task,
            names: completed.names.into_iter().map(Into::into).collect(),
        },
        FromSession::Called(called) => Said::Called {
            task: called.task,
            call: called.call,
            tool: called.tool.into(),
            args: called.args.text().to_owned(),
        },
        FromSession::Printed(printed) => {
            Said::Printed { task: printed.task, line: printed.line.into() }
        }
        FromSession::Registered(descriptor) => Said::Registered(descriptor.text().to_owned()),
        FromSession::Unregistered(name) => Said::Unregistered(name.into()),
        FromSession::Progressed(progressed) => {
            Said::Progressed { task: progressed.task, value: progressed.value.text().to_owned() }
        }
        FromSession::Wrote(wrote) => Said::Wrote {
            task: wrote.task,
            name: wrote.name.into(),
            content_type: wrote.content_type.into(),
            base64: wrote.base64.into(),
        },
    })
}

fn owned_outcome(outcome: TaskOutcome<'_>) -> Outcome {
    match outcome {
        TaskOutcome::Value(Valued { type_name, json, bytes }) => Outcome::Value {
            type_name: type_name.into(),
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX).max(json.len()),
            json: json.into(),
        },
        TaskOutcome::Nothing => Outcome::Nothing,
        TaskOutcome::Output(json) => Outcome::Output(json.into()),
        TaskOutcome::Failed(TaskFailed { why, message, stack, kind, code, details }) => {
            Outcome::Failed(Failed {
                why,
                message: message.into(),
                stack: stack.map(Into::into),
                kind: kind.map(Into::into),
                code: code.map(Into::into),
                details: details.map(Into::into),
            })
        }
    }
}

const fn loss(exit: Exit) -> Loss {
    match exit {
        Exit::OutOfMemory => Loss::Memory,
        Exit::Ended
        | Exit::Crashed { .. }
        | Exit::Violation
        | Exit::Unruly
        | Exit::Killed
        | Exit::KilledFromOutside
        | Exit::Lost => Loss::Broken,
    }
}
