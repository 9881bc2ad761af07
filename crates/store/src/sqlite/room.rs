//! Keeps the log's file longer than the log. To lengthen a file and sync it, a disk writes twice: the bytes, and that there
//! are more of them. Where bytes already lie, a sync is one write, and takes about half as long.
//!
//! What lies ahead is zeros: to SQLite the same as what an earlier log has left, the end of this one.

use super::format;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Of the log's format: before everything, and before each page.
const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Room is made when less than this is left, which most commits fit in.
const LEFT_BYTES_MIN: u64 = 64 << 10;

/// How much is made at a time; the next sync writes it, and takes that much longer.
const MADE_BYTES: usize = 512 << 10;

/// The room in the log's file.
#[derive(Debug)]
pub(super) struct WalPreallocator {
    path: PathBuf,
    frame_bytes: u64,
    /// Opened when there is a log.
    file: Option<File>,
    /// How long the file was when last looked at.
    length: u64,
}

impl WalPreallocator {
    pub(super) fn new(database: &Path, page_bytes: u32) -> Self {
        let frame_bytes = FRAME_HEADER_BYTES + u64::from(page_bytes);
        Self { path: format::log_of(database), frame_bytes, file: None, length: 0 }
    }

    /// Makes room behind a log of this many pages, if little is left. Nobody may write to the log meanwhile.
    pub(super) fn make(&mut self, pages: i32) {
        let used = HEADER_BYTES + u64::try_from(pages).unwrap_or(0) * self.frame_bytes;
        if used + LEFT_BYTES_MIN <= self.length {
            return;
        }
        // On a full disk there is none; the log then grows as far as it can, and says so itself.
        if let Err(error) = self.lengthen(used) {
            tracing::debug!(%error, "no room was made for the log");
        }
    }

    fn lengthen(&mut self, used: u64) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            // Only ever behind what is there, whatever is there.
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
