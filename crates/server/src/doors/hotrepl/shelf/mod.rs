//! What all sessions of a server share, and what outlives them: jobs, files, and what was done lately.

mod entries;
mod files;
mod jobs;
mod owed;

pub(super) use entries::Noted;
pub(super) use files::{Files, NewFile, TaskFile};
pub(super) use jobs::{Doer, JobView, ended_view, lost_job};
pub(super) use owed::Owed;

use super::Settings;
use engine::{Clock, Engine};
use files::FILES_MAX;
use jobs::Jobs;
use sources::config::ReplCommands;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Blobs, Notes, Records};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What all sessions share.
pub(crate) struct Shelf {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) files: Files,
    /// Commands that the configuration gives.
    pub(super) commands: watch::Receiver<Arc<ReplCommands>>,
    records: Arc<dyn Records>,
    notes: Arc<dyn Notes>,
    jobs: Mutex<Jobs>,
    /// Cancelled once the jobs that earlier processes left are known.
    taken_over: CancellationToken,
}

/// Where a shelf keeps things.
pub(crate) struct Places {
    pub(crate) records: Arc<dyn Records>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) notes: Arc<dyn Notes>,
    pub(crate) commands: watch::Receiver<Arc<ReplCommands>>,
}

impl Shelf {
    pub(crate) fn new(engine: Engine, clock: Clock, settings: Settings, places: Places) -> Self {
        let Places { records, blobs, notes, commands } = places;
        let paths = settings.artifact_paths.clone();
        let files = Files {
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
