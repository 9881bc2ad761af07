//! A cache of the newest entries: a follower that is up to date need not read the disk.
//!
//! Only a copy of committed data: it may be dropped at any time without loss.

use super::query::{EntryPage, PageMax};
use crate::{ExecutionOverview, ListedExecution};
use lifecycle::{Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, Seq};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// Total size of the cache. Holds small executions by the hundred, and fits into a processor's cache: each new
/// execution evicts the oldest one and reuses its memory.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Approximate size of an entry without its event.
const ENTRY_BYTES: usize = 200;

/// The newest entries of executions; the oldest execution is evicted first.
#[derive(Default)]
pub(super) struct EntryCache(Mutex<CachedEntries>);

#[derive(Default)]
struct CachedEntries {
    tails: HashMap<ExecutionId, EntryTail>,
    /// The executions in `tails`, in order of insertion.
    order: VecDeque<ExecutionId>,
    bytes: usize,
}

/// The newest entries of one execution, in order.
struct EntryTail {
    entries: Vec<(Entry, usize)>,
    bytes: usize,
}

impl EntryCache {
    /// Caches what has just been committed after `expected`; each entry with the length of its event.
    pub(super) fn insert_entries(
        &self,
        execution: ExecutionId,
        expected: Seq,
        entries: impl Iterator<Item = (Entry, usize)>,
    ) {
        let entries =
            entries.map(|(entry, bytes)| (entry, bytes + ENTRY_BYTES)).collect::<Vec<_>>();
        let bytes: usize = entries.iter().map(|(_, bytes)| bytes).sum();
        let mut kept = self.lock();
        match kept.tails.get_mut(&execution) {
            Some(tail) if tail.last() == Some(expected) => {
                tail.bytes += bytes;
                tail.entries.extend(entries);
            }
            Some(_) | None => {
                kept.drop_tail(execution);
                kept.tails.insert(execution, EntryTail { entries, bytes });
                kept.order.push_back(execution);
            }
        }
        kept.bytes += bytes;
        while kept.bytes > KEPT_BYTES_MAX
            && let Some(oldest) = kept.order.front().copied()
        {
            kept.drop_tail(oldest);
        }
    }

    /// The entries after `after`, if all of them are cached and there is at least one.
    pub(super) fn after(
        &self,
        execution: ExecutionId,
        after: Seq,
        max: PageMax,
    ) -> Option<EntryPage> {
        self.lock().tails.get(&execution)?.after(after, max)
    }

    /// The same, if the execution ends with them.
    pub(super) fn end_after(
        &self,
        execution: ExecutionId,
        after: Seq,
        max: PageMax,
    ) -> Option<EntryPage> {
        let kept = self.lock();
        let tail = kept.tails.get(&execution).filter(|tail| tail.is_over())?;
        tail.after(after, max).filter(|page| !page.full)
    }

    /// The overview of an execution that is cached completely, from its first entry to its end.
    pub(super) fn overview(&self, execution: ExecutionId) -> Option<ExecutionOverview> {
        let kept = self.lock();
        let tail = kept.tails.get(&execution).filter(|tail| tail.is_over())?;
        let (first, _) = tail.entries.first()?;
        let Event::Started { caller, .. } = &first.event else { return None };
        let standing =
            ExecutionSummary { phase: ExecutionPhase::Finished, caller: caller.clone(), due: None };
        let listed = ListedExecution { execution, created: first.at, last: tail.last()?, standing };
        let is_asked = |(entry, _): &(Entry, usize)| matches!(entry.event, Event::CallAsked(_));
        Some(ExecutionOverview { listed, has_asked: tail.entries.iter().any(is_asked) })
    }

    /// Removes a deleted execution.
    pub(super) fn remove_execution(&self, execution: ExecutionId) {
        self.lock().drop_tail(execution);
    }

    fn lock(&self) -> MutexGuard<'_, CachedEntries> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl EntryTail {
    fn after(&self, after: Seq, max: PageMax) -> Option<EntryPage> {
        let first = self.entries.first()?.0.seq;
        let skipped = usize::try_from(after.next().0.checked_sub(first.0)?).ok()?;
        let mut bytes = 0;
        let mut entries = Vec::new();
        for (entry, entry_bytes) in self.entries.get(skipped..)? {
            if entries.len() >= max.entries || bytes >= max.bytes {
                break;
            }
            bytes += entry_bytes;
            entries.push(entry.clone());
        }
        let full = skipped + entries.len() < self.entries.len();
        (!entries.is_empty()).then_some(EntryPage { entries, full })
    }

    fn is_over(&self) -> bool {
        let last = self.entries.last().map(|(entry, _)| &entry.event);
        matches!(last, Some(Event::Finished { .. }))
    }

    fn last(&self) -> Option<Seq> {
        self.entries.last().map(|(entry, _)| entry.seq)
    }
}

