//! What the engine ordered: an `execute`, kept beyond the line it came in.

use crate::convert;
use crate::failure;
use crate::link::{Inbox, Outbox};
use crate::plain;
use lifecycle::InputIndex;
use protocols::execbox::wire::{Airlock, Done, Execute, Failed};
use protocols::execbox::{FromRunner, ToRunner};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

/// One program to run.
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) memory_bytes: u64,
    pub(crate) airlock: Airlock,
    received: Instant,
}

/// What may be ordered.
pub(crate) enum Ordered {
    /// By our engine.
    Ours(Order),
    /// By a plain execbox host.
    Plain(plain::Order),
}

impl Ordered {
    /// Waits for the next one; `None` once the other side has closed the link. What belongs to an execution that is
    /// over is passed by.
    pub(crate) fn next(inbox: &mut Inbox) -> io::Result<Option<Self>> {
        while let Some(line) = inbox.line(|| {})? {
            if let Ok(ToRunner::Execute(execute)) = ToRunner::decode(line)
                && let Some(order) = Self::read(execute)
            {
                return Ok(Some(order));
            }
        }
        Ok(None)
    }

    fn read(execute: Execute<'_>) -> Option<Self> {
        let Execute { id, code, options, airlock: Some(airlock), .. } = execute else {
            return plain::Order::read(&execute).map(Self::Plain);
        };
        Some(Self::Ours(Order {
            id: id.into_owned(),
            code: code.into_owned(),
            memory_bytes: options.memory_limit_bytes,
            airlock,
            received: Instant::now(),
        }))
    }
}

impl Order {
    /// Which version of the guest's globals it wants.
    pub(crate) const fn prelude(&self) -> u32 {
        self.airlock.prelude
    }

    /// The allowance of processor time after so many inputs: a replay has its own.
    pub(crate) fn cpu_ms(&self, inputs: InputIndex) -> u64 {
        let Airlock { replay_inputs, replay_cpu_ms, cpu_ms, .. } = self.airlock;
        let replays = replay_inputs != InputIndex(0) && inputs <= replay_inputs;
        if replays { replay_cpu_ms } else { cpu_ms }
    }

    /// Says how it ended.
    pub(crate) fn done(&self, outcome: Result<Option<&str>, Failed<'_>>, outbox: &Outbox) {
        let duration_ms = u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX);
        outbox.send(&FromRunner::Done(Done {
            id: self.id.as_str().into(),
            outcome: outcome.map(|json| json.map(convert::raw)),
            duration_ms,
            logs: Vec::new(),
        }));
        outbox.flush();
    }

    /// Answers an order for guest globals that this build does not have.
    pub(crate) fn refuse_prelude(&self, stream: &Rc<UnixStream>) {
        let outbox = Outbox::unconnected();
        outbox.connect(Rc::clone(stream));
        let message = format!("no version {} of the guest's globals", self.prelude());
        self.done(Err(failure::plain("internal", message)), &outbox);
    }
}
