//! Replays a journal in a sandbox, without tools, people or a store: only what was recorded is available.

use super::program_runner::{ProgramRunner, ReplayStart};
use crate::fault::Fault;
use lifecycle::{
    ArgumentsDigest, CallId, CallOutcome, Entry, Event, ExecutionOutcome, Failure, InputIndex,
    Json, LogLevel, OutputMark, Seq, State, Timestamp, ToolPath,
};
use sandbox::{LeaseDemand, ProgramFailure, RunnerLoss, RunnerMessage, Sandbox};
use std::time::Duration;

/// Maximum time of a replay: it repeats without pause what took tools and people much longer.
const REPLAY_TIME_MAX: Duration = Duration::from_secs(120);

/// The result of a replay.
#[derive(Debug, Clone)]
pub struct ReplayOutcome {
    /// The state at the entry where it stopped.
    pub state: State,
    /// That entry.
    pub last: Seq,
    /// What the program printed, in order.
    pub printed: Vec<(LogLevel, String)>,
    /// What it emitted, in order.
    pub emitted: Vec<Json>,
    /// How it ended, if it ended by itself.
    pub ended: Option<Result<Option<Json>, Failure>>,
    /// Where it diverged from the journal, if it did.
    pub strayed: Option<String>,
}

/// Replays the program of a journal, up to the entry `until` or to its end. Calls are answered from the
/// journal; no tool is ever called.
pub async fn replay(
    sandbox: &Sandbox,
    entries: &[Entry],
    until: Option<Seq>,
) -> Result<ReplayOutcome, Fault> {
    let upto: Vec<&Entry> =
        entries.iter().filter(|entry| until.is_none_or(|until| entry.seq <= until)).collect();
    let mut state = State::default();
    for entry in &upto {
        state.apply(entry.at, &entry.event);
    }
    let last = upto.last().map_or(Seq(0), |entry| entry.seq);
    let mut replay = ReplayRun {
        told: ReplayOutcome {
            state,
            last,
            printed: vec![],
            emitted: vec![],
            ended: None,
            strayed: None,
        },
    };
    if replay.told.state.prepared.is_none() && !replay.ends_by_itself() {
        return Ok(replay.told); // it had not begun
    }
    match tokio::time::timeout(REPLAY_TIME_MAX, replay.run(sandbox, &upto)).await {
        Ok(done) => done?,
        Err(_) => replay.stray("its replay, which takes too long".into()),
    }
    replay.compare_ends();
    Ok(replay.told)
}

struct ReplayRun {
    told: ReplayOutcome,
}

