//! Implements the journal, the records and the notes: which queue or reader serves each method.

use super::query::{self, PageMax};
use super::tables::TableWrite;
use super::{SqliteStore, follow, history, search};
use crate::{
    DataLoss, ExecutionOverview, ExecutionSearch, FinishedTimes, Journal, JournalAppend,
    ListFilter, ListedExecution, NoteStore, RecordStore, SearchPage, StoreError, StoredRecord,
};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use lifecycle::{CallerName, Entry, ExecutionId, ExecutionPhase, QuestionId, Seq, Timestamp};
use std::sync::Arc;

/// Approximate size of one read, unless a single entry is larger: afterwards the thread serves others.
pub(super) const READ_BYTES_MAX: usize = 1 << 20;

impl Journal for SqliteStore {
    fn append(&self, append: JournalAppend) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(TableWrite::append(append), drop)
    }

    fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<Entry>, StoreError>> {
        let max = PageMax { entries: n_max, bytes: READ_BYTES_MAX };
        // Includes executions that a failing disk prevents from being inserted.
        if self.inner.writes.has_unsorted()
            && let Some(page) = self.inner.recent.after(execution, after, max)
        {
            return Box::pin(std::future::ready(Ok(page.entries)));
        }
        self.read(move |conn| Ok(query::entries(conn, execution, after, max)?.entries))
    }

    fn follow(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> BoxStream<'static, Result<Entry, StoreError>> {
        follow::follow_journal(self, execution, after)
    }

    fn list_executions(
        &self,
        filter: ListFilter,
    ) -> BoxFuture<'static, Result<Vec<ListedExecution>, StoreError>> {
        self.read(move |conn| query::list_executions(conn, &filter))
    }

    fn search(
        &self,
        search: ExecutionSearch,
    ) -> BoxFuture<'static, Result<SearchPage, StoreError>> {
        self.read(move |conn| search::search(conn, &search))
    }

    fn count(
        &self,
        phase: ExecutionPhase,
        n_max: usize,
    ) -> BoxFuture<'static, Result<usize, StoreError>> {
        self.read(move |conn| query::count(conn, phase, n_max))
    }

    fn overview(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionOverview>, StoreError>> {
        // An execution that has just ended is found without waiting for its insertion.
        if self.inner.writes.has_unsorted()
            && let Some(overview) = self.inner.recent.overview(execution)
        {
            return Box::pin(std::future::ready(Ok(Some(overview))));
        }
        self.read(move |conn| query::overview(conn, execution))
    }

    fn count_by_caller(
        &self,
        phase: ExecutionPhase,
    ) -> BoxFuture<'static, Result<Vec<(CallerName, u64)>, StoreError>> {
        self.read(move |conn| query::count_by_caller(conn, phase))
    }

    fn asked_by(
        &self,
        question: QuestionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionId>, StoreError>> {
        self.read(move |conn| query::asked_by(conn, question))
    }

    fn next_due(&self) -> BoxFuture<'static, Result<Option<(Timestamp, ExecutionId)>, StoreError>> {
        let leases = Arc::clone(&self.inner.leases);
        self.read(move |conn| {
            // Locked for each check, not for the whole walk: `lease` must not wait for a disk.
            query::next_due(conn, |execution| {
                leases.lock().expect("nothing panics while it holds this lock").is_held(execution)
            })
        })
    }

    fn lease(
        &self,
        execution: ExecutionId,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<bool, StoreError>> {
        let taken = self.leases().take(execution, holder, now, until);
        Box::pin(std::future::ready(Ok(taken)))
    }

    fn release(
        &self,
        execution: ExecutionId,
        holder: &str,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.leases().release(execution, holder);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finished(
        &self,
        after: Option<&FinishedTimes>,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<FinishedTimes>, StoreError>> {
        let after = after.copied();
        self.read(move |conn| query::finished(conn, after, n_max))
    }

    fn bytes_used(&self) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.read(query::bytes_used)
    }

    fn delete_execution(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<bool, StoreError>> {
        let forgotten =
            self.write(Ok(TableWrite::Forget(execution)), |n_forgotten| n_forgotten > 0);
        let leases = Arc::clone(&self.inner.leases);
        Box::pin(async move {
            let forgotten = forgotten.await?;
            if forgotten {
                leases
                    .lock()
                    .expect("nothing panics while it holds this lock")
                    .drop_lease(execution);
            }
            Ok(forgotten)
        })
    }

    fn was_forgotten(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.read(move |conn| query::was_forgotten(conn, execution))
    }

    fn data_loss(&self) -> BoxFuture<'static, Result<Option<DataLoss>, StoreError>> {
        let record = self.get(history::KIND, history::LOSS);
        Box::pin(async move { Ok(record.await?.as_ref().and_then(history::open_loss)) })
    }

    fn settle_data_loss(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let record = store.get(history::KIND, history::LOSS).await?;
            let Some(record) = record else { return Ok(()) };
            let Some(loss) = history::open_loss(&record) else { return Ok(()) };
            let settled = history::loss_value(&loss, true).to_string();
            store.put(history::KIND, history::LOSS, settled, record.version).await.map(drop)
        })
    }
}

impl RecordStore for SqliteStore {
    fn get(
        &self,
        kind: &'static str,
        key: &str,
    ) -> BoxFuture<'static, Result<Option<StoredRecord>, StoreError>> {
        let began = match self.inner.remembered.get_record(kind, key) {
            Ok(record) => return Box::pin(std::future::ready(Ok(Some(record)))),
            Err(age) => age,
        };
        let (remembered, key) = (Arc::clone(&self.inner.remembered), key.to_owned());
        let read = self.read(move |conn| query::record(conn, kind, &key));
        Box::pin(async move {
            let record = read.await?;
            if let Some(record) = &record {
                remembered.insert_record(began, kind, record);
            }
            Ok(record)
        })
    }

    fn put(
        &self,
        kind: &'static str,
        key: &str,
        value: String,
        expected: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.write(TableWrite::put(kind, key, value, expected), std::convert::identity)
    }

    fn remove(
        &self,
        kind: &'static str,
        key: &str,
        expected: u64,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(Ok(TableWrite::Remove { kind, key: key.to_owned(), expected }), drop)
    }

    fn all(&self, kind: &'static str) -> BoxFuture<'static, Result<Vec<StoredRecord>, StoreError>> {
        self.read(move |conn| query::records(conn, kind))
    }
}

impl NoteStore for SqliteStore {
    fn append_note(
        &self,
        book: &str,
        line: String,
        n_max: usize,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(TableWrite::append_note(book, line, n_max), drop)
    }

    fn newest(
        &self,
        book: &str,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<String>, StoreError>> {
        let book = book.to_owned();
        self.read(move |conn| query::newest_notes(conn, &book, n_max))
    }
}
