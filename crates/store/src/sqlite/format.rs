//! The database file: how it is recognised, refused, brought up to date and opened.

use super::trouble::DAMAGED_ADVICE;
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database's name within the data directory.
pub(super) const FILE: &str = "store.db";

/// The log beside a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    database.with_extension("db-wal")
}

/// `AIRL`, in the header of each of our files.
const APPLICATION_ID: i32 = 0x4149_524C;

/// Each step brings the file from the version that is its index to the next.
pub(super) const STEPS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
];

/// Up to this size the whole file is checked when it is opened: some ten milliseconds. Larger ones
/// are checked row by row as they are read.
const CHECKED_BYTES_MAX: u64 = 4 << 20;

/// How long a statement waits for somebody who looks at the file from outside.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(5);

/// Of a new file. A commit writes whole pages to the log: an execution that ends at once touches eight, and most of what
/// they hold is not new. Smaller ones would break events of ordinary size in two.
const PAGE_BYTES: u32 = 2_048;

/// The log keeps at most this much disk between checkpoints.
const WAL_KEPT_BYTES_MAX: u64 = 64 << 20;

/// Statements kept ready per connection; there are fewer than this.
const STATEMENTS_MAX: usize = 64;

/// Why a data directory could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("the data directory is in use by {note}")]
    Owned {
        /// What that process says of itself.
        note: String,
    },
    /// Written by a later version of this program.
    #[error(
        "the database has format {found} and this program knows formats up to {known}; \
         nothing was changed. Install a newer version, or name another data directory"
    )]
    Newer {
        /// The file's.
        found: i64,
        /// The newest we can read.
        known: i64,
    },
    /// Less is there than was acknowledged.
    #[error(
        "the data directory holds less than was acknowledged: {what}; nothing was changed. \
         `airlock store check` shows what is lost, and `airlock store recover` makes the directory usable again"
    )]
    Short {
        /// What is missing.
        what: String,
    },
    /// Some other program's file.
    #[error(
        "the file {FILE} in the data directory is not a database of this program; \
         nothing was changed. Move it away, or name another data directory"
    )]
    Foreign,
    /// Everything else.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// How hard to try to keep things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DurabilityMode {
    /// As each append asks.
    AsAsked,
    /// The directory goes away with the store: nothing is ever synced.
    Nothing,
}

/// Makes a new file readable for its owner only. SQLite gives its log the mode of the database.
fn keep_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match opened {
        Ok(_) => Ok(()),
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How much of a database is checked when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckExtent {
    /// All of a small one.
    IfSmall,
    /// All of it.
    Whole,
}

/// A database that is open for writing.
pub(super) struct OpenDatabase {
    pub(super) conn: Connection,
    /// Whether it was made or brought up to date just now: its header is to say so as well.
    pub(super) is_changed: bool,
}

/// Recognises the file, brings it up to date, and opens it for writing. The log stays as it is, also when the connection
/// is closed.
pub(super) fn open(
    path: &Path,
    steps: &[&str],
    durability: DurabilityMode,
    checked: CheckExtent,
) -> Result<OpenDatabase, OpenError> {
    let size = recognise(path, steps.len())?;
    keep_private(path)?;
    let conn = Connection::open(path)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY_MAX)?;
    let found = version(&conn, steps.len()).map_err(unreadable)?;
    if 0 < size && (checked == CheckExtent::Whole || size <= CHECKED_BYTES_MAX) {
        check_database(&conn).map_err(|error| unreadable(error.into()))?;
    }
    if size == 0 {
        conn.pragma_update(None, "page_size", PAGE_BYTES)?;
    }
    prepare(&conn, durability)?;
    migrate(&conn, found, steps)?;
    Ok(OpenDatabase { conn, is_changed: found < steps.len() })
}

/// A connection that only reads, to a file that somebody else may have open; none where there is nothing
/// to read in it yet. The file stays as it is.
pub(super) fn read_header(path: &Path, steps: &[&str]) -> Result<Option<Connection>, OpenError> {
    if recognise(path, steps.len())? == 0 {
        return Ok(None);
    }
    let conn = open_reader(path)?;
    let found = version(&conn, steps.len()).map_err(unreadable)?;
    Ok((found > 0).then_some(conn))
}

/// A connection that only reads, to a file that [`open`] has accepted.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // The writer alone empties the log: the mark must hear of it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY_MAX)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    conn.execute_batch("PRAGMA query_only = ON")?;
    Ok(conn)
}

