//! Evals: one at a time, in order of arrival.

use super::{ReplSession, SessionTask, TaskKind};
use crate::messages::{self, StopReason};
use crate::redact;
use crate::repl_store::millis;
use crate::{EVAL_TIME, EVAL_TIME_MAX, QUEUED_MAX};
use protocols::execbox::session::{EvalOrder, ToSession};
use protocols::hotrepl::RESULT_BYTES_MAX;
use protocols::hotrepl::outbound::{carried, trouble};
use protocols::hotrepl::wire::{
    ErrorEnvelope, EvalError, EvalResult, FromServer, JournalEntry, JournalKind, ResetResult,
};
use sandbox::{TaskFailure, TaskResult};
use std::time::Duration;
use tokio::time::Instant;

/// How many bytes of an eval's code the journal stores.
const CODE_BYTES_MAX: usize = 1 << 10;

/// A queued eval.
pub(super) struct QueuedEval {
    id: String,
    code: String,
    timeout: Duration,
}

impl ReplSession {
    pub(super) fn eval(&mut self, id: String, code: String, timeout_ms: Option<u64>) {
        if self.queue.len() >= QUEUED_MAX {
            return self.say_full(id);
        }
        let timeout = timeout_ms.map_or(EVAL_TIME, Duration::from_millis).min(EVAL_TIME_MAX);
        self.queue.push_back(QueuedEval { id, code, timeout });
        self.pump();
    }

    /// Starts the next eval, unless one is in progress.
    pub(super) fn pump(&mut self) {
        while self.running_eval.is_none()
            && let Some(queued) = self.queue.pop_front()
        {
            match self.evaluator.admit_program() {
                Ok(()) => self.begin_eval(queued),
                Err(refused) => self
                    .send_to_client(&trouble(Some(queued.id), messages::quota_reached(&refused))),
            }
        }
    }

    fn begin_eval(&mut self, QueuedEval { id, code, timeout }: QueuedEval) {
        self.ensure_runner();
        let now = self.now();
        let task = self.open_task(&id, TaskKind::Eval { code: String::new() }, Some(timeout));
        self.running_eval = Some(task);
        let eval = EvalOrder { task, code: code.as_str().into(), now };
        self.evaluator.send_message(&ToSession::Eval(eval));
        if let Some(open) = self.tasks.get_mut(&task) {
            open.what = TaskKind::Eval { code };
        }
    }

    pub(super) fn print(&mut self, task: u64, line: &str) {
        if let Some(open) = self.tasks.get_mut(&task)
            && open.stdout.len() <= RESULT_BYTES_MAX
        {
            open.stdout.push_str(line);
            open.stdout.push('\n');
        }
    }

    pub(super) fn eval_ended(
        &mut self,
        task: u64,
        open: SessionTask,
        outcome: TaskResult,
        state_lost: bool,
    ) {
        if self.running_eval == Some(task) {
            self.running_eval = None;
        }
        let duration_ms = millis(open.started.elapsed());
        match outcome {
            TaskResult::Failed(failed) => {
                let error = messages::eval_failed(&failed, open.stop);
                self.eval_failed(open, error, Some(&failed), state_lost);
            }
            TaskResult::Value { type_name, json, bytes } => {
                let value = carried(json, bytes, self.profile());
                let result = EvalResult {
                    id: open.id.clone(),
                    has_value: true,
                    value: value.value,
                    value_type: Some(type_name),
                    stdout: stdout(&open.stdout),
                    duration_ms,
                    truncated: value.truncated,
                    truncated_bytes: value.truncated_bytes,
                };
                self.eval_done(&open, result);
            }
            TaskResult::Nothing | TaskResult::Output(_) => {
                let result = EvalResult {
                    id: open.id.clone(),
                    has_value: false,
                    value: None,
                    value_type: None,
                    stdout: stdout(&open.stdout),
                    duration_ms,
                    truncated: self.says_truncated(),
                    truncated_bytes: None,
                };
                self.eval_done(&open, result);
            }
        }
        self.pump();
    }

    /// Later revisions of the protocol always report whether a value was truncated.
    pub(super) fn says_truncated(&self) -> Option<bool> {
        (self.profile() == protocols::hotrepl::ValueProfile::Native).then_some(false)
    }

