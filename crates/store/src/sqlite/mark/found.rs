//! Reads the mark and examines the files. Changes nothing.

use super::slot::{MarkState, SLOT_STRIDE};
use super::verdict::{FoundFiles, FoundLog};
use crate::sqlite::append_log;
use crate::sqlite::wal::{HEADER_BYTES, LogHeader};
use crate::sqlite::{format, mark};
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

/// The mark in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum FoundMark {
    /// There is no mark.
    Missing,
    /// Both slots are damaged.
    Damaged,
    /// The newer of the valid slots, with its sequence number.
    Sound(u64, MarkState),
}

/// Reads the mark of a data directory.
pub(in crate::sqlite) fn read_mark(dir: &Path) -> io::Result<FoundMark> {
    let mut bytes = Vec::new();
    match File::open(dir.join(mark::FILE)) {
        Ok(file) => file.take(2 * SLOT_STRIDE as u64).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundMark::Missing),
        Err(error) => return Err(error),
    };
    Ok(MarkState::newest(&bytes)
        .map_or(FoundMark::Damaged, |(sequence, state)| FoundMark::Sound(sequence, state)))
}

/// Determines how far the files of a data directory reach. SQLite must not have the database open.
pub(in crate::sqlite) fn find_files(dir: &Path) -> io::Result<FoundFiles> {
    let main = dir.join(format::FILE);
    let main_bytes = match std::fs::metadata(&main) {
        Ok(data) => data.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(FoundFiles {
        log: find_log(&format::log_of(&main))?,
        main_bytes,
        tails: append_log::find(dir)?,
    })
}

/// The complete transactions at the beginning of a log.
fn find_log(path: &Path) -> io::Result<FoundLog> {
    let mut log = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundLog::Empty),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_BYTES];
    let Some(header) = log.read_exact(&mut header).ok().and_then(|()| LogHeader::parse(&header))
    else {
        return Ok(FoundLog::Empty);
    };
    let (mut checker, mut frame) = (header.frames(), vec![0; header.frame_bytes()]);
    let (mut n_frames, mut n_committed) = (0, 0);
    while log.read_exact(&mut frame).is_ok()
        && let Some(found) = checker.next(&frame)
    {
        n_frames += 1;
        if found.commits_with.is_some() {
            n_committed = n_frames;
        }
    }
    Ok(FoundLog::Frames(header.generation, n_committed))
}
