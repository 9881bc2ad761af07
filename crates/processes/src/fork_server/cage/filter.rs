//! System calls that programs in a cage do not need: new namespaces, mounts, and parts of the kernel with a
//! history of vulnerabilities.

use crate::cage::{NetworkAccess, ProcessCage};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Refused with any arguments.
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

/// Shared memory of this size is too small to hide memory use from the limits.
const SHARED_BYTES_MAX: u64 = 4_096;

/// Installs the filters; they apply to all descendants of this process.
pub(super) fn install(cage: &ProcessCage) -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    apply(&only_one_abi())?;
    apply(&program(unsupported_calls(cage.limits.memory_bytes.is_some())?, libc::ENOSYS)?)?;
    let mut rules: BTreeMap<_, _> = REFUSED.iter().map(|call| (*call, vec![])).collect();
    // Input may only be injected into a terminal from outside of the cage.
    rules.insert(libc::SYS_ioctl, vec![is(1, libc::TIOCSTI)?]);
    rules.insert(libc::SYS_clone, new_worlds()?);
    rules.extend(others()?);
    rules.extend(sockets(cage.network)?);
    apply(&program(rules, libc::EPERM)?)
}

type FilterRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that appear to be missing in this kernel; programs support older kernels and do without them.
fn unsupported_calls(has_memory_limit: bool) -> io::Result<FilterRules> {
    // Its flags lie in memory, where no filter can see them. Libraries fall back to clone.
    let mut rules = FilterRules::from([(libc::SYS_clone3, vec![])]);
    if has_memory_limit {
        // Its memory belongs to no process while it is not mapped, so that the limits would not count it.
        rules.insert(libc::SYS_memfd_create, vec![]);
        rules.insert(libc::SYS_memfd_secret, vec![]);
        let large = condition(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, SHARED_BYTES_MAX)?;
        rules.insert(libc::SYS_shmget, vec![rule(vec![large])?]);
    }
    Ok(rules)
}

/// In its own user namespace a program would regain capabilities.
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

/// Limits and priorities of other processes. The PID namespace already prevents a program from naming a
/// process outside; processors and schedulers can therefore be chosen for any process or thread inside, as
/// threads do for each other.
fn others() -> io::Result<FilterRules> {
    let mut rules = FilterRules::new();
    // Reading the limits of any process is allowed.
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

/// Sockets with names in the file system reach outside of any network namespace. Socket pairs do not,
/// except for the kinds that accept an address with every message.
fn sockets(network: NetworkAccess) -> io::Result<FilterRules> {
    let sockets = match network {
        NetworkAccess::All => return Ok(FilterRules::new()),
        NetworkAccess::Loopback => vec![is_none_of(0, &[libc::AF_INET, libc::AF_INET6])?],
        NetworkAccess::None => vec![],
    };
    /// The kind is combined with flags.
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

/// Refuses calls by the numbers of x32, which the other filters do not cover: kernels with x32 accept the
/// same calls by both numbers.
#[cfg(target_arch = "x86_64")]
fn only_one_abi() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The call number is the first field.
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
