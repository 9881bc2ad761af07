//! Cached views of journals: a status, a page or an answer reads only the new entries of a journal, not all of it. A
//! view is a function of its journal, so a view that is evicted is computed again and nothing is lost.

use crate::error::RequestError;
use engine::Engine;
use lifecycle::{Entry, ExecutionId, Seq};
use protocols::executor::ExecutionView;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::ExecutionOverview;

/// Maximum number of cached views. Short journals are not cached: they are one read.
const VIEWS_MAX: usize = 32;

/// A larger view is not cached.
const VIEW_BYTES_MAX: usize = 4 << 20;

/// Number of entries of one read. A journal of at most this length is read in one batch each time.
const READ_ENTRIES_MAX: usize = 256;

/// A state that is folded from entries.
pub(crate) trait JournalView: Clone + Default + Send + Sync {
    /// Applies the next entry.
    fn apply(&mut self, entry: &Entry);
    /// The newest entry that was applied.
    fn last(&self) -> Seq;
    /// Approximately how much memory it holds.
    fn held_bytes(&self) -> usize;
}

/// The reader of journals.
pub(crate) trait JournalReader: Sync {
    /// The index entry of an execution.
    fn overview(
        &self,
        execution: ExecutionId,
    ) -> impl Future<Output = Result<ExecutionOverview, RequestError>> + Send;
    /// At most `n_max` entries after `after`.
    fn entries(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: usize,
    ) -> impl Future<Output = Result<Vec<Entry>, RequestError>> + Send;
}

impl JournalReader for Engine {
    async fn overview(&self, execution: ExecutionId) -> Result<ExecutionOverview, RequestError> {
        Ok(self.overview(execution).await?)
    }

    async fn entries(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: usize,
    ) -> Result<Vec<Entry>, RequestError> {
        Ok(self.entries(execution, after, n_max).await?)
    }
}

impl JournalView for ExecutionView {
    fn apply(&mut self, entry: &Entry) {
        self.handle_entry(entry);
    }

    fn last(&self) -> Seq {
        self.last()
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes()
    }
}

/// The cached views of a server, the most recently used last.
pub(crate) struct JournalViews<V>(Mutex<VecDeque<(ExecutionId, ViewSlot<V>)>>);

/// Views of executions, computed from their journals, for everything that shows or answers questions.
pub(crate) type ExecutionViews = JournalViews<ExecutionView>;

/// Locked while it is updated: of many concurrent readers, one reads the journal.
type ViewSlot<V> = Arc<tokio::sync::Mutex<Arc<V>>>;

impl<V> Default for JournalViews<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: JournalView> JournalViews<V> {
    /// Returns the current view, at least up to the newest entry that was written when this was called.
    pub(crate) async fn read(
        &self,
        journals: &impl JournalReader,
        execution: ExecutionId,
    ) -> Result<Arc<V>, RequestError> {
        let overview = journals.overview(execution).await;
        let overview = overview.inspect_err(|_| self.drop_view(execution))?;
        self.read_up_to(journals, &overview).await
    }

    /// Like `read`, if the overview is already known.
    pub(crate) async fn read_up_to(
        &self,
        journals: &impl JournalReader,
        overview: &ExecutionOverview,
    ) -> Result<Arc<V>, RequestError> {
        let (execution, last) = (overview.listed.execution, overview.listed.last);
        if last <= Seq(READ_ENTRIES_MAX as u64) {
            let mut view = V::default();
            advance(journals, execution, &mut view, last).await?;
            return Ok(Arc::new(view));
        }
        let slot = self.slot(execution);
        let mut known = slot.lock().await;
        if known.last() < last {
            // A reader that still holds the older view retains it.
            advance(journals, execution, Arc::make_mut(&mut known), last).await?;
        }
        if known.held_bytes() > VIEW_BYTES_MAX {
            self.drop_view(execution);
        }
        Ok(Arc::clone(&known))
    }

    /// Returns the cached view of a journal, which may be outdated.
    pub(crate) async fn remembered(&self, execution: ExecutionId) -> Option<Arc<V>> {
        let slot = self.lock().iter().find(|(id, _)| *id == execution)?.1.clone();
        let known = slot.lock().await;
        Some(Arc::clone(&known))
    }

    fn slot(&self, execution: ExecutionId) -> ViewSlot<V> {
        let mut views = self.lock();
        let known = views.iter().position(|(id, _)| *id == execution);
        let slot = known.and_then(|at| views.remove(at)).map(|(_, slot)| slot).unwrap_or_default();
        views.push_back((execution, Arc::clone(&slot)));
        while views.len() > VIEWS_MAX {
            views.pop_front();
        }
        slot
    }

