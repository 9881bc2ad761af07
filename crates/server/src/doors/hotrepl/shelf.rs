//! What all sessions of a server share, and what outlives them: jobs, files, and what was done lately.

use super::Settings;
use super::session::Note;
use engine::{Clock, Engine};
use futures_util::future::BoxFuture;
use lifecycle::{ExecutionId, Outcome, Timestamp};
use protocols::hotrepl::outbound::{envelope, timestamp};
use protocols::hotrepl::wire::{
    ArtifactRef, Artifacts, ErrorEnvelope, ErrorKind, JobState, JournalEntry, JournalKind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Blobs, Notes, Records, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Entries of one kind that a session's journal keeps.
const ENTRIES_MAX: usize = 1_024;

/// Ended jobs whose outcome is kept at hand; older ones are looked up.
const ENDED_JOBS_MAX: usize = 1_000;

/// Jobs written in JavaScript whose outcome is kept for good; the oldest go.
const KEPT_JOBS_MAX: usize = 1_000;

/// Files that are kept; the oldest go.
const FILES_MAX: usize = 1_000;

/// How long a file is kept.
const FILE_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Records of jobs that were written in JavaScript.
const JOBS: &str = "repl_job";

/// Records of files, by the capability that opens them.
const FILES: &str = "repl_artifact";

/// What all sessions share.
pub(crate) struct Shelf {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    records: Arc<dyn Records>,
    blobs: Arc<dyn Blobs>,
    notes: Arc<dyn Notes>,
    jobs: Mutex<Jobs>,
}

/// Where a shelf keeps things.
pub(crate) struct Places {
    pub(crate) records: Arc<dyn Records>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) notes: Arc<dyn Notes>,
}

#[derive(Default)]
struct Jobs {
    known: HashMap<String, Job>,
    ended: VecDeque<String>,
}

/// A job of this process.
pub(super) struct Job {
    pub(super) view: JobView,
    pub(super) started: Instant,
    pub(super) doer: Doer,
}

/// Who does a job.
#[derive(Clone)]
pub(super) enum Doer {
    /// The engine, once it has begun.
    Execution(ExecutionId, CancellationToken),
    /// A session's guest.
    Guest(mpsc::Sender<Note>),
}

/// A job as those who poll see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JobView {
    pub(super) state: JobState,
    #[serde(default)]
    pub(super) progress: Option<Value>,
    #[serde(default)]
    pub(super) output: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<ErrorEnvelope>,
    #[serde(default)]
    pub(super) artifacts: Artifacts,
    #[serde(default)]
    pub(super) duration_ms: u64,
}

impl JobView {
    pub(super) const fn running() -> Self {
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

/// A file that a command wrote.
pub(super) struct NewFile {
    pub(super) name: String,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
}

/// A file as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptFile {
    pub(super) sha256: String,
    pub(super) name: String,
    pub(super) content_type: String,
    created: i64,
}

#[derive(Serialize, Deserialize)]
struct KeptJob {
    created: i64,
    view: JobView,
}

impl Shelf {
    pub(crate) fn new(engine: Engine, clock: Clock, settings: Settings, places: Places) -> Self {
        let Places { records, blobs, notes } = places;
        Self { engine, clock, settings, records, blobs, notes, jobs: Mutex::default() }
    }

    // ---- Jobs ----

    pub(super) fn begin_job(&self, id: &str, doer: Doer) {
        let job = Job { view: JobView::running(), started: Instant::now(), doer };
        self.jobs().known.insert(id.to_owned(), job);
    }

    /// A job of this process, as it is now.
    pub(super) fn job<T>(&self, id: &str, look: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.jobs().known.get_mut(id).map(look)
    }

    /// A job is over; what is said of it first stands.
    pub(super) fn end_job(&self, id: &str, view: JobView) -> Option<JobView> {
        let mut jobs = self.jobs();
        let job = jobs.known.get_mut(id).filter(|job| job.view.state == JobState::Running)?;
        let duration_ms = millis(job.started.elapsed());
        job.view = JobView { duration_ms, ..view };
        let view = job.view.clone();
        jobs.ended.push_back(id.to_owned());
        if jobs.ended.len() > ENDED_JOBS_MAX
            && let Some(oldest) = jobs.ended.pop_front()
        {
            jobs.known.remove(&oldest);
        }
        Some(view)
    }

