//! Records change only with the correct version.

use super::*;
use crate::{BlobStore, RecordStore, StoredRecord};

#[tokio::test]
async fn a_record_changes_only_for_whoever_knows_its_version() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(store.get("policy", "a").await.unwrap(), None);
    assert_eq!(store.put("policy", "a", "1".into(), 0).await.unwrap(), 1);
    let again = store.put("policy", "a", "2".into(), 0).await;
    assert!(matches!(again, Err(StoreError::Conflict)));
    assert_eq!(store.put("policy", "a", "3".into(), 1).await.unwrap(), 2);
    store.put("policy", "B", "4".into(), 0).await.unwrap();
    store.put("source", "a", "5".into(), 0).await.unwrap();
    store.close().await;

    let store = SqliteStore::open(temp.path()).unwrap();
    let record = |key: &str, value: &str, version| StoredRecord {
        key: key.into(),
        value: value.into(),
        version,
    };
    assert_eq!(store.get("policy", "a").await.unwrap(), Some(record("a", "3", 2)));
    assert_eq!(store.all("policy").await.unwrap(), [record("B", "4", 1), record("a", "3", 2)]);
    assert!(matches!(store.remove("policy", "a", 1).await, Err(StoreError::Conflict)));
    store.remove("policy", "a", 2).await.unwrap();
    assert!(matches!(store.remove("policy", "a", 2).await, Err(StoreError::Conflict)));
    assert_eq!(store.all("source").await.unwrap(), [record("a", "5", 1)]);
}

#[tokio::test]
async fn of_many_that_change_a_record_at_once_one_wins() {
    let store = SqliteStore::temporary().unwrap();
    let puts: Vec<_> = (0..64).map(|n| store.put("k", "x", n.to_string(), 0)).collect();
    let mut won = 0;
    for put in puts {
        won += u32::from(put.await.is_ok());
    }
    assert_eq!(won, 1);
    let oversized = store.put("k", "y", "x".repeat(2 << 20), 0).await;
    assert!(matches!(oversized, Err(StoreError::Other(_))));
}

#[tokio::test]
async fn whoever_reads_after_a_change_reads_the_change() {
    let store = SqliteStore::temporary().unwrap();
    let value = async || store.get("k", "x").await.unwrap().map(|record| record.value);
    for version in 0..50 {
        // Some reads that were requested before the change and return after it.
        let early: Vec<_> = (0..8).map(|_| store.get("k", "x")).collect();
        let put = store.put("k", "x", version.to_string(), version);
        for read in early {
            let _ = read.await.unwrap();
        }
        put.await.unwrap();
        assert_eq!(value().await, Some(version.to_string()));
        assert_eq!(value().await, Some(version.to_string()), "also when it is remembered");
    }
    store.remove("k", "x", 50).await.unwrap();
    assert_eq!(value().await, None);
    let other = store.clone();
    store.close().await;
    assert!(matches!(other.get("k", "x").await, Err(StoreError::Closed)));
}

#[tokio::test]
async fn blobs_survive_reopening() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let name = store.put_blob(vec![7; 100_000]).await.unwrap();
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(store.fetch(&name).await.unwrap(), Some(vec![7; 100_000]));
    assert!(store.discard(&name).await.unwrap());
    assert_eq!(store.fetch(&name).await.unwrap(), None);
}

#[tokio::test]
async fn records_are_looked_at_without_owning_the_directory() {
    let temp = tempfile::tempdir().unwrap();
    let nowhere = temp.path().join("nowhere");
    assert_eq!(SqliteStore::read_records(&nowhere, "policy").unwrap(), []);
    assert!(!nowhere.exists());
    let store = SqliteStore::open(temp.path()).unwrap();
    store.put("policy", "a", "1".into(), 0).await.unwrap();
    store.put("source", "b", "2".into(), 0).await.unwrap();
    let record = StoredRecord { key: "a".into(), value: "1".into(), version: 1 };
    let looked = || SqliteStore::read_records(temp.path(), "policy").unwrap();
    assert_eq!(looked(), [record], "while somebody writes there");
    store.put("policy", "c", "3".into(), 0).await.unwrap();
    assert_eq!(looked().len(), 2);
    store.close().await;
    assert_eq!(looked().len(), 2, "and when nobody does");
    std::fs::write(nowhere.with_file_name("store.db"), "no database at all").unwrap();
    assert!(matches!(
        SqliteStore::read_records(temp.path(), "policy"),
        Err(crate::sqlite::OpenError::Foreign)
    ));
}
