//! Readers of long journals share the threads: each read is bounded, and no reader waits for all reads of the others.

use super::*;
use crate::sqlite::query::PageMax;
use crate::sqlite::traits::READ_BYTES_MAX;
use crate::sqlite::{PAGE_READERS_MAX, query};
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The page size of a follower, as in `follow`.
const PAGE_ENTRIES: usize = 256;

async fn write_lines(store: &SqliteStore, n: u128, n_lines: u64, text: &str) {
    let seqs: Vec<_> = (1..=n_lines).collect();
    for seqs in seqs.chunks(500) {
        let lines = seqs.iter().map(|seq| line(*seq, text)).collect();
        write(store, n, lines).await.unwrap();
    }
}

#[tokio::test]
async fn a_read_is_bounded_in_bytes_and_goes_on_where_it_ended() {
    let store = SqliteStore::temporary().unwrap();
    let text = "x".repeat(READ_BYTES_MAX / 4);
    for seq in 1..=12 {
        write(&store, 1, vec![line(seq, &text)]).await.unwrap();
    }
    let mut lengths = vec![];
    let mut after = Seq(0);
    loop {
        let read = Journal::read(&store, id(1), after, usize::MAX).await.unwrap();
        lengths.push(read.len());
        let Some(last) = read.last() else { break };
        after = last.seq;
    }
    assert_eq!(lengths, [4, 4, 4, 0]);
    // A single entry that exceeds the size of a read is read nevertheless.
    write(&store, 2, vec![line(1, &"x".repeat(2 * READ_BYTES_MAX)), line(2, "y")]).await.unwrap();
    assert_eq!(Journal::read(&store, id(2), Seq(0), usize::MAX).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_overview_reads_no_entry_and_says_what_the_journal_says() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a"), asks(2, 5), line(3, "b")]).await.unwrap();
    write_lines(&store, 2, 2_000, "x").await;
    store.append(whole(3)).await.unwrap();
    let seen = async |n| {
        let overview = store.overview(id(n)).await.unwrap()?;
        let listed = overview.listed;
        Some((listed.last.0, listed.standing.phase, listed.standing.caller.0, overview.has_asked))
    };
    let ann = || "ann".to_owned();
    assert_eq!(seen(1).await, Some((3, ExecutionPhase::Running, ann(), true)));
    assert_eq!(seen(2).await, Some((2_000, ExecutionPhase::Running, ann(), false)));
    assert_eq!(seen(3).await, Some((2, ExecutionPhase::Finished, ann(), false)));
    assert_eq!(seen(4).await, None);
}

#[tokio::test]
async fn callers_are_counted_by_phase() {
    let store = SqliteStore::temporary().unwrap();
    let paused = |caller| standing(ExecutionPhase::Paused, caller, None);
    for (n, caller) in [(1, "ann"), (2, "bob"), (3, "ann")] {
        store.append(append(n, vec![line(1, "a")], paused(caller))).await.unwrap();
    }
    write(&store, 4, vec![line(1, "a")]).await.unwrap();
    let counted = store.count_by_caller(ExecutionPhase::Paused).await.unwrap();
    let expected = [("ann", 2), ("bob", 1)].map(|(name, n)| (CallerName(name.into()), n));
    assert_eq!(counted, expected);
    assert_eq!(store.count_by_caller(ExecutionPhase::Parked).await.unwrap(), []);
}

/// Each reader requests one page at a time, and requests are served in order: after each page of one reader, every
/// other waiting reader receives one.
#[tokio::test]
async fn readers_of_one_journal_take_turns() {
    const N_READERS: usize = 5;
    const N_PAGES: usize = 8;
    let store = SqliteStore::temporary().unwrap();
    write_lines(&store, 1, (N_PAGES * PAGE_ENTRIES) as u64, "x").await;
    // The newest entries are cached, and their readers would not wait: this evicts them.
    write(&store, 2, vec![line(1, &"x".repeat(1 << 20))]).await.unwrap();
    let progress: Arc<[AtomicUsize]> = (0..N_READERS).map(|_| AtomicUsize::new(0)).collect();
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..N_READERS {
        let (mut entries, progress) = (store.follow(id(1), Seq(0)), Arc::clone(&progress));
        readers.spawn(async move {
            let mut most_ahead = 0;
            for n in 0..N_PAGES * PAGE_ENTRIES {
                entries.next().await.unwrap().unwrap();
                if (n + 1) % PAGE_ENTRIES == 0 {
                    let n_read = progress[reader].fetch_add(1, Ordering::SeqCst) + 1;
                    let least = progress.iter().map(|n| n.load(Ordering::SeqCst)).min().unwrap();
                    most_ahead = most_ahead.max(n_read - least);
                }
            }
            most_ahead
        });
    }
    let most_ahead = readers.join_all().await.into_iter().max().unwrap();
    assert!(most_ahead <= 2, "one reader was {most_ahead} pages ahead of another");
}

/// The page thread is blocked, and as many followers as possible wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_waits_for_no_follower() {
    let store = SqliteStore::temporary().unwrap();
    write_lines(&store, 1, 1_000, "x").await;
    write(&store, 2, vec![line(1, "a"), asks(2, 5)]).await.unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let mut blockers = tokio::task::JoinSet::new();
    for _ in 0..PAGE_READERS_MAX {
        let held = Arc::clone(&held);
        let (begin, begun) = tokio::sync::oneshot::channel();
        blockers.spawn(store.inner.query_page(move |_| {
            begin.send(()).unwrap();
            let _ = held.lock().unwrap().recv();
            Ok(())
        }));
        begun.await.unwrap();
    }
    let mut followers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let mut entries = store.follow(id(1), Seq(0));
        followers.spawn(async move { entries.next().await.unwrap().unwrap().seq });
    }
    tokio::task::yield_now().await;
    assert_eq!(store.overview(id(2)).await.unwrap().unwrap().listed.last, Seq(2));
    assert_eq!(store.asked_by(question(5)).await.unwrap(), Some(id(2)));
    assert_eq!(Journal::read(&store, id(2), Seq(0), 10).await.unwrap().len(), 2);
    assert!(followers.try_join_next().is_none(), "the followers still wait");
    drop(release);
    assert_eq!(followers.join_all().await, vec![Seq(1); 200]);
}

