//! Databases that the code of each format wrote are opened, and everything in them is found.

use super::*;
use crate::sqlite::format;
use crate::{
    DataLoss, ListFilter, ListedExecution, LossCause, NoteStore, RecordStore, StoredRecord,
};
use lifecycle::{Json, PreparedProgram, Program, ToolHost, ToolNature, ToolPath};
use std::path::{Path, PathBuf};

/// The first format whose databases know their history.
const FIRST_WITH_HISTORY: usize = 7;

/// The first format with notes.
const FIRST_WITH_NOTES: usize = 3;

const CREATED: Timestamp = Timestamp(1_700_000_000_001);

fn fixture(format: usize) -> PathBuf {
    let name = format!("fixtures/format-{format}.db");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn numbered(events: Vec<Event>) -> Vec<Entry> {
    let numbered = (1..).zip(events);
    numbered
        .map(|(seq, event)| Entry {
            seq: Seq(seq),
            at: Timestamp(CREATED.0 - 1 + seq.cast_signed()),
            event,
        })
        .collect()
}

fn started() -> Event {
    Event::Started {
        program: Program {
            source: "return await tools.mail.send({ to: 'ann' })".into(),
            convention: lifecycle::ValueConvention::ExplicitReturn,
        },
        caller: CallerName("ann".into()),
        limits: lifecycle::ExecutionLimits::default(),
        seed: lifecycle::RandomSeed([7; 32]),
        terms: Box::default(),
    }
}

fn prepared() -> Event {
    Event::Prepared(PreparedProgram {
        text: Some("return 7".into()),
        prelude: 1,
        fingerprint: "an engine".into(),
    })
}

fn finished() -> Event {
    let value = Some(Json::parse("7".into()).unwrap());
    Event::Finished { outcome: ExecutionOutcome::Completed { value }, active_ms: 3, iterations: 0 }
}

fn paused() -> Vec<Entry> {
    let made = Event::CallMade {
        call: CallId(1),
        tool: ToolPath::parse("mail.send").unwrap(),
        args: Json::parse(r#"{"to":"ann"}"#.into()).unwrap(),
        nature: ToolNature { read_only: false, runs: ToolHost::Here },
        line: None,
        alias: None,
    };
    let asked = Event::CallAsked(Question {
        id: question(77),
        call: CallId(1),
        kind: QuestionKind::Approval,
        message: "Approve mail.send?".into(),
        revision: None,
        editable: false,
        answer_only: false,
    });
    let paused = Event::Paused { inputs: InputIndex(0), active_ms: 2 };
    numbered(vec![started(), prepared(), made, asked, paused])
}

async fn check(store: &SqliteStore, format: usize) {
    let ended = numbered(vec![started(), prepared(), finished()]);
    for (n, entries) in [(1, paused()), (2, ended.clone()), (3, ended), (4, vec![])] {
        let mut found = all(store, n).await;
        for entry in &mut found {
            // Old stores contain the defaults of their time.
            if let Event::Started { limits, .. } = &mut entry.event {
                *limits = lifecycle::ExecutionLimits::default();
            }
        }
        assert_eq!(found, entries, "format {format}, execution {n}");
    }
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 9 };
    let listed = |n, last, phase, due| ListedExecution {
        execution: id(n),
        created: CREATED,
        last: Seq(last),
        standing: standing(phase, "ann", due),
    };
    let expected = [
        listed(3, 3, ExecutionPhase::Finished, None),
        listed(2, 3, ExecutionPhase::Finished, None),
        listed(1, 5, ExecutionPhase::Paused, Some(1_702_592_000_001)),
    ];
    assert_eq!(store.list_executions(filter).await.unwrap(), expected, "format {format}");
    assert_eq!(store.asked_by(question(77)).await.unwrap(), Some(id(1)), "format {format}");
    let record = |key: &str, value: &str, version| StoredRecord {
        key: key.into(),
        value: value.into(),
        version,
    };
    assert_eq!(store.all("policy").await.unwrap(), [record("a", r#"{"pattern":"mail.*"}"#, 1)]);
    let token = record("b", r#"{"name":"b","scopes":["run"]}"#, 2);
    assert_eq!(store.all("token").await.unwrap(), [token], "format {format}");
    let notes: &[&str] = if format < FIRST_WITH_NOTES { &[] } else { &["two", "one"] };
    assert_eq!(store.newest("calls", 9).await.unwrap(), notes, "format {format}");
    // Format 1 did not record deleted executions.
    assert_eq!(store.was_forgotten(id(4)).await.unwrap(), format > 1, "format {format}");
    let loss = store.data_loss().await.unwrap().map(|loss| DataLoss { found: CREATED, ..loss });
    let restored = DataLoss {
        cause: LossCause::Restored,
        found: CREATED,
        known_until: Some(Timestamp(CREATED.0 + 4)),
    };
    assert_eq!(loss, (format >= FIRST_WITH_HISTORY).then_some(restored), "format {format}");
}

#[tokio::test]
async fn a_database_of_every_format_opens_with_everything_in_it() {
    for format in 1..=format::STEPS.len() {
        let kept = fixture(format);
        assert!(
            kept.is_file(),
            "format {format} has no fixture; crates/store/fixtures/README.md says how to make one"
        );
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(kept, dir.path().join(format::FILE)).unwrap();
        for _ in 0..2 {
            let store = SqliteStore::open(dir.path()).unwrap();
            check(&store, format).await;
            store.close().await;
        }
    }
}
