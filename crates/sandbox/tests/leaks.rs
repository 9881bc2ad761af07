//! Many leases leave nothing behind. The test has its own binary because it counts the descriptors of the whole process.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[expect(dead_code, reason = "the other tests use the rest")]
mod suite;

use std::collections::HashSet;
use suite::{descendants, lease, start, told};

#[tokio::test]
async fn many_leases_leave_no_process_and_no_descriptor() {
    let n_leases = std::env::var("AIRLOCK_TEST_LEASES").map_or(500, |n| n.parse().unwrap());
    // A first round before counting: the runtime opens descriptors for itself and never closes them.
    round(3).await;
    let before = descriptors();
    round(n_leases).await;
    assert_eq!(descriptors(), before);
    assert_eq!(descendants(std::process::id()), HashSet::new());
}

async fn round(n_leases: usize) {
    let sandbox = start().await;
    for n in 0..n_leases {
        let mut runner = lease(&sandbox).await;
        assert_eq!(told(&mut runner, &format!("echo {n}")).await, Ok(n.to_string()));
        match n % 4 {
            0 => runner.finish(),
            1 => drop(runner),
            2 => runner.push(b"leave\n").unwrap(),
            _ => runner.kill(),
        }
    }
    sandbox.shutdown().await;
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
