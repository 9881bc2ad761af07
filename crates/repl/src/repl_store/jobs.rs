//! Jobs as polling clients see them: in memory while they run, and stored for later queries.

use super::{ReplStore, millis};
use crate::messages;
use crate::session::SessionNotice;
use lifecycle::{ExecutionId, ExecutionOutcome, Timestamp};
use protocols::hotrepl::outbound::envelope;
use protocols::hotrepl::wire::{Artifacts, ErrorEnvelope, ErrorKind, JobState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};
use store::{RecordStore, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Number of ended jobs whose outcome stays in memory; older ones are read from the store.
const ENDED_JOBS_MAX: usize = 1_000;

/// Number of JavaScript jobs whose outcome is stored; the oldest are removed.
const KEPT_JOBS_MAX: usize = 1_000;

/// The kind of the records of JavaScript jobs.
const JOBS: &str = "repl_job";

#[derive(Default)]
pub(super) struct JobTable {
    known: HashMap<String, LiveJob>,
    ended: VecDeque<String>,
}

/// A job of this process.
pub(crate) struct LiveJob {
    pub(crate) view: JobView,
    pub(crate) started: Instant,
    pub(crate) doer: JobWorker,
    /// The journal of the session that started it, if that was in another process.
    left_by: Option<String>,
}

/// What performs a job.
#[derive(Clone)]
pub(crate) enum JobWorker {
    /// The engine, once the execution has begun.
    Execution(ExecutionId, CancellationToken),
    /// A session's guest.
    Guest(mpsc::Sender<SessionNotice>),
}

/// A job as polling clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobView {
    pub(crate) state: JobState,
    #[serde(default)]
    pub(crate) progress: Option<Value>,
    #[serde(default)]
    pub(crate) output: Option<Value>,
    #[serde(default)]
    pub(crate) error: Option<ErrorEnvelope>,
    #[serde(default)]
    pub(crate) artifacts: Artifacts,
    #[serde(default)]
    pub(crate) duration_ms: u64,
}

