//! Which layers of the jail are in force.

use std::fmt;

/// One layer of the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JailLayer {
    /// A list of allowed system calls; any other kills the process.
    Seccomp,
    /// No program can regain dropped privileges.
    NoNewPrivileges,
    /// Memory, descriptors, file sizes and core dumps are limited.
    Limits,
    /// The kernel denies every file, port and foreign signal.
    Landlock,
    /// No user of the host is known inside.
    UserNamespace,
    /// No process of the host can be addressed; all runners die with their zygote.
    PidNamespace,
    /// No network interface.
    NetNamespace,
    /// A separate set of mounts.
    MountNamespace,
    /// No shared memory or queues of the host.
    IpcNamespace,
    /// A separate host name.
    UtsNamespace,
    /// The process is not root.
    Unprivileged,
    /// All capabilities are dropped.
    NoCapabilities,
    /// The root directory is empty and read-only; no mount of the host is left.
    EmptyRoot,
    /// No capability can be gained by starting a program.
    EmptyBoundingSet,
}

impl JailLayer {
    /// All layers, the required ones first.
    pub const ALL: [Self; 14] = [
        Self::Seccomp,
        Self::NoNewPrivileges,
        Self::Limits,
        Self::Landlock,
        Self::UserNamespace,
        Self::PidNamespace,
        Self::NetNamespace,
        Self::MountNamespace,
        Self::EmptyRoot,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::Unprivileged,
        Self::NoCapabilities,
        Self::EmptyBoundingSet,
    ];

    /// Whether nothing runs without this layer.
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Seccomp | Self::NoNewPrivileges | Self::Limits)
    }

    /// What the operator can do if it is missing.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Seccomp => {
                "use a kernel with CONFIG_SECCOMP_FILTER, and let the container pass seccomp(2)"
            }
            Self::NoNewPrivileges => "use Linux 3.5 or later, and let the container pass prctl(2)",
            Self::Limits => "let the container pass prlimit(2), and raise no hard limit below ours",
            Self::Landlock => {
                "use Linux 5.13 or later with landlock in the list of security modules"
            }
            Self::UserNamespace => "allow user namespaces (user.max_user_namespaces, AppArmor)",
            Self::PidNamespace
            | Self::NetNamespace
            | Self::MountNamespace
            | Self::EmptyRoot
            | Self::IpcNamespace
            | Self::UtsNamespace => "allow user namespaces, or start with CAP_SYS_ADMIN",
            Self::Unprivileged => "start as an ordinary user",
            Self::NoCapabilities => "start without capabilities",
            Self::EmptyBoundingSet => {
                "allow user namespaces, or start as root or with an empty bounding set"
            }
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for JailLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seccomp => "seccomp",
            Self::NoNewPrivileges => "no_new_privs",
            Self::Limits => "resource limits",
            Self::Landlock => "Landlock",
            Self::UserNamespace => "user namespace",
            Self::PidNamespace => "pid namespace",
            Self::NetNamespace => "network namespace",
            Self::MountNamespace => "mount namespace",
            Self::IpcNamespace => "ipc namespace",
            Self::UtsNamespace => "uts namespace",
            Self::Unprivileged => "unprivileged user",
            Self::NoCapabilities => "no capabilities",
            Self::EmptyRoot => "empty root directory",
            Self::EmptyBoundingSet => "empty capability bounding set",
        })
    }
}

/// The layers that were reached on this host. Shown by `airlock doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JailTier {
    reached: u16,
    landlock_abi: u8,
}

impl JailTier {
    /// Whether this layer is in force.
    pub const fn has(self, layer: JailLayer) -> bool {
        self.reached & layer.bit() != 0
    }

    /// The version of Landlock in force, if there is one.
    pub const fn landlock_abi(self) -> Option<u8> {
        if self.has(JailLayer::Landlock) { Some(self.landlock_abi) } else { None }
    }

    /// The layers in force.
    pub fn layers(self) -> impl Iterator<Item = JailLayer> {
        JailLayer::ALL.into_iter().filter(move |layer| self.has(*layer))
    }

    /// The layers that this host does not allow.
    pub fn missing(self) -> impl Iterator<Item = JailLayer> {
        JailLayer::ALL.into_iter().filter(move |layer| !self.has(*layer))
    }

    pub(crate) const fn add(&mut self, layer: JailLayer) {
        self.reached |= layer.bit();
    }

    pub(crate) const fn add_landlock(&mut self, abi: u8) {
        self.add(JailLayer::Landlock);
        self.landlock_abi = abi;
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.reached) | u64::from(self.landlock_abi) << 16
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self { reached: bits as u16, landlock_abi: (bits >> 16) as u8 }
    }
}

/// One line: the layers in force, then the missing ones.
impl fmt::Display for JailTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for layer in self.layers() {
            write!(f, "{separator}{layer}")?;
            if layer == JailLayer::Landlock {
                write!(f, " (ABI {})", self.landlock_abi)?;
            }
            separator = ", ";
        }
        let mut separator = "; not reached: ";
        for layer in self.missing() {
            write!(f, "{separator}{layer}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_says_what_stands_and_what_is_missing() {
        let mut tier = JailTier::default();
        for layer in JailLayer::ALL.into_iter().filter(|layer| *layer != JailLayer::UserNamespace) {
            tier.add(layer);
        }
        tier.add_landlock(7);
        assert_eq!(
            tier.to_string(),
            "seccomp, no_new_privs, resource limits, Landlock (ABI 7), pid namespace, network namespace, \
             mount namespace, empty root directory, ipc namespace, uts namespace, unprivileged user, no capabilities, \
             empty capability bounding set; not reached: user namespace"
        );
    }

    #[test]
    fn a_tier_survives_the_control_socket() {
        let mut tier = JailTier::default();
        tier.add(JailLayer::Seccomp);
        tier.add(JailLayer::NoCapabilities);
        tier.add_landlock(6);
        assert_eq!(JailTier::from_bits(tier.to_bits()), tier);
    }
}
