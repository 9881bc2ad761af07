//! One execution over one channel: sends `execute`, runs the tools, and waits for `done` until the timeout.

use super::calls::{PendingToolCalls, ToolCallAnswer};
use super::channels::RunnerTransport;
use super::error::ExecboxFailure;
use super::execution::{ExecboxProgram, ExecuteResult};
use super::wire;
use futures_util::FutureExt as _;
use protocols::execbox::wire::{CallFailure, Cancel, Execute, RawJson, ToolResult};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX, ToRunner};
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use transport::{IncomingMessage, MessageReader, MessageWriter, ReceiveError};

/// The host's additional wait after the guest's timeout: a runner that observes the timeout always reports in time.
const BACKSTOP: Duration = Duration::from_millis(100);

/// Messages queued for a runner that reads slowly. Beyond it nothing more is read from the runner either.
const UNSENT_MAX: usize = 256;

/// Reserved for `cancel`, which must be sent however many answers wait.
const UNSENT_RESERVED: usize = 1;

/// Messages that are searched for a result when the time is up.
const UNREAD_MAX: usize = 256;

/// The error message for a runner that ended without a message.
const CLOSED: &str = "Transport closed unexpectedly";

/// A longer timeout counts as none: the clock could not represent its end.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One execution over one channel.
#[derive(Debug)]
pub struct HostSession<'t> {
    transport: &'t mut dyn RunnerTransport,
    id: String,
}

impl<'t> HostSession<'t> {
    /// Creates a session on a channel with an idle runner.
    pub fn new(transport: &'t mut dyn RunnerTransport) -> Self {
        Self { transport, id: uuid::Uuid::new_v4().to_string() }
    }

    /// Sets the execution's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Runs the program. A runner that does not stop when cancelled, or does not read the answers it asked for, is ended;
    /// after a timeout or an internal error the channel can only be passed to [`RunnerTransport::dispose`].
    pub async fn run(self, execution: &ExecboxProgram) -> ExecuteResult {
        let start = Instant::now();
        let failure = match converse(self.transport, &self.id, execution).await {
            RunEnding::Done { result, is_clean: true } => return result,
            RunEnding::Done { result, is_clean: false } => {
                // The next program would be written into the middle of a line.
                self.transport.terminate().await;
                return result;
            }
            RunEnding::Failed(failure) => failure,
            RunEnding::Overdue => {
                self.transport.terminate().await;
                ExecboxFailure::timeout()
            }
            RunEnding::Closed(unheard) => {
                let said = self.transport.last_words().await;
                let said = said.or_else(|| unheard.map(|error| error.to_string()));
                ExecboxFailure::internal(said.unwrap_or_else(|| CLOSED.to_owned()))
            }
        };
        let duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        ExecuteResult::failed(failure, duration_ms)
    }
}

/// How a conversation ended.
enum RunEnding {
    Done {
        result: ExecuteResult,
        /// Whether every message that was begun has been sent completely.
        is_clean: bool,
    },
    Failed(ExecboxFailure),
    /// The runner continued after `cancel`.
    Overdue,
    /// The runner closed the connection; perhaps it had stopped reading before.
    Closed(Option<io::Error>),
}

/// The phase of a conversation.
enum RunPhase {
    Running,
    /// `cancel` was sent.
    Cancelling,
    /// The runner stopped reading. It may have sent a message before that.
    Forsaken(io::Error),
}

async fn converse(
    transport: &mut dyn RunnerTransport,
    id: &str,
    execution: &ExecboxProgram,
) -> RunEnding {
    let execute = match execute_line(id, execution) {
        Ok(line) => line,
        Err(failure) => return RunEnding::Failed(failure),
    };
    let (mut reader, writer) = transport.halves();
    let (lines, unsent) = mpsc::channel(UNSENT_MAX);
    let time = execution.options.timeout().min(TIMEOUT_MAX);
    let talk = RunConversation {
        id,
        grace: execution.options.cancel_grace(),
        phase: RunPhase::Running,
        deadline: Instant::now() + time + BACKSTOP,
        calls: PendingToolCalls::new(&execution.providers),
        lines,
    };
    talk.run(execution, execute, &mut reader, write(writer, unsent)).await
}

