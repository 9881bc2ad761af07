//! What is kept of what a process has said: what goes when there is no room, and what is remembered of it.

use super::said::{OutputChunk, OutputSeq};
use crate::cage::LimitExcess;
use crate::screen::QueryDetector;
use std::collections::VecDeque;

/// What is kept of one process's output.
pub const RETAINED_BYTES_MAX: usize = 1 << 20;

/// How many pieces are kept: one byte each would take far more memory than they hold.
pub(super) const RETAINED_CHUNKS_MAX: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct OutputRing {
    pub(super) chunks: VecDeque<OutputChunk>,
    pub(super) n_bytes: usize,
    /// The last piece that its screen has heard, if it has one.
    pub(super) on_screen: OutputSeq,
    pub(super) listening: QueryDetector,
    /// Whether the program has asked its terminal something that nobody has looked at.
    pub(super) has_asked: bool,
    /// Bytes in pieces that nobody has released.
    pub(super) unreleased_bytes: usize,
    pub(super) released: OutputSeq,
    pub(super) last: OutputSeq,
    pub(super) exited: Option<(OutputSeq, i32)>,
    pub(super) closed: Option<OutputSeq>,
    pub(super) excess: Option<LimitExcess>,
    /// The last piece that was dropped, and how much was dropped up to it: pieces before it count, too.
    pub(super) dropped_seq: OutputSeq,
    pub(super) dropped_bytes: u64,
    /// How much was dropped, told by piece, for those who had heard some of it.
    pub(super) dropped_recently: VecDeque<(OutputSeq, u64)>,
}

/// How many drops are remembered one by one; for a reader further behind the sum since is told.
const DROPS_MAX: usize = 4_096;

impl OutputRing {
    /// Whether a piece could go if the screen had heard it. It then hears all there is at once, of which it may have to
    /// hear little.
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
            // All that was ever dropped: exact for a reader from the start, else the most it can be.
            Some(_) | None => self.dropped_bytes,
        }
    }
}
