//! Executions that ended in their first append: acknowledged immediately, inserted a little later, never lost and never
//! duplicated.

use super::*;
use crate::sqlite::format;
use crate::sqlite::tables::TableWrite;
use crate::{FinishedTimes, ListFilter, ListedExecution};
use futures_util::StreamExt as _;
use std::path::Path;

async fn listed(store: &SqliteStore) -> Vec<ExecutionId> {
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 100 };
    let mut ids: Vec<_> = store
        .list_executions(filter)
        .await
        .unwrap()
        .into_iter()
        .map(|it: ListedExecution| it.execution)
        .collect();
    ids.sort();
    ids
}

/// The append files of a directory, to be restored later.
fn tails(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let names = ["store.tail-0", "store.tail-1"].map(|name| dir.join(name));
    names.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn put_back(tails: &[(std::path::PathBuf, Vec<u8>)]) {
    tails.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

#[tokio::test]
async fn whoever_looks_finds_it_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    for n in 1..=20 {
        store.append(whole(n)).await.unwrap();
        assert_eq!(listed(&store).await.len() as u128, n);
        assert_eq!(all(&store, n).await, [line(1, "a"), end(2)]);
    }
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(listed(&store).await.len(), 20);
    assert_eq!(all(&store, 7).await, [line(1, "a"), end(2)]);
    assert!(matches!(store.append(whole(7)).await, Ok(()) | Err(StoreError::Conflict)));
    assert_eq!(all(&store, 7).await.len(), 2, "once");
}

#[tokio::test]
async fn what_was_not_sorted_in_is_when_the_store_is_opened_again_and_only_once() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    store.append(whole(1)).await.unwrap();
    let kept = tails(temp.path());
    store.close().await;
    // As if the process had crashed before, and then between the insertion and the restart of the file.
    let other = tempfile::tempdir().unwrap();
    SqliteStore::open(other.path()).unwrap().close().await;
    for dir in [other.path(), other.path(), temp.path()] {
        for (path, bytes) in &kept {
            std::fs::write(dir.join(path.file_name().unwrap()), bytes).unwrap();
        }
        let store = SqliteStore::open(dir).unwrap();
        assert_eq!(listed(&store).await, [id(1)]);
        assert_eq!(all(&store, 1).await, [line(1, "a"), end(2)]);
        store.close().await;
    }
}

#[tokio::test]
async fn it_is_read_in_pages_and_is_over() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let mut entries: Vec<_> = (1..=299).map(|seq| line(seq, "a")).collect();
    entries.push(end(300));
    let over = standing(ExecutionPhase::Finished, "ann", None);
    store.append(append(1, entries.clone(), over.clone())).await.unwrap();
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(Journal::read(&store, id(1), Seq(7), 3).await.unwrap(), entries[7..10]);
    assert_eq!(Journal::read(&store, id(1), Seq(299), 9).await.unwrap(), entries[299..]);
    for beyond in [300, 301, u64::MAX] {
        assert_eq!(Journal::read(&store, id(1), Seq(beyond), 9).await.unwrap(), []);
    }
    let followed: Vec<_> = store.follow(id(1), Seq(0)).map(Result::unwrap).collect().await;
    assert_eq!(followed, entries);
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 9 };
    let listed = ListedExecution {
        execution: id(1),
        created: Timestamp(1),
        last: Seq(300),
        standing: over.clone(),
    };
    assert_eq!(store.list_executions(filter).await.unwrap(), [listed]);
    let finished = store.finished(None, 9).await.unwrap();
    let ended = FinishedTimes { execution: id(1), created: Timestamp(1), ended: Timestamp(300) };
    assert_eq!(finished, [ended]);
    let more = store.append(append(1, vec![line(301, "b")], over)).await;
    assert!(matches!(more, Err(StoreError::Conflict)), "{more:?}");
}

/// As the previous format stored it: a row for each entry.
#[tokio::test]
async fn what_an_earlier_format_holds_is_found_beside_what_comes() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    store.append(JournalAppend { strength: WriteStrength::Synced, ..whole(1) }).await.unwrap();
    store.close().await;
    let conn = rusqlite::Connection::open(temp.path().join(format::FILE)).unwrap();
    for column in ["n_entries", "ended", "entries_seal", "entries"] {
        conn.execute_batch(&format!("ALTER TABLE executions DROP COLUMN {column}")).unwrap();
    }
    conn.pragma_update(None, "user_version", 4).unwrap();
    drop(conn);
    let store = SqliteStore::open(temp.path()).unwrap();
    store.append(whole(2)).await.unwrap();
    assert_eq!(listed(&store).await, [id(1), id(2)]);
    for n in 1..=2 {
        assert_eq!(all(&store, n).await, [line(1, "a"), end(2)]);
    }
}

#[tokio::test]
async fn what_was_forgotten_does_not_come_back() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    store.append(whole(1)).await.unwrap();
    let kept = tails(temp.path());
    assert!(store.delete_execution(id(1)).await.unwrap());
    assert_eq!(listed(&store).await, []);
    store.close().await;
    put_back(&kept);
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(listed(&store).await, []);
}

#[tokio::test]
async fn a_full_disk_delays_what_was_told_and_takes_nothing_more() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    // Nothing is acknowledged before this has happened.
    drop(store.write(Ok(TableWrite::Trouble("PRAGMA query_only = ON")), drop).await);
    store.append(whole(1)).await.unwrap();
    assert_eq!(listed(&store).await, [], "it cannot be sorted in");
    assert_eq!(all(&store, 1).await, [line(1, "a"), end(2)], "and yet it is there");
    assert!(matches!(store.append(whole(2)).await, Err(StoreError::ReadOnly)));
    drop(store.write(Ok(TableWrite::Trouble("PRAGMA query_only = OFF")), drop).await);
    store.append(whole(3)).await.unwrap();
    assert_eq!(listed(&store).await, [id(1), id(3)]);
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(listed(&store).await, [id(1), id(3)]);
}
