//! Searches by outcome, tool and time, complete and page by page.

use super::*;
use crate::{ExecutionSearch, ListFilter, OutcomeFilter, OutcomeKind, SearchPage};
use lifecycle::{Failure, FailureCode, Json, ToolHost, ToolNature, ToolPath, ToolPattern};

fn call(seq: u64, tool: &str) -> Entry {
    let event = Event::CallMade {
        call: CallId(1),
        tool: ToolPath::parse(tool).unwrap(),
        args: Json::parse("{}".into()).unwrap(),
        nature: ToolNature { read_only: true, runs: ToolHost::Here },
        line: None,
        alias: None,
    };
    Entry { seq: Seq(seq), at: Timestamp(seq.cast_signed()), event }
}

fn failed(seq: u64) -> Entry {
    let outcome = ExecutionOutcome::Failed(Failure::new(FailureCode::Timeout, "late"));
    let event = Event::Finished { outcome, active_ms: 7, iterations: 0 };
    Entry { seq: Seq(seq), at: Timestamp(seq.cast_signed() + 40), event }
}

/// 1 to 4 end in their first append, 5 grows entry by entry, 6 runs.
async fn filled() -> SqliteStore {
    let store = SqliteStore::temporary().unwrap();
    let finished = |caller: &str| standing(ExecutionPhase::Finished, caller, None);
    let whole = [
        (1, vec![call(1, "a.b"), end(2)], "ann"),
        (2, vec![call(1, "a.c"), failed(2)], "ann"),
        (3, vec![call(1, "a.b"), call(2, "d.e"), failed(3)], "bob"),
        (4, vec![line(1, "{\"call_made\":"), end(2)], "bob"),
    ];
    for (n, entries, caller) in whole {
        store.append(append(n, entries, finished(caller))).await.unwrap();
    }
    write(&store, 5, vec![call(1, "x.y"), call(2, "x.z")]).await.unwrap();
    write(&store, 5, vec![call(3, "x.v"), call(4, "x.w"), call(5, "x.w")]).await.unwrap();
    let last = append(5, vec![failed(6)], finished("ann"));
    store.append(last).await.unwrap();
    write(&store, 6, vec![call(1, "a.b")]).await.unwrap();
    store
}

fn all_of(n_max: usize) -> ExecutionSearch {
    ListFilter { phases: vec![], caller: None, after: None, n_max }.into()
}

fn ids(page: &SearchPage) -> Vec<u128> {
    page.hits.iter().map(|hit| hit.listed.execution.uuid().as_u128()).collect()
}

#[tokio::test]
async fn executions_are_found_by_outcome_tool_caller_and_time() {
    let store = filled().await;
    let tool = |text: &str| Some(ToolPattern::parse(text).unwrap());
    let failed = Some(OutcomeFilter::Failed);
    let ann = ListFilter { caller: Some(CallerName("ann".into())), ..all_of(9).listed };
    let running = ListFilter { phases: vec![ExecutionPhase::Running], ..all_of(9).listed };
    let cases = [
        (all_of(9), vec![6, 5, 4, 3, 2, 1]),
        (ExecutionSearch { outcome: failed, ..all_of(9) }, vec![5, 3, 2]),
        (ExecutionSearch { outcome: Some(OutcomeFilter::Completed), ..all_of(9) }, vec![4, 1]),
        (ExecutionSearch { outcome: Some(OutcomeFilter::Cancelled), ..all_of(9) }, vec![]),
        (ExecutionSearch { outcome: failed, ..ann.into() }, vec![5, 2]),
        (ExecutionSearch { outcome: failed, ..running.into() }, vec![]),
        (ExecutionSearch { tool: tool("a.b"), ..all_of(9) }, vec![6, 3, 1]),
        (ExecutionSearch { tool: tool("a.*"), ..all_of(9) }, vec![6, 3, 2, 1]),
        (ExecutionSearch { tool: tool("x.w"), ..all_of(9) }, vec![5]),
        (ExecutionSearch { tool: tool("a.*"), outcome: failed, ..all_of(9) }, vec![3, 2]),
        (ExecutionSearch { since: Some(Timestamp(2)), ..all_of(9) }, vec![]),
        (ExecutionSearch { since: Some(Timestamp(1)), ..all_of(2) }, vec![6, 5]),
    ];
    for (search, expected) in cases {
        let page = store.search(search.clone()).await.unwrap();
        assert_eq!(ids(&page), expected, "{search:?}");
    }
}

#[tokio::test]
async fn a_hit_says_how_it_ended_how_long_it_took_and_what_it_called() {
    let store = filled().await;
    let page = store.search(all_of(9)).await.unwrap();
    let details = |n: usize| page.hits[n].details.clone();
    let tools = |details: &crate::ExecutionDetails| {
        details.tools.iter().map(|tool| tool.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((details(0).outcome, details(0).ended), (None, None), "it runs");
    let grown = details(1);
    assert_eq!(grown.outcome, Some(OutcomeKind::Failed(FailureCode::Timeout)));
    assert_eq!((grown.ended, grown.active_ms), (Some(Timestamp(46)), Some(7)));
    assert_eq!(tools(&grown), ["x.y", "x.z", "x.v"], "the first three");
    let wanted = ExecutionSearch { tool: ToolPattern::parse("x.w").ok(), ..all_of(9) };
    let found = store.search(wanted).await.unwrap();
    assert_eq!(tools(&found.hits[0].details), ["x.y", "x.z", "x.w"], "and the one in question");
    assert_eq!(tools(&details(2)), [""; 0], "a line that looks like a call is none");
}

#[tokio::test]
async fn a_search_is_continued_where_its_page_ended() {
    let store = filled().await;
    let mut search = ExecutionSearch { outcome: Some(OutcomeFilter::Failed), ..all_of(1) };
    let mut found = vec![];
    loop {
        let page = store.search(search.clone()).await.unwrap();
        found.extend(ids(&page));
        match page.next {
            Some(next) => search.listed.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, [5, 3, 2]);
    let all = store.search(all_of(6)).await.unwrap();
    assert_eq!((all.hits.len(), all.next), (6, None), "nothing is left");
}

#[tokio::test]
async fn a_page_examines_a_bounded_number_of_executions() {
    let store = SqliteStore::temporary().unwrap();
    let finished = || standing(ExecutionPhase::Finished, "ann", None);
    store.append(append(1, vec![line(1, "a"), failed(2)], finished())).await.unwrap();
    let appended: Vec<_> =
        (2..=2_100).map(|n| store.append(append(n, vec![end(1)], finished()))).collect();
    for written in appended {
        written.await.unwrap();
    }
    let search = ExecutionSearch { outcome: Some(OutcomeFilter::Failed), ..all_of(9) };
    let page = store.search(search.clone()).await.unwrap();
    assert_eq!((ids(&page), page.next.is_some()), (vec![], true), "it stopped early");
    let next = ListFilter { after: page.next, ..search.listed.clone() };
    let page = store.search(ExecutionSearch { listed: next, ..search }).await.unwrap();
    assert_eq!((ids(&page), page.next), (vec![1], None));
}
