//! Many programs wait for people across a restart: they use no memory, and all can be answered.

use crate::server_fixture::{Client, Served};
use serde_json::json;

fn n_paused() -> usize {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 10_000 } else { 500 }
}

/// The memory that a server may use beyond an idle one, independent of the number of waiting programs. Malloc and the
/// store's cache vary by this much; a kilobyte per program would be far more at full size.
const SLACK_KB: u64 = 4_096;

/// The number of concurrent clients.
const N_CLIENTS: usize = 8;

#[test]
fn paused_programs_survive_a_restart_cost_nothing_and_are_all_answered() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let idle_kb = served.memory_kb();
    let asking =
        json!({ "code": "return (await tools.demo.ask({ text: 'well?' })).approved" }).to_string();
    let questions = in_parallel(&served.client("admin"), n_paused(), |client, _| {
        client.post("/api/executions", &asking).question()
    });
    assert_eq!(served.stop(), Some(0));

    let served = Served::start(folder.path(), &[]);
    let client = served.client("admin");
    let metrics = client.get("/metrics").body;
    assert!(metrics.contains("\nairlock_executions_live 0\n"), "{metrics}");
    let restarted_kb = served.memory_kb();
    assert!(restarted_kb <= idle_kb + SLACK_KB, "{idle_kb} KB idle, {restarted_kb} KB with pauses");
    let results = in_parallel(&client, n_paused(), |client, n| {
        client.resume(&questions[n], "accept").result()
    });
    assert!(results.iter().all(|result| result == &json!(true)));
}

/// Runs `work` for 0 to `n`, by several clients concurrently, and returns the results in order.
fn in_parallel<T: Send>(
    client: &Client,
    n: usize,
    work: impl Fn(&Client, usize) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    let mut results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..N_CLIENTS)
            .map(|first| {
                let mine = (first..n).step_by(N_CLIENTS);
                scope.spawn(move || mine.map(|at| (at, work(client, at))).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
