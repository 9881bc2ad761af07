//! The interface for logs of recent activity: lines in books, the oldest of which are deleted.

use crate::StoreError;
use futures_util::future::BoxFuture;

/// Lines in books, in the order in which they were written.
pub trait NoteStore: Send + Sync {
    /// Adds a line. Written, not synced; its order is fixed when this returns. A book holds about
    /// the newest `n_max` lines.
    fn append_note(
        &self,
        book: &str,
        line: String,
        n_max: usize,
    ) -> BoxFuture<'static, Result<(), StoreError>>;
    /// The newest lines of a book, newest first.
    fn newest(
        &self,
        book: &str,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<String>, StoreError>>;
}
