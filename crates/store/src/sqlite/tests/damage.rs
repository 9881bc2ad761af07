//! Files that belong to another program, are newer, or were damaged: rejected, and not changed.

use super::*;
use crate::sqlite::OpenError;
use crate::sqlite::format::{self, CheckExtent, DurabilityMode};
use crate::sqlite::mark;
use crate::{ListFilter, ListedExecution, RecordStore, StoredRecord};
use std::path::Path;

/// The database, whose log must be empty.
fn bytes_of(dir: &Path) -> Vec<u8> {
    let log = std::fs::metadata(format::log_of(&dir.join(format::FILE)));
    assert!(log.map_or(0, |log| log.len()) == 0, "something is still in the log");
    std::fs::read(dir.join(format::FILE)).unwrap()
}

#[track_caller]
fn refused_untouched(dir: &Path) -> OpenError {
    let before = bytes_of(dir);
    let refused = SqliteStore::open(dir).unwrap_err();
    assert!(bytes_of(dir) == before, "the file was changed");
    refused
}

async fn made(dir: &Path) {
    let store = SqliteStore::open(dir).unwrap();
    for n in 1..=20 {
        write(&store, n, vec![line(1, "hello"), asks(2, n), line(3, "world")]).await.unwrap();
    }
    for n in 21..=40 {
        store.append(whole(n)).await.unwrap();
    }
    store.put("policy", "a", "{\"x\":1}".into(), 0).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_newer_format_is_refused_with_advice() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path()).await;
    let conn = rusqlite::Connection::open(temp.path().join(format::FILE)).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    let refused = refused_untouched(temp.path());
    assert!(matches!(refused, OpenError::Newer { found: 99, known: 7 }), "{refused:?}");
    assert!(refused.to_string().contains("Install a newer version"));
}

/// Settings are records that a program of format 5 would not look for.
#[tokio::test]
async fn a_directory_of_format_5_keeps_its_data_and_is_then_refused_by_programs_of_format_5() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path()).await;
    let path = temp.path().join(format::FILE);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 5).unwrap();
    drop(conn);
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(store.get("policy", "a").await.unwrap().unwrap().value, "{\"x\":1}");
    store.close().await;
    let opened =
        format::open(&path, &format::STEPS[..5], DurabilityMode::Nothing, CheckExtent::IfSmall);
    let refused = opened.map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 7, known: 5 }), "{refused:?}");
}

#[tokio::test]
async fn another_programs_file_is_refused() {
    let files: [&dyn Fn(&Path); 4] = [
        &|path| std::fs::write(path, "my diary").unwrap(),
        &|path| std::fs::write(path, vec![7; 10_000]).unwrap(),
        &|path| {
            let conn = rusqlite::Connection::open(path).unwrap();
            conn.execute_batch("PRAGMA application_id = 5; CREATE TABLE t (x);").unwrap();
        },
        &|path| {
            let conn = rusqlite::Connection::open(path).unwrap();
            conn.execute_batch("CREATE TABLE t (x)").unwrap();
        },
    ];
    for make in files {
        let temp = tempfile::tempdir().unwrap();
        make(&temp.path().join(format::FILE));
        let refused = refused_untouched(temp.path());
        assert!(matches!(refused, OpenError::Foreign), "{refused:?}");
    }
}

#[tokio::test]
async fn a_start_that_was_interrupted_is_taken_up_again() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join(format::FILE);
    std::fs::write(&path, "").unwrap();
    made(temp.path()).await;

    let temp = tempfile::tempdir().unwrap();
    let conn = rusqlite::Connection::open(temp.path().join(format::FILE)).unwrap();
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    drop(conn);
    made(temp.path()).await;
}

