//! `store recover`: the content of a damaged directory is saved, it opens again, and the loss is recorded.

use super::mark::{Image, image, lay_out};
use super::*;
use crate::sqlite::{BootId, OpenError, RecoveryReport};
use crate::{DataLoss, ListFilter, LossCause, RecordStore};
use std::path::Path;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const N: u128 = 12;

/// A directory after a kill: half of it in the database, half in the log.
async fn killed() -> Image {
    let temp = tempfile::tempdir().unwrap();
    for range in [1..=N / 2, N / 2 + 1..=N] {
        let store = SqliteStore::open(temp.path()).unwrap();
        for n in range.clone() {
            write(&store, n, vec![line(1, "hello"), asks(2, n), line(3, "world")]).await.unwrap();
        }
        store.put("policy", &range.start().to_string(), "{}".into(), 0).await.unwrap();
        if *range.end() == N {
            return image(temp.path());
        }
        store.close().await;
    }
    unreachable!("the second range ends with the last execution")
}

async fn n_whole(store: &SqliteStore) -> usize {
    let mut n_whole = 0;
    for n in 1..=N {
        n_whole +=
            usize::from(all(store, n).await == [line(1, "hello"), asks(2, n), line(3, "world")]);
    }
    n_whole
}

fn recovered(dir: &Path) -> RecoveryReport {
    let refused = SqliteStore::open(dir).map(drop);
    assert!(refused.is_err(), "{refused:?}");
    assert!(!SqliteStore::check_directory(dir).unwrap().is_sound());
    let report = SqliteStore::recover(dir, NOW).unwrap();
    assert!(SqliteStore::check_directory(dir).unwrap().is_sound());
    report
}

async fn opened(dir: &Path, report: &RecoveryReport) -> SqliteStore {
    let store = SqliteStore::open(dir).unwrap();
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 99 };
    let n_listed = store.list_executions(filter).await.unwrap().len();
    assert_eq!(report.rows.executions.iter().map(|(_, n)| n).sum::<usize>(), n_listed);
    let loss =
        DataLoss { cause: LossCause::Recovered, found: NOW, known_until: report.rows.newest };
    assert_eq!(store.data_loss().await.unwrap(), Some(loss));
    store
}

#[tokio::test]
async fn a_flipped_bit_in_the_log_loses_nothing_where_a_later_frame_has_the_page() {
    let killed = killed().await;
    let length = killed["store.db-wal"].iter().rposition(|byte| *byte != 0).unwrap();
    let mut n_lossless = 0;
    for at in (100..length).step_by(2_972) {
        let mut image = killed.clone();
        image.get_mut("store.db-wal").unwrap()[at] ^= 4;
        let dir = lay_out(&image);
        let report = recovered(dir.path());
        let store = opened(dir.path(), &report).await;
        let n_whole = n_whole(&store).await;
        if report.n_frames_lost == 0 {
            n_lossless += 1;
            assert_eq!(n_whole as u128, N, "byte {at}");
            assert_eq!(store.all("policy").await.unwrap().len(), 2);
        }
        assert!(n_whole as u128 >= N / 2, "byte {at}: {report:?}");
        store.close().await;
        assert!(
            std::fs::read(report.copies.join("store.db-wal")).unwrap() == image["store.db-wal"]
        );
    }
    assert!(n_lossless > 5, "{n_lossless}");
}

