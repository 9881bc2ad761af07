//! The file system of a cage: everything read-only, then what may be written, then what may not even be seen; and
//! devices that do no harm.

use super::check;
use crate::cage::{Access, Rule};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Devices that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// What programs find in `/dev` besides.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
];

/// Lays rules over the file system, in this order.
pub(super) fn lay(rules: &[Rule]) -> io::Result<()> {
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let rules: Vec<&Rule> = rules.iter().filter(|rule| rule.path.exists()).collect();
    for rule in rules.iter().filter(|rule| rule.path != Path::new("/")) {
        mount(Some(&rule.path), &rule.path, None, libc::MS_BIND | libc::MS_REC, None)?;
    }
    let everything = libc::AT_RECURSIVE as libc::c_uint;
    set_read_only(Path::new("/"), everything, true)?;
    for rule in rules {
        match rule.access {
            Access::Read => {}
            Access::Write => set_read_only(&rule.path, 0, false)?,
            Access::Deny => hide(&rule.path)?,
        }
    }
    make_devices()
}

/// Puts nothing where something was.
fn hide(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        return mount(
            Some(Path::new("none")),
            path,
            Some(c"tmpfs"),
            flags,
            Some(c"size=4k,mode=000"),
        );
    }
    mount(Some(Path::new("/dev/null")), path, None, libc::MS_BIND, None)
}

/// A `/dev` of its own: no disks, and no terminals of others.
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

fn mount(
    from: Option<&Path>,
    at: impl AsRef<Path>,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let from = from.map(text).transpose()?;
    let at = text(at.as_ref())?;
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: every text ends with a zero and outlives the call, or is null where the call allows it.
    check(unsafe {
        libc::mount(
            pointer(from.as_deref()),
            at.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })
}

fn set_read_only(path: &Path, flags: libc::c_uint, is_read_only: bool) -> io::Result<()> {
    let path = text(path)?;
    let (set, clear) = match is_read_only {
        true => (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0),
        false => (0, libc::MOUNT_ATTR_RDONLY),
    };
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: the path ends with a zero, and the kernel reads as much of the attributes as it is told they have.
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

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