/// One conversation. Dropping it drops the calls in flight.
struct RunConversation<'e> {
    id: &'e str,
    grace: Duration,
    phase: RunPhase,
    deadline: Instant,
    calls: PendingToolCalls<'e>,
    lines: mpsc::Sender<String>,
}

impl RunConversation<'_> {
    async fn run(
        mut self,
        execution: &ExecboxProgram,
        execute: String,
        reader: &mut impl MessageReader,
        writing: impl WriteFuture,
    ) -> RunEnding {
        if execution.cancel.is_cancelled() {
            self.cancel();
        } else {
            self.queue_message(execute);
        }
        let mut writing = pin!(writing);
        let mut is_heard = true;
        let mut alarm = pin!(sleep_until(self.deadline));
        loop {
            if alarm.deadline() != self.deadline {
                alarm.as_mut().reset(self.deadline);
            }
            let is_running = matches!(self.phase, RunPhase::Running);
            let has_room = self.lines.capacity() > UNSENT_RESERVED;
            // In this order: ends first, and answers before new calls, so that a flood of calls is bounded.
            tokio::select! { biased;
                () = &mut alarm => match self.expired() {
                    Some(ending) => match self.said_before(reader) {
                        Some(result) => break self.done(result, is_heard.then_some(writing)).await,
                        None => break ending,
                    },
                    None => self.cancel(),
                },
                () = execution.cancel.cancelled(), if is_running => self.cancel(),
                written = &mut writing, if is_heard => {
                    is_heard = false;
                    self.forsaken(written.err());
                }
                Some(answer) = self.calls.next(), if has_room => self.send_answer(&answer),
                received = reader.receive(), if has_room => match received {
                    Ok(message) => if let Some(result) = self.handle_message(&message) {
                        break self.done(result, is_heard.then_some(writing)).await;
                    },
                    Err(ended) => break self.ended(ended),
                },
            }
        }
    }

    /// Handles one message of the runner; returns `Some` for the last one. A message that is malformed or of another
    /// execution is ignored.
    fn handle_message(&mut self, message: &IncomingMessage<'_>) -> Option<ExecuteResult> {
        let IncomingMessage::Whole(line) = message else { return None };
        match FromRunner::decode(line) {
            Ok(FromRunner::Done(done)) if done.id == self.id => Some(ExecuteResult::from(done)),
            Ok(FromRunner::ToolCall(call)) => {
                self.calls.begin_call(&call);
                None
            }
            Ok(
                FromRunner::Done(_)
                | FromRunner::Started(_)
                | FromRunner::Log(_)
                | FromRunner::Emit(_)
                | FromRunner::TimerSet(_)
                | FromRunner::TimerCleared(_)
                | FromRunner::Idle(_)
                | FromRunner::Counted(_)
                | FromRunner::Synced(_)
                | FromRunner::Diverged(_),
            )
            | Err(_) => None,
        }
    }

    /// Cancels the run: signals the tools and the runner, which has a grace period to report its result.
    fn cancel(&mut self) {
        self.phase = RunPhase::Cancelling;
        self.deadline = Instant::now() + self.grace;
        self.calls.abort();
        self.queue_message(encoded(&ToRunner::Cancel(Cancel { id: self.id.into() })));
    }

    /// The timeout fired: cancels a running program, ends one that was already cancelled.
    fn expired(&mut self) -> Option<RunEnding> {
        match std::mem::replace(&mut self.phase, RunPhase::Cancelling) {
            RunPhase::Running => None,
            RunPhase::Cancelling => Some(RunEnding::Overdue),
            RunPhase::Forsaken(error) => {
                Some(RunEnding::Failed(ExecboxFailure::internal(error.to_string())))
            }
        }
    }

    /// Returns the result if it has already arrived: a delay of the host itself must not count against the runner.
    fn said_before(&mut self, reader: &mut impl MessageReader) -> Option<ExecuteResult> {
        for _ in 0..UNREAD_MAX {
            let message = reader.receive().now_or_never()?.ok()?;
            if let Some(result) = self.handle_message(&message) {
                return Some(result);
            }
        }
        None
    }

    /// The runner is done. Answers that are being written get a moment to finish: one that is cut off would leave the
    /// channel unusable, and the runner discards late ones.
    async fn done(self, result: ExecuteResult, writing: Option<impl WriteFuture>) -> RunEnding {
        let Self { grace, lines, calls, .. } = self;
        calls.abort();
        drop((calls, lines));
        let is_clean = match writing {
            Some(writing) => matches!(timeout(grace, writing).await, Ok(Ok(()))),
            None => false,
        };
        RunEnding::Done { result, is_clean }
    }

    /// Nothing can be sent any more. The messages that the runner sent before are read for a moment.
    fn forsaken(&mut self, error: Option<io::Error>) {
        if let (RunPhase::Running, Some(error)) = (&self.phase, error) {
            self.phase = RunPhase::Forsaken(error);
            self.deadline = Instant::now() + self.grace;
        }
    }

    fn ended(self, ended: ReceiveError) -> RunEnding {
        match (self.phase, ended) {
            (RunPhase::Cancelling, _) => RunEnding::Failed(ExecboxFailure::timeout()),
            (RunPhase::Forsaken(error), ReceiveError::Closed(_)) => RunEnding::Closed(Some(error)),
            (RunPhase::Running, ReceiveError::Closed(_)) => RunEnding::Closed(None),
            (
                RunPhase::Running | RunPhase::Forsaken(_),
                error @ (ReceiveError::Broken(_) | ReceiveError::TooLong(_)),
            ) => RunEnding::Failed(ExecboxFailure::internal(error.to_string())),
        }
    }

    fn send_answer(&self, answer: &ToolCallAnswer) {
        let outcome = match &answer.outcome {
            Ok(value) => Ok(Some(RawJson::from(value))),
            Err(failure) => Err(CallFailure {
                code: failure.code.as_str().into(),
                message: failure.message.as_str().into(),
                name: None,
                details: None,
            }),
        };
        let call_id = answer.call_id.as_str().into();
        self.queue_message(encoded(&ToRunner::ToolResult(ToolResult {
            call_id,
            outcome,
            at: None,
        })));
    }

    /// Queues a message. There is capacity: it was checked before anything was taken up.
    fn queue_message(&self, line: String) {
        // Refused only when the receiver is gone, and then it does not matter.
        drop(self.lines.try_send(line));
    }
}

