//! Catalogue calls in progress: by the guest, as commands, as jobs.

use super::{ErrandResult, ReplSession, SessionTask};
use crate::call::{self, CallSaid, ReplToolCall};
use crate::messages;
use crate::repl_store::{JobView, JobWorker, PendingEntry, ended_view, millis};
use futures_util::StreamExt as _;
use lifecycle::{
    CallAdmission, ExecutionId, ExecutionOutcome, Failure, FailureCode, Json, ToolPath,
};
use protocols::execbox::session::{CallSettlement, SettleCall, SettledFailure, ToSession};
use protocols::execbox::wire::RawJson;
use protocols::hotrepl::outbound::envelope;
use protocols::hotrepl::wire::{
    Artifacts, CommandResult, ErrorEnvelope, ErrorKind, FromServer, JobAccepted, JobState, Status,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Maximum number of calls that a session may have in progress: each holds a runner until its tool answers.
const CALLS_MAX: usize = 64;

/// A call in progress.
pub(super) struct PendingToolCall {
    execution: ExecutionId,
    begun: CancellationToken,
    purpose: CallPurpose,
    started: Instant,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    asked_since: Option<Instant>,
}

enum CallPurpose {
    /// The guest called a tool, for a task or for none.
    Guest { call: u32, task: u64 },
    /// A client called it as a command.
    Command { id: String, client: u64, name: String },
    /// A client started it as a job.
    Job { job: String, owed: PendingEntry },
}

/// A command that is a catalogue tool, as a client called it.
pub(super) struct ToolCalled {
    pub(super) id: String,
    /// The command's name, which may differ from the tool's.
    pub(super) name: String,
    pub(super) tool: ToolPath,
    /// The arguments as JSON text.
    pub(super) args: String,
    pub(super) is_job: bool,
    pub(super) timeout: Option<Duration>,
}

impl PendingToolCall {
    /// When the call times out; never while a person is asked.
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.asked_since.is_none())
    }
}

impl ReplSession {
    /// Starts a tool call of the guest.
    pub(super) fn guest_calls(&mut self, task: u64, call: u32, tool: &str, args: String) {
        let refused =
            |why: &str| ExecutionOutcome::Failed(Failure::new(FailureCode::LimitExceeded, why));
        match ToolPath::parse(tool) {
            Ok(_) if self.pending.len() >= CALLS_MAX => {
                let why = format!("a session has at most {CALLS_MAX} calls under way");
                self.settle_call(call, &refused(&why));
            }
            Ok(tool) => {
                let purpose = CallPurpose::Guest { call, task };
                self.dispatch(Uuid::now_v7(), (tool, args), purpose, None);
            }
            Err(why) => self.settle_call(call, &refused(&why.to_string())),
        }
    }

    /// Starts a call. The returned token is cancelled once the call has begun or can no longer begin.
    fn dispatch(
        &mut self,
        uuid: Uuid,
        (tool, args): (ToolPath, String),
        purpose: CallPurpose,
        timeout: Option<Duration>,
    ) -> CancellationToken {
        let execution = ExecutionId::from_uuid(uuid);
        let owed = match &purpose {
            CallPurpose::Job { job, owed } => Some((job.clone(), owed.clone())),
            CallPurpose::Guest { .. } | CallPurpose::Command { .. } => None,
        };
        let begun = CancellationToken::new();
        let caller = self.caller.clone();
        let call =
            ReplToolCall { execution, caller, tool, args, owed, timeout, begun: begun.clone() };
        self.n_calls += 1;
        let number = self.n_calls;
        let said = call::follow_call(Arc::clone(&self.setting.store), call);
        self.calls.push(said.map(move |said| (number, said)).boxed());
        let started = Instant::now();
        let pending = PendingToolCall {
            execution,
            begun: begun.clone(),
            purpose,
            started,
            timeout,
            deadline: timeout.map(|timeout| started + timeout),
            asked_since: None,
        };
        self.pending.insert(number, pending);
        begun
    }

    pub(super) fn hear_call(&mut self, number: u64, said: CallSaid) {
        match said {
            CallSaid::Asked(question) => self.call_asks(number, question),
            CallSaid::Answered => self.call_answered(number),
            CallSaid::Progressed(text) => self.call_progressed(number, text),
            CallSaid::Ended(outcome) => {
                self.call_answered(number);
                if let Some(pending) = self.pending.remove(&number) {
                    self.call_ended(pending, outcome);
                }
            }
        }
    }

    fn call_asks(&mut self, number: u64, question: Value) {
        let Some(pending) = self.pending.get_mut(&number) else { return };
        pending.asked_since.get_or_insert_with(Instant::now);
        if let CallPurpose::Job { job, .. } = &pending.purpose {
            let waits = json!({ "waitsFor": question });
            self.setting.store.job(job, |job| job.view.progress = Some(waits));
        }
    }

    fn call_progressed(&mut self, number: u64, text: String) {
        let Some(pending) = self.pending.get(&number) else { return };
        if let CallPurpose::Job { job, .. } = &pending.purpose {
            self.setting.store.job(job, |job| job.view.progress = Some(json!({ "said": text })));
        }
    }

