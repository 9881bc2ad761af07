//! No process is left behind: groups, separate sessions and daemons, in any order of death.

use crate::suite::{self, Heard, PIPED, PIPES, TERMINAL, fill, gone, shell, spec, start};
use processes::{EndMode, FamilySignal, ProcessEvent};
use std::time::Duration;

/// A child in the group, a child with its own session, and a daemon whose parent is gone.
const FAMILY: &str = "trap '' TERM HUP; sleep 1000 & echo child=$!; setsid sleep 1001 & echo sid=$!; \
     sh -c 'setsid sh -c \"trap \\\"\\\" HUP; echo daemon=\\$\\$; exec sleep 1002\" &'; ";

async fn family(heard: &mut Heard) -> [i32; 4] {
    let leader = heard.process.pid();
    let (child, sid) = (heard.number("child").await, heard.number("sid").await);
    [leader, child, sid, heard.number("daemon").await]
}

#[tokio::test]
async fn ending_a_process_ends_its_whole_family() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        let process = house.spawn(&shell(streams, &format!("{FAMILY} wait"))).await.unwrap();
        let mut heard = Heard::new(&process);
        let pids = family(&mut heard).await;
        process.end_with(EndMode::Kill);
        assert_eq!(heard.end().await.0, 137);
        process.gone().await;
        for pid in pids {
            gone(pid).await;
        }
    }
    house.shutdown().await;
}

