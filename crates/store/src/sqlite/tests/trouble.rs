//! A failing disk: nothing earlier is lost, the error has a name, and the store continues when the disk works again.

use super::*;
use crate::BlobStore;
use crate::sqlite::tables::TableWrite;
use futures_util::FutureExt as _;
use std::path::Path;

async fn tell_sqlite(store: &SqliteStore, pragma: &'static str) {
    // The transaction with this statement may be the first to fail.
    drop(store.write(Ok(TableWrite::Trouble(pragma)), drop).await);
}

/// Appends until that fails; returns the last seq written and why the next was not.
async fn fill(store: &SqliteStore) -> (u64, StoreError) {
    for seq in 1..100_000 {
        if let Err(why) = write(store, 1, vec![line(seq, &"x".repeat(2_000))]).await {
            return (seq - 1, why);
        }
    }
    panic!("the disk never filled");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_forgiven() {
    full_by_decree().await;
}

/// SQLite itself reports a full disk.
async fn full_by_decree() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    tell_sqlite(&store, "PRAGMA max_page_count = 60").await;
    let (last, why) = fill(&store).await;
    assert!(matches!(why, StoreError::Full), "{why:?}");

    // An append that follows a failed one fails too.
    let large = store.append(append(1, vec![line(last + 1, &"x".repeat(500_000))], running()));
    let builds_on_it = store.append(append(1, vec![line(last + 2, "y")], running()));
    assert!(matches!(large.await, Err(StoreError::Full)));
    assert!(matches!(builds_on_it.await, Err(StoreError::Conflict)));
    assert_eq!(all(&store, 1).await.len() as u64, last);

    tell_sqlite(&store, "PRAGMA max_page_count = 1000000").await;
    write(&store, 1, vec![line(last + 1, "at last")]).await.unwrap();
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(all(&store, 1).await.len() as u64, last + 1);
}

#[tokio::test]
async fn a_file_that_became_read_only_says_so_and_is_forgiven() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    tell_sqlite(&store, "PRAGMA query_only = ON").await;
    assert!(matches!(write(&store, 1, vec![line(2, "b")]).await, Err(StoreError::ReadOnly)));
    assert_eq!(all(&store, 1).await, [line(1, "a")]);
    tell_sqlite(&store, "PRAGMA query_only = OFF").await;
    write(&store, 1, vec![line(2, "b")]).await.unwrap();
}

#[tokio::test]
async fn a_writer_from_outside_keeps_nobody_but_the_writer_waiting() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    let outside = rusqlite::Connection::open(temp.path().join("store.db")).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waits = store.append(append(1, vec![line(2, "b")], running()));
    assert!((&mut waits).now_or_never().is_none());
    outside.execute_batch("ROLLBACK").unwrap();
    waits.await.unwrap();
    assert_eq!(all(&store, 1).await, [line(1, "a"), line(2, "b")]);
}

#[tokio::test]
async fn a_writer_from_outside_is_in_the_way_only_while_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    tell_sqlite(&store, "PRAGMA busy_timeout = 0").await;
    let outside = rusqlite::Connection::open(temp.path().join("store.db")).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(write(&store, 1, vec![line(2, "b")]).await, Err(StoreError::Locked)));
    assert_eq!(all(&store, 1).await, [line(1, "a")]);
    outside.execute_batch("ROLLBACK").unwrap();
    write(&store, 1, vec![line(2, "b")]).await.unwrap();
}

/// A file system of two megabytes, if this machine allows one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=2m", "airlock-test"], dir.path())
            .then_some(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &[], self.0.path());
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that owns its child and waits for it")]
fn run(program: &str, args: &[&str], last: &Path) -> bool {
    let mut command = std::process::Command::new(program);
    command.args(args).arg(last).stderr(std::process::Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_disk_that_is_really_full_loses_nothing_and_is_forgiven() {
    let Some(disk) = SmallDisk::mount() else {
        return full_by_decree().await;
    };
    let dir = disk.0.path().join("data");
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 700_000]).unwrap();
    let store = SqliteStore::open(&dir).unwrap();
    let (last, why) = fill(&store).await;
    assert!(matches!(why, StoreError::Full), "{why:?}");
    assert!(matches!(store.put_blob(vec![9; 1_000_000]).await, Err(StoreError::Full)));
    assert_eq!(all(&store, 1).await.len() as u64, last);

    std::fs::remove_file(&ballast).unwrap();
    write(&store, 1, vec![line(last + 1, "at last")]).await.unwrap();
    store.put_blob(vec![9; 100_000]).await.unwrap();
    store.close().await;
    let store = SqliteStore::open(&dir).unwrap();
    assert_eq!(all(&store, 1).await.len() as u64, last + 1);
    store.close().await;
}
