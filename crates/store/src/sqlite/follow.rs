//! Following an execution: what is written, then what comes, each entry once.

use super::query::{self, FollowerRead, PageMax};
use super::watchers::Subscription;
use super::{SqliteInner, SqliteStore};
use crate::StoreError;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use lifecycle::{Entry, ExecutionId, Seq};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;

/// A follower holds at most this much that its reader has not taken.
/// It is also how long a page keeps the thread of pages from other followers.
const PAGE_MAX: PageMax = PageMax { entries: 256, bytes: 256 << 10 };

struct SqliteFollower {
    store: Arc<SqliteInner>,
    execution: ExecutionId,
    /// The last one handed out.
    after: Seq,
    page: VecDeque<Entry>,
    ear: Option<Subscription>,
    /// Whether there may be more to read without waiting for it.
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
        // After an error there is nothing to come that would be in order.
        follower.over |= entry.is_err();
        Some((entry, follower))
    })
    .boxed()
}

impl SqliteFollower {
    async fn next(&mut self) -> Option<Result<Entry, StoreError>> {
        loop {
            if !self.page.is_empty() {
                // A reader that takes entries as fast as they come lets other tasks of its thread go on.
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

    /// Fetches a page, if need be once there is one.
    async fn read_next(&mut self) -> Result<(), StoreError> {
        // What is over, as most small programs are when somebody begins to follow, needs nobody who listens.
        if self.ear.is_none()
            && let Some(page) = self.store.recent.end_after(self.execution, self.after, PAGE_MAX)
        {
            self.take(FollowerRead::from_page(page));
            return Ok(());
        }
        // Listening begins before the first look: what is committed in between is heard.
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
