//! `store check` and `store recover`: reports what a data directory holds, and makes a rejected one usable again.
//!
//! Recovery first copies the files to a backup, saves what the log and the append files hold, and copies row by row if
//! the database itself is damaged. It ends without a mark and with a recorded loss, so that the next start parks what
//! was unfinished.

use super::append_log;
use super::checkpoint;
use super::directory_lock::DirectoryLock;
use super::format::{self, CheckExtent, DurabilityMode, OpenDatabase, OpenError};
use super::history::{self, StoreHistory};
use super::mark::{
    self, BootId, FoundMark, LogMarker, StoreMark, find_files, read_mark, shortfalls,
};
use super::rescue::{self, LogRescue};
use super::table_walk::{RowReport, walk};
use super::tables::Tables;
use crate::{DataLoss, LossCause, StoreError};
use lifecycle::Timestamp;
use rusqlite::Connection;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The files of a store that recovery copies to a backup.
const FILES: [&str; 5] =
    [format::FILE, "store.db-wal", append_log::NAMES[0], append_log::NAMES[1], mark::FILE];

/// The result of a check of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreReport {
    /// What was acknowledged and is missing, as sentences.
    pub missing: Vec<String>,
    /// Whether there is a mark, and when it was written.
    pub mark: MarkReport,
    /// Why the database cannot be opened, or the damage of its structure.
    pub damage: Option<String>,
    /// What a start would find in the database; none if it cannot be opened.
    pub rows: Option<RowReport>,
    /// Set if the log is damaged: the number of damaged frames that no later one replaces; none if recovery saves the
    /// whole log.
    pub n_frames_lost: Option<usize>,
}

/// The mark of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkReport {
    /// There is none: the store is new, is a restored copy, or was last used by an earlier version.
    Missing,
    /// It is damaged, and guarantees nothing.
    Damaged,
    /// It was written at this time.
    Sound(Timestamp),
}

impl StoreReport {
    /// Whether nothing is missing, and every row can be read.
    pub fn is_sound(&self) -> bool {
        let is_readable = self.rows.as_ref().is_none_or(RowReport::is_sound);
        self.missing.is_empty() && self.damage.is_none() && is_readable
    }
}

/// The result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The backup of the original files.
    pub copies: PathBuf,
    /// What is in the store now. Journals that it counts as cut were cut there.
    pub rows: RowReport,
    /// The number of the log's frames that could not be saved.
    pub n_frames_lost: usize,
    /// Whether rows of the database itself could not be saved.
    pub has_lost_rows: bool,
}

/// Checks a data directory that no process owns, and changes nothing in it.
pub(super) fn check_directory(dir: &Path, boot: BootId) -> Result<StoreReport, OpenError> {
    let _owner = owner_of_existing(dir)?;
    let path = dir.join(format::FILE);
    let found = read_mark(dir).map_err(StoreError::from)?;
    let files = find_files(dir).map_err(StoreError::from)?;
    let mut report = StoreReport {
        missing: vec![],
        mark: match &found {
            FoundMark::Missing => MarkReport::Missing,
            FoundMark::Damaged => MarkReport::Damaged,
            FoundMark::Sound(_, state) => MarkReport::Sound(Timestamp(state.at)),
        },
        damage: None,
        rows: None,
        n_frames_lost: None,
    };
    let conn = match format::read_header(&path, format::STEPS) {
        Ok(conn) => conn,
        Err(refused @ OpenError::Newer { .. }) => return Err(refused),
        Err(refused) => {
            report.damage = Some(refused.to_string());
            None
        }
    };
    if let FoundMark::Sound(_, state) = &found {
        let missing = shortfalls(state, &files, boot);
        report.missing = missing.iter().map(ToString::to_string).collect();
        if !missing.is_empty() {
            let rescue = rescue_of(dir, state).map_err(StoreError::from)?;
            report.n_frames_lost = rescue.map(|(_, rescue)| rescue.n_lost);
        }
    }
    if let Some(conn) = conn {
        report.damage =
            format::check_database(&conn).err().map(|_| "its structure is damaged".to_owned());
        let known = history::read(&conn).ok().flatten();
        if let (Some(known), FoundMark::Sound(_, state)) = (known, &found)
            && known.id == state.history
            && known.epoch < state.epoch
            && report.missing.is_empty()
        {
            report.missing.push("store.db is an earlier state of itself, such as a backup".into());
        }
        report.rows = Some(walk(&conn, None)?);
    }
    Ok(report)
}

