//! An empty root directory. If the filter and Landlock both failed, a runner would still find no file of the host.

use super::layers::check_result;
use std::ffi::CStr;
use std::io;

/// Directories over which the new root can be mounted. Every host has one of them, and nothing reads them afterwards.
const MOUNT_POINTS: [&CStr; 5] = [c"/proc", c"/dev", c"/sys", c"/tmp", c"/run"];

/// Mount flags of the new root: no setuid programs, no devices, no executables.
const FLAGS: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Two inodes and one page: the kernel itself prevents the directory from being filled.
const OPTIONS: &CStr = c"size=4096,nr_inodes=2,mode=0555";

/// Replaces the root of this process's own mount namespace by an empty read-only file system and detaches the old one.
/// Descriptors and mappings stay. Needs the right to mount in that namespace.
pub(super) fn enter_empty_root() -> io::Result<()> {
    // Otherwise the host would get the mounts, too.
    mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE, None)?;
    let mounted = MOUNT_POINTS.into_iter().find(|at| {
        let made = mount(Some(c"tmpfs"), at, FLAGS, Some(OPTIONS));
        made.is_ok()
    });
    let at = mounted.ok_or(io::ErrorKind::PermissionDenied)?;
    change_directory(at)?;
    // SAFETY: both paths are C strings that live for ever. Old and new root may be the same place: the old one is then
    // mounted over the new one, where the next call detaches it with everything below it.
    unsafe {
        check_result(
            libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) as libc::c_int
        )?;
        check_result(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
    }
    change_directory(c"/")?;
    mount(None, c"/", FLAGS | libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, None)
}

fn mount(kind: Option<&CStr>, at: &CStr, flags: u64, options: Option<&CStr>) -> io::Result<()> {
    let or_null = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: every pointer is null where the kernel allows that, or a C string that outlives the call.
    check_result(unsafe {
        libc::mount(or_null(kind), at.as_ptr(), or_null(kind), flags, or_null(options).cast())
    })
}

fn change_directory(to: &CStr) -> io::Result<()> {
    // SAFETY: the path is a C string.
    check_result(unsafe { libc::chdir(to.as_ptr()) })
}
