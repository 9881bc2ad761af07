//! Permanently drops capabilities, restricts files with Landlock, and limits resources.

use super::check_result;
use crate::cage::{CageLimits, PathAccess, PathRule};
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use std::io;
use std::path::Path;

/// The first version that restricts signals and abstract sockets; without it a program could kill its
/// subreaper.
const ABI_MIN: ABI = ABI::V6;

/// The highest capability number of any known kernel, plus a margin.
const CAPABILITY_MAX: libc::c_ulong = 63;

/// Limits that the kernel enforces per process. The subreaper enforces the limits on sums.
pub(super) fn limit(limits: &CageLimits) -> io::Result<()> {
    let most = [
        (libc::RLIMIT_CORE, Some(0)),
        (libc::RLIMIT_DATA, limits.memory_bytes),
        (libc::RLIMIT_CPU, limits.cpu_ms.map(|ms| ms.div_ceil(1_000))),
    ];
    for (resource, most) in most {
        let Some(most) = most else { continue };
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the kernel reads one limit, which outlives the call.
        check_result(unsafe { libc::setrlimit(resource, &raw const limit) })?;
    }
    Ok(())
}

/// Drops every capability for good, also for programs that would grant them.
pub(super) fn give_up() -> io::Result<()> {
    for capability in 0..=CAPABILITY_MAX {
        // The kernel refuses unknown numbers, and all numbers beyond them are unknown, too. SAFETY: it
        // takes numbers only.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let (header, none) = ([VERSION, 0], [0_u32; 6]);
    // SAFETY: version 3 reads a header of two words and two sets of three words, which is what lies there.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it takes numbers only.
    check_result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

/// Enforces the same rules again, in another part of the kernel, and restricts signals to the cage.
pub(super) fn landlock(rules: &[PathRule]) -> io::Result<()> {
    let wrong = |error: landlock::RulesetError| io::Error::other(error.to_string());
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI_MIN))
        .and_then(|rules| rules.scope(Scope::from_all(ABI_MIN)))
        .and_then(Ruleset::create)
        .map_err(wrong)?;
    let (read, all) = (AccessFs::from_read(ABI_MIN), AccessFs::from_all(ABI_MIN));
    let own = [(Path::new("/dev"), all), (Path::new("/proc/self"), read)];
    let given = rules.iter().filter(|rule| rule.access != PathAccess::Deny).map(|rule| {
        (rule.path.as_path(), if rule.access == PathAccess::Write { all } else { read })
    });
    for (path, access) in own.into_iter().chain(given) {
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_MIN) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access)).map_err(wrong)?;
    }
    let status = ruleset.restrict_self().map_err(wrong)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}
