//! The mark while a data directory is opened: the old one is compared, and a new one begins.

use super::checkpoint::CheckpointScheduler;
use super::format::{self, OpenError};
use super::history::{self, StoreHistory};
use super::mark::{
    self, BootId, FoundFiles, FoundLog, FoundMark, LogMarker, LogPosition, MarkState, StoreMark,
    TailPosition, WalCommit, find_files, read_mark, shortfalls,
};
use crate::{DataLoss, LossCause, StoreError};
use lifecycle::Timestamp;
use rusqlite::Connection;
use std::path::Path;
use std::thread::JoinHandle;
use uuid::Uuid;

/// A data directory that satisfies its mark, before SQLite opened it.
pub(super) struct OpeningStore<'a> {
    dir: &'a Path,
    boot: BootId,
    mark: FoundMark,
    files: FoundFiles,
    relation: MarkRelation,
}

/// The relation of the database and the mark.
#[derive(Debug, Clone, Copy)]
enum MarkRelation {
    /// The mark belongs to this history.
    Continues(StoreHistory),
    /// There was no mark yet.
    Begins,
    /// The database is a copy, or the mark was lost: what it guaranteed is unknown.
    Restored(Option<StoreHistory>),
}

impl<'a> OpeningStore<'a> {
    /// Compares the files with the mark, and rejects a directory that holds less than was acknowledged.
    pub(super) fn examine(dir: &'a Path, boot: BootId) -> Result<Self, OpenError> {
        format::recognise(&dir.join(format::FILE), format::STEPS.len())?;
        let mark = read_mark(dir).map_err(StoreError::from)?;
        let files = find_files(dir).map_err(StoreError::from)?;
        if let FoundMark::Sound(_, state) = &mark {
            let missing = shortfalls(state, &files, boot);
            if !missing.is_empty() {
                let what = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(OpenError::Short { what });
            }
        }
        // Read-only: a rejected file is not changed.
        let known = match format::read_header(&dir.join(format::FILE), format::STEPS)? {
            Some(conn) => history::read(&conn)?,
            None => None,
        };
        let relation = relation(&mark, known)?;
        Ok(Self { dir, boot, mark, files, relation })
    }

    /// Whether there is no mark for the database, so that it must be checked completely.
    pub(super) fn is_unmarked(&self) -> bool {
        !matches!(self.mark, FoundMark::Sound(..))
    }

    /// Begins the mark of this run. Everything that SQLite recovered is in the log or the database by now, and so is
    /// the content of the append files. The thread syncs the mark.
    pub(super) fn begin_mark(
        self,
        conn: &Connection,
        checkpoints: &CheckpointScheduler,
        page_bytes: u32,
    ) -> Result<(LogMarker, Option<JoinHandle<()>>), OpenError> {
        let main = self.dir.join(format::FILE);
        let begun = match self.relation {
            MarkRelation::Continues(known) => self.go_on(conn, known)?,
            MarkRelation::Begins => self.begin_history(conn)?,
            MarkRelation::Restored(known) => self.begin_restored(conn, known)?,
        };
        let Some((mark, thread)) = begun else {
            return Ok((LogMarker::new(StoreMark::none(), &main, page_bytes), None));
        };
        let mut marker = LogMarker::new(mark, &main, page_bytes);
        if checkpoints.n_commits() > 0 {
            let frames = u32::try_from(checkpoints.log_pages()).unwrap_or(0);
            marker.committed(WalCommit { frames, is_synced: true });
        }
        Ok((marker, Some(thread)))
    }

    fn go_on(
        &self,
        conn: &Connection,
        known: StoreHistory,
    ) -> Result<Option<MarkThread>, OpenError> {
        let next = StoreHistory { epoch: known.epoch + 1, ..known };
        // A store on a full disk can still be read.
        let history = match history::write(conn, next, None) {
            Ok(()) => next,
            Err(error) => {
                tracing::warn!(%error, "could not record that the store was opened");
                known
            }
        };
        self.open_mark(history).map(Some)
    }

