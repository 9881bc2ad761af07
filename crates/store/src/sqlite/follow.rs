//! Follows an execution: recorded entries, then new ones, each once.

use super::query::{self, FollowerRead, PageMax};
use super::subscriptions::Subscription;
use super::{SqliteInner, SqliteStore};
use crate::StoreError;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use lifecycle::{Entry, ExecutionId, Seq};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of unread entries that a follower holds. Also limits how long a page occupies the page thread that
/// followers share.
const PAGE_MAX: PageMax = PageMax { entries: 256, bytes: 256 << 10 };

struct SqliteFollower {
    store: Arc<SqliteInner>,
    execution: ExecutionId,
    /// The last entry that was returned.
    after: Seq,
    page: VecDeque<Entry>,
    ear: Option<Subscription>,
    /// Whether more entries may be readable immediately.
    behind: bool,
    over: bool,
}

pub(super) fn follow_journal(
    store: &SqliteStore,
    execution: ExecutionId,
    after: Seq,
) -> BoxStream<'static, Result<Entry, StoreError>> {
    let follower = SqliteFollower {
        store: Arc::clone(&store.inner),
        execution,
        after,
        page: VecDeque::new(),
        ear: None,
        behind: true,
        over: false,
    };
    unfold(follower, async |mut follower| {
        let entry = follower.next().await?;
        // After an error, later entries would be out of order.
        follower.over |= entry.is_err();
        Some((entry, follower))
    })
    .boxed()
}

impl SqliteFollower {
    async fn next(&mut self) -> Option<Result<Entry, StoreError>> {
        loop {
            if !self.page.is_empty() {
                // A reader of a fast stream must let other tasks of its thread run.
                tokio::task::consume_budget().await;
            }
            if let Some(entry) = self.page.pop_front() {
                self.after = entry.seq;
                return Some(Ok(entry));
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.read_next().await {
                return Some(Err(error));
            }
        }
    }

    /// Fetches a page; waits until there is one.
    async fn read_next(&mut self) -> Result<(), StoreError> {
        // An execution that has ended, as most small programs have at that time, needs no subscription.
        if self.ear.is_none()
            && let Some(page) = self.store.recent.end_after(self.execution, self.after, PAGE_MAX)
        {
            self.take(FollowerRead::from_page(page));
            return Ok(());
        }
        // Subscribes before the first read: a commit in between wakes the subscription.
        let mut ear = match self.ear.take() {
            Some(ear) => ear,
            None => self.store.watchers.listen(self.execution).ok_or(StoreError::Closed)?,
        };
        if !self.behind && !ear.wait_for_entries(self.after).await {
            return Err(StoreError::Closed);
        }
        let (execution, after) = (self.execution, self.after);
        let look = match self.store.recent.after(execution, after, PAGE_MAX) {
            Some(page) => FollowerRead::from_page(page),
            None => {
                let look = move |conn: &mut Connection| {
                    query::read_followed(conn, execution, after, PAGE_MAX)
                };
                self.store.query_page(look).await?
            }
        };
        self.take(look);
        self.ear = Some(ear);
        Ok(())
    }

    fn take(&mut self, look: FollowerRead) {
        match look {
            FollowerRead::Nothing => self.over = true,
            FollowerRead::Entries { page, over } => {
                self.over = over;
                self.behind = page.full;
                self.page = page.entries.into();
            }
        }
    }
}
