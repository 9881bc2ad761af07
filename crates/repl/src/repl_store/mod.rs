//! State that all sessions of a server share and that outlives them: jobs, files and recent history.

mod entries;
mod files;
mod jobs;
mod pending;

pub(super) use entries::EntryWritten;
pub(super) use files::{ArtifactFiles, NewFile, TaskFile};
pub(super) use jobs::{JobView, JobWorker, ended_view, lost_job};
pub(super) use pending::PendingEntry;

use super::{Config, ReplSettings};
use engine::{Clock, Engine};
use files::FILES_MAX;
use jobs::JobTable;
use sources::config::ReplCommands;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{NoteStore, RecordStore};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// State that all sessions share.
pub(crate) struct ReplStore {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) settings: ReplSettings,
    pub(super) files: ArtifactFiles,
    /// The commands from the configuration.
    pub(super) commands: watch::Receiver<Arc<ReplCommands>>,
    records: Arc<dyn RecordStore>,
    notes: Arc<dyn NoteStore>,
    jobs: Mutex<JobTable>,
    /// Cancelled once the jobs that earlier processes left are known.
    taken_over: CancellationToken,
}

impl ReplStore {
    pub(crate) fn new(config: Config) -> Self {
        let Config { engine, clock, settings, records, blobs, notes, commands, .. } = config;
        let paths = settings.artifact_paths.clone();
        let files = ArtifactFiles {
            records: Arc::clone(&records),
            blobs,
            clock: clock.clone(),
            paths,
            n_max: FILES_MAX,
        };
        let jobs = Mutex::default();
        let taken_over = CancellationToken::new();
        Self { engine, clock, settings, files, commands, records, notes, jobs, taken_over }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