/// Recovers what is left in a data directory, and records the loss.
pub(super) fn recover(dir: &Path, now: Timestamp) -> Result<RecoveryReport, OpenError> {
    let _owner = owner_of_existing(dir)?;
    let path = dir.join(format::FILE);
    if let Err(refused @ OpenError::Newer { .. }) = format::recognise(&path, format::STEPS.len()) {
        return Err(refused);
    }
    let copies = copy_aside(dir, now).map_err(StoreError::from)?;
    let found = read_mark(dir).map_err(StoreError::from)?;
    let (n_frames_lost, must_copy_rows) =
        settle_log(dir, &copies, &found).map_err(StoreError::from)?;
    let left = append_log::salvage(dir).map_err(StoreError::from)?;
    let is_sound = !must_copy_rows && is_sound(&path);
    let cut = if is_sound { None } else { Some(copy_rows(dir)?) };
    let checked = CheckExtent::IfSmall;
    let OpenDatabase { conn, .. } =
        format::open(&path, format::STEPS, DurabilityMode::AsAsked, checked)?;
    let ledger = Tables::new(conn);
    ledger.bring_back(&left)?;
    let conn = ledger.conn;
    let mut rows = walk(&conn, None)?;
    let has_lost_rows = cut.as_ref().is_some_and(|cut| !cut.is_sound());
    if let Some(cut) = cut {
        (rows.cut, rows.n_cut) = (cut.cut, cut.n_cut);
    }
    record_loss(&conn, now, rows.newest)?;
    let page_bytes = format::page_bytes(&conn)?;
    checkpoint::empty_log(&conn, &mut LogMarker::new(StoreMark::none(), &path, page_bytes))?;
    drop(conn);
    for name in [append_log::NAMES[0], append_log::NAMES[1], mark::FILE] {
        remove(&dir.join(name)).map_err(StoreError::from)?;
    }
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::from)?;
    Ok(RecoveryReport { copies, rows, n_frames_lost, has_lost_rows })
}

fn owner_of_existing(dir: &Path) -> Result<DirectoryLock, OpenError> {
    if !dir.is_dir() {
        return Err(
            StoreError::Other(format!("there is no data directory {}", dir.display())).into()
        );
    }
    DirectoryLock::take(dir)
}

fn record_loss(
    conn: &Connection,
    now: Timestamp,
    known_until: Option<Timestamp>,
) -> Result<(), OpenError> {
    let epoch = history::read(conn)?.map_or(0, |known| known.epoch) + 1;
    let loss = DataLoss { cause: LossCause::Recovered, found: now, known_until };
    Ok(history::write(conn, StoreHistory { id: Uuid::new_v4(), epoch }, Some(&loss))?)
}

