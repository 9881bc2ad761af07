//! The outcome of an execution at a terminal, as `airlock run` reports it.

use crate::{VerbExit, print};
use client::{AirlockClient, Error, EventKind, EventOutcome, ExecutionRef};
use futures_util::StreamExt as _;
use lifecycle::{LogLevel, Seq};
use std::pin::pin;

/// Prints a finished execution: its output, then its value or its error.
pub(crate) async fn print_finished(
    client: &AirlockClient,
    id: ExecutionRef,
) -> Result<VerbExit, Error> {
    follow_to_end(client, id, true).await
}

/// Returns the exit of an execution, for scripts; nothing is printed.
pub(crate) async fn exit_of(client: &AirlockClient, id: ExecutionRef) -> Result<VerbExit, Error> {
    follow_to_end(client, id, false).await
}

async fn follow_to_end(
    client: &AirlockClient,
    id: ExecutionRef,
    is_told: bool,
) -> Result<VerbExit, Error> {
    // The journal and not the reply: it has emitted values, and the code of a failure.
    let mut events = pin!(client.follow(id, Seq(0)));
    let mut n_declined = 0;
    while let Some(event) = events.next().await {
        let happened = event?.happened;
        n_declined += u32::from(is_no(&happened));
        match &happened {
            EventKind::Log { level, line } if is_told => print::log(*level, line),
            EventKind::Emitted { item } if is_told => print::log(LogLevel::Log, item.as_text()),
            EventKind::Finished { ended, .. } => {
                if is_told {
                    print_outcome(ended);
                }
                return Ok(exit(ended, n_declined));
            }
            EventKind::Started { .. }
            | EventKind::Prepared
            | EventKind::Log { .. }
            | EventKind::Emitted { .. }
            | EventKind::Call { .. }
            | EventKind::Question { .. }
            | EventKind::Answer { .. }
            | EventKind::Deferred { .. }
            | EventKind::Admitted { .. }
            | EventKind::Dispatched { .. }
            | EventKind::Progress { .. }
            | EventKind::Settled { .. }
            | EventKind::TimerSet { .. }
            | EventKind::TimerCleared { .. }
            | EventKind::TimerFired { .. }
            | EventKind::Paused
            | EventKind::RecoveryFailed { .. }
            | EventKind::Parked
            | EventKind::LimitReached { .. }
            | EventKind::Other { .. } => {}
        }
    }
    Err(Error::Protocol("a journal without its end".into()))
}

fn print_outcome(ended: &EventOutcome) {
    match ended {
        EventOutcome::Completed { result } => result.iter().for_each(print::value),
        EventOutcome::Failed(failure) => print::failure(failure),
        EventOutcome::Cancelled { by } => {
            print::print_note(&format!("cancelled by {}", print::tamed(by)))
        }
        EventOutcome::Unknown => print::print_note("nobody knows how it ended"),
    }
}

/// Whether the event is a refusal of a call.
pub(crate) fn is_no(happened: &EventKind) -> bool {
    matches!(happened, EventKind::Answer { action, .. } if action == "decline")
}

/// The exit for an outcome.
pub(crate) const fn exit(ended: &EventOutcome, n_declined: u32) -> VerbExit {
    match ended {
        EventOutcome::Completed { .. } => VerbExit::Good,
        EventOutcome::Cancelled { .. } => VerbExit::Interrupted,
        EventOutcome::Unknown => VerbExit::Failed,
        EventOutcome::Failed(failure) => VerbExit::of_failure(failure.code, n_declined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{Failure, FailureCode};

    #[test]
    fn the_exit_code_tells_how_it_ended() {
        let failed = |code| EventOutcome::Failed(Failure::new(code, ""));
        let cases = [
            (EventOutcome::Completed { result: None }, 1, VerbExit::Good),
            (failed(FailureCode::Runtime), 0, VerbExit::Failed),
            (failed(FailureCode::Runtime), 1, VerbExit::Declined),
            (failed(FailureCode::Declined), 0, VerbExit::Declined),
            (failed(FailureCode::Timeout), 1, VerbExit::Limit),
            (failed(FailureCode::Internal), 0, VerbExit::Fault),
            (EventOutcome::Cancelled { by: "ann".into() }, 0, VerbExit::Interrupted),
        ];
        for (ended, n_declined, expected) in cases {
            assert_eq!(exit(&ended, n_declined), expected, "{ended:?}");
        }
    }
}