#[tokio::test]
async fn ending_a_process_that_has_exited_ends_what_it_left_behind() {
    let house = start();
    let process = house.spawn(&shell(PIPES, &format!("{FAMILY} sleep 0.1; exit 5"))).await.unwrap();
    let mut heard = Heard::new(&process);
    let pids = family(&mut heard).await;
    while !matches!(heard.next().await, ProcessEvent::Exited { code: 5, .. }) {}
    assert!(!process.is_gone());
    process.end_with(EndMode::Kill);
    // The children held the streams open: they can close only now.
    while !matches!(heard.next().await, ProcessEvent::Closed { .. }) {}
    for pid in pids {
        gone(pid).await;
    }
    house.shutdown().await;
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_family() {
    let house = start();
    let process = house.spawn(&shell(TERMINAL, &format!("{FAMILY} wait"))).await.unwrap();
    let mut heard = Heard::new(&process);
    let pids = family(&mut heard).await;
    drop((process, heard));
    for pid in pids {
        gone(pid).await;
    }
    house.shutdown().await;
}

#[tokio::test]
async fn whoever_asks_politely_gives_time_and_no_more() {
    let house = start();
    let polite = |grace| EndMode::Ask { signal: FamilySignal::Terminate, grace };
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.02; done";
    let process = house.spawn(&shell(PIPES, script)).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    process.end_with(polite(Duration::from_secs(600)));
    assert_eq!(heard.end().await.0, 4);
    assert!(heard.text.contains("bye\n"), "{}", heard.text);

    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.02; done";
    let process = house.spawn(&shell(PIPES, stubborn)).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    process.end_with(polite(Duration::from_millis(50)));
    assert_eq!(heard.end().await.0, 137);
    house.shutdown().await;
}

#[tokio::test]
async fn a_subreaper_that_is_killed_takes_its_family_along() {
    let house = start();
    let process =
        house.spawn(&shell(PIPES, &format!("{FAMILY} echo guard=$PPID; wait"))).await.unwrap();
    let mut heard = Heard::new(&process);
    let subreaper = heard.number("guard").await;
    let pids = family(&mut heard).await;
    kill(subreaper);
    assert_eq!(heard.end().await.0, 137);
    for pid in pids {
        gone(pid).await;
    }
    // The next process has a different subreaper.
    let (text, _) = suite::told(&house, &spec(PIPES, &["echo", "fine"])).await;
    assert_eq!(text, "fine\n");
    house.shutdown().await;
}

/// Chains of processes: each forks the next one, gives it its own session and exits soon. Each process writes a byte into
/// a file, and the chains end at 2,000 bytes.
const CHAINS: &str = "
import os, sys, time
count = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def chain():
    while os.fstat(count).st_size < 2000:
        os.write(count, b'x')
        if os.fork():
            time.sleep(0.02)
            os._exit(0)
        os.setsid()
    os._exit(0)
for _ in range(16):
    if os.fork() == 0:
        chain()
while os.fstat(count).st_size < 200:
    time.sleep(0.001)
print(f'guard={os.getppid()}', flush=True)
time.sleep(1000)";

#[tokio::test]
async fn those_who_multiply_are_overtaken_whoever_ends_them() {
    for way in ["asked", "subreaper killed", "house closed"] {
        let house = start();
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let argv = ["python3", "-c", CHAINS, count.to_str().unwrap()];
        let process = house.spawn(&spec(PIPES, &argv)).await.unwrap();
        let mut heard = Heard::new(&process);
        let subreaper = heard.number("guard").await;
        match way {
            "asked" => process.end_with(EndMode::Kill),
            "subreaper killed" => kill(subreaper),
            _ => house.shutdown().await,
        }
        // All of them hold the streams open, which close after the last process.
        assert_eq!(heard.end().await.0, 137);
        let n_forks = std::fs::metadata(&count).unwrap().len();
        assert!(n_forks < 2_000, "{way}: {n_forks}");
        house.shutdown().await;
    }
}

/// Names the file in which the chains count to the child of the next test that acts as the server.
const COUNT: &str = "AIRLOCK_TEST_COUNT";

#[tokio::test]
async fn those_who_multiply_are_overtaken_when_the_server_is_killed() {
    use std::io::Write as _;
    let house = start();
    if let Some(count) = std::env::var_os(COUNT) {
        let argv = ["python3", "-c", CHAINS, count.to_str().unwrap()];
        let process = house.spawn(&spec(PIPES, &argv)).await.unwrap();
        let mut heard = Heard::new(&process);
        heard.number("guard").await;
        writeln!(std::io::stdout(), "\nready=1").unwrap();
        heard.end().await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let own = std::env::current_exe().unwrap();
    let name = suite::test_name(
        module_path!(),
        "those_who_multiply_are_overtaken_when_the_server_is_killed",
    );
    let mut server = spec(PIPES, &[own.to_str().unwrap(), "--exact", &name, "--nocapture"]);
    server.env.push((COUNT.into(), count.clone().into()));
    let process = house.spawn(&server).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.number("ready").await;
    kill(process.pid());
    heard.end().await;
    // Its fork server and subreapers become children of ours, and exit when they have no processes left.
    process.gone().await;
    let n_forks = std::fs::metadata(&count).unwrap().len();
    assert!(n_forks < 2_000, "{n_forks}");
    house.shutdown().await;
}

#[tokio::test]
async fn a_process_whose_first_thread_has_ended_is_no_zombie() {
    let house = start();
    let script = "
import ctypes, threading, time
threading.Thread(target=lambda: (print('ready=1', flush=True), time.sleep(1000))).start()
ctypes.CDLL(None).pthread_exit(None)";
    let process = house.spawn(&spec(PIPES, &["python3", "-c", script])).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.number("ready").await;
    process.end_with(EndMode::Kill);
    assert_eq!(heard.end().await.0, 137);
    process.gone().await;
    house.shutdown().await;
}

#[tokio::test]
async fn a_subreaper_that_is_killed_while_it_waits_is_not_missed() {
    let house = start();
    let process = house.spawn(&shell(PIPED, "echo guard=$PPID; read x")).await.unwrap();
    let subreaper = Heard::new(&process).number("guard").await;
    let waits = waiting(parent(subreaper), subreaper).await;
    kill(waits);
    gone(waits).await;
    let (text, _) = suite::told(&house, &spec(PIPES, &["echo", "fine"])).await;
    assert_eq!(text, "fine\n");
    house.shutdown().await;
}

#[tokio::test]
async fn a_subreaper_whose_family_is_gone_has_the_next_one() {
    let house = start();
    fill(&house).await;
    let mut subreapers = std::collections::HashSet::new();
    for _ in 0..3 * processes::SPARES_MAX {
        let process = house.spawn(&shell(PIPES, "echo guard=$PPID; sleep 1000 &")).await.unwrap();
        let mut heard = Heard::new(&process);
        subreapers.insert(heard.number("guard").await);
        process.end_with(EndMode::Kill);
        heard.end().await;
        // The subreaper receives another request when no process is left.
        process.end_with(EndMode::Kill);
        process.gone().await;
    }
    assert!(subreapers.len() <= processes::SPARES_MAX, "{subreapers:?}");
    house.shutdown().await;
    for subreaper in subreapers {
        gone(subreaper).await;
    }
}

#[tokio::test]
async fn a_program_is_looked_for_where_its_own_environment_says() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("only-here");
    std::fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let mut spec = spec(PIPES, &["only-here"]);
    assert!(house.spawn(&spec).await.is_err(), "it is nowhere else");
    spec.env = vec![("PATH".into(), folder.path().into())];
    assert_eq!(suite::told(&house, &spec).await.0, "found\n");
    house.shutdown().await;
}

/// Waits until a fork server has a child other than `other`, and returns it.
async fn waiting(fork_server: i32, other: i32) -> i32 {
    loop {
        let path = format!("/proc/{fork_server}/task/{fork_server}/children");
        let listed = std::fs::read_to_string(path).unwrap();
        let mut pids = listed.split_whitespace().map(|pid| pid.parse().unwrap());
        if let Some(pid) = pids.find(|pid| *pid != other) {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_fork_server_that_is_killed_is_replaced_and_nobody_else_notices() {
    let house = start();
    let process = house.spawn(&shell(PIPED, "echo guard=$PPID; read x")).await.unwrap();
    let running = house.spawn(&spec(TERMINAL, &["cat"])).await.unwrap();
    let mut heard = Heard::new(&process);
    let subreaper = heard.number("guard").await;
    let fork_server = parent(subreaper);
    kill(fork_server);
    lost(subreaper, fork_server).await;
    let (text, _) = suite::told(&house, &spec(PIPES, &["echo", "fine"])).await;
    assert_eq!(text, "fine\n");
    running.close_input().unwrap();
    assert_eq!(Heard::new(&running).end().await.0, 0);
    house.shutdown().await;
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits until a process has lost its parent `was`. The caller reads `was` before the kill: later may be too late.
async fn lost(pid: i32, was: i32) {
    while parent(pid) == was {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn kill(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}
