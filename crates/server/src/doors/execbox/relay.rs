//! One channel: messages of one host in, answers out, and the executions in between. Knows no transport.

use super::ChannelSandbox;
use super::run::{self, Frames, Heard, Over, Run, Spare};
use super::transport::{Incoming, Outgoing};
use futures_util::future::select_all;
use protocols::execbox::wire::{Execute, RawJson};
use protocols::execbox::{Provider, ToRunner, asks_to_multiplex};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Executions at a time for hosts that multiplex. Each holds a process.
const RUNS_MAX: usize = 64;

/// Answers a host has not taken. Beyond this neither it nor its programs are listened to.
const UNSENT_BYTES_MAX: usize = 32 << 20;

/// How long a channel that does nothing keeps its runner.
const SPARE_TIME_MAX: Duration = Duration::from_secs(30);

/// How often a channel that does nothing looks whether others wait for memory.
const SPARE_LOOK: Duration = Duration::from_millis(250);

/// What a host is told that asks for a second execution.
const BUSY: &str = "the runner already has an active execution";

/// Serves one host until it leaves, breaks off or `stopping`. Whatever runs then is killed.
pub(super) async fn serve(
    sandbox: ChannelSandbox,
    mut incoming: impl Incoming,
    mut outgoing: impl Outgoing,
    stopping: CancellationToken,
) {
    let mut channel = Channel { sandbox, runs: Vec::new(), spare: None };
    let mut out = Frames::new();
    loop {
        outgoing.enqueue(&mut out);
        let is_full = outgoing.unsent_bytes() > UNSENT_BYTES_MAX;
        let alarm = channel.alarm();
        tokio::select! {
            () = stopping.cancelled() => break,
            sent = outgoing.send(), if outgoing.unsent_bytes() > 0 => {
                if sent.is_err() { break }
            }
            frame = incoming.next(), if !is_full => match frame {
                Some(frame) => channel.take(frame, &mut out),
                None => break,
            },
            (at, heard) = next_of(&mut channel.runs), if !is_full && !channel.runs.is_empty() => {
                channel.on(at, heard, &mut out);
            }
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                channel.look_after(&mut out);
            }
        }
    }
}

struct Channel {
    sandbox: ChannelSandbox,
    /// One, unless the host multiplexes.
    runs: Vec<Run>,
    /// Reused by the next execution: the process, never the guest's world.
    spare: Option<Spare>,
}

impl Channel {
    /// A message of the host's. What is none is ignored, as execbox demands.
    fn take(&mut self, frame: &mut [u8], out: &mut Frames) {
        // Line breaks in JSON lie between values only; on the runner's link they would end the message.
        frame.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        match ToRunner::decode(frame) {
            Ok(ToRunner::Execute(execute)) => self.execute(&execute, frame, out),
            Ok(ToRunner::ToolResult(result)) => {
                if let Some(run) = self.runs.iter_mut().find(|run| run.made(&result.call_id)) {
                    run.settle(frame);
                }
            }
            Ok(ToRunner::Cancel(cancel)) => {
                let called = |run: &Run| run.is_called(&cancel.id);
                if let Some(at) = self.runs.iter().position(called)
                    && let Some(over) = self.runs[at].cancel(out)
                {
                    self.end(at, over);
                }
            }
            // What only our engine says to a runner.
            Ok(ToRunner::TimerFired(_) | ToRunner::Sync(_) | ToRunner::Session(_)) | Err(_) => {}
        }
    }

    fn execute(&mut self, execute: &Execute<'_>, frame: &[u8], out: &mut Frames) {
        if !are_manifests(execute.providers) {
            return;
        }
        let is_free = self.runs.is_empty()
            || (self.runs.len() < RUNS_MAX
                && asks_to_multiplex(frame)
                && !self.runs.iter().any(|run| run.is_called(&execute.id)));
        let Some(id) = is_free.then(random_id).flatten() else {
            let message =
                if is_free { "the system has no randomness now; try again" } else { BUSY };
            return run::refuse(&execute.id, message, out);
        };
        // The channel itself is counted for its first run.
        let held = match &self.sandbox.account {
            Some(account) if self.runs.is_empty() => account.admit_program().map(|()| None),
            Some(account) => account.hold_runner().map(Some),
            None => Ok(None),
        };
        match held {
            Ok(held) => {
                let run = Run::new(execute, id, self.spare.take(), &self.sandbox);
                self.runs.push(run.counted(held));
            }
            Err(refused) => run::refuse(&execute.id, &refused.to_string(), out),
        }
    }

    fn on(&mut self, at: usize, heard: Heard, out: &mut Frames) {
        if let Some(over) = self.runs[at].on(heard, out) {
            self.end(at, over);
        }
    }

    fn end(&mut self, at: usize, over: Over) {
        self.runs.swap_remove(at);
        if self.sandbox.sandbox.load().waiting == 0 {
            self.spare = over.spare.or_else(|| self.spare.take());
        }
    }

    fn alarm(&self) -> Option<Instant> {
        let spare = self.spare.as_ref().map(|_| Instant::now() + SPARE_LOOK);
        self.runs.iter().map(Run::alarm).chain(spare).min()
    }

    fn look_after(&mut self, out: &mut Frames) {
        let now = Instant::now();
        let waiting = self.sandbox.sandbox.load().waiting;
        self.spare.take_if(|spare| waiting > 0 || now - spare.since > SPARE_TIME_MAX);
        let mut at = 0;
        while at < self.runs.len() {
            match self.runs[at].look_after(now, out) {
                Some(over) => self.end(at, over),
                None => at += 1,
            }
        }
    }
}

/// What happens next, and in which of them.
async fn next_of(runs: &mut [Run]) -> (usize, Heard) {
    let all = runs.iter_mut().map(|run| Box::pin(run.next()));
    let (heard, at, _) = select_all(all).await;
    (at, heard)
}

fn are_manifests(providers: RawJson<'_>) -> bool {
    Provider::read_all(providers).is_ok()
}

/// Names an execution so that nobody can guess its calls.
fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_le_bytes(bytes)))
}