impl CachedEntries {
    fn drop_tail(&mut self, execution: ExecutionId) {
        if let Some(tail) = self.tails.remove(&execution) {
            self.bytes -= tail.bytes;
            // Nearly always the first one, and there may be thousands.
            if let Some(at) = self.order.iter().position(|kept| *kept == execution) {
                self.order.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{ExecutionOutcome, TimerId, Timestamp};
    use uuid::Uuid;

    const ALL: PageMax = PageMax { entries: 100, bytes: usize::MAX };

    fn entries(seqs: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = (Entry, usize)> {
        let event = Event::TimerFired { timer: TimerId(1) };
        seqs.map(move |seq| (Entry { seq: Seq(seq), at: Timestamp(0), event: event.clone() }, 10))
    }

    fn seqs(recent: &EntryCache, execution: ExecutionId, after: u64) -> Option<Vec<u64>> {
        let page = recent.after(execution, Seq(after), ALL)?;
        Some(page.entries.iter().map(|entry| entry.seq.0).collect())
    }

    #[test]
    fn what_follows_is_here_or_it_is_not_all_here() {
        let (recent, one) = (EntryCache::default(), ExecutionId::from_uuid(Uuid::now_v7()));
        assert_eq!(seqs(&recent, one, 0), None);
        recent.insert_entries(one, Seq(2), entries(3..=4));
        recent.insert_entries(one, Seq(4), entries(5..=5));
        assert_eq!(seqs(&recent, one, 1), None, "the second is missing");
        assert_eq!(seqs(&recent, one, 2), Some(vec![3, 4, 5]));
        assert_eq!(seqs(&recent, one, 4), Some(vec![5]));
        assert_eq!(seqs(&recent, one, 5), None);
        assert_eq!(seqs(&recent, one, u64::MAX - 1), None);
        recent.insert_entries(one, Seq(8), entries(9..=9));
        assert_eq!(seqs(&recent, one, 2), None, "there is a gap");
        assert_eq!(seqs(&recent, one, 8), Some(vec![9]));
        recent.remove_execution(one);
        assert_eq!(seqs(&recent, one, 8), None);
        assert_eq!(recent.lock().bytes, 0);
    }

    #[test]
    fn an_end_is_found_once_it_is_there_and_fits_a_page() {
        let (recent, one) = (EntryCache::default(), ExecutionId::from_uuid(Uuid::now_v7()));
        recent.insert_entries(one, Seq(0), entries(1..=2));
        assert!(recent.end_after(one, Seq(0), ALL).is_none(), "more will come");
        let event = Event::Finished {
            outcome: ExecutionOutcome::Completed { value: None },
            active_ms: 0,
            iterations: 0,
        };
        let end = Entry { seq: Seq(3), at: Timestamp(0), event };
        recent.insert_entries(one, Seq(2), std::iter::once((end, 10)));
        let n_entries =
            |after, max| recent.end_after(one, Seq(after), max).map(|page| page.entries.len());
        assert_eq!(n_entries(0, ALL), Some(3));
        assert_eq!(n_entries(2, ALL), Some(1));
        assert_eq!(n_entries(3, ALL), None);
        assert_eq!(n_entries(0, PageMax { entries: 2, bytes: usize::MAX }), None);
    }

    #[test]
    fn a_page_says_when_it_is_full() {
        let (recent, one) = (EntryCache::default(), ExecutionId::from_uuid(Uuid::now_v7()));
        recent.insert_entries(one, Seq(0), entries(1..=5));
        let page = recent.after(one, Seq(0), PageMax { entries: 3, bytes: usize::MAX }).unwrap();
        assert_eq!((page.entries.len(), page.full), (3, true));
        let page = recent.after(one, Seq(3), PageMax { entries: 3, bytes: usize::MAX }).unwrap();
        assert_eq!((page.entries.len(), page.full), (2, false));
    }

    #[test]
    fn the_oldest_execution_goes_first_and_never_too_much_is_kept() {
        let recent = EntryCache::default();
        let ids: Vec<_> = (0..50).map(|_| ExecutionId::from_uuid(Uuid::now_v7())).collect();
        for id in &ids {
            recent.insert_entries(
                *id,
                Seq(0),
                entries(1..=1).map(|(entry, _)| (entry, KEPT_BYTES_MAX / 10)),
            );
            assert!(recent.lock().bytes <= KEPT_BYTES_MAX);
        }
        assert_eq!(seqs(&recent, ids[0], 0), None);
        assert_eq!(seqs(&recent, ids[49], 0), Some(vec![1]));
        recent.insert_entries(
            ids[0],
            Seq(0),
            entries(1..=1).map(|(entry, _)| (entry, 2 * KEPT_BYTES_MAX)),
        );
        let kept = recent.lock();
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }
}
