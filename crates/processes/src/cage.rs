//! Describes what a program may access, and how much it may use. The fork server enforces it.

use std::path::{Path, PathBuf};

/// Restrictions of a program and all its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessCage {
    /// Access rules for the file system; of two rules the one for the longer path applies, and a path
    /// without a rule cannot be accessed.
    pub rules: Vec<PathRule>,
    /// Which network the program may use.
    pub network: NetworkAccess,
    /// Limits of resources.
    pub limits: CageLimits,
}

/// The access to a path and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// An absolute path.
    pub path: PathBuf,
    /// The permitted access.
    pub access: PathAccess,
}

/// The kinds of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathAccess {
    /// Read and execute.
    Read,
    /// Everything.
    Write,
    /// No access. Covers what exists when the program starts: a file or folder that is renamed to this path
    /// later is visible, but changes inside a denied folder are not.
    Deny,
}

/// The network that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum NetworkAccess {
    /// The host's network.
    #[default]
    All,
    /// A separate loopback, shared with the processes in the same cage.
    Loopback,
    /// No network.
    None,
}

/// Limits of a program and all its descendants together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CageLimits {
    /// Resident memory.
    pub memory_bytes: Option<u64>,
    /// Processor time.
    pub cpu_ms: Option<u64>,
    /// Concurrent processes.
    pub processes: Option<u64>,
}

/// The limit that a program exceeded, for which it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExcess {
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Processes.
    Processes,
}

impl LimitExcess {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Processes];
}

/// A layer of the cage that could not be set up; nothing was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallError {
    /// User and mount namespaces.
    Namespaces,
    /// A read-only file system with exceptions.
    Mounts,
    /// A separate network.
    Network,
    /// Dropping privileges for good.
    Privileges,
    /// Landlock, in a version that also restricts signals.
    Landlock,
    /// The system call filter.
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

    /// The feature that this machine lacks.
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
    /// The access to a path.
    pub fn access_at(&self, path: &Path) -> PathAccess {
        let holds = self.rules.iter().filter(|rule| path.starts_with(&rule.path));
        // Of two rules for the same path, the most restrictive applies.
        let strictness = |access| match access {
            PathAccess::Write => 0,
            PathAccess::Read => 1,
            PathAccess::Deny => 2,
        };
        let longest =
            holds.max_by_key(|rule| (rule.path.components().count(), strictness(rule.access)));
        longest.map_or(PathAccess::Deny, |rule| rule.access)
    }

    /// The rules in the order in which they are applied: shorter paths first, and of the same path the most
    /// restrictive last.
    pub(crate) fn ordered(&self) -> Vec<PathRule> {
        let mut rules = self.rules.clone();
        rules.sort_by_key(|rule| (rule.path.components().count(), rule.path.clone(), rule.access));
        rules
    }
}
