//! Capabilities that a program without a cage is started without, where protected paths are covered: with any of them it
//! could remove the covers, or look into the server. All others stay as they are.

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

/// Gives them up, also for programs with a set-user-ID bit. Takes no memory: the caller may borrow its parent's.
pub(super) fn give_up_administration() -> Result<(), Errno> {
    for capability in GIVEN_UP {
        // Refused where the kernel does not know it, and where this process may not; then it has none to give up.
        // SAFETY: it takes numbers only.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) };
    }
    let header = [VERSION, 0];
    // Effective, permitted and inheritable, first of the lower 32 and then of the upper ones.
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 writes two sets of three words, for which there is room.
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
