//! Zygotes are replaced; leases are affected only where that is unavoidable.

use crate::suite::{
    self, Watched, capabilities, config, end, in_mounts_of, is_root, kill, lease, start, told,
};
use sandbox::{
    Config, JailLayer, LeaseDemand, RunnerExit, RunnerProgramPath, Sandbox, SandboxStartError,
};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

#[tokio::test]
async fn a_killed_zygote_loses_its_runners_and_the_next_lease_works() {
    let sandbox = start().await;
    let mut lost = lease(&sandbox).await;
    assert_eq!(told(&mut lost, "echo hello").await.unwrap(), "hello");
    let zygote = sandbox.zygote_pid().unwrap();
    let runner = Watched::new(lost.pid().unwrap()).unwrap();
    kill(zygote as i32);
    runner.gone().await;
    assert_eq!(end(&mut lost).await, RunnerExit::Lost);
    let mut next = lease(&sandbox).await;
    assert_eq!(told(&mut next, "echo again").await.unwrap(), "again");
    assert_ne!(sandbox.zygote_pid(), Some(zygote));
    drop(next);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_zygote_that_is_killed_again_and_again_comes_back_each_time() {
    let sandbox = start().await;
    for _ in 0..4 {
        kill(sandbox.zygote_pid().unwrap() as i32);
        // A zygote that is dying may still supply a runner. That runner is lost, but the next one is not.
        while told(&mut lease(&sandbox).await, "echo hello").await != Ok("hello".to_owned()) {}
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn after_a_crash_a_new_zygote_serves_and_older_leases_live_on() {
    let sandbox = start().await;
    let mut elder = lease(&sandbox).await;
    let mut crashing = lease(&sandbox).await;
    let before = sandbox.zygote_pid();
    assert_eq!(
        told(&mut crashing, "abort").await,
        Err(RunnerExit::Crashed { signal: libc::SIGABRT })
    );
    let mut younger = lease(&sandbox).await;
    assert_ne!(sandbox.zygote_pid(), before);
    assert_eq!(told(&mut younger, "echo young").await.unwrap(), "young");
    assert_eq!(told(&mut elder, "echo old").await.unwrap(), "old");

    // The old zygote remained only for the older lease.
    let old_zygote = Watched::new(before.unwrap() as i32).unwrap();
    drop(elder);
    old_zygote.gone().await;
    drop((crashing, younger));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_worn_zygote_is_replaced_without_anybody_noticing() {
    let worn_soon = Config { forks_per_zygote_max: 5, ..config() };
    let sandbox = Sandbox::start(worn_soon).await.unwrap();
    let first = Watched::new(sandbox.zygote_pid().unwrap() as i32).unwrap();
    let mut elder = lease(&sandbox).await;
    for n in 0..30 {
        assert_eq!(told(&mut lease(&sandbox).await, &format!("echo {n}")).await, Ok(n.to_string()));
    }
    assert_eq!(told(&mut elder, "echo still here").await.unwrap(), "still here");
    drop(elder);
    first.gone().await;
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_lease_waits_for_a_host_that_cannot_start_runners_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy(suite::ATTEMPTS, &program).unwrap();
    let executable = |mode| {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    executable(0o755);
    let at = RunnerProgramPath::At(program.clone());
    let sandbox = Sandbox::start(Config { program: at, ..config() }).await.unwrap();
    executable(0o644);
    kill(sandbox.zygote_pid().unwrap() as i32);
    let mut leasing = std::pin::pin!(sandbox.lease(LeaseDemand::default()));
    // One or two runners of the dead zygote may still be in the pool.
    let mut lost = vec![];
    let waited = loop {
        let wait = tokio::time::timeout(Duration::from_secs(1), leasing.as_mut());
        match wait.await {
            Err(_) => break leasing,
            Ok(leased) => lost.push(leased.unwrap()),
        }
        leasing.set(sandbox.lease(LeaseDemand::default()));
    };
    executable(0o755);
    let mut leased = waited.await.unwrap();
    assert_eq!(told(&mut leased, "echo hello").await.unwrap(), "hello");
    drop((leased, lost));
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_sandbox_that_is_dropped_leaves_no_zygote() {
    let sandbox = start().await;
    let zygote = Watched::new(sandbox.zygote_pid().unwrap() as i32).unwrap();
    let last = lease(&sandbox).await;
    drop(sandbox);
    let runner = Watched::new(last.pid().unwrap()).unwrap();
    drop(last);
    runner.gone().await;
    zygote.gone().await;
}

#[tokio::test]
async fn the_required_layers_stand() {
    let sandbox = start().await;
    let tier = sandbox.tier();
    assert!(
        JailLayer::ALL.into_iter().filter(|layer| layer.is_required()).all(|layer| tier.has(layer))
    );
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_runners_root_directory_is_empty_and_it_has_no_capability_to_gain() {
    let sandbox = start().await;
    let mut runner = lease(&sandbox).await;
    assert_eq!(told(&mut runner, "echo hello").await.unwrap(), "hello");
    let (zygote, pid) = (sandbox.zygote_pid().unwrap() as i32, runner.pid().unwrap());
    let tier = sandbox.tier();
    if tier.has(JailLayer::EmptyBoundingSet) {
        assert_eq!([zygote, pid].map(capabilities), [[0; 5]; 2]);
    }
    // Only root can enter the namespace, and without mount namespaces there is nothing to check.
    assert_eq!(tier.has(JailLayer::EmptyRoot), tier.has(JailLayer::MountNamespace));
    if is_root() && tier.has(JailLayer::EmptyRoot) {
        let seen = in_mounts_of(pid, || {
            let listed = ["/", "/..", "."].map(|at| std::fs::read_dir(at).unwrap().count());
            let files = ["/etc/passwd", "/proc/self/status", "/dev/null", "/../../etc/passwd"];
            let errors = files.map(|file| std::fs::read(file).unwrap_err().kind());
            (listed, errors, std::fs::write("/new", "x").unwrap_err().kind())
        });
        let (gone, read_only) = (ErrorKind::NotFound, ErrorKind::ReadOnlyFilesystem);
        assert_eq!(seen, ([0; 3], [gone; 4], read_only));
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
        assert_eq!(mounts.lines().count(), 1, "{mounts}");
        for place in ["root", "cwd"] {
            let place = std::fs::read_dir(format!("/proc/{pid}/{place}")).unwrap();
            assert_eq!(place.count(), 0);
        }
    }
    drop(runner);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_program_that_is_no_zygote_is_named_as_the_trouble() {
    let silent = Config { program: RunnerProgramPath::At("/bin/true".into()), ..config() };
    assert!(matches!(Sandbox::start(silent).await, Err(SandboxStartError::Silent { .. })));
    let missing = Config { program: RunnerProgramPath::At("/nonexistent".into()), ..config() };
    assert!(matches!(Sandbox::start(missing).await, Err(SandboxStartError::Program(_))));
}
