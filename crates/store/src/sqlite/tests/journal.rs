//! Append, read, list, due times, leases, deletion.

use super::*;
use crate::sqlite::format;
use crate::sqlite::{OpenError, owner_of};
use crate::{ListFilter, ListedExecution};
use std::path::Path;
use std::time::Duration;

#[tokio::test]
async fn what_is_appended_is_read_back_also_after_reopening() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let entries = vec![line(1, "a"), asks(2, 7), line(3, "\u{1F600}\n\"")];
    let strong = JournalAppend {
        strength: WriteStrength::Synced,
        ..append(1, entries[..2].to_vec(), running())
    };
    store.append(strong).await.unwrap();
    write(&store, 1, entries[2..].to_vec()).await.unwrap();
    assert_eq!(all(&store, 1).await, entries);
    assert_eq!(Journal::read(&store, id(1), Seq(1), 1).await.unwrap(), entries[1..2]);
    assert_eq!(Journal::read(&store, id(1), Seq(9), 9).await.unwrap(), []);
    assert_eq!(all(&store, 2).await, []);
    store.close().await;

    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(all(&store, 1).await, entries);
    assert_eq!(store.asked_by(question(7)).await.unwrap(), Some(id(1)));
    assert_eq!(store.asked_by(question(8)).await.unwrap(), None);
}

#[tokio::test]
async fn an_append_in_the_wrong_place_is_a_conflict_and_leaves_no_trace() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    for wrong in [1, 3] {
        let verdict = write(&store, 1, vec![line(wrong, "b"), asks(wrong + 1, 5)]).await;
        assert!(matches!(verdict, Err(StoreError::Conflict)), "{verdict:?}");
    }
    assert!(matches!(write(&store, 2, vec![line(2, "x")]).await, Err(StoreError::Conflict)));
    assert_eq!(all(&store, 1).await, [line(1, "a")]);
    assert_eq!(store.asked_by(question(5)).await.unwrap(), None);
    let badly_numbered = JournalAppend {
        entries: vec![line(2, "b"), line(4, "c")],
        ..append(1, vec![line(2, "b")], running())
    };
    assert!(matches!(store.append(badly_numbered).await, Err(StoreError::Other(_))));
}

#[tokio::test]
async fn appends_made_without_waiting_are_written_in_the_order_of_the_calls() {
    let store = SqliteStore::temporary().unwrap();
    let appended: Vec<_> =
        (1..=5_000).map(|seq| store.append(append(1, vec![line(seq, "x")], running()))).collect();
    for written in appended {
        written.await.unwrap();
    }
    assert_eq!(all(&store, 1).await.len(), 5_000);
}

#[tokio::test]
async fn a_synced_append_and_a_large_one_are_written_in_order() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    write(&store, 1, vec![line(1, "the log begins")]).await.unwrap();
    drop(store.append(append(1, vec![line(2, &"large".repeat(20_000))], running())));
    let synced = append(1, vec![line(3, "b")], running());
    let synced = store.append(JournalAppend { strength: WriteStrength::Synced, ..synced });
    // Both earlier appends may still wait; writing this one first would be a conflict.
    store.append(append(1, vec![line(4, "c")], running())).await.unwrap();
    synced.await.unwrap();
    assert_eq!(all(&store, 1).await.len(), 4);
}

#[tokio::test]
async fn a_long_log_is_moved_into_the_file_also_where_nothing_ever_waits() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let text = "x".repeat(30 << 10);
    // More than twice the maximum of the log, in small appends.
    for seq in 1..=5_000 {
        write(&store, 1, vec![line(seq, &text)]).await.unwrap();
    }
    let log = std::fs::metadata(format::log_of(&temp.path().join(format::FILE))).unwrap().len();
    assert!(log < 96 << 20, "{log}");
    assert_eq!(all(&store, 1).await.len(), 5_000);
}

#[tokio::test]
async fn a_long_log_is_moved_into_the_file_beside_the_writer() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let path = temp.path().join(format::FILE);
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    let (text, mut seq) = ("x".repeat(30 << 10), 0);
    while length(&format::log_of(&path)) < 20 << 20 {
        seq += 1;
        write(&store, 1, vec![line(seq, &text)]).await.unwrap();
    }
    // The writer is idle, and would otherwise not checkpoint before the log is three times as long.
    let before = std::time::Instant::now();
    while length(&path) < 8 << 20 {
        assert!(before.elapsed().as_secs() < 60, "nothing is moved");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(all(&store, 1).await.len() as u64, seq);
}

