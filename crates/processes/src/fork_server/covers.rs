//! Covers protected paths in the mount namespace that all programs of a fork server share: an empty directory that cannot be
//! written lies over a directory, the null device over a file. Each program inherits them at no cost.
//!
//! A program cannot remove a cover. It has no capability over the namespace that the covers belong to, and in a namespace
//! that it makes itself the kernel locks them.

use super::cage::mounts::{hide, mount, set_read_only, unescaped};
use crate::cage::ProcessCage;
use crate::protected::{ProtectedPaths, ProtectionScope};
use landlock::{
    CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// How a fork server hides protected paths.
pub(super) struct PathCovers {
    protected: ProtectedPaths,
    /// Whether this process is in its own mount namespace, in which every program starts.
    is_shared: bool,
}

impl PathCovers {
    /// Creates a mount namespace for this process and its descendants, if that is configured and possible.
    pub(super) fn enter_namespace(protected: ProtectedPaths) -> Self {
        let is_wanted = protected.scope == ProtectionScope::EveryProgram && !protected.is_empty();
        let covers = Self { protected, is_shared: is_wanted };
        // A child process tries it first: a partially configured namespace would be worse than none.
        let is_shared = is_wanted && succeeds(|| covers.take()) && covers.take().is_ok();
        Self { is_shared, ..covers }
    }

    fn take(&self) -> io::Result<()> {
        take_mount_namespace()?;
        self.renew()
    }

    /// Whether programs without a cage must be started without the capabilities that remove covers.
    pub(super) const fn are_shared(&self) -> bool {
        self.is_shared
    }

    /// Removes protected paths from a cage's rules.
    pub(super) fn within(&self, cage: &ProcessCage) -> ProcessCage {
        self.protected.within(cage, self.is_shared)
    }

    /// Covers protected paths that are not covered: a path that did not exist before, or a file that was
    /// replaced, which removes its cover.
    pub(super) fn renew(&self) -> io::Result<()> {
        for path in &self.protected.hidden {
            if is_hidden(path) {
                continue;
            }
            for alias in aliases(path, &std::fs::read("/proc/self/mountinfo")?) {
                if alias.exists() {
                    hide(&alias)?;
                }
            }
            hide(path)?;
        }
        for path in &self.protected.read_only {
            if path.exists() && !is_read_only(path)? {
                mount(Some(path), path, None, libc::MS_BIND | libc::MS_REC, None)?;
                set_read_only(path, libc::AT_RECURSIVE as libc::c_uint, true)?;
            }
        }
        Ok(())
    }
}

/// Whether the attempt succeeds in a child process.
fn succeeds(attempt: impl FnOnce() -> io::Result<()>) -> bool {
    // SAFETY: this process has one thread.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => crate::helper_process::end_process(i32::from(attempt().is_err())),
        Ok(ForkResult::Parent { child }) => {
            matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0)))
        }
        Err(_) => false,
    }
}

/// Creates a mount namespace that belongs to this process. A process that may mount creates only that;
/// others also create a user namespace, in which users have the same numbers.
fn take_mount_namespace() -> io::Result<()> {
    // SAFETY: it takes no pointers; the process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } < 0 {
        super::users::take_user_namespace(libc::CLONE_NEWNS)?;
    } else {
        limit_tracing();
    }
    // Later mounts outside appear here, and no mounts from here appear outside.
    mount(None, "/", None, libc::MS_REC | libc::MS_SLAVE, None)
}

/// Prevents programs from tracing processes outside, through which they would see a file system without
/// covers. Root may trace processes that have no more capabilities than itself, and its own user
/// namespaces, even without capabilities. A Landlock domain forbids that; the one scope that it must have
/// restricts abstract sockets, which are hardly used any more. Before Linux 6.12 there is no such scope.
fn limit_tracing() {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::AbstractUnixSocket)
        .and_then(Ruleset::create);
    if let Ok(ruleset) = ruleset {
        let _ = ruleset.no_new_privs(false).restrict_self();
    }
}

/// Whether a path is inaccessible: it does not exist, or is covered.
fn is_hidden(path: &Path) -> bool {
    let Ok(found) = path.metadata() else { return true };
    if !found.is_dir() {
        let null = Path::new("/dev/null").metadata().map(|null| null.rdev());
        return found.file_type().is_char_device() && null.is_ok_and(|null| null == found.rdev());
    }
    nix::sys::statvfs::statvfs(path)
        .is_ok_and(|system| system.blocks() == COVER_BLOCKS && system.files() == COVER_FILES)
}

/// The size of a cover, by which it is recognized: no file system with content is as small.
const COVER_BLOCKS: u64 = 1;
const COVER_FILES: u64 = 2;

fn is_read_only(path: &Path) -> io::Result<bool> {
    let system = nix::sys::statvfs::statvfs(path)?;
    Ok(system.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY))
}

/// One line of the table of mounts.
struct MountEntry {
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// The mount point.
    at: PathBuf,
}

fn mounted(line: &[u8]) -> Option<MountEntry> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let path = |word: &[u8]| PathBuf::from(OsString::from_vec(unescaped(word)));
    Some(MountEntry {
        device: words.get(2)?.to_vec(),
        root: path(words.get(3)?),
        at: path(words.get(4)?),
    })
}

/// The other mount points of the same directory, or of a part of it.
fn aliases(path: &Path, mountinfo: &[u8]) -> Vec<PathBuf> {
    let mounts: Vec<MountEntry> =
        mountinfo.split(|byte| *byte == b'\n').filter_map(mounted).collect();
    let holds = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    // Of two mounts at the same place the later one covers the other.
    let Some(own) = holds.max_by_key(|mount| mount.at.as_os_str().as_bytes().len()) else {
        return vec![];
    };
    let Ok(below) = path.strip_prefix(&own.at) else { return vec![] };
    let inside = joined(&own.root, below);
    let others = mounts.iter().filter(|mount| mount.device == own.device);
    let alias = |mount: &MountEntry| match inside.strip_prefix(&mount.root) {
        Ok(below) => Some(joined(&mount.at, below)),
        Err(_) => mount.root.starts_with(&inside).then(|| mount.at.clone()),
    };
    others.filter_map(alias).filter(|alias| alias != path).collect()
}

fn joined(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mount_that_shows_a_directory_is_found() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 8:2 / /home rw - ext4 /dev/sda2 rw\n\
            24 22 8:2 / /mnt/all\\040of\\040it rw - ext4 /dev/sda2 rw\n\
            25 22 8:2 /me /srv/me rw - ext4 /dev/sda2 rw\n\
            26 22 8:2 /me/.airlock/tokens /srv/tokens rw - ext4 /dev/sda2 rw\n\
            27 22 8:2 /you /srv/you rw - ext4 /dev/sda2 rw\n\
            28 22 8:1 /me /other rw - ext4 /dev/sda1 rw\n";
        let found = aliases(Path::new("/home/me/.airlock"), table);
        let expected = ["/mnt/all of it/me/.airlock", "/srv/me/.airlock", "/srv/tokens"];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
