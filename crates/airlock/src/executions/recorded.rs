//! The recorded entries of an execution: from the data directory itself, or from the server that owns it.

use crate::server_locator::ServerArgs;
use crate::{VerbExit, print};
use anyhow::Context as _;
use client::ExecutionRef;
use lifecycle::{Entry, Seq};
use std::path::Path;
use store::Journal as _;
use store::sqlite::SqliteStore;

/// Entries that are read in one batch.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// Reads the journals of `ids` and passes them on.
pub(super) fn with(
    reach: &ServerArgs,
    ids: &[ExecutionRef],
    go: impl AsyncFnOnce(Vec<Vec<Entry>>) -> VerbExit,
) -> VerbExit {
    let Some(data_dir) = reach.unowned() else {
        return reach.visit(async |client| {
            let mut journals = vec![];
            for id in ids {
                journals.push(client.journal(*id).await?);
            }
            Ok(go(journals).await)
        });
    };
    print::start_tracing();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&error.to_string());
            return VerbExit::Fault;
        }
    };
    match runtime.block_on(from_store(&data_dir, ids)) {
        Ok(journals) => runtime.block_on(go(journals)),
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

async fn from_store(data_dir: &Path, ids: &[ExecutionRef]) -> anyhow::Result<Vec<Vec<Entry>>> {
    let shown = data_dir.display();
    // Opening would create the directory: a typing mistake must not.
    anyhow::ensure!(data_dir.is_dir(), "there is no {shown}; name it with --data-dir");
    let store = SqliteStore::open(data_dir).with_context(|| format!("could not open {shown}"))?;
    let mut journals = vec![];
    for id in ids {
        journals.push(journal(&store, *id).await);
    }
    store.close().await;
    journals.into_iter().collect()
}

async fn journal(store: &SqliteStore, id: ExecutionRef) -> anyhow::Result<Vec<Entry>> {
    let execution = match id {
        ExecutionRef::Execution(execution) => execution,
        ExecutionRef::Question(question) => {
            let asked_by = store.asked_by(question).await?;
            asked_by.with_context(|| format!("there is no question {question} here"))?
        }
    };
    let mut entries: Vec<Entry> = vec![];
    loop {
        let after = entries.last().map_or(Seq(0), |entry| entry.seq);
        let page = store::Journal::read(store, execution, after, ENTRIES_PER_READ_MAX).await?;
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    anyhow::ensure!(!entries.is_empty(), "there is no execution {execution} here");
    Ok(entries)
}