#[tokio::test]
async fn an_append_whose_future_is_dropped_is_written_all_the_same() {
    let store = SqliteStore::temporary().unwrap();
    drop(store.append(append(1, vec![line(1, "a")], running())));
    write(&store, 1, vec![line(2, "b")]).await.unwrap();
    assert_eq!(all(&store, 1).await, [line(1, "a"), line(2, "b")]);
}

#[tokio::test]
async fn one_conflict_fails_itself_and_what_builds_on_it_and_nothing_else() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    let wrong = store.append(append(1, vec![line(3, "gap")], running()));
    let built_on_it = store.append(append(1, vec![line(4, "gap")], running()));
    let other = store.append(append(2, vec![line(1, "other")], running()));
    let right = store.append(append(1, vec![line(2, "b")], running()));
    assert!(matches!(wrong.await, Err(StoreError::Conflict)));
    assert!(matches!(built_on_it.await, Err(StoreError::Conflict)));
    other.await.unwrap();
    right.await.unwrap();
    assert_eq!(all(&store, 1).await, [line(1, "a"), line(2, "b")]);
}

fn ids(listed: &[ListedExecution]) -> Vec<ExecutionId> {
    listed.iter().map(|line| line.execution).collect()
}

#[tokio::test]
async fn the_list_is_newest_first_and_comes_in_pages() {
    let store = SqliteStore::temporary().unwrap();
    let phases = [ExecutionPhase::Running, ExecutionPhase::Paused, ExecutionPhase::Finished];
    let mut expected = Vec::new();
    for n in 1..=30_u128 {
        let phase = phases[usize::try_from(n % 3).unwrap()];
        let caller = if n % 2 == 0 { "ann" } else { "bob" };
        // Several were created in the same millisecond.
        let first = Entry { at: Timestamp(i64::try_from(n / 4).unwrap()), ..line(1, "a") };
        let standing = standing(phase, caller, None);
        expected.push(ListedExecution {
            execution: id(n),
            created: first.at,
            last: Seq(1),
            standing: standing.clone(),
        });
        store.append(append(n, vec![first], standing)).await.unwrap();
    }
    expected.reverse();
    let filters = [
        (vec![], None),
        (vec![ExecutionPhase::Paused], None),
        (vec![ExecutionPhase::Paused, ExecutionPhase::Running, ExecutionPhase::Paused], None),
        (vec![], Some("ann")),
        (vec![ExecutionPhase::Finished], Some("bob")),
        (vec![ExecutionPhase::Parked], None),
    ];
    for (phases, caller) in filters {
        let wanted: Vec<_> = expected
            .iter()
            .filter(|l| phases.is_empty() || phases.contains(&l.standing.phase))
            .filter(|l| caller.is_none_or(|caller| l.standing.caller.0 == caller))
            .cloned()
            .collect();
        let caller = caller.map(|caller| CallerName(caller.into()));
        let mut filter = ListFilter { phases, caller, after: None, n_max: 4 };
        let mut paged: Vec<ListedExecution> = Vec::new();
        loop {
            let page = store.list_executions(filter.clone()).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(last.execution);
            paged.extend(page);
        }
        assert_eq!(paged, wanted);
    }
}

#[tokio::test]
async fn the_list_shows_where_an_execution_stands_now() {
    let store = SqliteStore::temporary().unwrap();
    let wanted = standing(ExecutionPhase::Paused, "ann", Some(9));
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    store.append(append(1, vec![line(2, "b"), asks(3, 1)], wanted.clone())).await.unwrap();
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 9 };
    let listed = store.list_executions(filter).await.unwrap();
    let expected =
        ListedExecution { execution: id(1), created: Timestamp(1), last: Seq(3), standing: wanted };
    assert_eq!(listed, [expected]);
}

#[tokio::test]
async fn executions_of_a_phase_are_counted_up_to_a_number() {
    let store = SqliteStore::temporary().unwrap();
    for n in 1..=5 {
        let phase = if n == 1 { ExecutionPhase::Running } else { ExecutionPhase::Paused };
        let begun = append(n, vec![line(1, "a")], standing(phase, "ann", None));
        store.append(begun).await.unwrap();
    }
    for (phase, n_max, n) in [
        (ExecutionPhase::Paused, 100, 4),
        (ExecutionPhase::Paused, 3, 3),
        (ExecutionPhase::Running, 100, 1),
        (ExecutionPhase::Parked, 100, 0),
    ] {
        assert_eq!(store.count(phase, n_max).await.unwrap(), n, "{phase:?}");
    }
}