    /// The time spent waiting for people is charged to no task.
    fn call_answered(&mut self, number: u64) {
        let Some(pending) = self.pending.get_mut(&number) else { return };
        let Some(since) = pending.asked_since.take() else { return };
        if let Some(deadline) = &mut pending.deadline {
            *deadline += since.elapsed();
        }
        match &pending.purpose {
            CallPurpose::Guest { task, .. } => {
                let task = *task;
                self.give_back(task, since);
            }
            CallPurpose::Job { job, .. } => {
                self.setting.store.job(job, |job| job.view.progress = None);
            }
            CallPurpose::Command { .. } => {}
        }
    }

    /// Returns the waiting time to the task that waited; if the calling task is over, to those that may have waited
    /// for the call.
    fn give_back(&mut self, task: u64, asked_since: Instant) {
        let is_open = self.tasks.contains_key(&task);
        let (now, waited) = (Instant::now(), self.tasks.iter_mut());
        for (_, open) in waited.filter(|(id, _)| !is_open || **id == task) {
            let since = asked_since.max(open.started);
            open.deadline = open.deadline.map(|deadline| deadline + (now - since));
        }
    }

    /// Whether a task may be waiting for a person: by its own call, or by a call of a task that is over.
    pub(super) fn is_asking(&self, task: u64) -> bool {
        self.pending.values().filter(|it| it.asked_since.is_some()).any(|it| match it.purpose {
            CallPurpose::Guest { task: of, .. } => of == task || !self.tasks.contains_key(&of),
            CallPurpose::Command { .. } | CallPurpose::Job { .. } => false,
        })
    }

    fn call_ended(&mut self, pending: PendingToolCall, outcome: ExecutionOutcome) {
        let duration_ms = millis(pending.started.elapsed());
        match pending.purpose {
            CallPurpose::Guest { call, .. } => self.settle_call(call, &outcome),
            CallPurpose::Command { id, client, name } => {
                let result = messages::output_of(outcome);
                self.note_command(&id, &name, duration_ms, result.as_ref().err());
                let frame = command_result(id, result, Artifacts::new(), duration_ms);
                self.send_answer(client, &frame);
            }
            CallPurpose::Job { job, owed } => {
                self.catalogue_job_ended(job, &owed, ended_view(outcome));
            }
        }
    }

    fn catalogue_job_ended(&mut self, job: String, owed: &PendingEntry, view: JobView) {
        let store = Arc::clone(&self.setting.store);
        let Some(view) = store.end_job(&job, view) else { return };
        let entry = owed.entry(view.duration_ms, view.error.as_ref(), store.timestamp());
        let noted = store.append_entry(&owed.book, &entry, Some(&job));
        self.noted = Some(noted.clone());
        self.errands.push(Box::pin(async move {
            noted.await;
            store.clear_pending(&job).await;
            ErrandResult::Nothing
        }));
    }

    /// Passes the result of a call to the guest.
    fn settle_call(&mut self, call: u32, outcome: &ExecutionOutcome) {
        let outcome = match outcome {
            ExecutionOutcome::Completed { value } => {
                CallSettlement::Returned(value.as_ref().map(RawJson::from))
            }
            ExecutionOutcome::Failed(failure) => CallSettlement::Failed(SettledFailure {
                code: code_name(failure).into(),
                message: failure.message.as_str().into(),
                details: failure.details.as_ref().map(RawJson::from),
            }),
            ExecutionOutcome::Cancelled { .. } => CallSettlement::Failed(SettledFailure {
                code: "question_cancelled".into(),
                message: "The call was cancelled.".into(),
                details: None,
            }),
        };
        if self.evaluator.is_alive() {
            let now = self.now();
            self.evaluator.send_message(&ToSession::Settle(SettleCall { call, outcome, now }));
        }
    }

    /// A task is over: no task waits for its calls any more.
    pub(super) fn abandon_calls_of(&mut self, task: u64) {
        let is_its = |pending: &PendingToolCall| matches!(pending.purpose, CallPurpose::Guest { task: of, .. } if of == task);
        let calls: Vec<u64> =
            self.pending.iter().filter(|(_, it)| is_its(it)).map(|(call, _)| *call).collect();
        for call in calls {
            if let Some(pending) = self.pending.remove(&call) {
                self.abandon(&pending);
            }
        }
    }

    /// The evaluator is gone, and every task that could wait for these calls.
    pub(super) fn abandon_guest_calls(&mut self) {
        let is_guests = |it: &PendingToolCall| matches!(it.purpose, CallPurpose::Guest { .. });
        let calls: Vec<u64> =
            self.pending.iter().filter(|(_, it)| is_guests(it)).map(|(call, _)| *call).collect();
        for call in calls {
            if let Some(pending) = self.pending.remove(&call) {
                self.abandon(&pending);
            }
        }
    }

    /// Ends a call, unless it was started to survive its session.
    pub(super) fn abandon(&self, pending: &PendingToolCall) {
        if matches!(pending.purpose, CallPurpose::Job { .. }) {
            return;
        }
        self.cancel_execution(pending.execution, pending.begun.clone());
    }

