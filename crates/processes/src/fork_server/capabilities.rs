//! Capabilities that are removed from programs without a cage, if protected paths are covered: any of them
//! would allow a program to remove the covers, or to inspect the server. All others stay as they are.

use nix::errno::Errno;

/// Administration of mounts and namespaces, other processes' memory, files by handle, and the kernel itself.
const GIVEN_UP: [u32; 11] = [
    2,  // CAP_DAC_READ_SEARCH: open_by_handle_at
    16, // CAP_SYS_MODULE
    17, // CAP_SYS_RAWIO
    19, // CAP_SYS_PTRACE
    21, // CAP_SYS_ADMIN
    22, // CAP_SYS_BOOT: kexec
    32, // CAP_MAC_OVERRIDE
    33, // CAP_MAC_ADMIN
    38, // CAP_PERFMON
    39, // CAP_BPF
    40, // CAP_CHECKPOINT_RESTORE
];

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

/// Drops them, also for programs with a set-user-ID bit. Allocates no memory: the caller may share its parent's.
pub(super) fn give_up_administration() -> Result<(), Errno> {
    for capability in GIVEN_UP {
        // Refused if the kernel does not know it, and if this process may not drop it; then it has none to
        // drop. SAFETY: it takes numbers only.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) };
    }
    let header = [VERSION, 0];
    // Effective, permitted and inheritable sets: first the lower 32 bits of each, then the upper ones.
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 writes two sets of three words, for which there is space.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) })?;
    for capability in GIVEN_UP {
        let first = if capability < 32 { 0 } else { 3 };
        for set in &mut sets[first..first + 3] {
            *set &= !(1 << (capability % 32));
        }
    }
    // SAFETY: version 3 reads a header of two words and two sets of three words, which is what lies there.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) })?;
    Ok(())
}
