//! Process trees in cages that exceed a limit, and the ways in which they try to hide it.

use crate::suite::{Heard, cage, caged, said, start};
use processes::{CageLimits, LimitExcess, ProcessCage};

#[tokio::test]
async fn a_family_that_uses_too_much_is_killed_and_the_reason_is_known() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let limited = |limits| ProcessCage { limits, ..cage(folder.path()) };
    let usual = CageLimits::default();
    let hungry = "import time\nparts = [bytearray(4 << 20) for _ in range(8)]\ntime.sleep(1000)";
    let family = format!("for n in 1 2 3 4; do python3 -c '{hungry}' & done; wait");
    for (limits, script, excess) in [
        // Each single process uses less than the limit.
        (
            CageLimits { memory_bytes: Some(96 << 20), ..usual },
            family.as_str(),
            LimitExcess::Memory,
        ),
        (
            CageLimits { cpu_ms: Some(300), ..usual },
            "while :; do :; done & while :; do :; done",
            LimitExcess::Cpu,
        ),
        (
            // All of them are short-lived, and the parents of all are gone.
            CageLimits { cpu_ms: Some(400), ..usual },
            "for n in $(seq 100); do (sh -c 'n=0; while [ $n -lt 30000 ]; do n=$((n+1)); done' &); sleep 0.1; done",
            LimitExcess::Cpu,
        ),
        (
            // No process reaps them, so their usage is added to no parent.
            CageLimits { cpu_ms: Some(1_000), ..usual },
            "exec python3 -c \"
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(10):
    if os.fork() == 0:
        while time.process_time() < 0.5: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass\"",
            LimitExcess::Cpu,
        ),
        (
            CageLimits { processes: Some(20), ..usual },
            "while :; do sleep 1000 & done",
            LimitExcess::Processes,
        ),
    ] {
        // The usage of a subreaper's previous process tree does not count against the next one.
        let process = house.spawn(&caged(&limited(limits), "true")).await.unwrap();
        assert_eq!(Heard::new(&process).end().await.0, 0);
        let process = house.spawn(&caged(&limited(limits), script)).await.unwrap();
        let (code, _) = Heard::new(&process).end().await;
        assert_eq!((process.output().excess(), code), (Some(excess), 137), "{script}");
        process.gone().await;
    }
    let one = "python3 -c 'bytearray(1 << 30)' 2>&1 | grep -o MemoryError";
    let limits = CageLimits { memory_bytes: Some(256 << 20), ..usual };
    assert_eq!(said(&house, &limited(limits), one).await, ("MemoryError\n".into(), 0));
    house.shutdown().await;
}

#[tokio::test]
async fn memory_that_is_nobodys_is_not_to_be_had_where_memory_is_limited() {
    let house = start();
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "python3 -c \"
import ctypes, errno, os
def tried(call):
    try: print(call() >= 0)
    except OSError as error: print(errno.errorcode[error.errno])
libc = ctypes.CDLL(None, use_errno=True)
def shared(n_bytes):
    answer = libc.syscall({}, 0, ctypes.c_size_t(n_bytes), 0o1600)
    if answer < 0: raise OSError(ctypes.get_errno(), '')
    return answer
tried(lambda: os.memfd_create('x'))
tried(lambda: shared(1 << 20))
tried(lambda: shared(4096))\"",
        libc::SYS_shmget
    );
    let limits = CageLimits { memory_bytes: Some(256 << 20), ..CageLimits::default() };
    let limited = ProcessCage { limits, ..cage(folder.path()) };
    assert_eq!(said(&house, &limited, &script).await, ("ENOSYS\nENOSYS\nTrue\n".into(), 0));
    let free = cage(folder.path());
    assert_eq!(said(&house, &free, &script).await, ("True\nTrue\nTrue\n".into(), 0));
    house.shutdown().await;
}
