//! Writes the store from which a fixture is made, in the format of this version.
//!
//! `cargo run -p store --example fixture -- DIR`; `crates/store/fixtures/README.md` describes the other steps.
#![expect(clippy::unwrap_used, reason = "it stops when it cannot go on")]
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, ExecutionLimits, ExecutionPhase, ExecutionSummary, Seq,
    Timestamp, WriteStrength,
};
use std::path::Path;
use store::sqlite::SqliteStore;
use store::{Journal, JournalAppend, NoteStore, RecordStore};
use uuid::Uuid;

fn id(n: u128) -> ExecutionId {
    ExecutionId::from_uuid(Uuid::from_u128(n))
}

fn entries(first: u64, events: &[serde_json::Value]) -> Vec<Entry> {
    let entry = |(n, event): (u64, &serde_json::Value)| Entry {
        seq: Seq(first + n),
        at: Timestamp(1_700_000_000_000 + i64::try_from(first + n).unwrap()),
        event: serde_json::from_value::<Event>(event.clone()).unwrap(),
    };
    (0..).zip(events).map(entry).collect()
}

fn standing(phase: ExecutionPhase, due: Option<i64>) -> ExecutionSummary {
    ExecutionSummary { phase, caller: CallerName("ann".into()), due: due.map(Timestamp) }
}

fn started() -> serde_json::Value {
    serde_json::json!({"started": {
        "program": {"source": "return await tools.mail.send({ to: 'ann' })", "convention": "explicit_return"},
        "caller": "ann", "limits": serde_json::to_value(ExecutionLimits::default()).unwrap(), "seed": "07".repeat(32),
    }})
}

fn finished() -> serde_json::Value {
    serde_json::json!({"finished": {"outcome": {"completed": {"value": 7}}, "active_ms": 3}})
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let store = SqliteStore::open(Path::new(&dir)).unwrap();
    let prepared = serde_json::json!({"prepared": {"text": "return 7", "prelude": 1, "fingerprint": "an engine"}});
    let made = serde_json::json!({"call_made": {"call": 1, "tool": "mail.send", "args": {"to": "ann"},
        "nature": {"read_only": false, "runs": "here"}}});
    let asked = serde_json::json!({"call_asked": {"id": serde_json::to_value(lifecycle::QuestionId::from_uuid(Uuid::from_u128(77))).unwrap(), "call": 1, "kind": "approval",
        "message": "Approve mail.send?"}});
    let paused = serde_json::json!({"paused": {"inputs": 0, "active_ms": 2}});
    let append = |n, first: u64, events: &[serde_json::Value], standing| JournalAppend {
        execution: id(n),
        expected: Seq(first - 1),
        entries: entries(first, events),
        standing,
        strength: WriteStrength::Synced,
    };
    let due = Some(1_702_592_000_001);
    store
        .append(append(
            1,
            1,
            &[started(), prepared.clone()],
            standing(ExecutionPhase::Running, due),
        ))
        .await
        .unwrap();
    store
        .append(append(1, 3, &[made, asked, paused], standing(ExecutionPhase::Paused, due)))
        .await
        .unwrap();
    store
        .append(append(
            2,
            1,
            &[started(), prepared.clone()],
            standing(ExecutionPhase::Running, due),
        ))
        .await
        .unwrap();
    store
        .append(append(2, 3, &[finished()], standing(ExecutionPhase::Finished, None)))
        .await
        .unwrap();
    let whole =
        append(3, 1, &[started(), prepared, finished()], standing(ExecutionPhase::Finished, None));
    store.append(JournalAppend { strength: WriteStrength::Written, ..whole }).await.unwrap();
    store
        .append(append(4, 1, &[started(), finished()], standing(ExecutionPhase::Finished, None)))
        .await
        .unwrap();
    assert!(store.delete_execution(id(4)).await.unwrap());
    store.put("policy", "a", r#"{"pattern":"mail.*"}"#.into(), 0).await.unwrap();
    store.put("token", "b", r#"{"name":"b"}"#.into(), 0).await.unwrap();
    store.put("token", "b", r#"{"name":"b","scopes":["run"]}"#.into(), 1).await.unwrap();
    store.append_note("calls", "one".into(), 9).await.unwrap();
    store.append_note("calls", "two".into(), 9).await.unwrap();
    store.close().await;
}