#[tokio::test]
async fn a_page_of_a_follower_is_bounded() {
    let store = SqliteStore::temporary().unwrap();
    write_lines(&store, 1, 1_000, &"x".repeat(4 << 10)).await;
    let page = store.inner.query_page(|conn| {
        let max = PageMax { entries: PAGE_ENTRIES, bytes: 256 << 10 };
        query::read_followed(conn, id(1), Seq(0), max)
    });
    let query::FollowerRead::Entries { page, over: false } = page.await.unwrap() else {
        panic!("no page")
    };
    assert_eq!((page.entries.len(), page.full), (63, true));
}

/// A plan that sorts would read all paused executions at every pause.
#[tokio::test]
async fn what_is_due_next_is_found_in_its_index_however_many_are_paused() {
    let store = SqliteStore::temporary().unwrap();
    for n in 1..=3 {
        let due = 1_000 - i64::try_from(n).unwrap();
        let paused = standing(ExecutionPhase::Paused, "ann", Some(due));
        store.append(append(n, vec![line(1, "a")], paused)).await.unwrap();
    }
    assert_eq!(store.next_due().await.unwrap(), Some((Timestamp(997), id(3))));
    let plan = store.inner.query(|conn| {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {}", query::NEXT_DUE))?;
        let steps = explain.query_map([2], |row| row.get::<_, String>(3))?;
        Ok(steps.collect::<Result<Vec<_>, _>>()?)
    });
    assert_eq!(plan.await.unwrap(), ["SEARCH executions USING INDEX executions_by_due (due>?)"]);
}
