//! The guarantees of a lease: lines in both directions, a correct exit reason, and no process that outlives it.

use crate::suite::{MIB, Watched, config, end, kill, lease, start, told};
use sandbox::{
    Config, LeaseDemand, LeaseError, LeaseMessage, MEMORY_BYTES_DEFAULT, RunnerExit, Sandbox,
};
use std::time::Duration;

#[tokio::test]
async fn every_end_has_its_name() {
    let sandbox = start().await;
    for (order, exit) in [
        ("leave", RunnerExit::Ended),
        ("abort", RunnerExit::Crashed { signal: libc::SIGABRT }),
        ("panic", RunnerExit::Crashed { signal: libc::SIGABRT }),
        // The stack was extended after the runtime had read its bounds, so the runtime does not report an overflow.
        ("overflow", RunnerExit::Crashed { signal: libc::SIGSEGV }),
        ("try exec", RunnerExit::Violation),
        ("hang-up", RunnerExit::Unruly),
        ("long-line 16777217", RunnerExit::Unruly),
    ] {
        let mut runner = lease(&sandbox).await;
        assert_eq!(told(&mut runner, order).await, Err(exit), "{order}");
        assert_eq!(end(&mut runner).await, exit, "{order}, asked again");
        assert_eq!(runner.try_next(), None);
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_spinning_runner_is_killed_and_a_kill_from_elsewhere_is_told_apart() {
    let sandbox = start().await;
    let mut spinning = lease(&sandbox).await;
    spinning.push(b"echo on my way\nspin\n").unwrap();
    assert_eq!(spinning.receive().await, LeaseMessage::Line(b"on my way"));
    spinning.kill();
    assert_eq!(spinning.receive().await, LeaseMessage::Gone(RunnerExit::Killed));
    assert_eq!(spinning.push(b"echo\n"), Err(sandbox::RunnerGone));
    assert_eq!(spinning.cpu_time(), None);

    let mut victim = lease(&sandbox).await;
    kill(victim.pid().unwrap());
    assert_eq!(victim.receive().await, LeaseMessage::Gone(RunnerExit::KilledFromOutside));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_runner_that_steps_back_lets_others_go_first_and_is_not_kept() {
    let sandbox = Sandbox::start(Config { reuse: true, ..config() }).await.unwrap();
    let mine = || LeaseDemand { caller: Some("ann".into()), ..LeaseDemand::default() };
    let mut busy = sandbox.lease(mine()).await.unwrap();
    let pid = busy.pid().unwrap();
    busy.step_back();
    let told = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The value is 16 fields after the name, which may contain any character.
    let nice = told.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap();
    assert_eq!(nice, "5", "{told}");
    assert_eq!(self::told(&mut busy, "echo still here").await.unwrap(), "still here");
    busy.finish();
    assert_ne!(sandbox.lease(mine()).await.unwrap().pid(), Some(pid));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn dropping_a_lease_ends_its_process() {
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    runner.push(b"echo here\nspin\n").unwrap();
    assert_eq!(runner.receive().await, LeaseMessage::Line(b"here"));
    let process = Watched::new(runner.pid().unwrap()).unwrap();
    drop(runner);
    process.gone().await;
    sandbox.shutdown().await;
}

#[tokio::test]
async fn what_was_said_before_the_end_is_heard_before_it() {
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    runner.push(b"echo one\necho two\necho three\nleave\n").unwrap();
    assert_eq!(runner.receive().await, LeaseMessage::Line(b"one"));
    let mut rest = Vec::new();
    while let Some(line) = runner.try_next() {
        rest.push(line.to_vec());
    }
    while let LeaseMessage::Line(line) = runner.receive().await {
        rest.push(line.to_vec());
    }
    assert_eq!(rest, [b"two".to_vec(), b"three".to_vec()]);
    assert_eq!(runner.receive().await, LeaseMessage::Gone(RunnerExit::Ended));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn two_sides_that_write_at_once_do_not_wait_for_each_other() {
    const LINES: usize = 20_000;
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    runner.push(format!("chatter {LINES}\n").as_bytes()).unwrap();
    let long = "z".repeat(1_000_000);
    for _ in 0..20 {
        runner.push(format!("echo {long}\n").as_bytes()).unwrap();
    }
    let mut lengths = Vec::new();
    while lengths.len() < LINES + 21 {
        let LeaseMessage::Line(line) = runner.receive().await else { panic!("ended early") };
        lengths.push(line.len());
    }
    let expected: Vec<usize> = std::iter::repeat_n(1023, LINES)
        .chain([4])
        .chain(std::iter::repeat_n(1_000_000, 20))
        .collect();
    assert!(lengths == expected);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_dropped_receive_loses_nothing() {
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    for n in 0..200 {
        runner.push(format!("echo {n}\n").as_bytes()).unwrap();
        // The future is polled once or twice and dropped, most often before the answer has arrived.
        drop(tokio::time::timeout(Duration::ZERO, async { tokio::task::yield_now().await }).await);
        let early = tokio::time::timeout(Duration::ZERO, runner.receive()).await;
        let line = match early {
            Ok(LeaseMessage::Line(line)) => line.to_vec(),
            Ok(LeaseMessage::Gone(exit)) => panic!("{exit:?}"),
            Err(_) => {
                let LeaseMessage::Line(line) = runner.receive().await else {
                    panic!("ended early")
                };
                line.to_vec()
            }
        };
        assert_eq!(line, n.to_string().as_bytes());
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn processor_time_is_the_runners_own() {
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    assert_eq!(told(&mut runner, "burn").await.unwrap(), "burnt");
    let burnt = runner.cpu_time().unwrap();
    assert!(burnt >= Duration::from_millis(30), "{burnt:?}");
    let fresh = lease(&sandbox).await;
    assert!(fresh.cpu_time().unwrap() < burnt);
    drop((runner, fresh));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn runners_together_stay_within_the_budget_and_the_queue_keeps_its_order() {
    let budget = Config { memory_budget_bytes: 128 * MIB, ..config() };
    let sandbox = Sandbox::start(budget).await.unwrap();
    let first = lease(&sandbox).await;
    let second = lease(&sandbox).await;
    assert_eq!(sandbox.load().admitted_bytes, 2 * MEMORY_BYTES_DEFAULT);
    let refused = LeaseError::TooLarge { asked_bytes: 129 * MIB, budget_bytes: 128 * MIB };
    let too_large = LeaseDemand { memory_bytes: 129 * MIB, ..LeaseDemand::default() };
    assert_eq!(sandbox.lease(too_large).await.unwrap_err(), refused);

    let asks = |memory_bytes| {
        Box::pin(sandbox.lease(LeaseDemand { memory_bytes, ..LeaseDemand::default() }))
    };
    let (mut large, mut small, mut leaving) = (asks(100 * MIB), asks(40 * MIB), asks(MIB));
    for waiter in [&mut large, &mut small, &mut leaving] {
        assert!(tokio::time::timeout(Duration::ZERO, waiter.as_mut()).await.is_err());
    }
    assert_eq!((sandbox.load().live_runners, sandbox.load().waiting), (2, 3));
    drop(leaving);
    assert_eq!(sandbox.load().waiting, 2);

    drop(first);
    // The small one would fit, but it was requested later.
    drop(second);
    let large = large.await.unwrap();
    assert_eq!((sandbox.load().admitted_bytes, sandbox.load().waiting), (100 * MIB, 1));
    drop(large);
    let small = small.await.unwrap();
    assert_eq!((sandbox.load().admitted_bytes, sandbox.load().waiting), (40 * MIB, 0));
    drop(small);
    sandbox.shutdown().await;
    assert_eq!(sandbox.load().live_runners, 0);
    assert_eq!(sandbox.lease(LeaseDemand::default()).await.unwrap_err(), LeaseError::Closed);
}

#[tokio::test]
async fn a_finished_runner_comes_back_to_its_caller_only_where_that_is_wanted() {
    let of = |name: &str| LeaseDemand { caller: Some(name.to_owned()), ..LeaseDemand::default() };
    for (reuse, comes_back) in [(false, false), (true, true)] {
        let sandbox = Sandbox::start(Config { reuse, ..config() }).await.unwrap();
        let mut first = sandbox.lease(of("ann")).await.unwrap();
        assert_eq!(told(&mut first, "echo hello").await.unwrap(), "hello");
        let pid = first.pid();
        first.finish();
        let other = sandbox.lease(of("bob")).await.unwrap();
        assert_ne!(other.pid(), pid);
        let again = sandbox.lease(of("ann")).await.unwrap();
        assert_eq!(again.pid() == pid, comes_back);
        drop((other, again));
        sandbox.shutdown().await;
    }
}

#[tokio::test]
async fn kept_runners_make_room_for_those_who_wait_and_restless_ones_are_not_kept() {
    let of = |name: &str| LeaseDemand { caller: Some(name.to_owned()), ..LeaseDemand::default() };
    let small = Config { reuse: true, memory_budget_bytes: MEMORY_BYTES_DEFAULT, ..config() };
    let sandbox = Sandbox::start(small).await.unwrap();
    sandbox.lease(of("ann")).await.unwrap().finish();
    assert_eq!(sandbox.load().live_runners, 1);
    let mut bobs = sandbox.lease(of("bob")).await.unwrap();
    bobs.push(b"echo unheard\necho line\n").unwrap();
    assert_eq!(bobs.receive().await, LeaseMessage::Line(b"unheard"));
    let pid = bobs.pid();
    // Another line may be in transit, but this one has arrived and was not received.
    while bobs.try_next().is_none() {
        bobs.push(b"echo more\necho more\n").unwrap();
        assert!(matches!(bobs.receive().await, LeaseMessage::Line(_)));
    }
    bobs.push(b"spin\n").unwrap();
    bobs.kill();
    assert_eq!(end(&mut bobs).await, RunnerExit::Killed);
    bobs.finish();
    let next = sandbox.lease(of("bob")).await.unwrap();
    assert_ne!(next.pid(), pid);
    drop(next);
    sandbox.shutdown().await;
}
