//! System calls that nobody in a cage needs: new walls, other worlds, and what the kernel has had most trouble with.

use crate::cage::{NetworkAccess, ProcessCage};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Refused whatever the arguments.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Shared memory of this size is not worth hiding something in.
const SHARED_BYTES_MAX: u64 = 4_096;

/// Installs the filters; they hold for all that is started from here.
pub(super) fn install(cage: &ProcessCage) -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    apply(&only_one_abi())?;
    apply(&program(unsupported_calls(cage.limits.memory_bytes.is_some())?, libc::ENOSYS)?)?;
    let mut rules: BTreeMap<_, _> = REFUSED.iter().map(|call| (*call, vec![])).collect();
    // A terminal is written to by whoever holds it, not by those inside.
    rules.insert(libc::SYS_ioctl, vec![is(1, libc::TIOCSTI)?]);
    rules.insert(libc::SYS_clone, new_worlds()?);
    rules.extend(others()?);
    rules.extend(sockets(cage.network)?);
    apply(&program(rules, libc::EPERM)?)
}

type FilterRules = BTreeMap<i64, Vec<SeccompRule>>;

/// What programs are told this kernel does not have; they know older ones and do without.
fn unsupported_calls(has_memory_limit: bool) -> io::Result<FilterRules> {
    // Its flags lie in memory, where no filter can see them. Libraries use clone.
    let mut rules = FilterRules::from([(libc::SYS_clone3, vec![])]);
    if has_memory_limit {
        // Memory that is nobody's while it is not mapped, so that no look at processes finds it.
        rules.insert(libc::SYS_memfd_create, vec![]);
        rules.insert(libc::SYS_memfd_secret, vec![]);
        let large = condition(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, SHARED_BYTES_MAX)?;
        rules.insert(libc::SYS_shmget, vec![rule(vec![large])?]);
    }
    Ok(rules)
}

/// In a namespace of its own a program would be somebody again.
fn new_worlds() -> io::Result<Vec<SeccompRule>> {
    let worlds = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    worlds.into_iter().map(|flag| has(0, flag as u64)).collect()
}

/// Limits and priorities of others. The PID namespace already keeps a program from naming a process outside; processors and
/// schedulers can therefore be chosen for any process or thread inside, as threads do for each other.
fn others() -> io::Result<FilterRules> {
    let mut rules = FilterRules::new();
    // Anybody's limits may be asked for.
    let of_another = condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let is_changed = condition(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![of_another, is_changed])?]);
    /// `IOPRIO_WHO_USER`.
    const IO_OF_USER: u64 = 3;
    let of_user =
        [(libc::SYS_setpriority, u64::from(libc::PRIO_USER)), (libc::SYS_ioprio_set, IO_OF_USER)];
    for (call, user) in of_user {
        rules.insert(call, vec![is_none_of(1, &[0])?, is(0, user)?]);
    }
    Ok(rules)
}

/// Sockets with names in the file system lead out of any network. Pairs do not, except those of kinds that take an
/// address with every message.
fn sockets(network: NetworkAccess) -> io::Result<FilterRules> {
    let sockets = match network {
        NetworkAccess::All => return Ok(FilterRules::new()),
        NetworkAccess::Loopback => vec![is_none_of(0, &[libc::AF_INET, libc::AF_INET6])?],
        NetworkAccess::None => vec![],
    };
    /// Flags stand beside the kind.
    const KIND: u64 = 0xf;
    let bound =
        [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| u64::from(kind.unsigned_abs()));
    let other = (0..=KIND).filter(|kind| !bound.contains(kind));
    let is_kind = |kind| {
        rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(KIND), kind)?])
    };
    let pairs = other.map(is_kind).collect::<io::Result<_>>()?;
    Ok(FilterRules::from([(libc::SYS_socket, sockets), (libc::SYS_socketpair, pairs)]))
}

/// Refuses calls by the numbers of x32, of which the other filters know nothing: kernels that have it take the same calls
/// by both.
#[cfg(target_arch = "x86_64")]
fn only_one_abi() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The number of the call lies first.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn program(rules: FilterRules, errno: libc::c_int) -> io::Result<BpfProgram> {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}

fn is(argument: u8, value: u64) -> io::Result<SeccompRule> {
    rule(vec![condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}

fn has(argument: u8, bits: u64) -> io::Result<SeccompRule> {
    let all = SeccompCmpOp::MaskedEq(bits);
    rule(vec![condition(argument, SeccompCmpArgLen::Qword, all, bits)?])
}

fn is_none_of(argument: u8, values: &[libc::c_int]) -> io::Result<SeccompRule> {
    let is_not = |value: &libc::c_int| {
        let value = u64::from(value.unsigned_abs());
        condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
    };
    rule(values.iter().map(is_not).collect::<io::Result<_>>()?)
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    comparison: SeccompCmpOp,
    value: u64,
) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, length, comparison, value).map_err(io::Error::other)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}
