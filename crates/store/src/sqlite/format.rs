//! The database file: how it is recognised, rejected, migrated and opened.

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

/// `AIRL`, in the header of each of our databases.
const APPLICATION_ID: i32 = 0x4149_524C;

/// Migrations: each step upgrades the file from the version that is its index to the next.
pub(super) const STEPS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
];

/// Up to this size the whole file is checked when it is opened, which takes some ten milliseconds. Larger ones
/// are checked row by row as they are read.
const CHECKED_BYTES_MAX: u64 = 4 << 20;

/// How long a statement waits for another process that reads the file.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(5);

/// Page size of a new file. A commit writes whole pages to the log: an execution that ends immediately touches eight, mostly
/// with old content. Smaller pages would split events of ordinary size.
const PAGE_BYTES: u32 = 2_048;

/// Maximum size of the log's file between checkpoints.
const WAL_KEPT_BYTES_MAX: u64 = 64 << 20;

/// Size of the statement cache per connection; there are fewer statements than this.
const STATEMENTS_MAX: usize = 64;

/// Why a data directory could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("the data directory is in use by {note}")]
    Owned {
        /// The note of that process.
        note: String,
    },
    /// Written by a later version of this program.
    #[error(
        "the database has format {found} and this program knows formats up to {known}; \
         nothing was changed. Install a newer version, or name another data directory"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest supported version.
        known: i64,
    },
    /// The directory holds less than was acknowledged.
    #[error(
        "the data directory holds less than was acknowledged: {what}; nothing was changed. \
         `airlock store check` shows what is lost, and `airlock store recover` makes the directory usable again"
    )]
    Short {
        /// What is missing.
        what: String,
    },
    /// The file belongs to another program.
    #[error(
        "the file {FILE} in the data directory is not a database of this program; \
         nothing was changed. Move it away, or name another data directory"
    )]
    Foreign,
    /// Any other error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// The durability of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DurabilityMode {
    /// As each append requires.
    AsAsked,
    /// The directory is removed with the store: nothing is ever synced.
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
    /// The whole file if it is small.
    IfSmall,
    /// The whole file.
    Whole,
}

/// A database that is open for writing.
pub(super) struct OpenDatabase {
    pub(super) conn: Connection,
    /// Whether it was just created or migrated: the header in the file must then be updated.
    pub(super) is_changed: bool,
}

/// Recognises and migrates the file, and opens it for writing. The log is not emptied, even if the connection
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

/// A read-only connection to a file that another process may have open; none if there is nothing to read in it yet. The
/// file is not changed.
pub(super) fn read_header(path: &Path, steps: &[&str]) -> Result<Option<Connection>, OpenError> {
    if recognise(path, steps.len())? == 0 {
        return Ok(None);
    }
    let conn = open_reader(path)?;
    let found = version(&conn, steps.len()).map_err(unreadable)?;
    Ok((found > 0).then_some(conn))
}

/// A read-only connection to a file that [`open`] has accepted.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // Only the writer empties the log, because the mark must record it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY_MAX)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    conn.execute_batch("PRAGMA query_only = ON")?;
    Ok(conn)
}

/// A connection that checkpoints the log.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY_MAX)?;
    // A connection knows the log only after its first read.
    conn.query_row("PRAGMA user_version", [], |_| Ok(()))?;
    Ok(conn)
}

/// Checks the first hundred bytes before SQLite does: SQLite may write even when it only reads.
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
    // SQLite treats an unknown mode as "read only".
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

/// The version as SQLite sees it, including the log.
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

/// Page cache during a check: enough for a path down each tree that is checked in turn.
const CHECK_CACHE_PAGES: i64 = 64;

/// Reading depends on nothing else: if SQLite cannot interpret the file, it is damaged.
fn unreadable(error: OpenError) -> OpenError {
    if matches!(error, OpenError::Store(StoreError::Other(_))) {
        return StoreError::Damaged(DAMAGED_ADVICE.to_owned()).into();
    }
    error
}

pub(super) fn check_database(conn: &Connection) -> Result<(), StoreError> {
    // The whole file is read: with the usual cache size, its pages would stay in memory.
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

/// The page size: older files have larger ones than new files.
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

/// Applies the missing migrations, each in one transaction.
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
