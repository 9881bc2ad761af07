//! Lookups: name completion and recent history.

use super::{ENTRIES_USUAL, ErrandResult, ReplSession};
use crate::completion::{self, CompletionCandidates};
use crate::{QUEUED_MAX, messages, repl_store};
use protocols::execbox::session::{CompleteOrder, ToSession};
use protocols::hotrepl::outbound::{envelope, trouble};
use protocols::hotrepl::wire::{
    CompleteResult, ErrorKind, FromServer, JournalKind, JournalQueryResult,
};
use std::sync::Arc;
use tokio::time::Instant;

impl ReplSession {
    pub(super) fn complete(&mut self, id: String, code: &str, cursor: Option<f64>) {
        let since = Instant::now();
        let before = completion::before(code, cursor);
        let store = &self.setting.store;
        let policy = store.engine.policies().live();
        let snapshot = store.engine.catalogue().snapshot();
        let client = self.client_number();
        if let Some(names) = completion::tools(before, &snapshot, |found| {
            policy.shows(&found.path(), found.traits())
        }) {
            return self.say_completions(client, id, names, since);
        }
        if self.completions.len() >= QUEUED_MAX {
            return self.say_full(id);
        }
        if let Err(refused) = self.evaluator.admit_program() {
            return self.send_to_client(&trouble(Some(id), messages::quota_reached(&refused)));
        }
        self.ensure_runner();
        self.n_tasks += 1;
        let task = self.n_tasks;
        self.completions.insert(task, (id, client, since));
        self.evaluator
            .send_message(&ToSession::Complete(CompleteOrder { task, code: before.into() }));
    }

    pub(super) fn say_completions(
        &mut self,
        client: u64,
        id: String,
        CompletionCandidates { names: completions, more }: CompletionCandidates,
        since: Instant,
    ) {
        let duration_ms = repl_store::millis(since.elapsed());
        let truncated = more.then_some(true);
        let result = CompleteResult { id, completions, duration_ms, truncated };
        self.send_answer(client, &FromServer::CompleteResult(result));
    }

    pub(super) fn say_full(&mut self, id: String) {
        let message = format!("At most {QUEUED_MAX} requests wait at a time.");
        let error = envelope(ErrorKind::Busy, "commandQueueFull", message);
        self.send_to_client(&trouble(Some(id), error));
    }

    pub(super) fn journal_query(
        &mut self,
        id: String,
        kind: Option<JournalKind>,
        limit: Option<f64>,
    ) {
        if !self.may_send_errand(&id) {
            return;
        }
        let n_max = limit.unwrap_or(ENTRIES_USUAL).max(0.0) as usize;
        let (store, book) = (Arc::clone(&self.setting.store), self.book.clone());
        let (client, noted) = (self.client_number(), self.noted.clone());
        self.errands.push(Box::pin(async move {
            if let Some(noted) = noted {
                noted.await;
            }
            let entries = store.entries(&book, kind, n_max).await;
            let frame = match entries {
                Ok(entries) => FromServer::JournalQueryResult(JournalQueryResult { id, entries }),
                Err(error) => {
                    tracing::error!(%error, "could not read a session's journal");
                    let message = "The journal could not be read.";
                    trouble(Some(id), envelope(ErrorKind::Internal, "handlerFailed", message))
                }
            };
            ErrandResult::Answer { client, frame: Box::new(frame) }
        }));
    }
}