    fn begin_history(&self, conn: &Connection) -> Result<Option<MarkThread>, OpenError> {
        if matches!(self.mark, FoundMark::Damaged) {
            tracing::warn!("the mark of the store is damaged; a new one is made");
        }
        let history = StoreHistory { id: Uuid::new_v4(), epoch: 0 };
        // The mark first: a database with a history and without a mark is a restored copy.
        let (mark, thread) = match self.open_mark(history) {
            Ok(begun) => begun,
            Err(error) => {
                tracing::warn!(%error, "the store has no mark: damage may go unnoticed");
                return Ok(None);
            }
        };
        match history::write(conn, StoreHistory { epoch: 1, ..history }, None) {
            Ok(()) => drop(mark.update(|state| state.epoch = 1)),
            Err(error) => tracing::warn!(%error, "could not record that the store was opened"),
        }
        Ok(Some((mark, thread)))
    }

    fn begin_restored(
        &self,
        conn: &Connection,
        known: Option<StoreHistory>,
    ) -> Result<Option<MarkThread>, OpenError> {
        let how = match self.mark {
            FoundMark::Missing => "missing",
            FoundMark::Damaged => "damaged",
            FoundMark::Sound(..) => "that of another history",
        };
        tracing::warn!("the mark of the store is {how}: the store is treated as a restored copy");
        // The copy and its original are separate histories from here on.
        let history =
            StoreHistory { id: Uuid::new_v4(), epoch: known.map_or(0, |known| known.epoch) + 1 };
        let known_until = history::newest_entry(conn)?;
        let loss = DataLoss { cause: LossCause::Restored, found: now(), known_until };
        let is_known = super::query::record(conn, history::KIND, history::LOSS)?
            .is_some_and(|record| history::open_loss(&record).is_some());
        // Before the mark: a start that is interrupted in between again finds no mark of this history.
        history::write(conn, history, (!is_known).then_some(&loss))?;
        self.open_mark(history).map(Some)
    }

    fn open_mark(&self, history: StoreHistory) -> Result<MarkThread, OpenError> {
        let (sequence, before) = match &self.mark {
            FoundMark::Sound(sequence, state) if state.history == history.id => {
                (*sequence, Some(state))
            }
            FoundMark::Sound(sequence, _) => (*sequence, None),
            FoundMark::Missing | FoundMark::Damaged => (0, None),
        };
        let state = MarkState {
            boot: self.boot,
            history: history.id,
            epoch: history.epoch,
            at: 0,
            log: self.log_position(before),
            main_bytes: before.map_or(0, |before| before.main_bytes),
            tails: [TailPosition::default(); 2],
        };
        Ok(StoreMark::open(self.dir, state, sequence)?)
    }

    /// The position of the log that was found.
    fn log_position(&self, before: Option<&MarkState>) -> Option<LogPosition> {
        let FoundLog::Frames(generation, written) = self.files.log else { return None };
        let before = before.and_then(|before| before.log);
        let same = before.filter(|log| log.generation == generation);
        let synced = same.map_or(0, |log| log.synced.min(written));
        let checkpointed = same.map_or(0, |log| log.checkpointed);
        Some(LogPosition { generation, written, synced, checkpointed })
    }
}

fn relation(mark: &FoundMark, known: Option<StoreHistory>) -> Result<MarkRelation, OpenError> {
    let FoundMark::Sound(_, mark) = mark else {
        return Ok(known.map_or(MarkRelation::Begins, |known| MarkRelation::Restored(Some(known))));
    };
    match known {
        Some(known) if known.id != mark.history => Ok(MarkRelation::Restored(Some(known))),
        Some(known) if known.epoch < mark.epoch => Err(OpenError::Short {
            what: "store.db is an earlier state of itself, such as a backup".into(),
        }),
        Some(known) => Ok(MarkRelation::Continues(known)),
        // An interrupted first start, before the database had its history.
        None if mark.epoch == 0 => Ok(MarkRelation::Begins),
        None => Ok(MarkRelation::Restored(None)),
    }
}

/// A mark, and the thread that syncs it.
type MarkThread = (StoreMark, JoinHandle<()>);

fn now() -> Timestamp {
    Timestamp(mark::now_ms())
}
