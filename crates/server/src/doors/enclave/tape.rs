//! The lines that readers of one session share: one reader renders them for the others. A tape exists while the
//! session has readers; the journal has all of it anyway.

use bytes::Bytes;
use lifecycle::Seq;
use protocols::enclave::EventRenderer;

/// Maximum size of the text on one tape. Beyond that, each reader renders its own lines.
const TAPE_BYTES_MAX: usize = 4 << 20;

/// The first lines of a session, unencrypted and complete.
#[derive(Default)]
pub(super) struct SessionTape {
    batches: Vec<LineBatch>,
    n_bytes: usize,
    /// The state from which a reader continues at the end of the tape.
    end: Option<BatchEnd>,
}

/// A batch of lines.
#[derive(Clone)]
struct LineBatch {
    /// The number of the last line; the first one follows the last of the batch before.
    last: u64,
    text: Bytes,
}

/// The state after the last batch.
#[derive(Clone)]
pub(super) struct BatchEnd {
    /// The renderer that has processed all entries up to there.
    pub(super) telling: EventRenderer,
    /// The last of these entries.
    pub(super) entry: Seq,
    /// Whether it is the end of the session.
    pub(super) over: bool,
}

impl SessionTape {
    /// The number of the last event on the tape.
    pub(super) fn last(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.last)
    }

    /// Whether its last event is the session's last.
    pub(super) fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.over)
    }

    /// The state after its last event, for a reader that has sent less and continues from there.
    pub(super) fn end_after(&self, told: u64) -> Option<BatchEnd> {
        self.end.clone().filter(|end| !end.over && end.telling.last() > told)
    }

    /// Returns lines that begin with event `from`, and the number of the last of them.
    pub(super) fn lines(&self, from: u64) -> Option<(Bytes, u64)> {
        let at = self.batches.partition_point(|batch| batch.last < from);
        let batch = self.batches.get(at)?;
        let first = at.checked_sub(1).map_or(1, |before| self.batches[before].last + 1);
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        Some((batch.text.slice(line_start(&batch.text, skipped)..), batch.last))
    }

    /// Appends a batch if it follows the end of the tape and fits.
    pub(super) fn add(&mut self, first: u64, text: &Bytes, end: impl FnOnce() -> BatchEnd) {
        if first != self.last() + 1 || self.n_bytes + text.len() > TAPE_BYTES_MAX {
            return;
        }
        let end = end();
        self.n_bytes += text.len();
        self.batches.push(LineBatch { last: end.telling.last(), text: text.clone() });
        self.end = Some(end);
    }
}

/// The offset of the n-th line, from 0.
fn line_start(text: &[u8], n: usize) -> usize {
    let Some(nth) = n.checked_sub(1) else { return 0 };
    let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    breaks.skip(nth).map(|at| at + 1).next().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_where_they_are_counted() {
        let text = b"a\nbc\n\nd\n";
        assert_eq!([0, 1, 2, 3, 4, 9].map(|n| line_start(text, n)), [0, 2, 5, 6, 8, 8]);
    }
}