#[tokio::test]
async fn the_next_due_is_the_earliest_paused_one_that_nobody_holds() {
    let store = SqliteStore::temporary().unwrap();
    assert_eq!(store.next_due().await.unwrap(), None);
    for (n, phase, due) in [
        (1, ExecutionPhase::Paused, Some(30)),
        (2, ExecutionPhase::Paused, Some(20)),
        (3, ExecutionPhase::Parked, Some(1)),
        (4, ExecutionPhase::Finished, Some(2)),
        (5, ExecutionPhase::Running, Some(3)),
        (6, ExecutionPhase::Paused, None),
    ] {
        store.append(append(n, vec![line(1, "a")], standing(phase, "ann", due))).await.unwrap();
    }
    assert_eq!(store.next_due().await.unwrap(), Some((Timestamp(20), id(2))));
    assert!(store.lease(id(2), "me", Timestamp(0), Timestamp(100)).await.unwrap());
    assert_eq!(store.next_due().await.unwrap(), Some((Timestamp(30), id(1))));
    store.release(id(2), "me").await.unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some((Timestamp(20), id(2))));
    store
        .append(append(2, vec![end(2)], standing(ExecutionPhase::Finished, "ann", None)))
        .await
        .unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some((Timestamp(30), id(1))));
}

#[tokio::test]
async fn only_a_finished_execution_is_forgotten_and_then_wholly() {
    let store = SqliteStore::temporary().unwrap();
    write(&store, 1, vec![line(1, "a"), asks(2, 7)]).await.unwrap();
    write(&store, 2, vec![line(1, "other")]).await.unwrap();
    assert!(!store.delete_execution(id(1)).await.unwrap());
    assert!(!store.was_forgotten(id(1)).await.unwrap());
    store
        .append(append(1, vec![end(3)], standing(ExecutionPhase::Finished, "ann", None)))
        .await
        .unwrap();
    assert!(store.delete_execution(id(1)).await.unwrap());
    assert!(!store.delete_execution(id(1)).await.unwrap());
    assert!(store.was_forgotten(id(1)).await.unwrap());
    assert!(!store.was_forgotten(id(2)).await.unwrap());
    assert_eq!(all(&store, 1).await, []);
    assert_eq!(store.asked_by(question(7)).await.unwrap(), None);
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 9 };
    assert_eq!(ids(&store.list_executions(filter.clone()).await.unwrap()), [id(2)]);
    // Its position follows from its id, and the list continues behind it.
    let named_at = |ms: u128| Some(id(ms << 80));
    for (after, rest) in [(named_at(1_000), vec![id(2)]), (named_at(0), vec![])] {
        let filter = ListFilter { after, ..filter.clone() };
        assert_eq!(ids(&store.list_executions(filter).await.unwrap()), rest);
    }
    write(&store, 1, vec![line(1, "again")]).await.unwrap();
    assert_eq!(all(&store, 1).await, [line(1, "again")]);
}

#[tokio::test]
async fn a_second_opener_is_told_who_owns_the_directory() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    store.set_owner_note("http://127.0.0.1:4788").unwrap();
    let refused = SqliteStore::open(temp.path()).unwrap_err();
    assert_eq!(refused.to_string(), "the data directory is in use by http://127.0.0.1:4788");
    assert!(matches!(refused, OpenError::Owned { .. }));
    assert_eq!(owner_of(temp.path()).as_deref(), Some("http://127.0.0.1:4788"));
    store.close().await;
    assert_eq!(owner_of(temp.path()), None);
    SqliteStore::open(temp.path()).unwrap();
}

#[tokio::test]
async fn a_closed_store_has_written_everything_and_says_that_it_is_closed() {
    let temp = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(temp.path()).unwrap();
    let other = store.clone();
    let last = store.append(append(1, vec![line(1, "a")], running()));
    store.close().await;
    last.await.unwrap();
    assert!(matches!(write(&other, 1, vec![line(2, "b")]).await, Err(StoreError::Closed)));
    let read = Journal::read(&other, id(1), Seq(0), 1).await;
    assert!(matches!(read, Err(StoreError::Closed)));
    assert!(matches!(other.set_owner_note("x"), Err(StoreError::Closed)));
    assert!(!format::log_of(&temp.path().join(format::FILE)).exists());
    let store = SqliteStore::open(temp.path()).unwrap();
    assert_eq!(all(&store, 1).await, [line(1, "a")]);
}

#[tokio::test]
async fn a_temporary_store_leaves_nothing_behind() {
    let store = SqliteStore::temporary().unwrap();
    let home =
        store.inner.running().as_ref().and_then(|r| Some(r.temporary.as_ref()?.path().to_owned()));
    let home = home.unwrap();
    write(&store, 1, vec![line(1, "a")]).await.unwrap();
    assert!(home.exists());
    drop(store);
    assert!(!home.exists());
}