fn copy_aside(dir: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let copies = dir.join(format!("damaged-{}", now.0));
    fs::create_dir_all(&copies)?;
    for name in FILES {
        match fs::copy(dir.join(name), copies.join(name)) {
            Ok(_) => File::open(copies.join(name))?.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    File::open(&copies)?.sync_all()?;
    Ok(copies)
}

fn rescue_of(dir: &Path, state: &mark::MarkState) -> io::Result<Option<(Vec<u8>, LogRescue)>> {
    match fs::read(format::log_of(&dir.join(format::FILE))) {
        Ok(log) => Ok(rescue::plan(&log, state).map(|rescue| (log, rescue))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Applies the log to the database if SQLite would not. Returns the number of lost frames, and whether the
/// database must be copied row by row because of them.
fn settle_log(dir: &Path, copies: &Path, found: &FoundMark) -> io::Result<(usize, bool)> {
    let FoundMark::Sound(_, state) = found else { return Ok((0, false)) };
    let files = find_files(dir)?;
    let is_log_short = |missing: &mark::StoreShortfall| {
        matches!(missing, mark::StoreShortfall::Log { .. } | mark::StoreShortfall::LogGone { .. })
    };
    // As in the same boot: everything that can be saved is saved, even if a power cut would explain its loss.
    let missing =
        shortfalls(&mark::MarkState { boot: BootId([1; 16]), ..*state }, &files, BootId([1; 16]));
    if !missing.iter().any(is_log_short) {
        return Ok((0, false));
    }
    let path = dir.join(format::FILE);
    let Some((log, rescue)) = rescue_of(dir, state)? else {
        let needed = state.log.map_or(0, |log| log.written.saturating_sub(log.checkpointed));
        remove(&format::log_of(&path))?;
        return Ok((usize::try_from(needed).unwrap_or(0), true));
    };
    let n_readable = if rescue.n_lost == 0 { 0 } else { n_entries(&path) };
    rescue::apply(dir, &log, &rescue)?;
    for file in [format::log_of(&path), path.with_extension("db-shm")] {
        remove(&file)?;
    }
    if rescue.n_lost > 0 && n_entries(&path) < n_readable {
        // A missing page cost more than the transactions behind it: SQLite's own recovery is better.
        for name in [format::FILE, "store.db-wal"] {
            fs::copy(copies.join(name), dir.join(name))?;
        }
        return Ok((rescue.n_lost, false));
    }
    Ok((rescue.n_lost, rescue.n_lost > 0))
}

/// The number of readable entries.
fn n_entries(path: &Path) -> u64 {
    let conn = format::read_header(path, format::STEPS).ok().flatten();
    conn.and_then(|conn| walk(&conn, None).ok()).map_or(0, |rows| rows.n_entries)
}

/// Whether the database opens, and every row of it can be read.
fn is_sound(path: &Path) -> bool {
    match format::read_header(path, format::STEPS) {
        Ok(Some(conn)) => {
            format::check_database(&conn).is_ok()
                && walk(&conn, None).is_ok_and(|rows| rows.is_sound())
        }
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Replaces the database by a new one with the readable rows.
fn copy_rows(dir: &Path) -> Result<RowReport, OpenError> {
    let path = dir.join(format::FILE);
    let new = dir.join("store.recovered.db");
    for file in [&new, &new.with_extension("db-wal"), &new.with_extension("db-shm")] {
        remove(file).map_err(StoreError::from)?;
    }
    let target =
        format::open(&new, format::STEPS, DurabilityMode::AsAsked, CheckExtent::IfSmall)?.conn;
    let rows = match format::read_header(&path, format::STEPS) {
        Ok(Some(source)) => {
            let transaction = target.unchecked_transaction().map_err(StoreError::from)?;
            let rows = walk(&source, Some(&target))?;
            transaction.commit().map_err(StoreError::from)?;
            rows
        }
        // Not even its first page can be read: nothing is left of it.
        Ok(None) | Err(_) => RowReport { is_unreadable: true, ..RowReport::default() },
    };
    let page_bytes = format::page_bytes(&target)?;
    checkpoint::empty_log(&target, &mut LogMarker::new(StoreMark::none(), &new, page_bytes))?;
    drop(target);
    for file in [format::log_of(&path), path.with_extension("db-shm")] {
        remove(&file).map_err(StoreError::from)?;
    }
    fs::rename(&new, &path).map_err(StoreError::from)?;
    Ok(rows)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