impl JobView {
    pub(crate) const fn running() -> Self {
        Self {
            state: JobState::Running,
            progress: None,
            output: None,
            error: None,
            artifacts: Artifacts::new(),
            duration_ms: 0,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct KeptJob {
    created: i64,
    view: JobView,
}

impl ReplStore {
    pub(crate) fn begin_job(&self, id: &str, doer: JobWorker) {
        let (view, started) = (JobView::running(), Instant::now());
        self.jobs().known.insert(id.to_owned(), LiveJob { view, started, doer, left_by: None });
    }

    /// Registers a job that a session with this journal started in another process.
    pub(super) fn resume_job(&self, id: &str, doer: JobWorker, started: Instant, book: String) {
        let job = LiveJob { view: JobView::running(), started, doer, left_by: Some(book) };
        self.jobs().known.insert(id.to_owned(), job);
    }

    /// The number of running jobs that a session with this journal started in another process.
    pub(crate) fn n_left_by(&self, book: &str) -> usize {
        let is_left = |job: &&LiveJob| {
            job.view.state == JobState::Running && job.left_by.as_deref() == Some(book)
        };
        self.jobs().known.values().filter(is_left).count()
    }

    /// Returns a view of a job of this process.
    pub(crate) fn job<T>(&self, id: &str, look: impl FnOnce(&mut LiveJob) -> T) -> Option<T> {
        self.jobs().known.get_mut(id).map(look)
    }

    /// Returns the state of a job of this process: its latest progress report, or how long it has run.
    pub(crate) fn look_at_job(&self, id: &str) -> Option<JobView> {
        let (mut view, started, doer) =
            self.job(id, |job| (job.view.clone(), job.started, job.doer.clone()))?;
        if view.state == JobState::Running && view.progress.is_none() {
            let said = match doer {
                JobWorker::Execution(execution, _) => self.said_progress(execution),
                JobWorker::Guest(_) => None,
            };
            view.progress = said.or_else(|| Some(elapsed(millis(started.elapsed()))));
        }
        Some(view)
    }

    fn said_progress(&self, execution: ExecutionId) -> Option<Value> {
        serde_json::from_str(self.engine.reported(execution)?.as_text()).ok()
    }

    /// Records that a job has ended now.
    pub(crate) fn end_job(&self, id: &str, view: JobView) -> Option<JobView> {
        self.job_ended(id, self.timed_job(id, view))
    }

    /// Returns how a job ended, with its duration until now.
    pub(crate) fn timed_job(&self, id: &str, view: JobView) -> JobView {
        let duration_ms = self.job(id, |job| millis(job.started.elapsed())).unwrap_or_default();
        JobView { duration_ms, ..view }
    }

    /// Records that a job ended after the duration in the view; the first outcome that is recorded wins.
    pub(crate) fn job_ended(&self, id: &str, view: JobView) -> Option<JobView> {
        let mut jobs = self.jobs();
        let job = jobs.known.get_mut(id).filter(|job| job.view.state == JobState::Running)?;
        job.view = view.clone();
        jobs.ended.push_back(id.to_owned());
        if jobs.ended.len() > ENDED_JOBS_MAX
            && let Some(oldest) = jobs.ended.pop_front()
        {
            jobs.known.remove(&oldest);
        }
        Some(view)
    }

    /// Stores a job that only this process can perform: after a restart it is known to be lost.
    pub(crate) async fn keep_job(&self, id: &str, view: &JobView) -> Result<(), StoreError> {
        let kept = KeptJob { created: self.clock.now().0, view: view.clone() };
        if put_job(self.records.as_ref(), id, &kept).await? {
            self.prune_jobs().await?;
        }
        Ok(())
    }

    /// Stores the files that a running job has written so far: they survive the end of this process.
    pub(crate) async fn keep_job_files(
        &self,
        id: &str,
        artifacts: &Artifacts,
    ) -> Result<(), StoreError> {
        put_job_files(self.records.as_ref(), id, artifacts, self.clock.now()).await
    }

    async fn prune_jobs(&self) -> Result<(), StoreError> {
        let mut all = self.records.all(JOBS).await?;
        if all.len() <= KEPT_JOBS_MAX {
            return Ok(());
        }
        let created = |text: &str| serde_json::from_str::<KeptJob>(text).map_or(0, |it| it.created);
        all.sort_by_cached_key(|record| created(&record.value));
        let n_gone = all.len() - KEPT_JOBS_MAX;
        for record in all.into_iter().take(n_gone) {
            match self.records.remove(JOBS, &record.key, record.version).await {
                // Another task is updating the record.
                Ok(()) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A job whose process is gone and did not record when it stopped: it lasted until now at most.
    pub(super) fn left_job(&self, view: JobView, created: i64) -> JobView {
        let duration_ms = self.clock.now().ms_since(Timestamp(created));
        JobView { duration_ms, artifacts: view.artifacts, ..lost_job() }
    }

    /// Returns a JavaScript job of another process as it is stored, and when it began.
    pub(super) async fn kept_job(&self, id: &str) -> Result<Option<(JobView, i64)>, StoreError> {
        let record = self.records.get(JOBS, id).await?;
        let kept = record.and_then(|record| serde_json::from_str::<KeptJob>(&record.value).ok());
        Ok(kept.map(|kept| (kept.view, kept.created)))
    }

    /// Returns a job of another process, from its stored records.
    pub(crate) async fn look_up_job(&self, id: &str) -> Option<JobView> {
        if let Ok(Some(record)) = self.records.get(JOBS, id).await {
            let kept: KeptJob = serde_json::from_str(&record.value).ok()?;
            return Some(match kept.view.state {
                JobState::Running => self.left_job(kept.view, kept.created),
                JobState::Done | JobState::Failed | JobState::Cancelled => kept.view,
            });
        }
        let execution = ExecutionId::from_uuid(Uuid::try_parse(id).ok()?);
        let seen = self.engine.look_up(execution).await.ok()?;
        let origin = seen.state.origin.as_ref()?;
        let note: Value = serde_json::from_str(origin.terms.note.as_ref()?.as_text()).ok()?;
        note.get("hotrepl")?.get("job")?;
        let Some(outcome) = seen.state.outcome.clone() else {
            let since = elapsed(self.clock.now().ms_since(origin.at));
            let progress = self.said_progress(execution).or(Some(since));
            return Some(JobView { progress, ..JobView::running() });
        };
        Some(JobView { duration_ms: seen.changed.ms_since(origin.at), ..ended_view(outcome) })
    }

    fn jobs(&self) -> MutexGuard<'_, JobTable> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores what is known about a job; returns whether it is the first record. A job's beginning and its end are
/// written by tasks that do not wait for each other: the second writer reads the record again, and an ended job does
/// not become a running one.
async fn put_job(records: &dyn RecordStore, id: &str, kept: &KeptJob) -> Result<bool, StoreError> {
    let text = serde_json::to_string(kept).map_err(|e| StoreError::Other(e.to_string()))?;
    loop {
        let known = records.get(JOBS, id).await?;
        if kept.view.state == JobState::Running && known.is_some() {
            return Ok(false);
        }
        let version = known.map_or(0, |record| record.version);
        match records.put(JOBS, id, text.clone(), version).await {
            Ok(_) => return Ok(version == 0),
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Adds files to a job's record while it runs. If the record of the job's beginning is written second, it changes
/// nothing.
async fn put_job_files(
    records: &dyn RecordStore,
    id: &str,
    artifacts: &Artifacts,
    now: Timestamp,
) -> Result<(), StoreError> {
    loop {
        let known = records.get(JOBS, id).await?;
        let version = known.as_ref().map_or(0, |record| record.version);
        let kept = known.and_then(|record| serde_json::from_str::<KeptJob>(&record.value).ok());
        let begun = || KeptJob { created: now.0, view: JobView::running() };
        let mut kept = kept.unwrap_or_else(begun);
        if kept.view.state != JobState::Running {
            return Ok(());
        }
        kept.view.artifacts.extend(artifacts.clone());
        let text = serde_json::to_string(&kept).map_err(|e| StoreError::Other(e.to_string()))?;
        match records.put(JOBS, id, text, version).await {
            Err(StoreError::Conflict) => {}
            put => return put.map(drop),
        }
    }
}

/// The progress that is reported for a job that reports none.
fn elapsed(ms: u64) -> Value {
    json!({ "elapsedMs": ms })
}

/// The outcome of a job whose evaluator is gone.
pub(crate) fn lost_job() -> JobView {
    let message = "The evaluator in which the job ran is gone.";
    let error = envelope(ErrorKind::Internal, "stateLost", message);
    let error = error.with_details(json!({ "stateLost": true }));
    JobView { state: JobState::Failed, error: Some(error), ..JobView::running() }
}

/// Converts the outcome of a job that was an execution.
pub(crate) fn ended_view(outcome: ExecutionOutcome) -> JobView {
    match messages::output_of(outcome) {
        Ok(output) => JobView { state: JobState::Done, output: Some(output), ..JobView::running() },
        Err(error) if error.kind == ErrorKind::Cancelled => {
            JobView { state: JobState::Cancelled, error: Some(error), ..JobView::running() }
        }
        Err(error) => JobView { state: JobState::Failed, error: Some(error), ..JobView::running() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use protocols::hotrepl::wire::ArtifactRef;
    use std::sync::Mutex;
    use store::StoredRecord;
    use store::sqlite::SqliteStore;

    fn kept(state: JobState) -> KeptJob {
        KeptJob { created: 0, view: JobView { state, ..JobView::running() } }
    }

    async fn state(records: &SqliteStore) -> JobState {
        let record = records.get(JOBS, "job").await.unwrap().unwrap();
        serde_json::from_str::<KeptJob>(&record.value).unwrap().view.state
    }

    /// A store in which another writer intervenes after each read.
    struct Contested {
        store: SqliteStore,
        rival: Mutex<Option<KeptJob>>,
    }

    impl RecordStore for Contested {
        fn get(
            &self,
            kind: &'static str,
            key: &str,
        ) -> BoxFuture<'static, Result<Option<StoredRecord>, StoreError>> {
            let seen = self.store.get(kind, key);
            let rival = self.rival.lock().unwrap().take();
            let written = rival
                .map(|kept| self.store.put(kind, key, serde_json::to_string(&kept).unwrap(), 0));
            Box::pin(async move {
                let seen = seen.await;
                if let Some(written) = written {
                    written.await?;
                }
                seen
            })
        }

        fn put(
            &self,
            kind: &'static str,
            key: &str,
            value: String,
            expected: u64,
        ) -> BoxFuture<'static, Result<u64, StoreError>> {
            self.store.put(kind, key, value, expected)
        }

        fn remove(
            &self,
            kind: &'static str,
            key: &str,
            expected: u64,
        ) -> BoxFuture<'static, Result<(), StoreError>> {
            self.store.remove(kind, key, expected)
        }

        fn all(
            &self,
            kind: &'static str,
        ) -> BoxFuture<'static, Result<Vec<StoredRecord>, StoreError>> {
            self.store.all(kind)
        }
    }

    #[tokio::test]
    async fn files_are_added_to_a_job_that_runs_and_to_no_other() {
        let store = SqliteStore::temporary().unwrap();
        let file = |name: &str| {
            let artifact = ArtifactRef {
                uri: format!("http://h/{name}"),
                path: None,
                sha256: String::new(),
                byte_size: 1,
                content_type: "text/plain".into(),
                finalized: true,
            };
            Artifacts::from([(name.to_owned(), artifact)])
        };
        let names = async || {
            let record = store.get(JOBS, "job").await.unwrap().unwrap();
            let kept = serde_json::from_str::<KeptJob>(&record.value).unwrap();
            kept.view.artifacts.into_keys().collect::<Vec<_>>()
        };
        // This also works if its beginning is not stored yet.
        put_job_files(&store, "job", &file("a"), Timestamp(7)).await.unwrap();
        put_job(&store, "job", &kept(JobState::Running)).await.unwrap();
        put_job_files(&store, "job", &file("b"), Timestamp(8)).await.unwrap();
        assert_eq!(names().await, ["a", "b"]);
        put_job(&store, "job", &kept(JobState::Done)).await.unwrap();
        put_job_files(&store, "job", &file("c"), Timestamp(9)).await.unwrap();
        assert_eq!((names().await, state(&store).await), (vec![], JobState::Done));
    }

    #[tokio::test]
    async fn a_job_that_is_over_stays_so_whoever_writes_first() {
        let ends = [(JobState::Done, JobState::Running), (JobState::Running, JobState::Done)];
        for (mine, theirs) in ends {
            let rival = Mutex::new(Some(kept(theirs)));
            let records = Contested { store: SqliteStore::temporary().unwrap(), rival };
            put_job(&records, "job", &kept(mine)).await.unwrap();
            assert_eq!(state(&records.store).await, JobState::Done, "{mine:?} after {theirs:?}");
            put_job(&records, "job", &kept(JobState::Running)).await.unwrap();
            assert_eq!(state(&records.store).await, JobState::Done);
        }
    }
}
