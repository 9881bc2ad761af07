//! Saves the content of a damaged log. SQLite reads a log up to its first damaged frame; there may be more behind it.
//!
//! A frame's checksum builds on that of the previous frame, and each frame contains its own. So every frame can be checked
//! separately, and a damaged one is harmless if a later one holds the same page.

use super::format;
use super::mark::MarkState;
use super::wal::{FRAME_HEADER_BYTES, HEADER_BYTES, LogHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The part of a log that can be saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LogRescue {
    page_bytes: usize,
    /// The newest valid frame of each page, up to the last acknowledged transaction.
    pages: BTreeMap<u32, usize>,
    /// The number of pages of the database after that.
    n_pages: u32,
    /// Damaged frames that no later frame replaces.
    pub(super) n_lost: usize,
}

/// Determines what can be saved of a log; `None` if its header is damaged, or it is not the log of the mark.
pub(super) fn plan(log: &[u8], mark: &MarkState) -> Option<LogRescue> {
    let position = mark.log?;
    let header = LogHeader::parse(log).filter(|header| header.generation == position.generation)?;
    let written = usize::try_from(position.written).ok()?;
    let mut checker = header.frames();
    let frames = log.get(HEADER_BYTES..)?.chunks(header.frame_bytes()).take(written);
    let frames: Vec<_> = frames.map(|frame| (page_of(frame), checker.next(frame))).collect();
    // Incomplete transactions do not count.
    let commits =
        frames.iter().rposition(|(_, sound)| sound.is_some_and(|it| it.commits_with.is_some()));
    let n_used = commits? + 1;
    let mut rescue = LogRescue { page_bytes: header.page_bytes, ..LogRescue::default() };
    let mut lost = BTreeSet::new();
    for (at, (page, sound)) in frames.iter().take(n_used).enumerate() {
        if let Some(sound) = sound {
            rescue.pages.insert(*page, at);
            lost.remove(page);
            rescue.n_pages = sound.commits_with.unwrap_or(rescue.n_pages);
        } else {
            lost.insert(*page);
        }
    }
    rescue.n_lost = lost.len() + written.saturating_sub(n_used);
    Some(rescue)
}

/// The page number in a frame's header.
fn page_of(frame: &[u8]) -> u32 {
    frame.first_chunk::<4>().map_or(0, |page| u32::from_be_bytes(*page))
}

/// Writes the saved pages into the database, synced. The log is not needed afterwards.
pub(super) fn apply(dir: &Path, log: &[u8], rescue: &LogRescue) -> io::Result<()> {
    let main: File = OpenOptions::new().write(true).open(dir.join(format::FILE))?;
    let page_bytes = rescue.page_bytes as u64;
    for (page, at) in &rescue.pages {
        let begin =
            HEADER_BYTES + at * (FRAME_HEADER_BYTES + rescue.page_bytes) + FRAME_HEADER_BYTES;
        let bytes = &log[begin..begin + rescue.page_bytes];
        main.write_all_at(bytes, u64::from(*page - 1) * page_bytes)?;
    }
    let length = u64::from(rescue.n_pages) * page_bytes;
    if main.metadata()?.len() < length {
        main.set_len(length)?;
    }
    main.sync_all()
}