#[test]
fn each_step_is_taken_once_and_whole() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.db");
    let open = |steps: &[&str]| {
        let opened = format::open(&path, steps, DurabilityMode::Nothing, CheckExtent::IfSmall);
        opened.map(|database| database.conn)
    };
    let version = |conn: &rusqlite::Connection| -> i64 {
        conn.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    };
    let first = "CREATE TABLE t (a); INSERT INTO t VALUES (1);";
    assert_eq!(version(&open(&[first]).unwrap()), 1);

    let broken = "ALTER TABLE t ADD b; INSERT INTO nowhere VALUES (1);";
    open(&[first, broken]).unwrap_err();
    assert_eq!(version(&open(&[first]).unwrap()), 1);

    let second = "ALTER TABLE t ADD b; UPDATE t SET b = a + 1;";
    let conn = open(&[first, second]).unwrap();
    assert_eq!(version(&conn), 2);
    let row = conn.query_row("SELECT a, b FROM t", [], |r| Ok((r.get(0)?, r.get(1)?)));
    assert_eq!(row.unwrap(), (1, 2));
    drop(conn);
    let refused = open(&[first]).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 2, known: 1 }));
}

type Shown = (Vec<ListedExecution>, Vec<Entry>, Vec<StoredRecord>);

async fn shown(store: &SqliteStore) -> Result<Shown, StoreError> {
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 99 };
    let mut entries = Vec::new();
    for n in 1..=40 {
        entries.extend(Journal::read(store, id(n), Seq(0), 99).await?);
    }
    Ok((store.list_executions(filter).await?, entries, store.all("policy").await?))
}

#[tokio::test]
async fn a_damaged_byte_is_refused_or_noticed_or_does_no_harm() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path()).await;
    let store = SqliteStore::open(temp.path()).unwrap();
    let expected = shown(&store).await.unwrap();
    store.close().await;
    let whole = bytes_of(temp.path());
    let mark = std::fs::read(temp.path().join(mark::FILE)).unwrap();

    let (mut n_refused, mut n_noticed) = (0, 0);
    // The complete first header, and a sample of all pages.
    for at in (0..100).chain((100..whole.len()).step_by(41)) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x15;
        std::fs::write(temp.path().join(format::FILE), &damaged).unwrap();
        std::fs::write(temp.path().join(mark::FILE), &mark).unwrap();
        let store = match SqliteStore::open(temp.path()) {
            Ok(store) => store,
            Err(refused) => {
                let untouched = std::fs::read(temp.path().join(format::FILE)).unwrap() == damaged;
                assert!(untouched, "byte {at}: the file was changed");
                assert!(refused.to_string().contains("othing was changed"), "{at}: {refused}");
                n_refused += 1;
                continue;
            }
        };
        match shown(&store).await {
            Ok(shown) => assert!(shown == expected, "byte {at} was silently wrong"),
            Err(why) => {
                assert!(matches!(why, StoreError::Damaged(_)), "byte {at}: {why:?}");
                n_noticed += 1;
            }
        }
        store.close().await;
    }
    assert!(n_refused > 20 && n_noticed > 20, "{n_refused} {n_noticed}");
}

#[tokio::test]
async fn a_file_cut_short_is_refused_or_noticed_or_does_no_harm() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path()).await;
    let store = SqliteStore::open(temp.path()).unwrap();
    let expected = shown(&store).await.unwrap();
    store.close().await;
    let whole = bytes_of(temp.path());
    let mark = std::fs::read(temp.path().join(mark::FILE)).unwrap();
    for length in [1, 99, 100, 4_095, 4_096, whole.len() - 4_096] {
        std::fs::write(temp.path().join(format::FILE), &whole[..length]).unwrap();
        std::fs::write(temp.path().join(mark::FILE), &mark).unwrap();
        let refused = refused_untouched(temp.path());
        assert!(refused.to_string().contains("nothing was changed"), "{length}: {refused}");
    }
    // SQLite treats the missing part of a last page as zeros.
    std::fs::write(temp.path().join(format::FILE), &whole[..whole.len() - 1]).unwrap();
    match SqliteStore::open(temp.path()) {
        Ok(store) => {
            match shown(&store).await {
                Ok(shown) => assert_eq!(shown, expected),
                Err(why) => assert!(matches!(why, StoreError::Damaged(_)), "{why:?}"),
            }
            store.close().await;
        }
        Err(refused) => assert!(refused.to_string().contains("nothing was changed")),
    }
}