/// The future that [`write`] returns.
trait WriteFuture: Future<Output = io::Result<()>> {}

impl<F: Future<Output = io::Result<()>>> WriteFuture for F {}

/// Writes queued messages until writing fails or the queue is closed.
async fn write(
    mut writer: &mut dyn MessageWriter,
    mut unsent: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(line) = unsent.recv().await {
        MessageWriter::send(&mut writer, line).await?;
    }
    Ok(())
}

fn execute_line(id: &str, execution: &ExecboxProgram) -> Result<String, ExecboxFailure> {
    let providers = wire::manifests(&execution.providers);
    let line = encoded(&ToRunner::Execute(Execute {
        id: id.into(),
        code: execution.code.as_str().into(),
        options: execution.options.wire(),
        providers: RawJson::from(&providers),
        airlock: None,
    }));
    if line.len() > HOST_MESSAGE_BYTES_MAX {
        let limit = format!("{} bytes, {HOST_MESSAGE_BYTES_MAX} at most", line.len());
        return Err(ExecboxFailure::internal(format!("program and tools have {limit}")));
    }
    Ok(line)
}

/// A message without its line break, which the transport adds.
fn encoded(message: &ToRunner<'_>) -> String {
    let mut line = vec![];
    message.encode(&mut line);
    line.pop();
    String::from_utf8(line).expect("a message is JSON")
}
