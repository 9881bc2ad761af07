//! Measures how fast executions pause, on an empty store and beside many paused executions, while the engine's alarm
//! queries the next due time. Prints the median of several rounds.
//!
//! `cargo run --release -p store --example pause_rate -- 97000`
#![expect(clippy::print_stdout, reason = "printing rates is what it is for")]

use lifecycle::{
    CallId, CallerName, Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, Question,
    QuestionId, QuestionKind, Seq, Timestamp, WriteStrength,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::sqlite::SqliteStore;
use store::{Journal, JournalAppend};
use tokio::sync::Notify;
use uuid::Uuid;

const N_PER_ROUND: i64 = 500;

const N_ROUNDS: usize = 7;

fn pause(at: i64) -> JournalAppend {
    let execution = ExecutionId::from_uuid(Uuid::now_v7());
    let question = Question {
        id: QuestionId::from_uuid(Uuid::new_v4()),
        call: CallId(1),
        kind: QuestionKind::Approval,
        message: "x".repeat(300),
        revision: None,
        editable: false,
        answer_only: false,
    };
    let entries = vec![Entry { seq: Seq(1), at: Timestamp(at), event: Event::CallAsked(question) }];
    let due = Some(Timestamp(at).after_ms(30 * 24 * 3_600_000));
    let standing =
        ExecutionSummary { phase: ExecutionPhase::Paused, caller: CallerName("run".into()), due };
    JournalAppend {
        execution,
        expected: Seq(0),
        entries,
        standing,
        strength: WriteStrength::Synced,
    }
}

/// Queries what is due whenever it is notified, as `engine::alarm` does.
async fn alarm(store: SqliteStore, reset: Arc<Notify>, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        store.next_due().await.expect("the store answers");
        reset.notified().await;
    }
}

async fn ms_per_pause(store: &SqliteStore, clock: &mut i64) -> f64 {
    let (reset, is_over) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let alarm = alarm(store.clone(), Arc::clone(&reset), Arc::clone(&is_over));
    #[expect(clippy::disallowed_methods, reason = "it is joined below")]
    let alarm = tokio::spawn(alarm);
    let begun = Instant::now();
    for _ in 0..N_PER_ROUND {
        *clock += 1;
        store.append(pause(*clock)).await.expect("there is room");
        reset.notify_one();
    }
    let ms = begun.elapsed().as_secs_f64() * 1e3 / N_PER_ROUND as f64;
    is_over.store(true, Ordering::Relaxed);
    reset.notify_one();
    alarm.await.expect("the alarm does not panic");
    ms
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let n_others = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(97_000_i64);
    let folder = tempfile::tempdir_in(".").expect("a folder can be made");
    let open = |name: &str| SqliteStore::open(&folder.path().join(name)).expect("it opens");
    let (fresh, full) = (open("fresh"), open("full"));
    let mut clock = 1_700_000_000_000;
    for chunk in 0..n_others / 1_000 {
        let appends = (0..1_000).map(|n| full.append(pause(clock + chunk * 1_000 + n)));
        for written in appends.collect::<Vec<_>>() {
            written.await.expect("there is room");
        }
    }
    clock += n_others;
    let (mut alone, mut beside) = (vec![], vec![]);
    for _ in 0..N_ROUNDS {
        alone.push(ms_per_pause(&fresh, &mut clock).await);
        beside.push(ms_per_pause(&full, &mut clock).await);
    }
    let (alone, beside) = (median(alone), median(beside));
    println!("fresh {alone:.3} ms, beside {n_others} others {beside:.3} ms: {:.2}", beside / alone);
    fresh.close().await;
    full.close().await;
}
