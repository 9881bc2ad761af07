//! How an execution ended, seen from a terminal: as `airlock run` tells it.

use crate::{Exit, print};
use client::{Ended, Error, Happened, HttpClient, Id};
use futures_util::StreamExt as _;
use lifecycle::{LogLevel, Seq};
use std::pin::pin;

/// Tells an execution that is over: what it printed, then its value or why it has none.
pub(crate) async fn tell(client: &HttpClient, id: Id) -> Result<Exit, Error> {
    hear(client, id, true).await
}

/// How it ended, for scripts; nothing is printed.
pub(crate) async fn exit_of(client: &HttpClient, id: Id) -> Result<Exit, Error> {
    hear(client, id, false).await
}

async fn hear(client: &HttpClient, id: Id, is_told: bool) -> Result<Exit, Error> {
    // The journal and not the envelope: it has what was emitted, and the kind of a failure.
    let mut events = pin!(client.follow(id, Seq(0)));
    let mut n_declined = 0;
    while let Some(event) = events.next().await {
        let happened = event?.happened;
        n_declined += u32::from(is_no(&happened));
        match &happened {
            Happened::Log { level, line } if is_told => print::log(*level, line),
            Happened::Emitted { item } if is_told => print::log(LogLevel::Log, item.text()),
            Happened::Finished { ended, .. } => {
                if is_told {
                    say(ended);
                }
                return Ok(exit(ended, n_declined));
            }
            Happened::Started { .. }
            | Happened::Prepared
            | Happened::Log { .. }
            | Happened::Emitted { .. }
            | Happened::Call { .. }
            | Happened::Question { .. }
            | Happened::Answer { .. }
            | Happened::Deferred { .. }
            | Happened::Admitted { .. }
            | Happened::Dispatched { .. }
            | Happened::Progress { .. }
            | Happened::Settled { .. }
            | Happened::TimerSet { .. }
            | Happened::TimerCleared { .. }
            | Happened::TimerFired { .. }
            | Happened::Paused
            | Happened::RecoveryFailed { .. }
            | Happened::Parked
            | Happened::LimitReached { .. }
            | Happened::Other { .. } => {}
        }
    }
    Err(Error::Protocol("a journal without its end".into()))
}

fn say(ended: &Ended) {
    match ended {
        Ended::Completed { result } => result.iter().for_each(print::value),
        Ended::Failed(failure) => print::failure(failure),
        Ended::Cancelled { by } => print::note(&format!("cancelled by {}", print::tamed(by))),
        Ended::Unknown => print::note("nobody knows how it ended"),
    }
}

/// Whether somebody refused a call.
pub(crate) fn is_no(happened: &Happened) -> bool {
    matches!(happened, Happened::Answer { action, .. } if action == "decline")
}

/// What a script goes by.
pub(crate) const fn exit(ended: &Ended, n_declined: u32) -> Exit {
    match ended {
        Ended::Completed { .. } => Exit::Good,
        Ended::Cancelled { .. } => Exit::Interrupted,
        Ended::Unknown => Exit::Failed,
        Ended::Failed(failure) => Exit::of_failure(failure.code, n_declined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{Failure, FailureCode};

    #[test]
    fn the_exit_code_tells_how_it_ended() {
        let failed = |code| Ended::Failed(Failure::new(code, ""));
        let cases = [
            (Ended::Completed { result: None }, 1, Exit::Good),
            (failed(FailureCode::Runtime), 0, Exit::Failed),
            (failed(FailureCode::Runtime), 1, Exit::Declined),
            (failed(FailureCode::Declined), 0, Exit::Declined),
            (failed(FailureCode::Timeout), 1, Exit::Limit),
            (failed(FailureCode::Internal), 0, Exit::Fault),
            (Ended::Cancelled { by: "ann".into() }, 0, Exit::Interrupted),
        ];
        for (ended, n_declined, expected) in cases {
            assert_eq!(exit(&ended, n_declined), expected, "{ended:?}");
        }
    }
}
