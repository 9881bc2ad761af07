//! Jobs: commands whose clients poll for the result. Any connection that knows a job's id may query it.

use super::commands::checked;
use super::{ErrandResult, ReplSession, SessionNotice, SessionTask, TaskKind};
use crate::JOBS_MAX;
use crate::messages::{self, StopReason};
use crate::redact;
use crate::repl_store::{JobView, JobWorker, PendingEntry, ReplStore, TaskFile, lost_job};
use lifecycle::{CallerName, ExecutionId};
use protocols::hotrepl::ValueProfile;
use protocols::hotrepl::outbound::{envelope, trouble};
use protocols::hotrepl::wire::{
    Artifacts, ErrorKind, FromServer, JobAccepted, JobCancelResult, JobResult, JobState,
    JobStatusResult, Status,
};
use sandbox::TaskResult;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A finished job of the guest, with its files.
pub(super) struct FinishedJob {
    job: String,
    id: String,
    name: String,
    view: JobView,
}

impl ReplSession {
    /// Whether one more job may run; if not, notifies the client.
    pub(super) fn has_room_for_job(&mut self, id: &str) -> bool {
        let has_room = self.n_jobs() < JOBS_MAX;
        if !has_room {
            let message = format!("At most {JOBS_MAX} jobs run at a time.");
            let error = envelope(ErrorKind::Busy, "jobConcurrencyLimit", message);
            let frame =
                super::calls::command_result(id.to_owned(), Err(error), Artifacts::new(), 0);
            self.send_to_client(&frame);
        }
        has_room
    }

    pub(super) fn job_status(&mut self, id: String, job: String) {
        if let Some(view) = self.setting.store.look_at_job(&job) {
            return self.send_to_client(&job_message(id, job, view));
        }
        if !self.may_send_errand(&id) {
            return;
        }
        let (store, client) = (Arc::clone(&self.setting.store), self.client_number());
        self.errands.push(Box::pin(async move {
            let frame = match store.look_up_job(&job).await {
                Some(view) => job_message(id, job, view),
                None => trouble(Some(id), unknown_job()),
            };
            ErrandResult::Answer { client, frame: Box::new(frame) }
        }));
    }

    pub(super) fn job_cancel(&mut self, id: String, job: String) {
        let job_id = (self.profile() == ValueProfile::Native).then(|| job.clone());
        let answer = |accepted, state| {
            FromServer::JobCancelResult(JobCancelResult {
                id: id.clone(),
                job_id: job_id.clone(),
                accepted,
                state,
            })
        };
        let store = Arc::clone(&self.setting.store);
        match store.job(&job, |job| (job.view.state, job.doer.clone())) {
            Some((JobState::Running, doer)) => {
                match doer {
                    JobWorker::Execution(execution, begun) => {
                        self.cancel_execution(execution, begun)
                    }
                    JobWorker::Guest(owner) => drop(owner.try_send(SessionNotice::CancelJob(job))),
                }
                self.send_to_client(&answer(true, JobState::Running));
            }
            Some((state, _)) => self.send_to_client(&answer(false, state)),
            None => {
                if !self.may_send_errand(&id) {
                    return;
                }
                let (caller, client) = (self.caller.clone(), self.client_number());
                let (taken, refused) = (answer(true, JobState::Running), answer);
                let states = [JobState::Done, JobState::Failed, JobState::Cancelled];
                let over = states.map(|state| (state, refused(false, state)));
                let id = id.clone();
                self.errands.push(Box::pin(async move {
                    let frame = match cancel_elsewhere(&store, &job, caller).await {
                        Some(JobState::Running) => taken,
                        Some(state) => over
                            .into_iter()
                            .find(|(over, _)| *over == state)
                            .map_or_else(|| trouble(None, unknown_job()), |(_, frame)| frame),
                        None => trouble(Some(id), unknown_job()),
                    };
                    ErrandResult::Answer { client, frame: Box::new(frame) }
                }));
            }
        }
    }

    pub(super) fn cancel_execution(&self, execution: ExecutionId, begun: CancellationToken) {
        let (engine, caller) = (self.setting.store.engine.clone(), self.caller.clone());
        self.setting.tasks.spawn(async move {
            // An execution that is cancelled before it has begun could no longer begin.
            begun.cancelled().await;
            // It may have ended already.
            let _ = engine.cancel(execution, caller).await;
        });
    }

    // ---- Jobs of the guest ----

    pub(super) fn begin_guest_job(
        &mut self,
        id: &str,
        name: &str,
        output_schema: Option<Value>,
        timeout: Option<Duration>,
    ) -> u64 {
        let job = Uuid::new_v4().simple().to_string();
        let what = TaskKind::Job { job: job.clone(), name: name.to_owned(), output_schema };
        let task = self.open_task(id, what, timeout);
        let store = Arc::clone(&self.setting.store);
        if let Some(own) = self.own.upgrade() {
            store.begin_job(&job, JobWorker::Guest(own));
        }
        let owed = self.owed(id, name);
        // Stored before the client is answered: after a crash the job must be found lost, not unknown.
        let accepted =
            JobAccepted { id: id.to_owned(), job_id: job.clone(), state: JobState::Running };
        let client = self.client_number();
        self.errands.push(Box::pin(async move {
            let written = async {
                store.record_pending(&job, &owed).await?;
                store.keep_job(&job, &JobView::running()).await
            };
            if let Err(error) = written.await {
                tracing::error!(%error, "could not record a job");
            }
            ErrandResult::Answer { client, frame: Box::new(FromServer::JobAccepted(accepted)) }
        }));
        task
    }