impl ReplayRun {
    async fn run(&mut self, sandbox: &Sandbox, entries: &[&Entry]) -> Result<(), Fault> {
        let memory_bytes = self.told.state.limits().memory_bytes_max;
        let demand = LeaseDemand { memory_bytes, ..LeaseDemand::default() };
        let lease = sandbox.lease(demand).await;
        let lease = lease.map_err(|error| Fault::new(&error, error.to_string()))?;
        let inputs: Vec<_> = entries.iter().filter(|entry| was_delivered(&entry.event)).collect();
        let n_inputs = InputIndex(u32::try_from(inputs.len()).unwrap_or(u32::MAX));
        let began = self.told.state.origin.as_ref().map_or(Timestamp(0), |origin| origin.at);
        let resumption = ReplayStart { began, inputs: n_inputs, cpu_spent_ms: 0 };
        let Some(mut runner) = ProgramRunner::start(lease, &self.told.state, resumption) else {
            return Ok(());
        };
        for entry in inputs {
            if let Some(input) = entry.event.input() {
                runner.deliver(runner.delivered().next(), input, entry.at);
            }
        }
        runner.ask_when_restored();
        while self.told.strayed.is_none() && self.told.ended.is_none() {
            for message in runner.next_messages().await {
                if self.handle_message(message) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Handles one message of the runner. True if no further recorded message can follow.
    fn handle_message(&mut self, message: RunnerMessage) -> bool {
        match message {
            RunnerMessage::Started(Some(prepared)) => {
                let state = &self.told.state;
                if let (Some(origin), Some(known)) = (&state.origin, &state.prepared)
                    && known.program_text(&origin.program) != prepared.program_text(&origin.program)
                {
                    self.stray("the prepared program".into());
                }
            }
            RunnerMessage::Logged { mark, level, line, exact: _ } => {
                if self.is_recorded(mark, ArgumentsDigest::from_text(&line)) {
                    self.told.printed.push((level, line));
                }
            }
            RunnerMessage::Emitted { mark, item } => {
                if self.is_recorded(mark, item.digest()) {
                    self.told.emitted.push(item);
                }
            }
            RunnerMessage::ToolCalled { call, tool, args, line: _ } => {
                self.called(call, &tool, &args);
            }
            RunnerMessage::Synced => return !self.ends_by_itself(),
            RunnerMessage::Done(result) => {
                let failure = |failure: ProgramFailure| failure.into_failure().0;
                self.told.ended = Some(result.map_err(failure));
            }
            RunnerMessage::Diverged(what) => self.stray(what),
            RunnerMessage::Lost(RunnerLoss::Malformed(what)) => self.stray(what.into()),
            RunnerMessage::Lost(RunnerLoss::Exited(exit)) => {
                self.stray(format!("the end of its sandbox ({exit:?})"));
            }
            RunnerMessage::Lost(loss) => self.stray(loss.failure().message),
            RunnerMessage::TimerSet { .. }
            | RunnerMessage::TimerCleared { .. }
            | RunnerMessage::Idle(_)
            | RunnerMessage::Counted(_) => {}
            RunnerMessage::Leased
            | RunnerMessage::Started(None)
            | RunnerMessage::HostToolCalled(_)
            | RunnerMessage::TimersChanged
            | RunnerMessage::TooManyTimers
            | RunnerMessage::Session(_) => self.stray("a message of another link".into()),
        }
        false
    }

    /// Whether an output is in the journal; a different one is a divergence. Output after the last recorded one
    /// was never recorded, or comes after the entry where the replay stops.
    fn is_recorded(&mut self, mark: OutputMark, digest: ArgumentsDigest) -> bool {
        let outputs = &self.told.state.outputs;
        if outputs.last().is_none_or(|(newest, _)| mark > *newest) {
            return false;
        }
        let found = outputs.binary_search_by_key(&mark, |(mark, _)| *mark);
        let is_same = found.is_ok_and(|at| outputs[at].1 == digest);
        if !is_same {
            self.stray(format!("output {} after input {}", mark.ordinal, mark.input));
        }
        is_same
    }

    fn called(&mut self, call: CallId, tool: &ToolPath, args: &Json) {
        let known = self.told.state.calls.get(&call);
        if let Some(known) = known
            && (known.tool != *tool || known.digest != args.digest())
        {
            let what = format!("call {call} ({})", known.tool);
            self.stray(what);
        }
    }

    fn stray(&mut self, what: String) {
        self.told.strayed.get_or_insert(what);
    }

    /// Whether the program came to its own end according to the journal.
    fn ends_by_itself(&self) -> bool {
        use lifecycle::FailureCode as Code;
        match &self.told.state.outcome {
            Some(ExecutionOutcome::Completed { .. }) => true,
            Some(ExecutionOutcome::Failed(failure)) => !matches!(
                failure.code,
                Code::Timeout | Code::MemoryLimit | Code::LimitExceeded | Code::Internal
            ),
            Some(ExecutionOutcome::Cancelled { .. }) | None => false,
        }
    }

    fn compare_ends(&mut self) {
        let is_same = match (&self.told.state.outcome, &self.told.ended) {
            (Some(ExecutionOutcome::Completed { value }), Some(Ok(ended))) => value == ended,
            (Some(ExecutionOutcome::Failed(failure)), Some(Err(ended)))
                if self.ends_by_itself() =>
            {
                failure.message == ended.message
            }
            (Some(ExecutionOutcome::Completed { .. }), None | Some(Err(_))) => false,
            (Some(ExecutionOutcome::Failed(_)), None | Some(Ok(_))) => !self.ends_by_itself(),
            (Some(ExecutionOutcome::Failed(_) | ExecutionOutcome::Cancelled { .. }) | None, _) => {
                true
            }
        };
        if !is_same {
            self.stray("its end".into());
        }
    }
}

/// Inputs that the guest received. A call that is in doubt at the end was not delivered.
fn was_delivered(event: &Event) -> bool {
    let is_unknown = matches!(event, Event::CallSettled { outcome: CallOutcome::Unknown, .. });
    event.input().is_some() && !is_unknown
}
