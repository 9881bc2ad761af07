//! A process's output, numbered: a bounded ring buffer that reports loss, and back-pressure on the process
//! while the buffer is full.

mod output_ring;
mod process_event;

pub use output_ring::RETAINED_BYTES_MAX;
pub use process_event::{OutputChunk, OutputPage, OutputSeq, OutputStream, ProcessEvent};

use crate::cage::LimitExcess;
use crate::screen::TerminalScreen;
use crate::spec::PtySize;
use bytes::Bytes;
use output_ring::{OutputRing, RETAINED_CHUNKS_MAX};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// The largest piece: the capacity of a pipe.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;

/// The retained output of a process.
#[derive(Debug)]
pub struct ProcessOutput {
    kept: Mutex<OutputRing>,
    /// Counts events, so that no subscriber misses one.
    changed: watch::Sender<OutputSeq>,
    /// Notified when the process may write again.
    room: Notify,
    /// The screen of its terminal. It processes a piece when a client requests the screen, or when the
    /// piece is dropped, so that screens without viewers cost nothing. Locked before the retained output,
    /// never after.
    screen: Option<Mutex<TerminalScreen>>,
    /// Clients with their own terminal, which answers the queries of programs.
    pub(crate) n_answerers: AtomicUsize,
}

/// Notifies waiting tasks of new events.
#[derive(Debug, Clone)]
pub struct OutputChanges(watch::Receiver<OutputSeq>);

impl OutputChanges {
    /// Waits for the next event. An event since the last call, or since this was created, counts.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // No sender is left that could add one.
            std::future::pending().await
        }
    }
}

/// Receives every event in order, and releases the events it has received. A process has at most one follower.
#[derive(Debug)]
pub struct OutputFollower<'a> {
    output: &'a ProcessOutput,
    changes: OutputChanges,
    heard: OutputSeq,
}

impl OutputFollower<'_> {
    /// Waits for the next event. No event follows the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> ProcessEvent {
        loop {
            // Yields to other tasks on this thread, however much output there is.
            tokio::task::consume_budget().await;
            match self.output.next_after(self.heard) {
                Some(event) => {
                    self.heard = event.seq();
                    self.output.release(self.heard);
                    return event;
                }
                None => self.changes.next().await,
            }
        }
    }
}

impl ProcessOutput {
    pub(crate) fn new(terminal: Option<PtySize>) -> Self {
        // Without a screen, no piece waits for it.
        let on_screen = if terminal.is_some() { 0 } else { OutputSeq::MAX };
        Self {
            kept: Mutex::new(OutputRing { on_screen, ..OutputRing::default() }),
            changed: watch::Sender::new(0),
            room: Notify::new(),
            screen: terminal.map(|size| Mutex::new(TerminalScreen::new(size))),
            n_answerers: AtomicUsize::new(0),
        }
    }

    /// Reads the present content of the terminal; `None` if there is no terminal.
    pub fn screen<T>(&self, look: impl FnOnce(&mut TerminalScreen) -> T) -> Option<T> {
        let mut screen = self.screen.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        self.catch_up(&mut screen);
        screen.finish();
        Some(look(&mut screen))
    }

    /// Passes pieces to the screen that are about to be dropped.
    fn skim(&self) {
        if let Some(screen) = &self.screen {
            let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            self.catch_up(&mut screen);
        }
    }

