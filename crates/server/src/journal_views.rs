//! What journals say so far, remembered: a status, a page or an answer then reads what is new in a journal, and not all
//! of it. A view is a function of its journal, so one that is dropped is read again and nothing is lost.

use crate::error::Problem;
use engine::Engine;
use lifecycle::{Entry, ExecutionId, Seq};
use protocols::executor::Account;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::ExecutionOverview;

/// Views that are remembered. Short journals are not: they are one read.
const VIEWS_MAX: usize = 32;

/// A view that holds more is not remembered.
const VIEW_BYTES_MAX: usize = 4 << 20;

/// Entries of one read. A journal of so many is read in one go whenever it is wanted.
const READ_ENTRIES_MAX: usize = 256;

/// Something that entries add up to.
pub(crate) trait JournalView: Clone + Default + Send + Sync {
    /// Applies the next entry.
    fn apply(&mut self, entry: &Entry);
    /// The newest entry that was applied.
    fn last(&self) -> Seq;
    /// How much memory it holds, about.
    fn held_bytes(&self) -> usize;
}

impl JournalView for Account {
    fn apply(&mut self, entry: &Entry) {
        self.hear(entry);
    }

    fn last(&self) -> Seq {
        self.last()
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes()
    }
}

/// The views of a server, those in use last at the end.
pub(crate) struct JournalViews<V>(Mutex<VecDeque<(ExecutionId, Slot<V>)>>);

/// Locked while it is brought up to date: of many readers that come at once, one reads.
type Slot<V> = Arc<tokio::sync::Mutex<Arc<V>>>;

impl<V> Default for JournalViews<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: JournalView> JournalViews<V> {
    /// What the journal says now, at least up to the newest entry that was written when this was called.
    pub(crate) async fn read(
        &self,
        engine: &Engine,
        execution: ExecutionId,
    ) -> Result<Arc<V>, Problem> {
        let overview = engine.overview(execution).await.inspect_err(|_| self.forget(execution))?;
        self.read_up_to(engine, &overview).await
    }

    /// The same where the overview is known.
    pub(crate) async fn read_up_to(
        &self,
        engine: &Engine,
        overview: &ExecutionOverview,
    ) -> Result<Arc<V>, Problem> {
        let (execution, last) = (overview.listed.execution, overview.listed.last);
        if last <= Seq(READ_ENTRIES_MAX as u64) {
            let mut view = V::default();
            advance(engine, execution, &mut view, last).await?;
            return Ok(Arc::new(view));
        }
        let slot = self.slot(execution);
        let mut known = slot.lock().await;
        if known.last() < last {
            // A reader that still holds it keeps the older one.
            advance(engine, execution, Arc::make_mut(&mut known), last).await?;
        }
        if known.held_bytes() > VIEW_BYTES_MAX {
            self.forget(execution);
        }
        Ok(Arc::clone(&known))
    }

    /// What is remembered of a journal; it may say more by now.
    pub(crate) async fn remembered(&self, execution: ExecutionId) -> Option<Arc<V>> {
        let slot = self.lock().iter().find(|(id, _)| *id == execution)?.1.clone();
        let known = slot.lock().await;
        Some(Arc::clone(&known))
    }

    fn slot(&self, execution: ExecutionId) -> Slot<V> {
        let mut views = self.lock();
        let known = views.iter().position(|(id, _)| *id == execution);
        let slot = known.and_then(|at| views.remove(at)).map(|(_, slot)| slot).unwrap_or_default();
        views.push_back((execution, Arc::clone(&slot)));
        while views.len() > VIEWS_MAX {
            views.pop_front();
        }
        slot
    }

    fn forget(&self, execution: ExecutionId) {
        self.lock().retain(|(id, _)| *id != execution);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(ExecutionId, Slot<V>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies what follows, a bounded read at a time, up to the entry `last`.
async fn advance<V: JournalView>(
    engine: &Engine,
    execution: ExecutionId,
    view: &mut V,
    last: Seq,
) -> Result<(), Problem> {
    while view.last() < last {
        let read = engine.entries(execution, view.last(), READ_ENTRIES_MAX).await?;
        if read.is_empty() {
            return Err(Problem::no_execution(execution)); // it was forgotten meanwhile
        }
        read.iter().for_each(|entry| view.apply(entry));
        tokio::task::consume_budget().await;
    }
    Ok(())
}
