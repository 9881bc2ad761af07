//! A closed engine leaves no processes behind. This test has its own binary, because it counts the children of its
//! process.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

#[expect(dead_code, reason = "the other tests use the rest")]
mod engine_fixture;

use engine_fixture::{House, value};
use lifecycle::ExecutionLimits;

fn tight() -> ExecutionLimits {
    ExecutionLimits { cpu_ms_max: 400, active_ms_max: 3_000, ..ExecutionLimits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_descriptor_or_file_is_left_behind() {
    let n_executions = if std::env::var_os("AIRLOCK_SOAK").is_some() { 5_000 } else { 300 };
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    assert_eq!(value(&house.run("return 1", tight()).await), "1");
    let before = footprint(folder.path());
    for batch in 0..n_executions / 10 {
        let all = (0..10).map(|n| {
            let source = match n {
                0 => "throw new Error('x')".to_owned(),
                1 => "await new Promise(() => {})".to_owned(),
                _ => format!("return await tools.demo.add({{ a: {batch}, b: {n} }})"),
            };
            let house = &house;
            async move { house.run(&source, tight()).await }
        });
        futures_util::future::join_all(all).await;
    }
    // Runners end a moment after their executions: wait until the sandbox reports it.
    while house.engine.load().live_runners > 0 {
        tokio::task::yield_now().await;
    }
    let after = footprint(folder.path());
    assert_eq!(before.files, after.files);
    assert!(after.descriptors <= before.descriptors + 16, "{before:?} then {after:?}");
    assert!(after.children <= before.children + 2, "{before:?} then {after:?}");
    house.close().await;
    assert_eq!(children(), 0, "a process outlived its engine");
}

#[derive(Debug)]
struct Footprint {
    descriptors: usize,
    children: usize,
    files: usize,
}

fn footprint(folder: &std::path::Path) -> Footprint {
    Footprint {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        children: children(),
        files: std::fs::read_dir(folder).unwrap().count(),
    }
}

/// The number of processes below this one, at any depth.
fn children() -> usize {
    let mut below = vec![std::process::id()];
    let mut n_seen = 0;
    while let Some(pid) = below.pop() {
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
        {
            let listed =
                std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let pids: Vec<u32> = listed.split_whitespace().flat_map(str::parse).collect();
            n_seen += pids.len();
            below.extend(pids);
        }
    }
    n_seen
}
