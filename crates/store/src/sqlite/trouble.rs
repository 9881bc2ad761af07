//! Converts errors of SQLite and the file system into errors that callers can act on.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "foreign enums, of which we know some words and keep the rest for the log"
)]

use crate::StoreError;
use rusqlite::{ErrorCode, ffi};
use std::io;

/// The remedy for a damaged file, included in every such error.
pub(super) const DAMAGED_ADVICE: &str = "the database is damaged; nothing was changed. \
    Stop the server and restore a backup, or save what can be read: \
    `airlock store check` shows what is lost, and `airlock store recover` makes the directory usable again";

/// A row that SQLite reads without error and whose content is wrong.
pub(super) fn damaged(what: &str) -> StoreError {
    tracing::error!(what, "a damaged row");
    StoreError::Damaged(DAMAGED_ADVICE.to_owned())
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(code, _) = &error else {
            return match error {
                // A column with another type than the one that is always written there.
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                // A statement of ours names something that does not exist: the tables are not those that we created.
                | rusqlite::Error::SqlInputError { .. }
                | rusqlite::Error::Utf8Error(..) => damaged(&error.to_string()),
                other => Self::Other(other.to_string()),
            };
        };
        if code.code != ErrorCode::DatabaseBusy {
            tracing::warn!(%error, extended = code.extended_code, "sqlite failed");
        }
        sorted(*code, &error)
    }
}

fn sorted(code: ffi::Error, error: &rusqlite::Error) -> StoreError {
    match code.extended_code {
        // SQLite reports the kernel's errors about quotas and size limits as failed writes.
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE => return StoreError::Full,
        ffi::SQLITE_IOERR_CORRUPTFS | ffi::SQLITE_IOERR_SHORT_READ => {
            return StoreError::Damaged(DAMAGED_ADVICE.to_owned());
        }
        _ => {}
    }
    match code.code {
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            StoreError::ReadOnly
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            StoreError::Damaged(DAMAGED_ADVICE.to_owned())
        }
        _ => StoreError::Other(error.to_string()),
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        tracing::warn!(%error, "a file of the store failed");
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly,
            _ => Self::Other(error.kind().to_string()),
        }
    }
}
