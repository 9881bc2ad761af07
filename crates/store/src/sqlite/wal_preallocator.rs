//! Preallocates the log with zeros, so that a sync need not also update the file size. If a file grows, a sync writes
//! twice: the data and the metadata. In preallocated space it is one write, and takes about half as long.
//!
//! SQLite treats the zeros like the remains of an earlier log: as the end of this one.

use super::format;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Sizes in the log's format: the file header, and the header of each page.
const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Space is preallocated when less than this is left, which is sufficient for most commits.
const LEFT_BYTES_MIN: u64 = 64 << 10;

/// How much is preallocated at a time; the next sync writes it, and takes correspondingly longer.
const MADE_BYTES: usize = 512 << 10;

/// Preallocates space in the log's file.
#[derive(Debug)]
pub(super) struct WalPreallocator {
    path: PathBuf,
    frame_bytes: u64,
    /// Opened once there is a log.
    file: Option<File>,
    /// The length of the file at the last check.
    length: u64,
}

impl WalPreallocator {
    pub(super) fn new(database: &Path, page_bytes: u32) -> Self {
        let frame_bytes = FRAME_HEADER_BYTES + u64::from(page_bytes);
        Self { path: format::log_of(database), frame_bytes, file: None, length: 0 }
    }

    /// Preallocates space behind a log of this many pages, if little is left. The log must not be written meanwhile.
    pub(super) fn make(&mut self, pages: i32) {
        let used = HEADER_BYTES + u64::try_from(pages).unwrap_or(0) * self.frame_bytes;
        if used + LEFT_BYTES_MIN <= self.length {
            return;
        }
        // On a full disk this fails; the log then grows as far as it can, and reports the error itself.
        if let Err(error) = self.lengthen(used) {
            tracing::debug!(%error, "no room was made for the log");
        }
    }

    fn lengthen(&mut self, used: u64) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            // Append mode: never overwrites existing bytes.
            none => none.insert(OpenOptions::new().append(true).open(&self.path)?),
        };
        self.length = file.metadata()?.len();
        if used + LEFT_BYTES_MIN > self.length {
            file.write_all(&vec![0; MADE_BYTES])?;
            self.length += MADE_BYTES as u64;
        }
        Ok(())
    }
}