    fn eval_done(&mut self, open: &SessionTask, result: EvalResult) {
        self.note_eval(open, result.duration_ms, None);
        self.send_answer(open.client, &FromServer::EvalResult(result));
    }

    fn eval_failed(
        &mut self,
        open: SessionTask,
        error: ErrorEnvelope,
        failed: Option<&TaskFailure>,
        state_lost: bool,
    ) {
        let duration_ms = millis(open.started.elapsed());
        let printed = stdout(&open.stdout).unwrap_or_default();
        let details = messages::details(failed, &printed, duration_ms, state_lost);
        self.note_eval(&open, duration_ms, Some(&error));
        let error = error.with_details(details);
        self.send_answer(open.client, &FromServer::EvalError(EvalError { id: open.id, error }));
    }

    /// The evaluator is gone, and the eval with it.
    pub(super) fn eval_lost(&mut self, open: SessionTask) {
        let error = messages::lost(open.stop, "eval");
        // A client that requested a new evaluator knows that the old one is gone.
        let state_lost = open.stop != Some(StopReason::Reset);
        self.eval_failed(open, error, None, state_lost);
    }

    fn note_eval(&mut self, open: &SessionTask, duration_ms: u64, error: Option<&ErrorEnvelope>) {
        let TaskKind::Eval { code } = &open.what else { return };
        let entry = JournalEntry {
            id: open.id.clone(),
            kind: JournalKind::Eval,
            name: None,
            code: Some(redact::shortened(code, CODE_BYTES_MAX)),
            success: error.is_none(),
            duration_ms,
            error_kind: error.map(|error| error.kind),
            timestamp: self.setting.store.timestamp(),
        };
        self.record_eval(&entry);
    }

    pub(super) fn record_eval(&mut self, entry: &JournalEntry) {
        self.noted = Some(self.setting.store.append_entry(&self.book, entry, None));
    }

    pub(super) fn note_command(
        &mut self,
        id: &str,
        name: &str,
        duration_ms: u64,
        error: Option<&ErrorEnvelope>,
    ) {
        let entry = JournalEntry {
            id: id.to_owned(),
            kind: JournalKind::Command,
            name: Some(name.to_owned()),
            code: None,
            success: error.is_none(),
            duration_ms,
            error_kind: error.map(|error| error.kind),
            timestamp: self.setting.store.timestamp(),
        };
        self.record_eval(&entry);
    }

    /// Cancels an eval or a watch. It has no answer of its own; an unknown target is ignored.
    pub(super) fn cancel(&mut self, target: &str) {
        let client = self.client_number();
        if let Some(at) = self.queue.iter().position(|queued| queued.id == target) {
            let Some(queued) = self.queue.remove(at) else { return };
            return self.cancel_queued(queued.id, StopReason::Cancelled);
        }
        if self.watches.contains_key(target) {
            return self.end_watch(target, "The watch was cancelled.", "subscriptionCancelled");
        }
        let is_it = |task: &SessionTask| {
            task.id == target
                && task.client == client
                && matches!(task.what, TaskKind::Eval { .. } | TaskKind::Command { .. })
        };
        let task = self.tasks.iter().find(|(_, task)| is_it(task)).map(|(task, _)| *task);
        match task {
            Some(task) => self.stop(task, StopReason::Cancelled),
            None => self.cancel_command_call(target, client),
        }
    }

    fn cancel_queued(&mut self, id: String, stop: StopReason) {
        let error = messages::lost(Some(stop), "eval");
        self.send_to_client(&FromServer::EvalError(EvalError { id, error }));
    }

    /// Replaces the evaluator with a new one.
    pub(super) fn reset(&mut self, id: String) {
        let since = Instant::now();
        for queued in std::mem::take(&mut self.queue) {
            self.cancel_queued(queued.id, StopReason::Reset);
        }
        self.end_watches_with("Reset in progress.", "evalCancelled");
        self.forget_world(Some(StopReason::Reset));
        self.ensure_runner();
        self.note_command(&id, "reset", millis(since.elapsed()), None);
        self.send_to_client(&FromServer::ResetResult(ResetResult { id, success: true }));
    }
}

/// The printed output, if there is any.
fn stdout(printed: &str) -> Option<String> {
    (!printed.is_empty()).then(|| redact::printed(printed))
}
