//! Who stands behind whom at a kept runner, and that nobody is forgotten there.
#![expect(clippy::unwrap_used, reason = "a test helper that cannot go on should say so loudly")]

mod suite;

use sandbox::{Config, Demand, Exit, Lease, Received, Sandbox};
use std::time::Duration;
use suite::{config, end, kill, told};

fn of(name: &str) -> Demand {
    Demand { caller: Some(name.to_owned()), may_queue: true, ..Demand::default() }
}

/// Longer than any test.
const PATIENT: Duration = Duration::from_secs(3_600);

/// A sandbox that keeps runners and has no processor for one more, and whoever keeps it so busy.
async fn crowded(patience: Duration) -> (Sandbox, Vec<Lease>) {
    let sandbox = Sandbox::start(Config { reuse: true, patience, ..config() }).await.unwrap();
    let n_processors = std::thread::available_parallelism().unwrap().get();
    let mut busy = vec![];
    for n in 0..n_processors {
        let mut lease = sandbox.lease(of(&format!("busy {n}"))).await.unwrap();
        lease.push(b"echo unheard\n").unwrap();
        busy.push(lease);
    }
    (sandbox, busy)
}

/// Ann's runner, which has been quick before, told to say "one".
async fn first(sandbox: &Sandbox) -> Lease {
    let mut quick = sandbox.lease(of("ann")).await.unwrap();
    assert_eq!(told(&mut quick, "echo hello").await.unwrap(), "hello");
    quick.finish();
    let mut first = sandbox.lease(of("ann")).await.unwrap();
    first.push(b"echo one\n").unwrap();
    first
}

/// Ann's next program, behind the one before it.
async fn behind(sandbox: &Sandbox, order: &str) -> Lease {
    let mut behind = sandbox.lease(of("ann")).await.unwrap();
    assert_eq!(behind.pid(), None, "it has no runner yet");
    behind.push(format!("{order}\n").as_bytes()).unwrap();
    behind
}

#[tokio::test]
async fn programs_of_one_caller_have_one_runner_after_another_and_each_hears_its_own() {
    let (sandbox, _busy) = crowded(PATIENT).await;
    let mut one = first(&sandbox).await;
    let pid = one.pid();
    let (mut two, mut three) =
        (behind(&sandbox, "echo two").await, behind(&sandbox, "echo three").await);
    let bobs = sandbox.lease(of("bob")).await.unwrap();
    assert_ne!(bobs.pid(), None, "others do not stand here");
    let begun = Demand { may_queue: false, ..of("ann") };
    assert_ne!(sandbox.lease(begun).await.unwrap().pid(), None, "it has begun elsewhere before");

    assert_eq!(one.receive().await, Received::Line(b"one"));
    one.finish();
    assert_eq!(two.receive().await, Received::Line(b"two"));
    assert_eq!(two.pid(), pid);
    two.finish();
    assert_eq!(three.receive().await, Received::Line(b"three"));
    three.finish();
    assert_eq!(sandbox.lease(of("ann")).await.unwrap().pid(), pid, "it is kept afterwards");
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_program_that_goes_on_has_its_runner_for_itself_and_nobody_gets_it_after_that() {
    let (sandbox, _busy) = crowded(PATIENT).await;
    let mut one = first(&sandbox).await;
    let pid = one.pid();
    assert_eq!(one.receive().await, Received::Line(b"one"));
    let mut two = behind(&sandbox, "echo two").await;
    one.go_on();
    assert_eq!(two.receive().await, Received::Gone(Exit::Lost));
    assert_ne!(sandbox.lease(of("ann")).await.unwrap().pid(), None, "nobody else comes");
    // What the one who left had ordered.
    assert_eq!(one.receive().await, Received::Line(b"two"));
    one.finish();
    assert_ne!(sandbox.lease(of("ann")).await.unwrap().pid(), pid);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn nobody_waits_long_behind_a_program_that_does_not_end() {
    let (sandbox, _busy) = crowded(Duration::from_millis(500)).await;
    let mut one = first(&sandbox).await;
    one.push(b"spin\n").unwrap();
    let (mut two, mut three) =
        (behind(&sandbox, "echo two").await, behind(&sandbox, "echo three").await);
    assert_eq!(two.receive().await, Received::Gone(Exit::Lost));
    assert_eq!(three.receive().await, Received::Gone(Exit::Lost));
    one.kill();
    assert_eq!(end(&mut one).await, Exit::Killed);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn whoever_leaves_a_queue_takes_the_runner_from_those_behind() {
    let (sandbox, _busy) = crowded(PATIENT).await;
    let mut one = first(&sandbox).await;
    let pid = one.pid();
    let two = behind(&sandbox, "echo two").await;
    let mut three = behind(&sandbox, "echo three").await;
    assert_eq!(one.receive().await, Received::Line(b"one"));
    drop(two);
    one.finish();
    assert_eq!(three.receive().await, Received::Gone(Exit::Lost));
    assert_ne!(sandbox.lease(of("ann")).await.unwrap().pid(), pid);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_runner_that_ends_is_nobodys_fault_but_the_first_ones() {
    let (sandbox, _busy) = crowded(PATIENT).await;
    let mut one = first(&sandbox).await;
    let mut two = behind(&sandbox, "echo two").await;
    kill(one.pid().unwrap());
    assert_eq!(end(&mut one).await, Exit::KilledFromOutside);
    drop(one);
    assert_eq!(two.receive().await, Received::Gone(Exit::Lost));

    let mut one = first(&sandbox).await;
    let mut two = behind(&sandbox, "leave").await;
    assert_eq!(one.receive().await, Received::Line(b"one"));
    one.finish();
    assert_eq!(two.receive().await, Received::Gone(Exit::Lost), "it tries once more by itself");
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_long_order_and_the_ninth_have_no_place_behind_others() {
    let (sandbox, _busy) = crowded(PATIENT).await;
    let _one = first(&sandbox).await;
    let mut silent = sandbox.lease(of("ann")).await.unwrap();
    assert_eq!(silent.receive().await, Received::Gone(Exit::Lost), "it has not taken its place");
    let mut long = sandbox.lease(of("ann")).await.unwrap();
    assert_eq!(told(&mut long, &format!("echo {}", "z".repeat(5_000))).await, Err(Exit::Lost));
    let mut behind_it = vec![];
    for _ in 0..8 {
        behind_it.push(behind(&sandbox, "echo more").await);
    }
    assert_ne!(sandbox.lease(of("ann")).await.unwrap().pid(), None);
    sandbox.shutdown().await;
}
