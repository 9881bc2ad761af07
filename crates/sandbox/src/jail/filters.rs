//! The two system call filters: what a zygote may call, and what its runners may no longer call.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};
use std::collections::BTreeMap;

/// The only permitted flags of clone: a process that shares nothing, held by a descriptor.
pub(crate) const CLONE_FLAGS: u64 = (libc::CLONE_PIDFD | libc::SIGCHLD) as u64;

/// What a zygote and its runners may call with any arguments.
const ALLOWED: &[c_long] = &[
    // The link and the control socket.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_close,
    libc::SYS_close_range,
    // Memory. mmap and mprotect have separate rules.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Time, randomness, and the C library's own calls.
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getrusage,
    // So that an abort is reported as an abort.
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Reaping and signals, for the zygote.
    libc::SYS_wait4,
    libc::SYS_seccomp,
];

/// What only the zygote needs; a runner that calls one of these is killed.
const ZYGOTE_ONLY: &[c_long] = &[
    libc::SYS_clone,
    libc::SYS_wait4,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_prlimit64,
    libc::SYS_close_range,
];

/// The zygote's filter: everything that is not listed kills the process. clone3 is not listed, because
/// its flags lie in memory where no filter can see them.
pub(crate) fn zygote() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_mmap, vec![without(2, libc::PROT_EXEC as u64)?]);
    rules.insert(libc::SYS_mprotect, vec![without(2, libc::PROT_EXEC as u64)?]);
    rules.insert(libc::SYS_clone, vec![exactly(0, SeccompCmpArgLen::Qword, CLONE_FLAGS)?]);
    rules.insert(libc::SYS_prlimit64, vec![exactly(0, SeccompCmpArgLen::Dword, 0)?]);
    rules.insert(
        libc::SYS_prctl,
        one_of(0, &[libc::PR_SET_PDEATHSIG as u64, libc::PR_SET_NO_NEW_PRIVS as u64])?,
    );
    rules.insert(
        libc::SYS_fcntl,
        one_of(1, &[libc::F_GETFD as u64, libc::F_GETFL as u64, libc::F_SETFL as u64])?,
    );
    rules.insert(libc::SYS_ioctl, vec![exactly(1, SeccompCmpArgLen::Dword, libc::FIONBIO)?]);
    SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

fn exactly(
    argument: u8,
    width: SeccompCmpArgLen,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, width, SeccompCmpOp::Eq, value)?])
}

fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    values.iter().map(|value| exactly(argument, SeccompCmpArgLen::Dword, *value)).collect()
}

fn without(argument: u8, bits: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let none = SeccompCmpOp::MaskedEq(bits);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, none, 0)?])
}

/// The length of the runner's filter.
const RUNNER_STEPS: usize = 1 + 2 * ZYGOTE_ONLY.len() + 5;

/// The runner's filter, on top of the zygote's. It is assembled manually because the kernel's cost of
/// installing a filter grows with its length, and each runner pays it; the first filter has already checked
/// the architecture. It is an array, so that a newly forked runner allocates no memory: each page it writes
/// to is copied.
pub(crate) fn runner(own_pid: u32) -> [sock_filter; RUNNER_STEPS] {
    let mut program = [const { load(OFFSET_CALL) }; RUNNER_STEPS];
    for (at, call) in ZYGOTE_ONLY.iter().enumerate() {
        program[1 + 2 * at] = jump_unless(*call as u32, 1);
        program[2 + 2 * at] = seccomp_action(libc::SECCOMP_RET_KILL_PROCESS);
    }
    // A runner may abort itself. Without this check and a pid namespace it could end other runners.
    program[RUNNER_STEPS - 5] = jump_unless(libc::SYS_tgkill as u32, 2);
    program[RUNNER_STEPS - 4] = load(OFFSET_ARGUMENT);
    program[RUNNER_STEPS - 3] = jump_unless(own_pid, 1);
    program[RUNNER_STEPS - 2] = seccomp_action(libc::SECCOMP_RET_ALLOW);
    program[RUNNER_STEPS - 1] = seccomp_action(libc::SECCOMP_RET_KILL_PROCESS);
    program
}

/// The offset of the call number in `struct seccomp_data`.
const OFFSET_CALL: u32 = 0;
/// The offset of the low half of the first argument; every architecture of seccompiler is little-endian.
const OFFSET_ARGUMENT: u32 = 16;

const fn load(offset: u32) -> sock_filter {
    sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

const fn jump_unless(value: u32, skipped: u8) -> sock_filter {
    let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    sock_filter { code, jt: 0, jf: skipped, k: value }
}

const fn seccomp_action(verdict: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zygotes_filter_compiles() {
        assert!(!zygote().unwrap().is_empty());
    }

    /// Interprets the runner's filter for one call.
    fn verdict(program: &[sock_filter], call: c_long, argument: u32) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            if step.code == load(0).code {
                accumulator = if step.k == OFFSET_CALL { call as u32 } else { argument };
            } else if step.code == seccomp_action(0).code {
                return step.k;
            } else if accumulator != step.k {
                at += usize::from(step.jf);
            }
        }
    }

    #[test]
    fn a_runner_may_signal_nobody_but_itself() {
        let program = runner(42);
        let verdict = |call, argument| verdict(&program, call, argument);
        assert_eq!(verdict(libc::SYS_tgkill, 42), libc::SECCOMP_RET_ALLOW);
        assert_eq!(verdict(libc::SYS_tgkill, 43), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(libc::SYS_clone, 42), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(libc::SYS_close_range, 0), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(libc::SYS_read, 0), libc::SECCOMP_RET_ALLOW);
    }
}