#[tokio::test]
async fn a_log_that_is_cut_or_gone_leaves_what_was_before() {
    let killed = killed().await;
    let length = killed["store.db-wal"].iter().rposition(|byte| *byte != 0).unwrap();
    for cut in [0, 16, 5_000, length / 2, length - 1] {
        let mut image = killed.clone();
        image.get_mut("store.db-wal").unwrap().truncate(cut);
        let dir = lay_out(&image);
        let report = recovered(dir.path());
        assert!(report.n_frames_lost > 0);
        let store = opened(dir.path(), &report).await;
        assert!(n_whole(&store).await as u128 >= N / 2, "cut at {cut}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_damaged_database_leaves_the_rows_that_can_be_read() {
    let mut killed = killed().await;
    let dir = lay_out(&killed);
    SqliteStore::open_in_boot(dir.path(), BootId::current()).unwrap().close().await;
    killed = image(dir.path());
    let n_pages = killed["store.db"].len() / 2_048;
    let mut n_saved = 0;
    for page in 0..n_pages {
        let mut image = killed.clone();
        image.get_mut("store.db").unwrap()[page * 2_048..][..2_048].fill(0);
        let dir = lay_out(&image);
        if let Ok(store) = SqliteStore::open(dir.path()) {
            store.close().await; // a free page
            continue;
        }
        let report = match SqliteStore::recover(dir.path(), NOW) {
            Ok(report) => report,
            Err(error) => panic!("page {page}: {error}"),
        };
        let store = opened(dir.path(), &report).await;
        n_saved += n_whole(&store).await;
        store.close().await;
    }
    assert!(n_saved as u128 > N * 5, "{n_saved}");
}

#[tokio::test]
async fn a_directory_that_is_not_there_or_in_use_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let missing = temp.path().join("none");
    assert!(
        SqliteStore::check_directory(&missing).is_err()
            && SqliteStore::recover(&missing, NOW).is_err()
    );
    assert!(!missing.exists());
    let store = SqliteStore::open(temp.path()).unwrap();
    for refused in [
        SqliteStore::check_directory(temp.path()).map(drop),
        SqliteStore::recover(temp.path(), NOW).map(drop),
    ] {
        assert!(matches!(refused, Err(OpenError::Owned { .. })), "{refused:?}");
    }
    store.close().await;
    assert!(SqliteStore::check_directory(temp.path()).unwrap().is_sound());
}

/// The first cell of the root of a table, in the closed database of a directory; the root has children.
fn first_cell_of_root<'a>(dir: &Path, table: &str, image: &'a mut Image) -> &'a mut [u8] {
    const PAGE_BYTES: usize = 2_048;
    const INNER_PAGES: [u8; 2] = [2, 5];
    let conn = rusqlite::Connection::open(dir.join("store.db")).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = conn.query_row(root, [table], |row| row.get(0)).unwrap();
    let root = usize::try_from(root).unwrap();
    let db = image.get_mut("store.db").unwrap();
    let page = &mut db[(root - 1) * PAGE_BYTES..root * PAGE_BYTES];
    assert!(INNER_PAGES.contains(&page[0]));
    let cell = usize::from(u16::from_be_bytes([page[12], page[13]]));
    &mut page[cell..]
}

#[tokio::test]
async fn a_search_that_leads_back_neither_stops_a_recovery_nor_loses_a_row() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    for n in 1..=99 {
        store.append(whole(n)).await.unwrap();
    }
    store.close().await;
    let mut image = image(temp.path());
    // After the number of a child: a search for rows behind that child now ends in it.
    let number = &mut first_cell_of_root(temp.path(), "executions", &mut image)[4];
    assert!(*number < 100, "one byte is the number");
    *number = 127;
    let dir = lay_out(&image);
    let report = recovered(dir.path());
    let store = opened(dir.path(), &report).await;
    for n in 1..=99 {
        assert_eq!(all(&store, n).await, [line(1, "a"), end(2)], "{n}");
    }
    store.close().await;
}

#[tokio::test]
async fn a_record_with_a_damaged_key_is_reported_as_lost() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    for n in 10..70 {
        store.put("policy", &n.to_string(), "x".repeat(200), 0).await.unwrap();
    }
    store.close().await;
    let mut image = image(temp.path());
    let cell = first_cell_of_root(temp.path(), "records", &mut image);
    let kind = cell.windows(6).position(|bytes| bytes == b"policy").unwrap();
    cell[kind] = b'a';
    let dir = lay_out(&image);
    let report = recovered(dir.path());
    assert!(report.has_lost_rows);
    let store = opened(dir.path(), &report).await;
    assert_eq!(store.all("policy").await.unwrap().len(), 59, "all but the damaged one");
    store.close().await;
}