/// A connection that moves the log into the file.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY_MAX)?;
    // Only a connection that has read something knows of the log; before that there is nothing to move.
    conn.query_row("PRAGMA user_version", [], |_| Ok(()))?;
    Ok(conn)
}

/// Looks at the first hundred bytes before SQLite does: SQLite may write where it only looks.
/// Returns the size of the file.
pub(super) fn recognise(path: &Path, n_steps: usize) -> Result<u64, OpenError> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    const MODES_AT: std::ops::Range<usize> = 18..20;
    const VERSION_AT: usize = 60;
    const APPLICATION_AT: usize = 68;
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let size = file.metadata().map_err(StoreError::from)?.len();
    let mut header = [0_u8; 100];
    if size == 0 {
        return Ok(0); // a start that was interrupted before its first byte
    }
    if file.read_exact(&mut header).is_err() || !header.starts_with(MAGIC) {
        return Err(OpenError::Foreign);
    }
    // SQLite takes a mode it does not know for "read only".
    if header[MODES_AT].iter().any(|mode| !matches!(mode, 1 | 2)) {
        return Err(StoreError::Damaged(DAMAGED_ADVICE.to_owned()).into());
    }
    let number = |at: usize| {
        i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    recognised(number(APPLICATION_AT), i64::from(number(VERSION_AT)), n_steps)?;
    Ok(size)
}

fn recognised(application: i32, version: i64, n_steps: usize) -> Result<(), OpenError> {
    let known = i64::try_from(n_steps).unwrap_or(i64::MAX);
    match application {
        APPLICATION_ID if version > known => Err(OpenError::Newer { found: version, known }),
        APPLICATION_ID if version < 0 => Err(StoreError::Damaged(DAMAGED_ADVICE.to_owned()).into()),
        // Zero is also an empty file of ours whose first step was interrupted.
        APPLICATION_ID | 0 => Ok(()),
        _ => Err(OpenError::Foreign),
    }
}

/// The version as SQLite sees it, log included.
fn version(conn: &Connection, n_steps: usize) -> Result<usize, OpenError> {
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    recognised(application, version, n_steps)?;
    let n_tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, n_tables) {
        (0, 1..) => Err(OpenError::Foreign),
        (APPLICATION_ID, 0) => Err(StoreError::Damaged(DAMAGED_ADVICE.to_owned()).into()),
        _ => Ok(usize::try_from(version).unwrap_or(0)),
    }
}

/// Pages in memory while the file is checked: a way down each tree that is looked at in turns.
const CHECK_CACHE_PAGES: i64 = 64;

/// Reading needs nothing that could be missing: what SQLite cannot make sense of is damaged.
fn unreadable(error: OpenError) -> OpenError {
    if matches!(error, OpenError::Store(StoreError::Other(_))) {
        return StoreError::Damaged(DAMAGED_ADVICE.to_owned()).into();
    }
    error
}

pub(super) fn check_database(conn: &Connection) -> Result<(), StoreError> {
    // The whole file passes through: in a cache of the usual size it would stay for as long as we run.
    let usual: i64 = conn.query_row("PRAGMA cache_size", [], |row| row.get(0))?;
    conn.pragma_update(None, "cache_size", CHECK_CACHE_PAGES)?;
    let verdict: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    conn.pragma_update(None, "cache_size", usual)?;
    if verdict == "ok" {
        return Ok(());
    }
    tracing::error!(verdict, "the database is damaged");
    Err(StoreError::Damaged(DAMAGED_ADVICE.to_owned()))
}

/// The size of a page: older files have larger ones than we would make today.
pub(super) fn page_bytes(conn: &Connection) -> Result<u32, StoreError> {
    Ok(conn.query_row("PRAGMA page_size", [], |row| row.get(0))?)
}

fn prepare(conn: &Connection, durability: DurabilityMode) -> Result<(), StoreError> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Other("this file system cannot hold a write-ahead log".into()));
    }
    let synchronous = match durability {
        DurabilityMode::AsAsked => "FULL",
        DurabilityMode::Nothing => "OFF",
    };
    // The writer decides when to checkpoint.
    conn.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = {WAL_KEPT_BYTES_MAX};"
    ))?;
    Ok(())
}

/// Takes the steps the file has not seen, each whole or not at all.
fn migrate(conn: &Connection, found: usize, steps: &[&str]) -> Result<(), StoreError> {
    for (at, step) in steps.iter().enumerate().skip(found) {
        let transaction = conn.unchecked_transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", i64::try_from(at + 1).unwrap_or(0))?;
        transaction.commit()?;
    }
    Ok(())
}
