//! Records each commit in the mark: the log that it is in, and its end.

use super::file::StoreMark;
use super::slot::LogPosition;
use crate::sqlite::format;
use crate::sqlite::wal::{FRAME_HEADER_BYTES, HEADER_BYTES, WalGeneration};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Tracks the log of an open database.
pub(in crate::sqlite) struct LogMarker {
    mark: StoreMark,
    main: PathBuf,
    frame_bytes: u64,
    /// Opened once there is a log.
    log: Option<File>,
    /// Where the last commit ended.
    last: Option<LogPosition>,
}

/// A commit, as SQLite reports it.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct WalCommit {
    /// The number of the log's frames up to its end.
    pub(in crate::sqlite) frames: u32,
    /// Whether the log was synced with the commit.
    pub(in crate::sqlite) is_synced: bool,
}

impl LogMarker {
    pub(in crate::sqlite) fn new(mark: StoreMark, main: &Path, page_bytes: u32) -> Self {
        let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(page_bytes);
        let last = mark.state().and_then(|state| state.log);
        Self { mark, main: main.to_owned(), frame_bytes, log: None, last }
    }

    /// Records a commit. Must be called before the commit is acknowledged.
    pub(in crate::sqlite) fn committed(&mut self, commit: WalCommit) {
        if self.mark.state().is_none() {
            return;
        }
        match self.generation_at(commit.frames) {
            Ok(generation) => self.record(generation, commit),
            Err(error) => {
                tracing::error!(%error, "the log cannot be read back: damage may go unnoticed");
            }
        }
    }

    fn record(&mut self, generation: WalGeneration, commit: WalCommit) {
        let WalCommit { frames: written, is_synced, .. } = commit;
        let same = self.last.filter(|last| last.generation == generation);
        let log = match same {
            Some(last) => LogPosition {
                written,
                synced: if is_synced { written } else { last.synced },
                ..last
            },
            None => {
                let synced = if is_synced { written } else { 0 };
                LogPosition { generation, written, synced, checkpointed: 0 }
            }
        };
        // A log is restarted only after the previous one is in the database, and synced there.
        let main_bytes = if same.is_none() { main_bytes(&self.main).ok() } else { None };
        self.last = Some(log);
        self.mark.update(|state| {
            state.log = Some(log);
            state.main_bytes = main_bytes.unwrap_or(state.main_bytes);
        });
    }

    /// The generation of the log after the last commit.
    pub(in crate::sqlite) fn generation(&self) -> Option<WalGeneration> {
        self.last.map(|last| last.generation)
    }

    /// Records that this many frames of a log are synced.
    pub(in crate::sqlite) fn log_synced(&mut self, generation: Option<WalGeneration>, frames: u32) {
        let Some(last) = self.last.filter(|last| Some(last.generation) == generation) else {
            return;
        };
        let log = LogPosition { synced: last.synced.max(frames), ..last };
        self.last = Some(log);
        self.mark.update(|state| state.log = Some(log));
        self.mark.sync_soon();
    }

    /// Records that this many frames of a log are synced, copied into the database, and synced there.
    pub(in crate::sqlite) fn checkpointed(
        &mut self,
        generation: Option<WalGeneration>,
        frames: u32,
    ) {
        let Some(last) = self.last.filter(|last| Some(last.generation) == generation) else {
            return;
        };
        let log = LogPosition {
            synced: last.synced.max(frames),
            checkpointed: last.checkpointed.max(frames),
            ..last
        };
        self.last = Some(log);
        let main_bytes = main_bytes(&self.main).ok();
        self.mark.update(|state| {
            state.log = Some(log);
            state.main_bytes = main_bytes.unwrap_or(state.main_bytes);
        });
        self.mark.sync_soon();
    }

    /// Records that the whole log is in the database, and syncs the mark. The log may be emptied afterwards.
    pub(in crate::sqlite) fn is_in_database(&mut self) -> io::Result<()> {
        if let Some(last) = self.last {
            self.checkpointed(Some(last.generation), last.written);
        }
        self.mark.sync()
    }

    /// Records that the log is empty.
    pub(in crate::sqlite) fn emptied(&mut self) -> io::Result<()> {
        self.last = None;
        self.mark.update(|state| state.log = None);
        self.mark.sync()
    }

    pub(in crate::sqlite) const fn mark(&self) -> &StoreMark {
        &self.mark
    }

    fn generation_at(&mut self, frames: u32) -> io::Result<WalGeneration> {
        let log = match &mut self.log {
            Some(log) => log,
            none => none.insert(File::open(format::log_of(&self.main))?),
        };
        let mut salts = [0; 8];
        let before = u64::from(frames.saturating_sub(1)) * self.frame_bytes;
        log.read_exact_at(&mut salts, HEADER_BYTES as u64 + before + 8)?;
        Ok(WalGeneration::from_bytes(salts))
    }
}

fn main_bytes(path: &Path) -> io::Result<u64> {
    std::fs::metadata(path).map(|data| data.len())
}
