//! An order to run a program: an `execute`, owned so that it outlives the line it was read from.

mod hosted;

pub(crate) use hosted::{HostedOrder, now};

use crate::link::LinkReader;
use crate::prelude::PRELUDE_VERSION;
use lifecycle::{CallId, InputIndex, RandomSeed, Timestamp, UnawaitedCalls, ValueConvention};
use protocols::execbox::ToRunner;
use protocols::execbox::session::OpenSession;
use protocols::execbox::wire::{Airlock, Execute};
use std::io;
use std::time::Instant;

/// One program to run.
pub(crate) struct RunOrder {
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) memory_bytes: u64,
    pub(crate) manner: HostKind,
    pub(crate) received: Instant,
}

/// Who ordered the program. The differences between hosts are asked of the order; the turns of a guest are
/// the same.
pub(crate) enum HostKind {
    /// Our engine, which journals the program and may have it replayed.
    Journalled(Airlock),
    /// A plain execbox host, which has its own tools and stores nothing afterwards.
    Hosted(HostedOrder),
}

/// The purpose of a runner.
pub(crate) enum RunnerPurpose {
    /// One program.
    Program(RunOrder),
    /// A world in which many texts are evaluated, until the link closes.
    Session(OpenSession),
}

impl RunnerPurpose {
    /// Waits for the next order; `None` once the other side has closed the link. Messages for an execution
    /// that has ended are skipped.
    pub(crate) fn next(inbox: &mut LinkReader) -> io::Result<Option<Self>> {
        while let Some(line) = inbox.line(|| {})? {
            match ToRunner::decode(line) {
                Ok(ToRunner::Execute(execute)) => {
                    if let Some(order) = RunOrder::read(execute) {
                        return Ok(Some(Self::Program(order)));
                    }
                }
                Ok(ToRunner::Session(open)) => return Ok(Some(Self::Session(open))),
                Ok(
                    ToRunner::ToolResult(_)
                    | ToRunner::TimerFired(_)
                    | ToRunner::Sync(_)
                    | ToRunner::Cancel(_),
                )
                | Err(_) => {}
            }
        }
        Ok(None)
    }
}

impl RunOrder {
    /// `None` if a host's tools are invalid, or if required globals cannot be provided.
    fn read(execute: Execute<'_>) -> Option<Self> {
        let memory_bytes = execute.options.memory_limit_bytes;
        let manner = match execute.airlock {
            Some(airlock) => HostKind::Journalled(airlock),
            None => HostKind::Hosted(HostedOrder::read(&execute)?),
        };
        let (id, code) = (execute.id.into_owned(), execute.code.into_owned());
        Some(Self { id, code, memory_bytes, manner, received: Instant::now() })
    }

    pub(crate) const fn is_journalled(&self) -> bool {
        matches!(self.manner, HostKind::Journalled(_))
    }

    /// The version of the guest's globals for this program.
    pub(crate) const fn prelude(&self) -> u32 {
        match &self.manner {
            HostKind::Journalled(airlock) => airlock.prelude,
            HostKind::Hosted(_) => PRELUDE_VERSION,
        }
    }

    /// How many iterations a loop may make each time it is entered.
    pub(crate) const fn loop_rounds_max(&self) -> Option<u64> {
        match &self.manner {
            HostKind::Journalled(airlock) => airlock.loop_rounds_max,
            HostKind::Hosted(_) => None,
        }
    }

    /// How its programs refer to their tools: for hints.
    pub(crate) fn outside(&self) -> String {
        match &self.manner {
            HostKind::Journalled(_) => "tools.*".to_owned(),
            HostKind::Hosted(hosted) => {
                let names: Vec<_> =
                    hosted.providers.iter().map(|(name, _)| format!("{name}.*")).collect();
                names.join(", ")
            }
        }
    }

    /// Which value the program returns.
    pub(crate) const fn convention(&self) -> ValueConvention {
        match &self.manner {
            HostKind::Journalled(airlock) => airlock.convention,
            HostKind::Hosted(_) => ValueConvention::LastExpression,
        }
    }

    /// The guest's time until its first input, and the seed of its randomness.
    pub(crate) const fn start(&self) -> (Timestamp, RandomSeed) {
        match &self.manner {
            HostKind::Journalled(airlock) => (airlock.start_ms, airlock.seed),
            HostKind::Hosted(hosted) => (hosted.start, hosted.seed),
        }
    }

    /// Whether a settled program waits for calls that it does not await.
    pub(crate) fn waits_for_calls(&self) -> bool {
        match &self.manner {
            HostKind::Journalled(airlock) => airlock.unawaited == UnawaitedCalls::Wait,
            HostKind::Hosted(_) => false,
        }
    }

    /// The allowance of processor time after this many inputs: a replay has its own. A host's programs have
    /// a deadline instead.
    pub(crate) fn cpu_ms(&self, inputs: InputIndex) -> u64 {
        let HostKind::Journalled(airlock) = &self.manner else { return u64::MAX };
        let Airlock { replay_inputs, replay_cpu_ms, cpu_ms, .. } = *airlock;
        let replays = replay_inputs != InputIndex(0) && inputs <= replay_inputs;
        if replays { replay_cpu_ms } else { cpu_ms }
    }

    /// Whether a replay has further inputs after this many: until the next one, the program repeats what it
    /// did before.
    pub(crate) fn is_before_last_replayed(&self, inputs: InputIndex) -> bool {
        match &self.manner {
            HostKind::Journalled(airlock) => inputs < airlock.replay_inputs,
            HostKind::Hosted(_) => false,
        }
    }

    /// The call that a host refers to by this name.
    pub(crate) fn call_named(&self, name: &str) -> Option<CallId> {
        let ordinal = match &self.manner {
            HostKind::Journalled(_) => name,
            HostKind::Hosted(_) => name.strip_prefix(self.id.as_str())?.strip_prefix('.')?,
        };
        ordinal.parse().ok().map(CallId)
    }
}
