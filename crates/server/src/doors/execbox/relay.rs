//! One channel: reads the messages of one host, writes answers, and runs the executions in between. Independent of
//! the transport.

use super::ChannelSandbox;
use super::host_messages::refuse;
use super::run::{ExecboxRun, HostFrames, RunEnd, SpareRunner};
use futures_util::future::select_all;
use protocols::execbox::wire::{Execute, RawJson};
use protocols::execbox::{HOST_MESSAGE_BYTES_MAX, ProviderNames, ToRunner, asks_to_multiplex};
use sandbox::RunnerMessage;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use transport::{CLOSE_TIME_MAX, CloseReason, IncomingMessage, MessageReader, MessageWriter};

/// Maximum number of concurrent executions of a multiplexing host. Each holds a process. Documented in
/// `docs/execbox.md`.
const RUNS_MAX: usize = 64;

/// Maximum number of spare runners of one channel: as many as a host commonly runs concurrently. More would waste
/// memory.
const SPARES_MAX: usize = 8;

/// Maximum number of bytes that a host has not read. Above this, neither it nor its programs are read.
const UNSENT_BYTES_MAX: usize = 32 << 20;

/// How long an idle channel retains its runner.
const SPARE_TIME_MAX: Duration = Duration::from_secs(30);

/// How often an idle channel checks whether others wait for memory.
const SPARE_LOOK: Duration = Duration::from_millis(250);

/// The error for a host that requests a second execution.
const BUSY: &str = "the runner already has an active execution";

/// Serves one host until it leaves, the connection fails or `stopping` is cancelled. Running executions are then
/// killed.
pub(super) async fn serve(
    sandbox: ChannelSandbox,
    mut reader: impl MessageReader,
    mut writer: impl MessageWriter,
    stopping: CancellationToken,
) {
    let mut channel = ExecboxChannel { sandbox, runs: Vec::new(), spares: Vec::new() };
    let mut out = HostFrames::new();
    loop {
        enqueue(&mut writer, &mut out);
        let unsent = writer.unsent().bytes;
        let is_full = unsent > UNSENT_BYTES_MAX;
        let alarm = channel.alarm();
        tokio::select! {
            () = stopping.cancelled() => break,
            sent = writer.flush(), if unsent > 0 => {
                if sent.is_err() { return }
            }
            received = reader.receive(), if !is_full => match received {
                Ok(IncomingMessage::Whole(message)) => channel.take(message, &mut out),
                Ok(IncomingMessage::Oversized { head, .. }) => {
                    channel.refuse_too_long(head, &mut out);
                }
                Ok(IncomingMessage::Pong(_)) => {}
                Err(_) => return,
            },
            (at, message) = next_of(&mut channel.runs), if !is_full && !channel.runs.is_empty() => {
                channel.handle(at, message, &mut out);
            }
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                channel.look_after(&mut out);
            }
        }
    }
    drop(channel);
    transport::close(&mut reader, &mut writer, Some(CloseReason::AWAY), CLOSE_TIME_MAX).await;
}

/// Queues lines for the host without their line breaks, which the transport adds.
fn enqueue(writer: &mut impl MessageWriter, out: &mut HostFrames) {
    for mut line in out.drain(..) {
        line.pop();
        if let Ok(text) = String::from_utf8(line) {
            writer.enqueue(text);
        }
    }
}

struct ExecboxChannel {
    sandbox: ChannelSandbox,
    /// At most one, unless the host multiplexes.
    runs: Vec<ExecboxRun>,
    /// Reused by later executions, the newest first: only the processes are reused, never the guests' state.
    spares: Vec<SpareRunner>,
}

impl ExecboxChannel {
    /// Handles a message of the host. Invalid messages are ignored, as execbox demands.
    fn take(&mut self, frame: &mut [u8], out: &mut HostFrames) {
        // Line breaks in JSON occur only between values; on the runner's link they would end the message.
        frame.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        match ToRunner::decode(frame) {
            Ok(ToRunner::Execute(execute)) => self.execute(&execute, frame, out),
            Ok(ToRunner::ToolResult(result)) => {
                if let Some(run) = self.runs.iter_mut().find(|run| run.made(&result.call_id)) {
                    run.settle_call(frame);
                }
            }
            Ok(ToRunner::Cancel(cancel)) => {
                let called = |run: &ExecboxRun| run.is_called(&cancel.id);
                if let Some(at) = self.runs.iter().position(called)
                    && let Some(end) = self.runs[at].cancel(out)
                {
                    self.end_runs(at, end);
                }
            }
            // Messages that only the engine sends to a runner.
            Ok(ToRunner::TimerFired(_) | ToRunner::Sync(_) | ToRunner::Session(_)) | Err(_) => {}
        }
    }

