//! The file system of a cage: everything read-only, then the writable paths, then the hidden ones; and
//! harmless devices.

use super::check_result;
use crate::cage::{PathAccess, PathRule};
use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Devices that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Other entries that programs expect in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
];

/// File systems that hold files. A mount of one of these below a writable folder stays as writable as
/// before; other kinds are interfaces to the kernel, which accepts requests from root even without
/// capabilities.
const OF_FILES: [&str; 18] = [
    "9p", "bcachefs", "btrfs", "cifs", "exfat", "ext2", "ext3", "ext4", "f2fs", "nfs", "nfs4",
    "ntfs3", "overlay", "tmpfs", "vfat", "virtiofs", "xfs", "zfs",
];

/// Applies the rules to the file system, in this order.
pub(super) fn lay(rules: &[PathRule]) -> io::Result<()> {
    let written = written_mounts()?;
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    show_own_processes();
    let rules: Vec<&PathRule> = rules.iter().filter(|rule| rule.path.exists()).collect();
    for rule in rules.iter().filter(|rule| rule.path != Path::new("/")) {
        mount(Some(&rule.path), &rule.path, None, libc::MS_BIND | libc::MS_REC, None)?;
    }
    let everything = libc::AT_RECURSIVE as libc::c_uint;
    set_read_only(Path::new("/"), everything, true)?;
    for rule in &rules {
        match rule.access {
            PathAccess::Read => {}
            PathAccess::Write => {
                set_read_only(&rule.path, 0, false)?;
                for mount in written.iter().filter(|mount| governs(rule, &rules, mount)) {
                    // A mount below another one cannot be reached by its path, and stays as it is.
                    let _ = set_read_only(mount, 0, false);
                }
            }
            PathAccess::Deny => hide(&rule.path)?,
        }
    }
    make_devices()
}

/// Mounts a `/proc` that shows the processes of this PID namespace only. The kernel refuses this if parts
/// of the present one are covered, as in most containers; the present one then stays.
fn show_own_processes() {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let _ = mount(Some(Path::new("proc")), "/proc", Some(c"proc"), flags, None);
}

/// Whether this rule applies to a place below its path, and no more specific one.
fn governs(rule: &PathRule, rules: &[&PathRule], place: &Path) -> bool {
    let longest = rules.iter().rev().find(|rule| place.starts_with(&rule.path));
    longest.is_some_and(|longest| std::ptr::eq(*longest, rule) && place != rule.path)
}

/// The mount points of writable file systems that hold files.
fn written_mounts() -> io::Result<Vec<PathBuf>> {
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    let written = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let (place, options) = (words.get(4)?, words.get(5)?);
        // A variable number of fields ends with this one.
        let kind = words.get(words.iter().position(|word| word == b"-")? + 1)?;
        let is_of_files = OF_FILES.iter().any(|known| known.as_bytes() == *kind);
        let is_written = options.split(|byte| *byte == b',').any(|option| option == b"rw");
        (is_of_files && is_written).then(|| PathBuf::from(OsString::from_vec(unescaped(place))))
    };
    Ok(mounts.split(|byte| *byte == b'\n').filter_map(written).collect())
}

/// Blanks and similar bytes are written as a backslash and three digits.
pub(in crate::fork_server) fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        let digits = rest.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(byte.unwrap_or(*first));
        text = if byte.is_some() { &rest[3..] } else { rest };
    }
    plain
}

/// Mounts an empty directory or the null device over a path. Only the present file or folder is covered: a
/// replacement outside is not. To hide a file that is replaced, hide the folder that contains it.
pub(in crate::fork_server) fn hide(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        return mount(
            Some(Path::new("none")),
            path,
            Some(c"tmpfs"),
            flags,
            Some(c"size=4k,nr_inodes=2,mode=000"),
        );
    }
    mount(Some(Path::new("/dev/null")), path, None, libc::MS_BIND, None)
}

/// Creates a separate `/dev`: no disks, and no terminals of other processes.
fn make_devices() -> io::Result<()> {
    let held = |name: &str| {
        let path = format!("/dev/{name}");
        File::options().read(true).custom_flags(libc::O_PATH).open(path)
    };
    let devices: Vec<(&str, File)> =
        DEVICES.into_iter().filter_map(|name| Some((name, held(name).ok()?))).collect();
    let none = Some(Path::new("none"));
    mount(none, "/dev", Some(c"tmpfs"), libc::MS_NOSUID, Some(c"size=64k,mode=755"))?;
    for (name, device) in devices {
        let at = format!("/dev/{name}");
        File::create(&at)?;
        let from = format!("/proc/self/fd/{}", device.as_raw_fd());
        mount(Some(Path::new(&from)), &at, None, libc::MS_BIND, None)?;
    }
    std::fs::create_dir("/dev/pts")?;
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount(none, "/dev/pts", Some(c"devpts"), flags, Some(c"newinstance,ptmxmode=0666,mode=620"))?;
    std::fs::create_dir("/dev/shm")?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(none, "/dev/shm", Some(c"tmpfs"), flags, Some(c"size=64m,mode=1777"))?;
    LINKS.into_iter().try_for_each(|(to, at)| std::os::unix::fs::symlink(to, at))
}

pub(in crate::fork_server) fn mount(
    from: Option<&Path>,
    at: impl AsRef<Path>,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let from = from.map(path_to_cstring).transpose()?;
    let at = path_to_cstring(at.as_ref())?;
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: every text ends with a zero and outlives the call, or is null if the call allows it.
    check_result(unsafe {
        libc::mount(
            pointer(from.as_deref()),
            at.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })
}

pub(in crate::fork_server) fn set_read_only(
    path: &Path,
    flags: libc::c_uint,
    is_read_only: bool,
) -> io::Result<()> {
    let path = path_to_cstring(path)?;
    let (set, clear) = match is_read_only {
        true => (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0),
        false => (0, libc::MOUNT_ATTR_RDONLY),
    };
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: the path ends with a zero, and the kernel reads as much of the attributes as the length that is
    // passed.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn path_to_cstring(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
