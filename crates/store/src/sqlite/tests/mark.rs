//! A store that holds less than it acknowledged is rejected; one that was killed, lost power or is a copy is not.

use super::*;
use crate::sqlite::{BootId, OpenError, format, mark};
use crate::{LossCause, RecordStore, StoredRecord};
use std::collections::BTreeMap;
use std::path::Path;

/// The files of a data directory, as a kill of the process would leave them.
pub(super) type Image = BTreeMap<String, Vec<u8>>;

/// All files at one moment: they are read until two readings are equal, as the store may write meanwhile.
pub(super) fn image(dir: &Path) -> Image {
    let mut image = read_files(dir);
    loop {
        let again = read_files(dir);
        if again == image {
            return image;
        }
        image = again;
    }
}

fn read_files(dir: &Path) -> Image {
    let files = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let files = files.filter(|file| file.file_type().unwrap().is_file());
    let read = |file: std::fs::DirEntry| {
        (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())
    };
    files.map(read).filter(|(name, _)| name.starts_with("store.")).collect()
}

pub(super) fn lay_out(image: &Image) -> tempfile::TempDir {
    let dir = scratch();
    for (name, bytes) in image {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

/// A folder in which thousands of files are created and removed.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

const OTHER_BOOT: BootId = BootId([9; 16]);

#[track_caller]
fn refused(image: &Image, what: &str) {
    let dir = lay_out(image);
    let refused = SqliteStore::open(dir.path()).unwrap_err();
    assert!(matches!(&refused, OpenError::Short { .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(what), "{text}");
    assert!(
        text.contains("airlock store check") && text.contains("airlock store recover"),
        "{text}"
    );
    let mut after = self::image(dir.path());
    after.remove("store.db-shm");
    let mut before = image.clone();
    before.remove("store.db-shm");
    assert!(after == before, "something was changed");
}

/// Executions that were acknowledged one after the other on all paths, and an image after each.
async fn lived() -> Vec<Image> {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let mut images = vec![image(temp.path())];
    for n in 1..=12_u128 {
        let strength = if n % 3 == 0 { WriteStrength::Synced } else { WriteStrength::Written };
        let append = match n % 4 {
            0 => whole(n),
            _ => JournalAppend { strength, ..append(n, vec![line(1, "hello")], running()) },
        };
        store.append(append).await.unwrap();
        images.push(image(temp.path()));
    }
    images
}

#[tokio::test]
async fn every_image_of_a_killed_process_opens_with_everything_acknowledged() {
    for (n_acknowledged, image) in lived().await.iter().enumerate() {
        for boot in [BootId::current(), OTHER_BOOT] {
            let dir = lay_out(image);
            let store = SqliteStore::open_in_boot(dir.path(), boot).unwrap();
            for n in 1..=n_acknowledged as u128 {
                assert!(!all(&store, n).await.is_empty(), "{n} of {n_acknowledged}");
            }
            assert_eq!(store.data_loss().await.unwrap(), None);
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_a_cut_or_zeros_in_the_log_are_refused() {
    let whole = lived().await.pop().unwrap();
    let length = whole["store.db-wal"].iter().rposition(|byte| *byte != 0).unwrap();
    for at in [0, 20, 40, 2_000, length / 2, length - 2_060] {
        let mut image = whole.clone();
        image.get_mut("store.db-wal").unwrap()[at] ^= 1;
        refused(&image, "store.db-wal");
        let mut image = whole.clone();
        image.get_mut("store.db-wal").unwrap()[at..at + 512].fill(0x55);
        refused(&image, "store.db-wal");
        let mut image = whole.clone();
        image.get_mut("store.db-wal").unwrap().truncate(at);
        refused(&image, "store.db-wal");
    }
    let mut image = whole;
    image.remove("store.db-wal");
    refused(&image, "store.db-wal");
}

#[tokio::test]
async fn a_damaged_tail_or_a_database_cut_short_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    // The log is in the database: only later commits are beside it.
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    for n in 1..=2 {
        store.append(whole(n)).await.unwrap();
    }
    // Inserted executions are in the log; either way they must be present.
    let mut image = image(temp.path());
    let is_in_tail = |image: &Image| {
        let mark = mark::MarkState::newest(&image["store.mark"]).unwrap().1;
        (0..2).find(|which| mark.tails[*which].end > 0)
    };
    if let Some(which) = is_in_tail(&image) {
        image.get_mut(&format!("store.tail-{which}")).unwrap()[30] ^= 1;
        refused(&image, &format!("store.tail-{which}"));
    }
    store.close().await;
    let mut image = self::image(temp.path());
    let db = image.get_mut("store.db").unwrap();
    db.truncate(db.len() - 512);
    refused(&image, "store.db has");
}

#[tokio::test]
async fn unsynced_commits_may_be_lost_with_the_power_and_synced_ones_may_not() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let synced = JournalAppend {
        strength: WriteStrength::Synced,
        ..append(1, vec![line(1, "a")], running())
    };
    store.append(synced).await.unwrap();
    let durable = image(temp.path());
    write(&store, 2, vec![line(1, "b")]).await.unwrap();
    let mut lost = image(temp.path());
    // The mark reached the disk, and the log did not.
    lost.insert("store.db-wal".into(), durable["store.db-wal"].clone());
    refused(&lost, "store.db-wal");
    let dir = lay_out(&lost);
    let after = SqliteStore::open_in_boot(dir.path(), OTHER_BOOT).unwrap();
    assert_eq!(all(&after, 1).await, [line(1, "a")]);
    assert_eq!(all(&after, 2).await, []);
    after.close().await;

    let log = lost.get_mut("store.db-wal").unwrap();
    let length = log.iter().rposition(|byte| *byte != 0).unwrap();
    log.truncate(length - 8);
    let dir = lay_out(&lost);
    let refused = SqliteStore::open_in_boot(dir.path(), OTHER_BOOT).unwrap_err();
    assert!(matches!(refused, OpenError::Short { .. }), "{refused:?}");
    store.close().await;
}

#[tokio::test]
async fn a_log_that_started_over_is_no_damage() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    // Another process checkpoints the log, and the mark does not know.
    let outside = rusqlite::Connection::open(temp.path().join(format::FILE)).unwrap();
    outside.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    for seq in 2..=9 {
        write(&store, 1, vec![line(seq, "a")]).await.unwrap();
        let dir = lay_out(&image(temp.path()));
        let after = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(all(&after, 1).await.len() as u64, seq);
        after.close().await;
    }
    drop(outside);
    store.close().await;
}

/// A directory that was closed, opened and closed again: its image before and after.
async fn two_states() -> (Image, Image) {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    let running = image(temp.path());
    store.close().await;
    let store = SqliteStore::open(temp.path()).unwrap();
    store.put("policy", "a", "{}".into(), 0).await.unwrap();
    store.close().await;
    (running, image(temp.path()))
}

#[tokio::test]
async fn a_restored_copy_is_reported_once_and_never_refused() {
    let (_, mut restored) = two_states().await;
    let damaged: Image = {
        let mut damaged = restored.clone();
        damaged.insert("store.mark".into(), vec![7; 8_192]);
        damaged
    };
    restored.remove("store.mark");
    for image in [restored, damaged] {
        let dir = lay_out(&image);
        for is_first in [true, false] {
            let store = SqliteStore::open(dir.path()).unwrap();
            let loss = store.data_loss().await.unwrap().expect("it is open until it is settled");
            assert_eq!((loss.cause, loss.known_until), (LossCause::Restored, Some(Timestamp(1))));
            if !is_first {
                store.settle_data_loss().await.unwrap();
                assert_eq!(store.data_loss().await.unwrap(), None);
            }
            store.close().await;
        }
        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.data_loss().await.unwrap(), None);
        store.close().await;
    }
}

#[tokio::test]
async fn an_earlier_state_beside_a_newer_mark_is_refused_and_another_history_is_a_copy() {
    let (running, closed) = two_states().await;
    let mut earlier = closed.clone();
    // A backup that was made while the store was open: the log is in it.
    let dir = lay_out(&running);
    let conn = rusqlite::Connection::open(dir.path().join(format::FILE)).unwrap();
    let copy = dir.path().join("copy.db");
    conn.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let mut copied = std::fs::read(copy).unwrap();
    copied.resize(closed["store.db"].len().max(copied.len()), 0);
    earlier.insert("store.db".into(), copied);
    refused(&earlier, "earlier state");

    let (_, other) = two_states().await;
    let mut copy = closed;
    copy.insert("store.mark".into(), other["store.mark"].clone());
    let dir = lay_out(&copy);
    let store = SqliteStore::open(dir.path()).unwrap();
    let loss = store.data_loss().await.unwrap().unwrap();
    assert_eq!(loss.cause, LossCause::Restored);
    store.close().await;
}

#[tokio::test]
async fn a_directory_of_an_earlier_version_gets_a_mark_and_is_no_copy() {
    let (_, mut image) = two_states().await;
    image.remove("store.mark");
    let dir = lay_out(&image);
    let conn = rusqlite::Connection::open(dir.path().join(format::FILE)).unwrap();
    conn.execute("DELETE FROM records WHERE kind = 'store'", []).unwrap();
    conn.pragma_update(None, "user_version", 6).unwrap();
    drop(conn);
    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(store.data_loss().await.unwrap(), None);
    let record = store.get("policy", "a").await.unwrap();
    assert_eq!(record, Some(StoredRecord { key: "a".into(), value: "{}".into(), version: 1 }));
    store.close().await;
    let mut image = self::image(dir.path());
    image.get_mut("store.db").unwrap().truncate(4_096);
    refused(&image, "store.db has");
}
