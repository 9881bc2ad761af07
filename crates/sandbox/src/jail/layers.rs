//! The layers of the jail. Each function raises one and reports whether it is in force.

use super::empty_root;
use super::tier::{JailLayer, JailTier};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetStatus, Scope,
};
use libc::c_int;
use std::io;

/// The user `nobody` on every distribution we know.
const NOBODY: u32 = 65534;

/// Upper bound of capability numbers: a set has this many bits.
const CAPABILITIES_MAX: u64 = 64;

/// The namespaces and their layers.
const NAMESPACES: [(c_int, JailLayer); 6] = [
    (libc::CLONE_NEWUSER, JailLayer::UserNamespace),
    (libc::CLONE_NEWPID, JailLayer::PidNamespace),
    (libc::CLONE_NEWNET, JailLayer::NetNamespace),
    (libc::CLONE_NEWNS, JailLayer::MountNamespace),
    (libc::CLONE_NEWIPC, JailLayer::IpcNamespace),
    (libc::CLONE_NEWUTS, JailLayer::UtsNamespace),
];

/// Enters as many namespaces as the host allows, empties the root directory, becomes the user `nobody` and
/// gives up every capability.
///
/// With CAP_SYS_ADMIN the namespaces come first, owned by the host's users and thus out of reach from
/// inside; the user namespace follows. Without it all are created together with the user namespace.
pub(crate) fn leave_the_host(tier: &mut JailTier) {
    let own =
        NAMESPACES.map(|(flag, _)| flag).into_iter().filter(|flag| *flag != libc::CLONE_NEWUSER);
    take_namespaces(tier, own.fold(0, |all, flag| all | flag));
    // A mount namespace belongs to the user namespace in which it was created, and can only be changed there.
    enter_empty_root(tier);
    // Root needs a capability for this that is no longer available.
    drop(empty_bounding_set());
    if become_nobody().is_ok() {
        tier.add(JailLayer::Unprivileged);
    }
    let rest = NAMESPACES.iter().filter(|(_, layer)| !tier.has(*layer));
    take_namespaces(tier, rest.fold(0, |all, (flag, _)| all | flag));
    enter_empty_root(tier);
    // Last, because every step above may need one. The process that waits for the zygote loses them, too.
    if empty_bounding_set().is_ok() {
        tier.add(JailLayer::EmptyBoundingSet);
    }
    if drop_capabilities().is_ok() {
        tier.add(JailLayer::NoCapabilities);
    }
}

fn enter_empty_root(tier: &mut JailTier) {
    if tier.has(JailLayer::MountNamespace)
        && !tier.has(JailLayer::EmptyRoot)
        && empty_root::enter_empty_root().is_ok()
    {
        tier.add(JailLayer::EmptyRoot);
    }
}

fn take_namespaces(tier: &mut JailTier, flags: c_int) {
    let together = unshare(flags).is_ok();
    for (flag, layer) in NAMESPACES.into_iter().filter(|(flag, _)| flags & flag != 0) {
        // One forbidden namespace must not prevent the others.
        if together || unshare(flag).is_ok() {
            tier.add(layer);
        }
    }
}

fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: unshare takes no pointers; the process is single-threaded, so no other thread is affected.
    check_result(unsafe { libc::unshare(flags) })
}

fn become_nobody() -> io::Result<()> {
    // SAFETY: geteuid always succeeds; an empty list of groups may be a null pointer; the ids are plain numbers.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        check_result(libc::setgroups(0, std::ptr::null()))?;
        check_result(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        check_result(libc::setresuid(NOBODY, NOBODY, NOBODY))
    }
}

/// Removes every capability from the bounding set: none can be regained by executing a program. A new user
/// namespace begins with a full set, so this is done in the last one, before the capabilities themselves
/// are dropped.
fn empty_bounding_set() -> io::Result<()> {
    for capability in 0..CAPABILITIES_MAX {
        match prctl_answer(libc::PR_CAPBSET_READ, capability) {
            Ok(0) => {}
            Ok(_) => prctl(libc::PR_CAPBSET_DROP, capability)?,
            // The kernel has no more capabilities.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Drops every capability, including those that a user namespace grants to its first process.
fn drop_capabilities() -> io::Result<()> {
    // The ambient set is empty unless the server was started with some. Kernels before 4.3 have no such
    // set.
    drop(prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64));
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: version 3 reads a header of two words and two sets of three words, which is what lies there.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    check_result(answer as c_int)
}

/// Prevents core dumps, and access to this process's memory by its own user.
pub(crate) fn become_unreadable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// No exec can gain privileges; without this an unprivileged user may not install a filter.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// Makes the kernel kill this process when its parent ends. Has no effect if the parent has already ended.
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)
}

fn prctl(option: c_int, value: u64) -> io::Result<()> {
    prctl_answer(option, value).map(drop)
}

fn prctl_answer(option: c_int, value: u64) -> io::Result<c_int> {
    // SAFETY: the options used here take numbers, no pointers.
    let answer = unsafe { libc::prctl(option, value, 0, 0, 0) };
    check_result(answer).map(|()| answer)
}

/// Sets a limit that cannot be raised again. A lower existing limit is retained.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls and has the layout they expect.
    unsafe {
        check_result(libc::getrlimit(resource, &raw mut limit))?;
        limit.rlim_max = limit.rlim_max.min(hard);
        limit.rlim_cur = limit.rlim_max.min(soft);
        check_result(libc::setrlimit(resource, &raw const limit))
    }
}

/// The current soft limit.
pub(crate) fn soft_limit(resource: libc::__rlimit_resource_t) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call and has the layout it expects.
    check_result(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    Ok(limit.rlim_cur)
}

/// Denies every file, every port and every signal that leaves the jail; returns the version of Landlock.
pub(crate) fn landlock() -> Option<u8> {
    let newest = ABI::V7;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(newest)))
        .and_then(|rules| rules.scope(Scope::from_all(newest)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.restrict_self())
        .ok()?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Some((effective_abi as u8).min(newest as u8))
        }
        (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => None,
    }
}

pub(super) fn check_result(answer: c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