    /// The terminal's answers to queries that the program has just sent, unless a client answers them; one
    /// answer to each query.
    pub(crate) fn answers(&self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.kept().has_asked) {
            return None;
        }
        let answers = self.screen(TerminalScreen::take_answers)?;
        (self.n_answerers.load(Ordering::Acquire) == 0 && !answers.is_empty()).then_some(answers)
    }

    fn catch_up(&self, screen: &mut TerminalScreen) {
        loop {
            // Pieces are shared, so a writer does not wait for the emulator.
            let mut kept = self.kept();
            kept.on_screen = screen.heard();
            let at = kept.chunks.partition_point(|chunk| chunk.seq <= screen.heard());
            let unheard: Vec<Bytes> =
                kept.chunks.range(at..).map(|chunk| chunk.bytes.clone()).collect();
            let last = kept.chunks.back().map(|chunk| chunk.seq);
            drop(kept);
            match last {
                Some(last) if !unheard.is_empty() => screen.skim(last, &unheard),
                Some(_) | None => return,
            }
        }
    }

    /// The first event after `after`; older ones may have been lost.
    pub fn next_after(&self, after: OutputSeq) -> Option<ProcessEvent> {
        let kept = self.kept();
        let at = kept.chunks.partition_point(|chunk| chunk.seq <= after);
        let chunk = kept.chunks.get(at).map(|chunk| ProcessEvent::Output(chunk.clone()));
        let exited = kept.exited.map(|(seq, code)| ProcessEvent::Exited { seq, code });
        let closed = kept.closed.map(|seq| ProcessEvent::Closed { seq });
        let is_after = |event: &ProcessEvent| event.seq() > after;
        [chunk, exited, closed].into_iter().flatten().filter(is_after).min_by_key(ProcessEvent::seq)
    }

    /// Output after `after`, whole pieces of at most `bytes_max` together, but at least one if there is one.
    pub fn page(&self, after: OutputSeq, bytes_max: Option<usize>) -> OutputPage {
        let kept = self.kept();
        let first = kept.chunks.partition_point(|chunk| chunk.seq <= after);
        let mut n_bytes = 0;
        let fits = |chunk: &&OutputChunk| {
            let is_first = n_bytes == 0;
            n_bytes += chunk.bytes.len();
            is_first || bytes_max.is_none_or(|max| n_bytes <= max)
        };
        let chunks: Vec<OutputChunk> =
            kept.chunks.range(first..).take_while(fits).cloned().collect();
        let is_all = first + chunks.len() == kept.chunks.len();
        let next_seq = match chunks.last() {
            Some(last) if !is_all || bytes_max.is_some() => last.seq + 1,
            _ => kept.last + 1,
        };
        OutputPage {
            chunks,
            next_seq,
            exited: kept.exited,
            closed: kept.closed,
            dropped_bytes: kept.dropped_after(after),
            first_seq: kept.chunks.front().map(|chunk| chunk.seq),
        }
    }

    /// The number of the last event.
    pub fn last_seq(&self) -> OutputSeq {
        self.kept().last
    }

    /// How it ended, if it has.
    pub fn exit_code(&self) -> Option<i32> {
        self.kept().exited.map(|(_, code)| code)
    }

    /// The limit that it exceeded, for which it was killed.
    pub fn excess(&self) -> Option<LimitExcess> {
        self.kept().excess
    }

    pub(crate) fn exceeded(&self, excess: LimitExcess) {
        self.kept().excess = Some(excess);
    }

    /// Whether no further event follows.
    pub fn is_closed(&self) -> bool {
        self.kept().closed.is_some()
    }

    /// Releases the pieces up to `seq`: they are dropped when space is needed. Without releases, a process
    /// that has filled the buffer has to wait.
    pub fn release(&self, seq: OutputSeq) {
        let mut kept = self.kept();
        if seq <= kept.released {
            return;
        }
        let from = kept.chunks.partition_point(|chunk| chunk.seq <= kept.released);
        let until = kept.chunks.partition_point(|chunk| chunk.seq <= seq);
        let n_bytes: usize = kept.chunks.range(from..until).map(|chunk| chunk.bytes.len()).sum();
        kept.unreleased_bytes -= n_bytes;
        kept.released = seq;
        drop(kept);
        self.room.notify_one();
    }

    /// Receives all output from the beginning.
    pub fn follow(&self) -> OutputFollower<'_> {
        OutputFollower { output: self, changes: self.changes(), heard: 0 }
    }

    /// Returns a subscription to new events.
    pub fn changes(&self) -> OutputChanges {
        OutputChanges(self.changed.subscribe())
    }

    /// Whether another piece fits without dropping one that was not released.
    pub(crate) fn has_room(&self) -> bool {
        let kept = self.kept();
        let n_unreleased = kept
            .chunks
            .len()
            .saturating_sub(kept.chunks.partition_point(|chunk| chunk.seq <= kept.released));
        kept.unreleased_bytes + CHUNK_BYTES_MAX <= RETAINED_BYTES_MAX
            && n_unreleased < RETAINED_CHUNKS_MAX
    }

    /// Waits until there may be space.
    pub(crate) async fn room(&self) {
        self.room.notified().await;
    }

    /// Adds a piece and drops released ones that no longer fit.
    pub(crate) fn append_bytes(&self, stream: OutputStream, bytes: Bytes) {
        let mut kept = self.kept();
        kept.last += 1;
        let seq = kept.last;
        if self.screen.is_some() && kept.listening.detect_query(&bytes) {
            kept.has_asked = true;
        }
        kept.n_bytes += bytes.len();
        // A piece that was released in advance, because no client wants it, never counts.
        if seq > kept.released {
            kept.unreleased_bytes += bytes.len();
        }
        kept.chunks.push_back(OutputChunk { seq, stream, bytes });
        kept.make_room();
        if kept.waits_for_screen() {
            drop(kept);
            self.skim();
            kept = self.kept();
            kept.make_room();
        }
        self.notify_followers(kept);
    }

    pub(crate) fn exited(&self, code: i32) {
        let mut kept = self.kept();
        kept.last += 1;
        kept.exited = Some((kept.last, code));
        self.notify_followers(kept);
    }

    pub(crate) fn closed(&self) {
        let mut kept = self.kept();
        kept.last += 1;
        kept.closed = Some(kept.last);
        self.notify_followers(kept);
    }

    fn notify_followers(&self, kept: MutexGuard<'_, OutputRing>) {
        let last = kept.last;
        drop(kept);
        self.changed.send_replace(last);
    }

    fn kept(&self) -> MutexGuard<'_, OutputRing> {
        // Every change is complete before the lock is released.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(output: &ProcessOutput, text: &str) {
        output.append_bytes(OutputStream::Stdout, Bytes::copy_from_slice(text.as_bytes()));
    }

    fn seqs(page: &OutputPage) -> Vec<OutputSeq> {
        page.chunks.iter().map(|chunk| chunk.seq).collect()
    }

    #[test]
    fn a_page_holds_whole_pieces_and_skips_none() {
        let output = ProcessOutput::new(None);
        for text in ["aaaa", "bbbb", "cccc"] {
            said(&output, text);
        }
        for (after, max, expected, next_seq) in [
            (0, None, vec![1, 2, 3], 4),
            (1, None, vec![2, 3], 4),
            (0, Some(0), vec![1], 2),
            (0, Some(4), vec![1], 2),
            (0, Some(7), vec![1], 2),
            (0, Some(8), vec![1, 2], 3),
            (99, None, vec![], 4),
            (3, Some(4), vec![], 4),
        ] {
            let page = output.page(after, max);
            assert_eq!((after, max, seqs(&page), page.next_seq), (after, max, expected, next_seq));
        }
    }

    #[test]
    fn exit_and_end_take_one_number_each() {
        let output = ProcessOutput::new(None);
        said(&output, "early");
        output.exited(3);
        said(&output, "late");
        output.closed();
        let events: Vec<_> =
            std::iter::successors(output.next_after(0), |event| output.next_after(event.seq()))
                .collect();
        let chunk = |seq, text: &'static str| {
            ProcessEvent::Output(OutputChunk {
                seq,
                stream: OutputStream::Stdout,
                bytes: Bytes::from(text),
            })
        };
        let expected = [
            chunk(1, "early"),
            ProcessEvent::Exited { seq: 2, code: 3 },
            chunk(3, "late"),
            ProcessEvent::Closed { seq: 4 },
        ];
        assert_eq!(events, expected);
        let page = output.page(0, None);
        assert_eq!((page.next_seq, page.exited, page.closed), (5, Some((2, 3)), Some(4)));
        assert_eq!(output.page(0, Some(9)).next_seq, 4);
    }

    #[test]
    fn only_what_was_released_is_dropped_and_it_is_told() {
        let output = ProcessOutput::new(None);
        let piece = "x".repeat(CHUNK_BYTES_MAX);
        let n_pieces = RETAINED_BYTES_MAX / CHUNK_BYTES_MAX;
        for _ in 0..n_pieces {
            assert!(output.has_room());
            said(&output, &piece);
        }
        assert!(!output.has_room());
        assert_eq!(output.page(0, None).dropped_bytes, 0);
        output.release(2);
        assert!(output.has_room());
        said(&output, &piece);
        said(&output, &piece);
        assert!(!output.has_room());
        let page = output.page(0, None);
        assert_eq!((page.dropped_bytes, page.first_seq), (2 * piece.len() as u64, Some(3)));
        assert_eq!(output.page(1, None).dropped_bytes, piece.len() as u64);
        assert_eq!(output.page(2, None).dropped_bytes, 0);
    }

    #[test]
    fn a_screen_hears_also_what_was_dropped_before_anybody_looked() {
        let output = ProcessOutput::new(Some(PtySize { rows: 3, columns: 20 }));
        output.release(u64::MAX);
        let filler = format!("{}\r", ".".repeat(CHUNK_BYTES_MAX - 1));
        output.append_bytes(OutputStream::Terminal, Bytes::from_static(b"\x1b]2;first\x07"));
        for _ in 0..2 * RETAINED_BYTES_MAX / CHUNK_BYTES_MAX {
            output.append_bytes(OutputStream::Terminal, Bytes::copy_from_slice(filler.as_bytes()));
        }
        output.append_bytes(OutputStream::Terminal, Bytes::from_static(b"\x1b[2J\x1b[Hlast"));
        assert!(output.page(0, None).dropped_bytes > 0);
        let snapshot = output.screen(|screen| screen.snapshot(0)).unwrap();
        assert_eq!((snapshot.title.as_str(), snapshot.rows[0].text.as_str()), ("first", "last"));
        assert_eq!(snapshot.seq, output.last_seq());
        assert_eq!(ProcessOutput::new(None).screen(|_| ()), None);
    }

    #[tokio::test]
    async fn an_event_between_looking_and_waiting_is_not_slept_through() {
        let output = ProcessOutput::new(None);
        let mut changes = output.changes();
        assert_eq!(output.next_after(0), None);
        said(&output, "now");
        changes.next().await;
        assert!(output.next_after(0).is_some());
    }
}
