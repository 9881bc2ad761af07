//! Followers receive each entry once, in order, regardless of how they and the writer interleave.

use super::*;
use futures_util::StreamExt;

#[tokio::test]
async fn a_follower_hears_what_was_and_what_comes_and_then_the_end() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a"), line(2, "b")]).await.unwrap();
    let mut follower = store.follow(id(1), Seq(1));
    assert_eq!(follower.next().await.unwrap().unwrap(), line(2, "b"));
    let (heard, written) = tokio::join!(follower.next(), write(&store, 1, vec![line(3, "c")]));
    written.unwrap();
    assert_eq!(heard.unwrap().unwrap(), line(3, "c"));
    store
        .append(append(1, vec![end(4)], standing(ExecutionPhase::Finished, "ann", None)))
        .await
        .unwrap();
    assert_eq!(follower.next().await.unwrap().unwrap(), end(4));
    assert!(follower.next().await.is_none());
    drop(follower);
    assert_eq!(store.inner.watchers.n_watched(), 0);
}

#[tokio::test]
async fn following_nothing_or_what_is_over_ends_at_once() {
    let store = SqliteStore::temporary().unwrap();
    assert!(store.follow(id(1), Seq(0)).next().await.is_none());
    let over = standing(ExecutionPhase::Finished, "ann", None);
    store.append(append(1, vec![line(1, "a"), end(2)], over)).await.unwrap();
    assert!(store.follow(id(1), Seq(2)).next().await.is_none());
    assert!(store.follow(id(1), Seq(99)).next().await.is_none());
    assert_eq!(store.follow(id(1), Seq(0)).count().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_followers_that_come_at_any_time_hear_everything_once() {
    const LAST: u64 = 500;
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    let mut followers = tokio::task::JoinSet::new();
    for seq in 2..=LAST {
        let entry = if seq == LAST { end(seq) } else { line(seq, "x") };
        let phase = if seq == LAST { ExecutionPhase::Finished } else { ExecutionPhase::Running };
        let written = store.append(append(1, vec![entry], standing(phase, "ann", None)));
        if seq % 10 == 0 {
            // Follows while that append is in progress.
            let mut follower = store.follow(id(1), Seq(seq / 2));
            followers.spawn(async move {
                let mut heard = Vec::new();
                while let Some(entry) = follower.next().await {
                    heard.push(entry.unwrap().seq.0);
                }
                assert_eq!(heard, (seq / 2 + 1..=LAST).collect::<Vec<_>>());
            });
        }
        written.await.unwrap();
    }
    assert_eq!(followers.join_all().await.len(), 50);
    assert_eq!(store.inner.watchers.n_watched(), 0);
}

#[tokio::test]
async fn a_long_journal_comes_in_pages_without_a_seam() {
    let store = SqliteStore::temporary().unwrap();
    let large = "y".repeat(300_000);
    let entries: Vec<_> =
        (1..=1_000).map(|seq| line(seq, if seq % 100 == 0 { &large } else { "x" })).collect();
    write(&store, 1, entries.clone()).await.unwrap();
    let over = standing(ExecutionPhase::Finished, "ann", None);
    store.append(append(1, vec![end(1_001)], over)).await.unwrap();
    let heard: Vec<_> = store.follow(id(1), Seq(0)).map(Result::unwrap).collect().await;
    assert_eq!(heard[..1_000], entries);
    assert_eq!(heard[1_000..], [end(1_001)]);
}

#[tokio::test]
async fn a_follower_of_a_store_that_closes_is_told() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    let mut follower = store.follow(id(1), Seq(1));
    let (heard, ()) = tokio::join!(follower.next(), store.clone().close());
    assert!(matches!(heard, Some(Err(StoreError::Closed))));
    assert!(follower.next().await.is_none());
}
