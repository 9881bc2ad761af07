//! The recent history of a session, stored in its journal.

use super::ReplStore;
use crate::redact;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use lifecycle::Timestamp;
use protocols::hotrepl::outbound::timestamp;
use protocols::hotrepl::wire::{JournalEntry, JournalKind};
use serde::{Deserialize, Serialize};
use store::StoreError;

/// Maximum number of entries of one kind that a session's journal retains.
pub(super) const ENTRIES_MAX: usize = 1_024;

/// Resolves when an entry was written, or the write failed.
pub(crate) type EntryWritten = Shared<BoxFuture<'static, ()>>;

/// An entry as it is stored. A job's entry also names its job, because it must not be written twice.
#[derive(Serialize)]
struct EntryRecord<'a> {
    #[serde(flatten)]
    entry: &'a JournalEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
}

#[derive(Deserialize)]
struct OfJob {
    #[serde(default)]
    job: Option<String>,
}

impl ReplStore {
    /// Writes an entry. Its position is assigned when this returns; readers wait for the returned future first.
    pub(crate) fn append_entry(
        &self,
        book: &str,
        entry: &JournalEntry,
        job: Option<&str>,
    ) -> EntryWritten {
        let line = serde_json::to_string(&EntryRecord { entry: &redact::entry(entry), job });
        let line = line.expect("an entry has no failing members");
        let noted = self.notes.append_note(&place(book, entry.kind), line, ENTRIES_MAX);
        let told = |written: Result<(), StoreError>| {
            if let Err(error) = written {
                tracing::error!(%error, "could not write an entry of a session's journal");
            }
        };
        noted.map(told).boxed().shared()
    }

    /// Returns the newest entries of one kind or both, newest first.
    pub(crate) async fn entries(
        &self,
        book: &str,
        kind: Option<JournalKind>,
        n_max: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let n_max = n_max.min(ENTRIES_MAX);
        let mut entries = vec![];
        for each in [JournalKind::Eval, JournalKind::Command] {
            if kind.is_none_or(|kind| kind == each) {
                let lines = self.notes.newest(&place(book, each), n_max).await?;
                let read = |line: String| serde_json::from_str::<JournalEntry>(&line).ok();
                entries.extend(lines.into_iter().filter_map(read));
            }
        }
        // Stable: entries with equal times remain in the order of their journal.
        entries.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
        entries.truncate(n_max);
        Ok(entries)
    }

    /// Whether the entry of a job's end is already written.
    pub(super) async fn is_noted(&self, book: &str, job: &str) -> Result<bool, StoreError> {
        let lines = self.notes.newest(&place(book, JournalKind::Command), ENTRIES_MAX).await?;
        let of = |line: &String| serde_json::from_str::<OfJob>(line).ok().and_then(|it| it.job);
        Ok(lines.iter().any(|line| of(line).as_deref() == Some(job)))
    }

    pub(crate) fn timestamp(&self) -> String {
        let Timestamp(ms) = self.clock.now();
        timestamp(ms)
    }
}

/// Evals and commands have separate journals.
fn place(book: &str, kind: JournalKind) -> String {
    let kind = match kind {
        JournalKind::Eval => "eval",
        JournalKind::Command => "command",
    };
    format!("{book}/{kind}")
}
