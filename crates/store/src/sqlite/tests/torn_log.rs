//! A crash may cut the log anywhere: a prefix of complete appends remains.

use super::*;
use crate::sqlite::format::{self, CheckExtent, DurabilityMode, STEPS};
use crate::sqlite::query::{self, PageMax};
use std::path::Path;

const APPENDS: u64 = 24;
const PER_APPEND: u64 = 3;
/// SQLite's sizes: the log's header, a frame's header, a page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 2_048;

/// The number of entries of a database with this log beside it.
fn n_entries_with(dir: &Path, db: &[u8], log: &[u8]) -> u64 {
    let path = dir.join(format::FILE);
    std::fs::write(&path, db).unwrap();
    std::fs::write(format::log_of(&path), log).unwrap();
    let conn =
        format::open(&path, STEPS, DurabilityMode::Nothing, CheckExtent::IfSmall).unwrap().conn;
    let max = PageMax { entries: usize::MAX, bytes: usize::MAX };
    let entries = query::entries(&conn, id(1), Seq(0), max).unwrap().entries;
    for entry in &entries {
        assert_eq!(*entry, line(entry.seq.0, "some text"));
    }
    drop(conn);
    for file in std::fs::read_dir(dir).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    entries.len() as u64
}

/// A folder in which thousands of files are created and removed.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

#[tokio::test]
async fn a_log_cut_anywhere_shows_a_prefix_of_whole_appends() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    for first in (1..=APPENDS * PER_APPEND).step_by(usize::try_from(PER_APPEND).unwrap()) {
        let entries = (first..first + PER_APPEND).map(|seq| line(seq, "some text")).collect();
        write(&store, 1, entries).await.unwrap();
    }
    let db = std::fs::read(temp.path().join(format::FILE)).unwrap();
    let log = std::fs::read(format::log_of(&temp.path().join(format::FILE))).unwrap();
    store.close().await;

    // Every byte in the full campaign; otherwise every byte of the headers and around a page's ends, and a
    // sample in between.
    let every = std::env::var_os("AIRLOCK_SOAK").is_some();
    let near_a_border = |at: usize| {
        let within = at.saturating_sub(HEADER) % FRAME;
        at <= HEADER || within <= 32 || within + 8 >= FRAME
    };
    let cuts = (0..=log.len()).filter(|at| every || near_a_border(*at) || at % 61 == 0);
    let scratch = scratch();
    let mut shown_before = 0;
    for cut in cuts {
        let shown = n_entries_with(scratch.path(), &db, &log[..cut]);
        assert_eq!(shown % PER_APPEND, 0, "cut at {cut}: {shown} entries");
        assert!(shown >= shown_before, "cut at {cut}: fewer than with a shorter log");
        shown_before = shown;
    }
    assert_eq!(shown_before, APPENDS * PER_APPEND);
}

#[tokio::test]
async fn what_is_synced_finds_room_in_the_log_and_the_room_is_no_part_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let path = temp.path().join(format::FILE);
    let length = || std::fs::metadata(format::log_of(&path)).unwrap().len();
    let write = async |seq| {
        let append = append(1, vec![line(seq, "some text")], running());
        store.append(JournalAppend { strength: WriteStrength::Synced, ..append }).await.unwrap();
    };
    write(1).await;
    // Preallocation happens after the acknowledgement, and before the next write.
    write(2).await;
    let with_room = length();
    assert!(with_room > 256 << 10, "no room is made");
    for seq in 3..=APPENDS {
        write(seq).await;
    }
    assert_eq!(length(), with_room, "the log has grown where there was room");

    let db = std::fs::read(&path).unwrap();
    let log = std::fs::read(format::log_of(&path)).unwrap();
    store.close().await;
    let end = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let scratch = scratch();
    for cut in (end..log.len()).step_by(7_919).chain([log.len()]) {
        assert_eq!(n_entries_with(scratch.path(), &db, &log[..cut]), APPENDS, "cut at {cut}");
    }
}