    fn execute(&mut self, execute: &Execute<'_>, frame: &[u8], out: &mut HostFrames) {
        if !are_manifests(execute.providers) {
            return;
        }
        let is_multiplexed = asks_to_multiplex(frame);
        if is_multiplexed && self.runs.len() >= RUNS_MAX {
            let message = format!("a channel has at most {RUNS_MAX} executions at a time");
            return refuse(&execute.id, &message, out);
        }
        let is_free = self.runs.is_empty()
            || (is_multiplexed && !self.runs.iter().any(|run| run.is_called(&execute.id)));
        let Some(id) = is_free.then(random_id).flatten() else {
            let message =
                if is_free { "the system has no randomness now; try again" } else { BUSY };
            return refuse(&execute.id, message, out);
        };
        // The channel itself is counted for its first run.
        let held = match &self.sandbox.account {
            Some(account) if self.runs.is_empty() => account.admit_program().map(|()| None),
            Some(account) => account.hold_runner().map(Some),
            None => Ok(None),
        };
        match held {
            Ok(held) => {
                let spare = self.fitting_spare(execute);
                let run = ExecboxRun::new(execute, id, spare, &self.sandbox);
                self.runs.push(run.counted(held));
            }
            Err(refused) => refuse(&execute.id, &refused.to_string(), out),
        }
    }

    fn handle(&mut self, at: usize, message: RunnerMessage, out: &mut HostFrames) {
        if let Some(end) = self.runs[at].handle(message, out) {
            self.end_runs(at, end);
        }
    }

    /// Takes the newest spare runner that has enough memory for the execution.
    fn fitting_spare(&mut self, execute: &Execute<'_>) -> Option<SpareRunner> {
        let at = self.spares.iter().rposition(|spare| spare.fits(execute))?;
        Some(self.spares.remove(at))
    }

    /// Ends an execution. Its runner goes to an execution that waits for one, or becomes a spare.
    fn end_runs(&mut self, at: usize, end: RunEnd) {
        let over = self.runs.swap_remove(at);
        if self.sandbox.sandbox.load().waiting > self.runs.iter().filter(|run| run.waits()).count()
        {
            return; // others wait for its memory
        }
        let spare = match end {
            RunEnd::KeepRunner => over.into_spare(),
            RunEnd::KillRunner => None,
        };
        let left = spare.and_then(|spare| {
            self.runs.iter_mut().try_fold(spare, |spare, run| run.take_over(spare))
        });
        if let Some(spare) = left {
            if self.spares.len() == SPARES_MAX {
                self.spares.remove(0);
            }
            self.spares.push(spare);
        }
    }

    fn alarm(&self) -> Option<Instant> {
        let spare = (!self.spares.is_empty()).then(|| Instant::now() + SPARE_LOOK);
        self.runs.iter().map(ExecboxRun::alarm).chain(spare).min()
    }

    /// Answers a message that is too long to be read, if its beginning identifies the request.
    fn refuse_too_long(&mut self, head: &[u8], out: &mut HostFrames) {
        let message = format!("a message has at most {HOST_MESSAGE_BYTES_MAX} bytes");
        let head = String::from_utf8_lossy(head);
        match member_of(&head, "type").as_deref() {
            Some("execute") => {
                if let Some(id) = member_of(&head, "id") {
                    refuse(&id, &message, out);
                }
            }
            Some("tool_result") => {
                let Some(call_id) = member_of(&head, "callId") else { return };
                if let Some(run) = self.runs.iter_mut().find(|run| run.made(&call_id)) {
                    run.fail_call(&call_id, &format!("the tool's result is not taken: {message}"));
                }
            }
            Some(_) | None => {}
        }
    }

    fn look_after(&mut self, out: &mut HostFrames) {
        let now = Instant::now();
        let waiting = self.sandbox.sandbox.load().waiting;
        self.spares.retain(|spare| waiting == 0 && now - spare.since <= SPARE_TIME_MAX);
        let mut at = 0;
        while at < self.runs.len() {
            match self.runs[at].look_after(now, out) {
                Some(end) => self.end_runs(at, end),
                None => at += 1,
            }
        }
    }
}

/// Returns the next message of any of the runs, and the index of the run.
async fn next_of(runs: &mut [ExecboxRun]) -> (usize, RunnerMessage) {
    let all = runs.iter_mut().map(|run| Box::pin(run.next()));
    let (message, at, _) = select_all(all).await;
    (at, message)
}

fn are_manifests(providers: RawJson<'_>) -> bool {
    ProviderNames::read_all(providers).is_ok()
}

/// Returns a text member near the beginning of a message that is not read as a whole.
fn member_of(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!("\"{name}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    values.next()?.ok()
}

/// Creates a random execution id, so that call ids cannot be guessed.
fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::member_of;

    #[test]
    fn what_a_message_is_about_is_found_in_its_beginning() {
        let head = r#"{"type": "tool_result","callId":"a.1","ok":true,"result":"xxxx"#;
        let found = |name| member_of(head, name);
        assert_eq!(found("type").as_deref(), Some("tool_result"));
        assert_eq!(found("callId").as_deref(), Some("a.1"));
        assert_eq!([found("result"), found("ok"), found("id")], [None, None, None]);
    }
}
