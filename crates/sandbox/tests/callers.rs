//! Concurrent callers: memory and processors are divided among callers, not among programs.

use crate::suite::{config, told};
use sandbox::{
    Config, Lease, LeaseDemand, LeaseMessage, MEMORY_BYTES_DEFAULT, ReleaseOffer, Sandbox,
};
use std::time::Duration;

/// Upper bound for a wait; it is reached only if the awaited event never happens.
const PATIENCE: Duration = Duration::from_secs(60);

fn of(name: &str) -> LeaseDemand {
    LeaseDemand { caller: Some(name.to_owned()), ..LeaseDemand::default() }
}

/// Returns the nice value of a runner.
fn nice(lease: &Lease) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", lease.pid().unwrap())).unwrap();
    // The value is 16 fields after the name, which may contain any character.
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_next_runner_goes_to_the_caller_that_holds_least() {
    let small = Config { memory_budget_bytes: 2 * MEMORY_BYTES_DEFAULT, ..config() };
    let sandbox = Sandbox::start(small).await.unwrap();
    let mut busy = vec![];
    for _ in 0..2 {
        busy.push(sandbox.lease(of("busy")).await.unwrap());
    }
    let mut more: Vec<_> = (0..20).map(|_| Box::pin(sandbox.lease(of("busy")))).collect();
    let mut quiet = Box::pin(sandbox.lease(of("quiet")));
    for waiting in more.iter_mut().chain([&mut quiet]) {
        assert!(tokio::time::timeout(Duration::ZERO, waiting.as_mut()).await.is_err());
    }
    sandbox.shortage().await;
    let offer = |name: &str, ms| ReleaseOffer {
        caller: Some(name.to_owned()),
        memory_bytes: MEMORY_BYTES_DEFAULT,
        replay_cpu: Duration::from_millis(ms),
        is_asked: false,
    };
    assert_eq!(
        sandbox.plan_releases(&[offer("third", 1), offer("busy", 3), offer("busy", 2)]),
        [2, 1]
    );
    drop(busy.pop());
    let quiet = quiet.await.unwrap();
    assert_eq!(sandbox.load().waiting, 20, "it came last and is served first");
    drop(quiet);
    drop(more.remove(0).await.unwrap());
    drop((busy, more));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn runners_of_a_caller_above_its_share_of_the_processors_step_back() {
    let sandbox = Sandbox::start(config()).await.unwrap();
    let mut quiet = sandbox.lease(of("quiet")).await.unwrap();
    assert_eq!(told(&mut quiet, "echo hello").await.unwrap(), "hello");
    let n_cores = std::thread::available_parallelism().unwrap().get();
    let mut busy = vec![];
    for _ in 0..4 * n_cores {
        let mut lease = sandbox.lease(of("busy")).await.unwrap();
        lease.push(b"echo begun\nspin\n").unwrap();
        assert_eq!(lease.receive().await, LeaseMessage::Line(b"begun"));
        busy.push(lease);
    }
    let all_stepped_back = async {
        while busy.iter().any(|lease| nice(lease) == 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_stepped_back).await.expect("runners step back");
    assert_eq!(nice(&quiet), 0);
    let next = sandbox.lease(of("busy")).await.unwrap();
    assert!(nice(&next) > 0, "the next runner begins where the others are");
    drop((busy, next, quiet));
    sandbox.shutdown().await;
}
