//! A journal that can be made to fail or to return wrong entries, around a real one.

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::BoxStream;
use lifecycle::{
    CallOutcome, CallerName, Entry, Event, ExecutionId, ExecutionPhase, Json, QuestionId, Seq,
    Timestamp,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use store::sqlite::SqliteStore;
use store::{
    ExecutionOverview, FinishedTimes, Journal, JournalAppend, ListFilter, ListedExecution,
    StoreError,
};

/// The faults of the journal.
#[derive(Default)]
pub(crate) struct Mischief {
    /// Appends fail as on a full disk.
    pub(crate) full: AtomicBool,
    /// Prepared programs read back as another program.
    pub(crate) twisted: AtomicBool,
    /// Results of calls read back as other results.
    pub(crate) altered: AtomicBool,
    /// Not a fault: the number of appends.
    pub(crate) n_appends: AtomicU32,
}

#[derive(Clone)]
pub(crate) struct Mischievous {
    pub(crate) inner: SqliteStore,
    pub(crate) mischief: Arc<Mischief>,
}

type Answer<T> = BoxFuture<'static, Result<T, StoreError>>;

impl Journal for Mischievous {
    fn append(&self, append: JournalAppend) -> Answer<()> {
        if self.mischief.full.load(Ordering::SeqCst) {
            return async { Err(StoreError::Full) }.boxed();
        }
        self.mischief.n_appends.fetch_add(1, Ordering::SeqCst);
        self.inner.append(append)
    }

    fn read(&self, execution: ExecutionId, after: Seq, n_max: usize) -> Answer<Vec<Entry>> {
        let (read, mischief) =
            (self.inner.read(execution, after, n_max), Arc::clone(&self.mischief));
        async move {
            let mut entries = read.await?;
            if mischief.twisted.load(Ordering::SeqCst) {
                entries.iter_mut().for_each(twist);
            }
            if mischief.altered.load(Ordering::SeqCst) {
                entries.iter_mut().for_each(alter);
            }
            Ok(entries)
        }
        .boxed()
    }

    fn follow(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> BoxStream<'static, Result<Entry, StoreError>> {
        self.inner.follow(execution, after)
    }

    fn list_executions(&self, filter: ListFilter) -> Answer<Vec<ListedExecution>> {
        self.inner.list_executions(filter)
    }

    fn search(&self, search: store::ExecutionSearch) -> Answer<store::SearchPage> {
        self.inner.search(search)
    }

    fn count(&self, phase: ExecutionPhase, n_max: usize) -> Answer<usize> {
        self.inner.count(phase, n_max)
    }

    fn overview(&self, execution: ExecutionId) -> Answer<Option<ExecutionOverview>> {
        self.inner.overview(execution)
    }

    fn count_by_caller(&self, phase: ExecutionPhase) -> Answer<Vec<(CallerName, u64)>> {
        self.inner.count_by_caller(phase)
    }

    fn data_loss(&self) -> Answer<Option<store::DataLoss>> {
        self.inner.data_loss()
    }

    fn settle_data_loss(&self) -> Answer<()> {
        self.inner.settle_data_loss()
    }

    fn asked_by(&self, question: QuestionId) -> Answer<Option<ExecutionId>> {
        self.inner.asked_by(question)
    }

    fn next_due(&self) -> Answer<Option<(Timestamp, ExecutionId)>> {
        self.inner.next_due()
    }

    fn lease(
        &self,
        execution: ExecutionId,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Answer<bool> {
        self.inner.lease(execution, holder, now, until)
    }

    fn release(&self, execution: ExecutionId, holder: &str) -> Answer<()> {
        self.inner.release(execution, holder)
    }

    fn finished(&self, after: Option<&FinishedTimes>, n_max: usize) -> Answer<Vec<FinishedTimes>> {
        self.inner.finished(after, n_max)
    }

    fn bytes_used(&self) -> Answer<u64> {
        self.inner.bytes_used()
    }

    fn delete_execution(&self, execution: ExecutionId) -> Answer<bool> {
        self.inner.delete_execution(execution)
    }

    fn was_forgotten(&self, execution: ExecutionId) -> Answer<bool> {
        self.inner.was_forgotten(execution)
    }
}

fn twist(entry: &mut Entry) {
    if let Event::Prepared(prepared) = &mut entry.event {
        let another = "return await tools.demo.echo({ message: 'another path' })";
        prepared.text = Some(another.into());
    }
}

fn alter(entry: &mut Entry) {
    if let Event::CallSettled { outcome, .. } = &mut entry.event {
        let value = Json::parse("4711".into()).ok();
        *outcome = CallOutcome::Returned { value };
    }
}
