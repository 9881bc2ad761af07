//! The retained output of a process: which pieces are dropped when space is needed, and what is recorded
//! about them.

use super::process_event::{OutputChunk, OutputSeq};
use crate::cage::LimitExcess;
use crate::screen::QueryDetector;
use std::collections::VecDeque;

/// Limit of the retained output of one process.
pub const RETAINED_BYTES_MAX: usize = 1 << 20;

/// Limit of retained pieces: pieces of one byte would take far more memory than they hold.
pub(super) const RETAINED_CHUNKS_MAX: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct OutputRing {
    pub(super) chunks: VecDeque<OutputChunk>,
    pub(super) n_bytes: usize,
    /// The last piece that its screen has processed, if it has one.
    pub(super) on_screen: OutputSeq,
    pub(super) listening: QueryDetector,
    /// Whether the program has sent a query to its terminal that was not processed yet.
    pub(super) has_asked: bool,
    /// Bytes in pieces that were not released.
    pub(super) unreleased_bytes: usize,
    pub(super) released: OutputSeq,
    pub(super) last: OutputSeq,
    pub(super) exited: Option<(OutputSeq, i32)>,
    pub(super) closed: Option<OutputSeq>,
    pub(super) excess: Option<LimitExcess>,
    /// The last piece that was dropped, and the number of dropped bytes up to it.
    pub(super) dropped_seq: OutputSeq,
    pub(super) dropped_bytes: u64,
    /// The number of dropped bytes by piece, for readers that had received some of them.
    pub(super) dropped_recently: VecDeque<(OutputSeq, u64)>,
}

/// How many drops are recorded individually; a reader further behind gets the total.
const DROPS_MAX: usize = 4_096;

impl OutputRing {
    /// Whether a piece could be dropped if the screen had processed it. The screen then processes all
    /// pieces in one batch, of which it may have to interpret few.
    pub(super) fn waits_for_screen(&self) -> bool {
        let front = self.chunks.front().map_or(0, |chunk| chunk.seq);
        self.must_make_room() && front <= self.released && front > self.on_screen
    }

    fn must_make_room(&self) -> bool {
        self.n_bytes > RETAINED_BYTES_MAX || self.chunks.len() > RETAINED_CHUNKS_MAX
    }

    pub(super) fn make_room(&mut self) {
        while self.must_make_room() {
            let Some(front) = self.chunks.front() else { return };
            if front.seq > self.released || front.seq > self.on_screen {
                return;
            }
            let (seq, n_bytes) = (front.seq, front.bytes.len());
            self.chunks.pop_front();
            self.n_bytes -= n_bytes;
            self.dropped_bytes += n_bytes as u64;
            self.dropped_seq = seq;
            self.dropped_recently.push_back((seq, n_bytes as u64));
            if self.dropped_recently.len() > DROPS_MAX {
                self.dropped_recently.pop_front();
            }
        }
    }

    pub(super) fn dropped_after(&self, after: OutputSeq) -> u64 {
        if after >= self.dropped_seq {
            return 0;
        }
        match self.dropped_recently.front() {
            Some((first, _)) if after + 1 >= *first => {
                let is_after = |(seq, _): &&(OutputSeq, u64)| *seq > after;
                self.dropped_recently.iter().filter(is_after).map(|(_, n_bytes)| n_bytes).sum()
            }
            // The total of dropped bytes: exact for a reader from the start, otherwise an upper bound.
            Some(_) | None => self.dropped_bytes,
        }
    }
}
