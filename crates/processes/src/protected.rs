//! Files of the server that its children must not use: its data directory, its keys, its configuration.

use crate::cage::{PathAccess, PathRule, ProcessCage};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Paths that children must not use. All are absolute and free of symbolic links; paths that do not exist
/// yet are protected in programs that start after they were created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtectedPaths {
    /// Neither readable nor writable.
    pub hidden: Vec<PathBuf>,
    /// Not writable.
    pub read_only: Vec<PathBuf>,
    /// The programs to which this applies.
    pub scope: ProtectionScope,
}

/// Which programs cannot use protected paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectionScope {
    /// Every program, if the system allows it: with a mount namespace, and a user namespace if the server
    /// may not mount.
    #[default]
    EveryProgram,
    /// Programs in a cage.
    CagedPrograms,
}

impl ProtectedPaths {
    /// Whether there is nothing to protect.
    pub const fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.read_only.is_empty()
    }

    /// The arguments that pass them to a fork server.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let scope = match self.scope {
            ProtectionScope::EveryProgram => EVERY,
            ProtectionScope::CagedPrograms => CAGED,
        };
        let marked = |mark: u8, path: &PathBuf| {
            OsString::from_vec([&[mark], path.as_os_str().as_bytes()].concat())
        };
        let hidden = self.hidden.iter().map(|path| marked(HIDDEN, path));
        let read_only = self.read_only.iter().map(|path| marked(READ_ONLY, path));
        [OsString::from(scope)].into_iter().chain(hidden).chain(read_only).collect()
    }

    /// Parses such arguments; all others are ignored.
    pub(crate) fn from_args(args: impl Iterator<Item = OsString>) -> Self {
        let mut protected = Self::default();
        for arg in args {
            if arg == CAGED {
                protected.scope = ProtectionScope::CagedPrograms;
            }
            match arg.as_bytes().split_first() {
                Some((&HIDDEN, path)) => protected.hidden.push(OsStr::from_bytes(path).into()),
                Some((&READ_ONLY, path)) => {
                    protected.read_only.push(OsStr::from_bytes(path).into());
                }
                Some(_) | None => {}
            }
        }
        protected
    }

    /// A cage whose rules exclude these paths. If they are covered already nothing is added: the kernel
    /// refuses to change such covers.
    pub(crate) fn within(&self, cage: &ProcessCage, are_covered: bool) -> ProcessCage {
        let is_below =
            |path: &Path, roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        let allowed = cage.rules.iter().filter(|rule| !is_below(&rule.path, &self.hidden));
        let mut rules: Vec<PathRule> = allowed.cloned().collect();
        for rule in &mut rules {
            if rule.access == PathAccess::Write && is_below(&rule.path, &self.read_only) {
                rule.access = PathAccess::Read;
            }
        }
        if !are_covered {
            let is_written = |path: &&PathBuf| cage.access_at(path) == PathAccess::Write;
            let read_only = self.read_only.iter().filter(is_written);
            let rule = |path: &PathBuf, access| PathRule { path: path.clone(), access };
            rules.extend(read_only.map(|path| rule(path, PathAccess::Read)));
            rules.extend(self.hidden.iter().map(|path| rule(path, PathAccess::Deny)));
        }
        ProcessCage { rules, ..cage.clone() }
    }
}

const EVERY: &str = "every";
const CAGED: &str = "caged";
const HIDDEN: u8 = b'-';
const READ_ONLY: u8 = b'=';

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(scope: ProtectionScope) -> ProtectedPaths {
        let hidden = vec!["/data".into(), "/key file".into()];
        ProtectedPaths { hidden, read_only: vec!["/work/airlock.toml".into()], scope }
    }

    #[test]
    fn a_fork_server_reads_what_it_is_given() {
        for scope in [ProtectionScope::EveryProgram, ProtectionScope::CagedPrograms] {
            let given = protected(scope);
            assert_eq!(ProtectedPaths::from_args(given.to_args().into_iter()), given);
        }
        assert!(ProtectedPaths::from_args(std::iter::empty()).is_empty());
    }

    #[test]
    fn no_rule_of_a_cage_gives_protected_paths_back() {
        let rule = |path: &str, access| PathRule { path: path.into(), access };
        let asked = [
            rule("/", PathAccess::Read),
            rule("/work", PathAccess::Write),
            rule("/data/tokens", PathAccess::Write),
        ];
        let cage = ProcessCage { rules: asked.into(), ..ProcessCage::default() };
        let kept = protected(ProtectionScope::CagedPrograms).within(&cage, false);
        for (path, access) in [
            ("/work/x", PathAccess::Write),
            ("/work/airlock.toml", PathAccess::Read),
            ("/data", PathAccess::Deny),
            ("/data/tokens/admin", PathAccess::Deny),
            ("/key file", PathAccess::Deny),
            ("/etc", PathAccess::Read),
        ] {
            assert_eq!((path, kept.access_at(path.as_ref())), (path, access));
        }
    }
}