    /// Ends the calls that have timed out.
    pub(super) fn end_late_calls(&mut self, now: Instant) {
        let is_late = |it: &PendingToolCall| it.alarm().is_some_and(|deadline| deadline <= now);
        let late: Vec<u64> =
            self.pending.iter().filter(|(_, it)| is_late(it)).map(|(call, _)| *call).collect();
        for call in late {
            let ms = self.pending.get(&call).and_then(|it| it.timeout).unwrap_or_default();
            let message = format!("The command timed out after {} ms.", ms.as_millis());
            self.end_call(call, envelope(ErrorKind::Timeout, "commandTimeout", message));
        }
    }

    /// Ends the call of a command that the client cancelled.
    pub(super) fn cancel_command_call(&mut self, target: &str, client: u64) {
        let is_it = |it: &PendingToolCall| matches!(&it.purpose, CallPurpose::Command { id, client: of, .. } if id == target && *of == client);
        let call = self.pending.iter().find(|(_, it)| is_it(it)).map(|(call, _)| *call);
        if let Some(call) = call {
            let message = "The command was cancelled.";
            self.end_call(call, envelope(ErrorKind::Cancelled, "commandCancelled", message));
        }
    }

    fn end_call(&mut self, call: u64, error: ErrorEnvelope) {
        let Some(pending) = self.pending.remove(&call) else { return };
        self.cancel_execution(pending.execution, pending.begun.clone());
        let duration_ms = millis(pending.started.elapsed());
        match pending.purpose {
            CallPurpose::Guest { .. } => {}
            CallPurpose::Command { id, client, name } => {
                self.note_command(&id, &name, duration_ms, Some(&error));
                let frame = command_result(id, Err(error), Artifacts::new(), duration_ms);
                self.send_answer(client, &frame);
            }
            CallPurpose::Job { job, owed } => {
                let view =
                    JobView { state: JobState::Failed, error: Some(error), ..JobView::running() };
                self.catalogue_job_ended(job, &owed, view);
            }
        }
    }

    pub(super) fn call_tool(&mut self, called: ToolCalled) {
        let ToolCalled { id, name, tool, args, is_job, timeout } = called;
        let since = Instant::now();
        let unfit = Json::parse(args.clone()).ok().and_then(|args| {
            match self.setting.store.engine.catalogue().admit_call(&tool, &args) {
                CallAdmission::Fit { .. }
                | CallAdmission::Told(_)
                | CallAdmission::Unavailable(_) => None,
                CallAdmission::Unfit(failure) => Some(messages::tool_failed(&failure)),
            }
        });
        if let Some(error) = unfit {
            let duration_ms = millis(since.elapsed());
            self.note_command(&id, &name, duration_ms, Some(&error));
            let frame = command_result(id, Err(error), Artifacts::new(), duration_ms);
            return self.send_to_client(&frame);
        }
        if self.pending.len() >= CALLS_MAX {
            return self.say_full(id);
        }
        let (uuid, client) = (Uuid::now_v7(), self.client_number());
        if !is_job {
            let purpose = CallPurpose::Command { id, client, name };
            self.dispatch(uuid, (tool, args), purpose, timeout);
            return;
        }
        if !self.has_room_for_job(&id) {
            return;
        }
        let job = uuid.simple().to_string();
        let owed = PendingEntry { book: self.book.clone(), id: id.clone(), name };
        let purpose = CallPurpose::Job { job: job.clone(), owed };
        let begun = self.dispatch(uuid, (tool, args), purpose, timeout);
        let doer = JobWorker::Execution(ExecutionId::from_uuid(uuid), begun.clone());
        self.setting.store.begin_job(&job, doer);
        self.errands.push(Box::pin(async move {
            // The client is answered only after the job has begun: otherwise a crash could make its job unknown.
            begun.cancelled().await;
            let accepted = JobAccepted { id, job_id: job, state: JobState::Running };
            ErrandResult::Answer { client, frame: Box::new(FromServer::JobAccepted(accepted)) }
        }));
    }

    /// The number of running jobs of this session, including those that it started before a restart.
    pub(super) fn n_jobs(&self) -> usize {
        let of_catalogue = self
            .pending
            .values()
            .filter(|it| matches!(it.purpose, CallPurpose::Job { .. }))
            .count();
        let is_job = |task: &&SessionTask| matches!(task.what, super::TaskKind::Job { .. });
        let of_guest = self.tasks.values().filter(is_job).count();
        of_catalogue + of_guest + self.setting.store.n_left_by(&self.book)
    }
}

/// Builds the answer to a finished command.
pub(super) fn command_result(
    id: String,
    result: Result<Value, ErrorEnvelope>,
    artifacts: Artifacts,
    duration_ms: u64,
) -> FromServer {
    let (status, output, error) = match result {
        Ok(output) => (Status::Ok, Some(output), None),
        Err(error) => (Status::Failed, None, Some(error)),
    };
    FromServer::CommandResult(CommandResult { id, status, output, artifacts, error, duration_ms })
}

/// The name of a failure's code.
fn code_name(failure: &Failure) -> String {
    let name = serde_json::to_value(failure.code).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