    /// Writes down a job that only this process can do: after a restart it is known to be lost.
    pub(super) async fn keep_job(&self, id: &str, view: &JobView) -> Result<(), StoreError> {
        let known = self.records.get(JOBS, id).await?;
        let version = known.map_or(0, |record| record.version);
        let kept = KeptJob { created: self.clock.now().0, view: view.clone() };
        let text = serde_json::to_string(&kept).map_err(|e| StoreError::Other(e.to_string()))?;
        self.records.put(JOBS, id, text, version).await?;
        if version == 0 {
            self.prune_jobs().await?;
        }
        Ok(())
    }

    async fn prune_jobs(&self) -> Result<(), StoreError> {
        let mut all = self.records.all(JOBS).await?;
        if all.len() <= KEPT_JOBS_MAX {
            return Ok(());
        }
        let created = |text: &str| serde_json::from_str::<KeptJob>(text).map_or(0, |it| it.created);
        all.sort_by_key(|record| created(&record.value));
        let n_gone = all.len() - KEPT_JOBS_MAX;
        for record in all.into_iter().take(n_gone) {
            self.records.remove(JOBS, &record.key, record.version).await?;
        }
        Ok(())
    }

    /// A job of another process, from what is written down.
    pub(super) async fn look_up_job(&self, id: &str) -> Option<JobView> {
        if let Ok(Some(record)) = self.records.get(JOBS, id).await {
            let kept: KeptJob = serde_json::from_str(&record.value).ok()?;
            return Some(match kept.view.state {
                JobState::Running => lost_job(),
                JobState::Done | JobState::Failed | JobState::Cancelled => kept.view,
            });
        }
        let execution = ExecutionId::from_uuid(Uuid::try_parse(id).ok()?);
        let state = self.engine.look_up(execution).await.ok()?.state;
        let origin = state.origin.as_ref()?;
        let note: Value = serde_json::from_str(origin.terms.note.as_ref()?.text()).ok()?;
        note.get("hotrepl")?.get("job")?;
        let Some(outcome) = state.outcome.clone() else { return Some(JobView::running()) };
        let mut view = ended_view(outcome);
        let now = self.engine.look_up(execution).await.ok()?.changed;
        view.duration_ms = u64::try_from(now.0 - origin.at.0).unwrap_or_default();
        Some(view)
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- Files ----

    /// Keeps files, each under a capability of its own; `host` is what the client calls this server.
    pub(super) async fn keep_files(
        &self,
        files: Vec<NewFile>,
        host: &str,
    ) -> Result<Artifacts, StoreError> {
        let mut artifacts = Artifacts::new();
        for NewFile { name, content_type, bytes } in files {
            let byte_size = bytes.len() as u64;
            let sha256 = self.blobs.keep(bytes).await?;
            let capability = Uuid::new_v4().simple().to_string();
            let safe = safe_name(&name);
            let created = self.clock.now().0;
            let kept = KeptFile {
                sha256: sha256.clone(),
                name: safe.clone(),
                content_type: content_type.clone(),
                created,
            };
            let text =
                serde_json::to_string(&kept).map_err(|e| StoreError::Other(e.to_string()))?;
            self.records.put(FILES, &capability, text, 0).await?;
            let path = self.settings.artifact_paths.as_ref().map(|it| it.join(&sha256));
            let artifact = ArtifactRef {
                uri: format!("http://{host}/repl/artifacts/{capability}/{safe}"),
                path: path.map(|path| path.display().to_string()),
                sha256,
                byte_size,
                content_type,
                finalized: true,
            };
            artifacts.insert(name, artifact);
        }
        if !artifacts.is_empty() {
            self.prune_files().await?;
        }
        Ok(artifacts)
    }

    /// The file that a capability opens.
    pub(super) async fn file(&self, capability: &str) -> Option<(KeptFile, Vec<u8>)> {
        let record = self.records.get(FILES, capability).await.ok()??;
        let kept: KeptFile = serde_json::from_str(&record.value).ok()?;
        let bytes = self.blobs.fetch(&kept.sha256).await.ok()??;
        Some((kept, bytes))
    }

    async fn prune_files(&self) -> Result<(), StoreError> {
        let mut all: Vec<(store::Record, KeptFile)> = self
            .records
            .all(FILES)
            .await?
            .into_iter()
            .filter_map(|record| Some((serde_json::from_str(&record.value).ok()?, record)))
            .map(|(kept, record)| (record, kept))
            .collect();
        all.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.created));
        let age_max = i64::try_from(FILE_AGE_MAX.as_millis()).unwrap_or(i64::MAX);
        let oldest = self.clock.now().0 - age_max;
        let n_kept = all.iter().take(FILES_MAX).take_while(|(_, it)| it.created >= oldest).count();
        let gone = all.split_off(n_kept);
        for (record, kept) in gone {
            self.records.remove(FILES, &record.key, record.version).await?;
            if !all.iter().any(|(_, other)| other.sha256 == kept.sha256) {
                self.blobs.discard(&kept.sha256).await?;
            }
        }
        Ok(())
    }

