//! Native code cannot escape from the jail, and its attempts do not affect other runners.

use crate::suite::{MIB, lease, start, told};
use sandbox::{LeaseDemand, RunnerExit};

/// Attempts that the kernel refuses without killing the process; every other attempt is a violation.
const REFUSED: &[(&str, i32)] = &[("map a gigabyte", libc::ENOMEM)];

const KILLED: &[&str] = &[
    "open a file",
    "create a file",
    "stat a file",
    "read own memory",
    "read own environment",
    "list descriptors",
    "change root",
    "connect by TCP",
    "send by UDP",
    "fork",
    "fork as the zygote does",
    "start a thread",
    "clone3",
    "exec",
    "kill the parent",
    "kill everybody",
    "signal the parent's thread",
    "trace the parent",
    "map writable code",
    "map code",
    "make memory code",
    "io_uring",
    "bpf",
    "unshare",
    "userfaultfd",
    "perf_event_open",
    "keyctl",
    "become readable",
    "outlive the zygote",
    "raise a limit",
    "pass a descriptor",
    "steal a descriptor",
    "a call of the x32 kind",
    #[cfg(target_arch = "x86_64")]
    "a call of the i386 kind",
];

#[tokio::test]
async fn every_named_way_out_is_closed_while_a_neighbour_goes_on() {
    let sandbox = start().await;
    let mut neighbour = lease(&sandbox).await;
    for name in KILLED {
        let mut runner = lease(&sandbox).await;
        assert_eq!(
            told(&mut runner, &format!("try {name}")).await,
            Err(RunnerExit::Violation),
            "{name}"
        );
        assert_eq!(told(&mut neighbour, &format!("echo {name}")).await, Ok((*name).to_owned()));
    }
    for (name, errno) in REFUSED {
        let mut runner = lease(&sandbox).await;
        assert_eq!(told(&mut runner, &format!("try {name}")).await, Ok(format!("refused {errno}")));
    }
    drop(neighbour);
    sandbox.shutdown().await;
}

/// System calls that a runner may make. A change of the product's list needs the same change here, and a reason there.
#[cfg(target_arch = "x86_64")]
const OPEN: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_poll,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_sched_yield,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_getpid,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_shutdown,
    libc::SYS_exit,
    libc::SYS_gettimeofday,
    libc::SYS_getrusage,
    libc::SYS_getppid,
    libc::SYS_sigaltstack,
    libc::SYS_gettid,
    libc::SYS_futex,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_exit_group,
    libc::SYS_ppoll,
    libc::SYS_getrandom,
];

/// uretprobe and uprobe: newer kernels exempt them from every filter and reject them outside their trampolines.
#[cfg(target_arch = "x86_64")]
const PROBES: &[libc::c_long] = &[335, 336];

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_other_system_call_is_open() {
    /// Higher than the newest system call of any known kernel.
    const NUMBERS: libc::c_long = 500;
    let sandbox = start().await;
    for number in (0..NUMBERS).filter(|number| !OPEN.contains(number)) {
        let mut runner = lease(&sandbox).await;
        let answer = told(&mut runner, &format!("call {number}")).await;
        if PROBES.contains(&number) {
            assert_ne!(answer, Ok("succeeded".to_owned()), "system call {number}");
        } else {
            assert_eq!(answer, Err(RunnerExit::Violation), "system call {number}");
        }
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn memory_beyond_the_cap_is_refused_and_a_larger_cap_gives_more() {
    let sandbox = start().await;
    let large = format!("allocate {}", 300 * MIB);
    let mut usual = lease(&sandbox).await;
    assert_eq!(told(&mut usual, &large).await.unwrap(), "refused");
    assert_eq!(
        told(&mut usual, &format!("allocate {}", 60 * MIB)).await.unwrap(),
        format!("got {}", 60 * MIB)
    );
    let mut roomy = sandbox
        .lease(LeaseDemand { memory_bytes: 320 * MIB, ..LeaseDemand::default() })
        .await
        .unwrap();
    assert_eq!(told(&mut roomy, &large).await.unwrap(), format!("got {}", 300 * MIB));
    drop((usual, roomy));
    sandbox.shutdown().await;
}
