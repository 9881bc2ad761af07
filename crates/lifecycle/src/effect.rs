//! The effects that an event requires. Their outcomes return as intents.

use crate::{CallId, Event, QuestionId, TimerId, Timestamp};

/// An effect to perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start the program in a runner.
    Launch,
    /// Dispatch a call to its tool.
    Dispatch(CallId),
    /// Wait for the source of a call.
    AwaitSource(CallId),
    /// Deliver the answer to the tool that asked.
    Tell(QuestionId),
    /// Deliver the newest input to the guest.
    Deliver,
    /// Wake the guest at a time.
    Arm(TimerId, Timestamp),
    /// Cancel a timer.
    Disarm(TimerId),
    /// Release the runner and cancel outstanding calls.
    Stop,
}

/// The effect that `event` requires.
pub const fn owe(event: &Event) -> Option<Effect> {
    match event {
        Event::Started { .. } | Event::Continued { .. } => Some(Effect::Launch),
        Event::CallDispatched { call, .. } => Some(Effect::Dispatch(*call)),
        Event::CallDeferred { call } => Some(Effect::AwaitSource(*call)),
        Event::CallAnswered { question, .. } => Some(Effect::Tell(*question)),
        Event::CallSettled { .. } | Event::TimerFired { .. } => Some(Effect::Deliver),
        Event::TimerSet { timer, due } => Some(Effect::Arm(*timer, *due)),
        Event::TimerCleared { timer } => Some(Effect::Disarm(*timer)),
        Event::Parked | Event::Finished { .. } => Some(Effect::Stop),
        Event::Prepared(_)
        | Event::Logged { .. }
        | Event::Emitted { .. }
        | Event::CallMade { .. }
        | Event::CallAsked(_)
        | Event::CallAdmitted { .. }
        | Event::CallProgressed { .. }
        | Event::Paused { .. }
        | Event::RecoveryFailed { .. }
        | Event::EntriesMayBeLost
        | Event::LimitReached { .. } => None,
    }
}
