//! Why a runner was lost, what that means for its program, and the messages about it. All doors use these.

use crate::error::LeaseError;
use crate::exit::RunnerExit;
use lifecycle::{Failure, FailureCode};

/// Why a runner was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerLoss {
    /// There was no runner.
    NotLeased(LeaseError),
    /// The runner's process ended before its work did.
    Exited(RunnerExit),
    /// The runner sent a message that is not allowed; the text describes it.
    Malformed(&'static str),
    /// The runner received an order to stop and did not.
    Unresponsive,
    /// The guest used up its memory, and what it left behind still fills it.
    MemoryFull,
}

/// What a loss means for the program of the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossMeaning {
    /// The program did not cause it and continues in another runner.
    Restart,
    /// The same, but the program's behaviour may be why others kill its runner: attempts are counted.
    CountedRestart,
    /// The program used more memory than it may.
    OutOfMemory,
    /// The runner broke the protocol: the program, or its replay, is not to be trusted.
    BrokeRules(&'static str),
    /// The program fails.
    Failed,
}

impl RunnerLoss {
    /// What the loss means for the program.
    pub const fn meaning(&self) -> LossMeaning {
        match self {
            Self::Exited(RunnerExit::Lost) => LossMeaning::Restart,
            Self::Exited(RunnerExit::KilledFromOutside) => LossMeaning::CountedRestart,
            Self::Exited(RunnerExit::OutOfMemory) | Self::MemoryFull => LossMeaning::OutOfMemory,
            Self::Malformed(what) => LossMeaning::BrokeRules(what),
            Self::Exited(
                RunnerExit::Ended
                | RunnerExit::Crashed { .. }
                | RunnerExit::Violation
                | RunnerExit::Unruly
                | RunnerExit::Killed,
            )
            | Self::NotLeased(_)
            | Self::Unresponsive => LossMeaning::Failed,
        }
    }

    /// The failure of the program.
    pub fn failure(&self) -> Failure {
        let (code, sentence) = match self {
            Self::NotLeased(_) => {
                (FailureCode::Internal, "No sandbox could be started for the program.")
            }
            Self::Exited(RunnerExit::OutOfMemory) | Self::MemoryFull => {
                (FailureCode::MemoryLimit, "needed more memory than there is")
            }
            Self::Exited(RunnerExit::Crashed { signal }) => {
                let sentence = format!("The program crashed its sandbox (signal {signal}).");
                return Failure::new(FailureCode::Internal, sentence);
            }
            Self::Exited(RunnerExit::Violation) => {
                (FailureCode::Internal, "The program tried something its sandbox forbids.")
            }
            Self::Exited(RunnerExit::Unruly) | Self::Malformed(_) => {
                (FailureCode::Internal, "The program broke its sandbox's rules.")
            }
            Self::Exited(RunnerExit::Lost | RunnerExit::KilledFromOutside) => {
                (FailureCode::Internal, "The program's sandbox was lost; run it again.")
            }
            Self::Exited(RunnerExit::Ended | RunnerExit::Killed) => {
                (FailureCode::Internal, "The program's sandbox ended unexpectedly.")
            }
            Self::Unresponsive => (FailureCode::Timeout, "Execution timed out"),
        };
        Failure::new(code, sentence)
    }

    /// The failure of a replay, which did not exceed its memory the first time.
    pub fn replay_failure(&self) -> Failure {
        match self.meaning() {
            LossMeaning::OutOfMemory => {
                let sentence = "The system ran out of memory during the replay.";
                Failure::new(FailureCode::MemoryLimit, sentence)
            }
            LossMeaning::Restart
            | LossMeaning::CountedRestart
            | LossMeaning::BrokeRules(_)
            | LossMeaning::Failed => self.failure(),
        }
    }

    /// Code and message in the words of execbox, for a host.
    pub fn host_failure(&self) -> (&'static str, String) {
        let sentence = match self {
            Self::NotLeased(LeaseError::TooLarge { budget_bytes, .. }) => {
                format!("memoryLimitBytes is more than the {budget_bytes} bytes this runner has")
            }
            Self::NotLeased(LeaseError::Unavailable { .. }) => {
                "no sandbox could be started; try again".to_owned()
            }
            Self::NotLeased(LeaseError::Closed) => "the runner is shutting down".to_owned(),
            Self::Exited(_) | Self::Malformed(_) | Self::Unresponsive | Self::MemoryFull => {
                self.failure().message
            }
        };
        let code = match self {
            Self::Unresponsive => "timeout",
            Self::Exited(RunnerExit::OutOfMemory) | Self::MemoryFull => "memory_limit",
            Self::NotLeased(_) | Self::Exited(_) | Self::Malformed(_) => "internal_error",
        };
        (code, sentence)
    }

    /// The message to the client of a session whose runner is replaced.
    pub const fn session_message(&self) -> &'static str {
        match self {
            Self::NotLeased(_) => "The server has no room for an evaluator now.",
            Self::Unresponsive => {
                "The evaluator did not stop and was replaced; its definitions are lost."
            }
            Self::MemoryFull => {
                "The evaluator's memory was full and stayed so; it was replaced, and its definitions are lost."
            }
            Self::Exited(_) | Self::Malformed(_) => {
                "The evaluator broke and was replaced; its definitions are lost."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_reads_execbox_words() {
        let said = |loss: RunnerLoss| loss.host_failure();
        assert_eq!(
            said(RunnerLoss::Exited(RunnerExit::OutOfMemory)),
            ("memory_limit", "needed more memory than there is".to_owned())
        );
        assert_eq!(said(RunnerLoss::Unresponsive), ("timeout", "Execution timed out".to_owned()));
        let too_large = LeaseError::TooLarge { asked_bytes: 2, budget_bytes: 1 };
        let (code, sentence) = said(RunnerLoss::NotLeased(too_large));
        assert_eq!(code, "internal_error");
        assert_eq!(sentence, "memoryLimitBytes is more than the 1 bytes this runner has");
        assert_eq!(
            said(RunnerLoss::Malformed("a line")),
            ("internal_error", "The program broke its sandbox's rules.".to_owned())
        );
    }

    #[test]
    fn only_a_loss_that_the_program_cannot_cause_restarts_it() {
        let means = |exit| RunnerLoss::Exited(exit).meaning();
        assert_eq!(means(RunnerExit::Lost), LossMeaning::Restart);
        assert_eq!(means(RunnerExit::KilledFromOutside), LossMeaning::CountedRestart);
        assert_eq!(means(RunnerExit::OutOfMemory), LossMeaning::OutOfMemory);
        for exit in
            [RunnerExit::Ended, RunnerExit::Killed, RunnerExit::Violation, RunnerExit::Unruly]
        {
            assert_eq!(means(exit), LossMeaning::Failed);
        }
    }
}
