//! What a program may touch, and how much it may use: the words. How it is enforced is the fork server's business.

use std::path::{Path, PathBuf};

/// Walls around a program and all that it starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessCage {
    /// What may be done with which part of the file system; of two rules the one for the longer path counts, and what
    /// no rule names cannot be reached.
    pub rules: Vec<PathRule>,
    /// Whom it may talk to.
    pub network: NetworkAccess,
    /// How much it may use.
    pub limits: CageLimits,
}

/// What may be done with a path and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// Absolute.
    pub path: PathBuf,
    /// What.
    pub access: PathAccess,
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathAccess {
    /// Read and run.
    Read,
    /// Anything.
    Write,
    /// Nothing. It holds for what is there when the program starts: a file or folder that is renamed to this path later can
    /// be seen, but not what changes inside a folder that is denied.
    Deny,
}

/// Whom a program may talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum NetworkAccess {
    /// Everybody.
    #[default]
    All,
    /// Those in the same cage, by a loopback of their own.
    Loopback,
    /// Nobody.
    None,
}

/// How much a program and all that it starts may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CageLimits {
    /// Memory that is resident.
    pub memory_bytes: Option<u64>,
    /// Time on processors.
    pub cpu_ms: Option<u64>,
    /// Processes at a time.
    pub processes: Option<u64>,
}

/// What a program used too much of; it was killed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExcess {
    /// Memory.
    Memory,
    /// Time on processors.
    Cpu,
    /// Processes.
    Processes,
}

impl LimitExcess {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Processes];
}

/// A wall that could not be raised; nothing was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallError {
    /// Namespaces of users and mounts.
    Namespaces,
    /// A file system that is read-only where it must be.
    Mounts,
    /// A network of its own.
    Network,
    /// No way back to privileges.
    Privileges,
    /// Landlock, of a version that also keeps signals in.
    Landlock,
    /// The filter of system calls.
    Filter,
}

impl WallError {
    pub(crate) const ALL: [Self; 6] = [
        Self::Namespaces,
        Self::Mounts,
        Self::Network,
        Self::Privileges,
        Self::Landlock,
        Self::Filter,
    ];

    /// What this machine does not do.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces of users and mounts",
            Self::Mounts => "mounts that are read-only",
            Self::Network => "a network of its own",
            Self::Privileges => "giving up privileges",
            Self::Landlock => "Landlock with scopes (Linux 6.12)",
            Self::Filter => "a filter of system calls",
        }
    }
}

impl ProcessCage {
    /// What may be done with a path.
    pub fn access_at(&self, path: &Path) -> PathAccess {
        let holds = self.rules.iter().filter(|rule| path.starts_with(&rule.path));
        // Of the same path, the one that forbids most counts.
        let strictness = |access| match access {
            PathAccess::Write => 0,
            PathAccess::Read => 1,
            PathAccess::Deny => 2,
        };
        let longest =
            holds.max_by_key(|rule| (rule.path.components().count(), strictness(rule.access)));
        longest.map_or(PathAccess::Deny, |rule| rule.access)
    }

    /// The rules in the order in which they are laid over each other: shorter paths first, and of the same path the
    /// one that forbids most last.
    pub(crate) fn ordered(&self) -> Vec<PathRule> {
        let mut rules = self.rules.clone();
        rules.sort_by_key(|rule| (rule.path.components().count(), rule.path.clone(), rule.access));
        rules
    }
}
