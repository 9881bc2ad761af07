//! System calls that nobody in a cage needs: new walls, other worlds, and what the kernel has had most trouble with.

use crate::cage::Network;
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

/// Installs the filters; they hold for all that is started from here.
pub(super) fn install(network: Network) -> io::Result<()> {
    // Its flags lie in memory, where no filter can see them. Libraries know kernels without it and use clone.
    apply(&program([(libc::SYS_clone3, vec![])].into(), libc::ENOSYS)?)?;
    let mut rules: BTreeMap<_, _> = REFUSED.iter().map(|call| (*call, vec![])).collect();
    // A terminal is written to by whoever holds it, not by those inside.
    rules.insert(libc::SYS_ioctl, vec![is(1, libc::TIOCSTI)?]);
    // New worlds: in a namespace of its own a program would be somebody again.
    let worlds = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let has = |flag: libc::c_int| has(0, flag as u64);
    rules.insert(libc::SYS_clone, worlds.into_iter().map(has).collect::<io::Result<_>>()?);
    match network {
        Network::All => {}
        // Sockets with names in the file system lead out of any network; pairs do not.
        Network::Loopback => {
            rules.insert(libc::SYS_socket, vec![is_none_of(0, &[libc::AF_INET, libc::AF_INET6])?]);
        }
        Network::None => {
            rules.insert(libc::SYS_socket, vec![]);
        }
    }
    apply(&program(rules, libc::EPERM)?)
}

fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> io::Result<BpfProgram> {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(io::Error::other)
}

fn is(argument: u8, value: u64) -> io::Result<SeccompRule> {
    let condition =
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    rule(vec![condition.map_err(io::Error::other)?])
}

fn has(argument: u8, bits: u64) -> io::Result<SeccompRule> {
    let all = SeccompCmpOp::MaskedEq(bits);
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, all, bits);
    rule(vec![condition.map_err(io::Error::other)?])
}

fn is_none_of(argument: u8, values: &[libc::c_int]) -> io::Result<SeccompRule> {
    let is_not = |value: &libc::c_int| {
        let (length, value) = (SeccompCmpArgLen::Dword, u64::from(value.unsigned_abs()));
        SeccompCondition::new(argument, length, SeccompCmpOp::Ne, value).map_err(io::Error::other)
    };
    rule(values.iter().map(is_not).collect::<io::Result<_>>()?)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}