    pub(super) fn progressed(&mut self, task: u64, value: &str) {
        if let Some(SessionTask { what: TaskKind::Job { job, .. }, .. }) = self.tasks.get(&task)
            && value.len() <= protocols::hotrepl::RESULT_BYTES_MAX
            && let Ok(value) = serde_json::from_str::<Value>(&redact::value(value))
        {
            self.setting.store.job(job, |job| job.view.progress = Some(value));
        }
    }

    pub(super) fn cancel_guest_job(&mut self, job: &str) {
        let is_it =
            |task: &SessionTask| matches!(&task.what, TaskKind::Job { job: of, .. } if of == job);
        let task = self.tasks.iter().find(|(_, task)| is_it(task)).map(|(task, _)| *task);
        if let Some(task) = task {
            self.stop(task, StopReason::Cancelled);
        }
    }

    pub(super) fn guest_job_finished(&mut self, open: SessionTask, outcome: TaskResult) {
        let SessionTask { what, id, files, stop, .. } = open;
        let TaskKind::Job { job, name, output_schema } = what else { return };
        let outcome = self.explained(&name, outcome);
        let view = match checked(outcome, output_schema.as_ref(), stop, "job") {
            Ok(output) => {
                JobView { state: JobState::Done, output: Some(output), ..JobView::running() }
            }
            Err(error) => {
                let is_cancelled = error.kind == ErrorKind::Cancelled;
                let state = if is_cancelled { JobState::Cancelled } else { JobState::Failed };
                JobView { state, error: Some(error), ..JobView::running() }
            }
        };
        self.end_guest_job(FinishedJob { job, id, name, view }, files);
    }

    /// Stores a file that a job wrote before the job ends, because the job may end with this process.
    pub(super) fn keep_job_file(&mut self, job: String, file: TaskFile) {
        let store = Arc::clone(&self.setting.store);
        self.errands.push(Box::pin(async move {
            if let Some(artifacts) = file.store_file().await
                && let Err(error) = store.keep_job_files(&job, &artifacts).await
            {
                tracing::error!(%error, "could not record a job's file");
            }
            ErrandResult::Nothing
        }));
    }

    /// Ends a job, with the files that it wrote, regardless of its outcome.
    fn end_guest_job(&mut self, ended: FinishedJob, files: Vec<TaskFile>) {
        let store = Arc::clone(&self.setting.store);
        self.errands.push(Box::pin(async move {
            let mut ended = ended;
            (ended.view.artifacts, _) = TaskFile::keep_all(files).await;
            job_end(&store, ended).await
        }));
    }

    pub(super) fn guest_job_ended(&mut self, ended: FinishedJob) {
        let FinishedJob { job, id, name, view } = ended;
        tracing::debug!(job, "a job is over");
        let store = Arc::clone(&self.setting.store);
        let owed = self.owed(&id, &name);
        let entry = owed.entry(view.duration_ms, view.error.as_ref(), store.timestamp());
        let noted = store.append_entry(&owed.book, &entry, Some(&job));
        self.noted = Some(noted.clone());
        self.errands.push(Box::pin(async move {
            noted.await;
            store.clear_pending(&job).await;
            ErrandResult::Nothing
        }));
    }

    fn owed(&self, id: &str, name: &str) -> PendingEntry {
        PendingEntry { book: self.book.clone(), id: id.to_owned(), name: name.to_owned() }
    }

    pub(super) fn guest_job_lost(&mut self, open: SessionTask) {
        let SessionTask { what, id, files, stop, .. } = open;
        let TaskKind::Job { job, name, .. } = what else { return };
        let view = match stop {
            Some(StopReason::Cancelled) => {
                let error = messages::lost(stop, "job").with_details(json!({ "stateLost": true }));
                JobView { state: JobState::Cancelled, error: Some(error), ..JobView::running() }
            }
            Some(StopReason::Timeout(_)) => {
                let error = messages::lost(stop, "job").with_details(json!({ "stateLost": true }));
                JobView { state: JobState::Failed, error: Some(error), ..JobView::running() }
            }
            Some(StopReason::Reset) | None => lost_job(),
        };
        self.end_guest_job(FinishedJob { job, id, name, view }, files);
    }
}

/// Ends a job. Its end is stored before any client learns of it: after a crash it must not be found lost.
async fn job_end(store: &ReplStore, ended: FinishedJob) -> ErrandResult {
    let view = store.timed_job(&ended.job, ended.view);
    if let Err(error) = store.keep_job(&ended.job, &view).await {
        tracing::error!(%error, "could not record a job's outcome");
    }
    store.job_ended(&ended.job, view.clone());
    ErrandResult::Job(Box::new(FinishedJob { view, ..ended }))
}

/// Ends a job that another process started; returns its state.
async fn cancel_elsewhere(store: &ReplStore, job: &str, caller: CallerName) -> Option<JobState> {
    let view = store.look_up_job(job).await?;
    if view.state == JobState::Running {
        let execution = ExecutionId::from_uuid(Uuid::try_parse(job).ok()?);
        // It may have ended already.
        let _ = store.engine.cancel(execution, caller).await;
    }
    Some(view.state)
}

/// Describes a job as a frame.
fn job_message(id: String, job_id: String, view: JobView) -> FromServer {
    let JobView { state, progress, output, error, artifacts, duration_ms } = view;
    if state == JobState::Running {
        return FromServer::JobStatusResult(JobStatusResult {
            id,
            job_id,
            state,
            progress,
            error: None,
        });
    }
    let status = if state == JobState::Done { Status::Ok } else { Status::Failed };
    FromServer::JobResult(JobResult {
        id,
        job_id,
        state,
        status,
        output,
        artifacts,
        error,
        duration_ms,
    })
}

fn unknown_job() -> protocols::hotrepl::wire::ErrorEnvelope {
    envelope(ErrorKind::InvalidRequest, "unknownJob", "There is no job of this id.")
}
