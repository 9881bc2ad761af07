//! Entries as concatenated text: the format of the append files, and of the row of an execution that ended in its first
//! append.

use crate::StoreError;
use lifecycle::{Entry, Timestamp};

/// Typical maximum size of an entry. Three of them fit the allocator's fastest size class.
const ENTRY_BYTES_USUAL: usize = 300;

/// Entries in order, rendered by the caller and not by the writer's thread. Before each event are its time and
/// the length of its text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct RenderedEntries(Vec<u8>);

impl RenderedEntries {
    /// No entries yet, with capacity for `n`.
    pub(super) fn for_entries(n: usize) -> Self {
        Self(Vec::with_capacity(n.saturating_mul(ENTRY_BYTES_USUAL)))
    }

    /// From stored bytes.
    pub(super) const fn kept(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Adds an entry; returns the length of its event's text.
    pub(super) fn push(&mut self, entry: &Entry) -> Result<usize, StoreError> {
        let other = |error: &dyn std::error::Error| StoreError::Other(error.to_string());
        self.0.extend_from_slice(&entry.at.0.to_le_bytes());
        let length_at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        let begin = self.0.len();
        serde_json::to_writer(&mut self.0, &entry.event).map_err(|error| other(&error))?;
        let bytes = self.0.len() - begin;
        let length = u32::try_from(bytes).map_err(|error| other(&error))?;
        self.0[length_at..begin].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// The stored form.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The time and the event of each entry, in order; `None` in place of an unreadable one.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<(Timestamp, &str)>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            (!rest.is_empty()).then(|| {
                let next = next(&mut rest);
                // After an unreadable entry, the start of the next one is unknown.
                if next.is_none() {
                    rest = &[];
                }
                next
            })
        })
    }

    /// Whether all entries are readable.
    pub(super) fn is_sound(&self) -> bool {
        self.iter().all(|entry| entry.is_some())
    }

    /// The number of entries, and the times of the first and the last.
    pub(super) fn span(&self) -> EntrySpan {
        let mut span = EntrySpan { n: 0, first: Timestamp(0), last: Timestamp(0) };
        for (at, _) in self.iter().flatten() {
            span.first = if span.n == 0 { at } else { span.first };
            span.last = at;
            span.n += 1;
        }
        span
    }
}

/// What is known of entries without reading their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntrySpan {
    pub(super) n: i64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(Timestamp, &'a str)> {
    Some((Timestamp(i64::from_le_bytes(array(rest)?)), length_prefixed_text(rest)?))
}

/// Splits the first bytes off `rest`.
pub(super) fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    rest.split_off(..N)?.try_into().ok()
}

/// Reads a text with a length prefix.
pub(super) fn length_prefixed_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = u32::from_le_bytes(array(rest)?);
    std::str::from_utf8(rest.split_off(..usize::try_from(length).ok()?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{Event, Seq, TimerId};

    fn three() -> RenderedEntries {
        let mut rendered = RenderedEntries::for_entries(3);
        for n in 1..=3_u32 {
            let event = Event::TimerFired { timer: TimerId(n) };
            let entry = Entry { seq: Seq(n.into()), at: Timestamp(n.into()), event };
            rendered.push(&entry).unwrap();
        }
        rendered
    }

    #[test]
    fn what_was_rendered_is_read_again_in_order() {
        let kept = RenderedEntries::kept(three().as_bytes().to_vec());
        let read: Vec<_> = kept.iter().map(|entry| entry.unwrap().0.0).collect();
        assert_eq!(read, [1, 2, 3]);
        assert_eq!(kept.span(), EntrySpan { n: 3, first: Timestamp(1), last: Timestamp(3) });
        assert!(kept.is_sound() && RenderedEntries::default().is_sound());
    }

    /// Existing files have this format: an earlier version may have written the append file that a start finds.
    #[test]
    fn it_is_written_as_it_always_was() {
        let event = Event::TimerFired { timer: TimerId(7) };
        let mut rendered = RenderedEntries::default();
        rendered.push(&Entry { seq: Seq(1), at: Timestamp(258), event }).unwrap();
        let (head, text) = rendered.as_bytes().split_at(12);
        assert_eq!(head, [2, 1, 0, 0, 0, 0, 0, 0, 27, 0, 0, 0]);
        assert_eq!(std::str::from_utf8(text).unwrap(), r#"{"timer_fired":{"timer":7}}"#);
    }

    #[test]
    fn what_is_cut_short_ends_with_something_unreadable() {
        let whole = three();
        for length in 1..whole.as_bytes().len() {
            let cut = RenderedEntries::kept(whole.as_bytes()[..length].to_vec());
            let n_read = cut.iter().flatten().count();
            assert!(n_read < 3 && cut.iter().count() <= n_read + 1, "cut at {length}");
            assert_eq!(cut.is_sound(), cut.iter().count() == n_read, "cut at {length}");
        }
    }
}