    // ---- What was done lately ----

    /// Writes an entry down. Its place is taken when this returns; whoever reads waits for the answer first.
    pub(super) fn note(
        &self,
        book: &str,
        entry: &JournalEntry,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let line = serde_json::to_string(entry).expect("an entry has no failing members");
        self.notes.note(&format!("{book}/{}", kind_name(entry.kind)), line, ENTRIES_MAX)
    }

    /// The newest entries of one kind or both, newest first.
    pub(super) async fn entries(
        &self,
        book: &str,
        kind: Option<JournalKind>,
        n_max: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let n_max = n_max.min(ENTRIES_MAX);
        let mut entries = vec![];
        for each in [JournalKind::Eval, JournalKind::Command] {
            if kind.is_none_or(|kind| kind == each) {
                let lines =
                    self.notes.newest(&format!("{book}/{}", kind_name(each)), n_max).await?;
                let read = |line: String| serde_json::from_str::<JournalEntry>(&line).ok();
                entries.extend(lines.into_iter().filter_map(read));
            }
        }
        // Stable: what has the same time stays in the order of its book.
        entries.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
        entries.truncate(n_max);
        Ok(entries)
    }

    pub(super) fn timestamp(&self) -> String {
        let Timestamp(ms) = self.clock.now();
        timestamp(ms)
    }
}

const fn kind_name(kind: JournalKind) -> &'static str {
    match kind {
        JournalKind::Eval => "eval",
        JournalKind::Command => "command",
    }
}

/// What is left of a job whose world is gone.
pub(super) fn lost_job() -> JobView {
    let message = "The evaluator in which the job ran is gone.";
    let error = envelope(ErrorKind::Internal, "stateLost", message);
    let error = error.with_details(serde_json::json!({ "stateLost": true }));
    JobView { state: JobState::Failed, error: Some(error), ..JobView::running() }
}

/// How a job that was an execution ended.
pub(super) fn ended_view(outcome: Outcome) -> JobView {
    match super::words::output_of(outcome) {
        Ok(output) => JobView { state: JobState::Done, output: Some(output), ..JobView::running() },
        Err(error) if error.kind == ErrorKind::Cancelled => {
            JobView { state: JobState::Cancelled, error: Some(error), ..JobView::running() }
        }
        Err(error) => JobView { state: JobState::Failed, error: Some(error), ..JobView::running() },
    }
}

/// A name that cannot lead anywhere.
fn safe_name(name: &str) -> String {
    const CHARS_MAX: usize = 128;
    let fine = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let safe: String = name.chars().map(fine).skip_while(|c| *c == '.').take(CHARS_MAX).collect();
    if safe.is_empty() { "artifact".to_owned() } else { safe }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::safe_name;

    #[test]
    fn no_name_leads_out_of_its_place() {
        for (name, safe) in [
            ("report.json", "report.json"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..", "artifact"),
            ("", "artifact"),
            ("a/b\\c\0d", "a_b_c_d"),
            ("é", "_"),
        ] {
            assert_eq!(safe_name(name), safe);
        }
        assert_eq!(safe_name(&"x".repeat(1_000)).len(), 128);
    }
}