    fn drop_view(&self, execution: ExecutionId) {
        self.lock().retain(|(id, _)| *id != execution);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(ExecutionId, ViewSlot<V>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies the following entries, in bounded reads, up to the entry `last`.
async fn advance<V: JournalView>(
    journals: &impl JournalReader,
    execution: ExecutionId,
    view: &mut V,
    last: Seq,
) -> Result<(), RequestError> {
    while view.last() < last {
        let read = journals.entries(execution, view.last(), READ_ENTRIES_MAX).await?;
        if read.is_empty() {
            return Err(RequestError::no_execution(execution)); // it was forgotten meanwhile
        }
        read.iter().for_each(|entry| view.apply(entry));
        tokio::task::consume_budget().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{
        CallerName, Event, ExecutionPhase, ExecutionSummary, InputIndex, LogLevel, OutputMark,
        Timestamp,
    };
    use std::sync::atomic::{AtomicUsize, Ordering};
    use store::ListedExecution;
    use uuid::Uuid;

    /// An execution that has logged many lines, and a record of the reads of it.
    struct LongJournal {
        n_entries: AtomicUsize,
        n_read: AtomicUsize,
        n_largest: AtomicUsize,
    }

    impl LongJournal {
        fn of(n_entries: usize) -> Self {
            let counter = AtomicUsize::new;
            Self { n_entries: counter(n_entries), n_read: counter(0), n_largest: counter(0) }
        }

        fn read(&self) -> usize {
            self.n_read.swap(0, Ordering::SeqCst)
        }
    }

    impl JournalReader for LongJournal {
        async fn overview(
            &self,
            execution: ExecutionId,
        ) -> Result<ExecutionOverview, RequestError> {
            let last = Seq(self.n_entries.load(Ordering::SeqCst) as u64);
            let caller = CallerName("ann".into());
            let standing = ExecutionSummary { phase: ExecutionPhase::Running, caller, due: None };
            let listed = ListedExecution { execution, created: Timestamp(0), last, standing };
            Ok(ExecutionOverview { listed, has_asked: false })
        }

        async fn entries(
            &self,
            _: ExecutionId,
            after: Seq,
            n_max: usize,
        ) -> Result<Vec<Entry>, RequestError> {
            // Other tasks run meanwhile, as while a thread reads.
            tokio::task::yield_now().await;
            let last = (self.n_entries.load(Ordering::SeqCst) as u64).min(after.0 + n_max as u64);
            let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
            let event = Event::Logged { mark, level: LogLevel::Log, line: "x".into() };
            let entry = |seq| Entry { seq: Seq(seq), at: Timestamp(0), event: event.clone() };
            let entries: Vec<_> = (after.0 + 1..=last).map(entry).collect();
            self.n_read.fetch_add(entries.len(), Ordering::SeqCst);
            self.n_largest.fetch_max(entries.len(), Ordering::SeqCst);
            Ok(entries)
        }
    }

    fn id(n: u128) -> ExecutionId {
        ExecutionId::from_uuid(Uuid::from_u128(n))
    }

    #[tokio::test]
    async fn many_readers_of_a_long_journal_read_it_once_and_then_only_what_is_new() {
        let journal = LongJournal::of(89_000);
        let views = JournalViews::<ExecutionView>::default();
        let readers = (0..200).map(|_| views.read(&journal, id(1)));
        for read in futures_util::future::join_all(readers).await {
            assert_eq!(read.unwrap().last(), Seq(89_000));
        }
        assert_eq!((journal.read(), journal.n_largest.load(Ordering::SeqCst)), (89_000, 256));
        views.read(&journal, id(1)).await.unwrap();
        assert_eq!(journal.read(), 0);
        journal.n_entries.store(89_003, Ordering::SeqCst);
        assert_eq!(views.read(&journal, id(1)).await.unwrap().last(), Seq(89_003));
        assert_eq!(journal.read(), 3);
    }

    #[tokio::test]
    async fn short_journals_are_not_remembered_and_long_ones_are_bounded() {
        let views = JournalViews::<ExecutionView>::default();
        let short = LongJournal::of(READ_ENTRIES_MAX);
        views.read(&short, id(1)).await.unwrap();
        assert!(views.remembered(id(1)).await.is_none());
        let long = LongJournal::of(READ_ENTRIES_MAX + 1);
        for n in 0..2 * VIEWS_MAX as u128 {
            views.read(&long, id(n)).await.unwrap();
        }
        assert_eq!(views.lock().len(), VIEWS_MAX);
        assert!(views.remembered(id(0)).await.is_none(), "the oldest made way");
    }
}
