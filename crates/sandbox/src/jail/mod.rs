//! The jail around guest code. The zygote raises it once; runners are forked inside.
#![expect(
    unsafe_code,
    reason = "namespaces, mounts, identity, limits and capabilities have no safe interface"
)]

mod empty_root;
mod filters;
mod layers;
mod tier;

pub(crate) use filters::CLONE_FLAGS;
pub(crate) use layers::{die_with_parent, leave_the_host};
pub use tier::{JailLayer, JailTier};

use std::io;

/// Descriptors of a zygote or runner: standard ones, control, link, one being passed, a few to spare.
const DESCRIPTORS_MAX: u64 = 32;

/// Stack of a zygote and of its runners.
const STACK_BYTES_MAX: u64 = runner::STACK_BYTES as u64;

/// Address space of a runner beyond the guest's memory and what the zygote had mapped: the stack, parser
/// arenas, an incoming and an outgoing message, and the allocator's fragmentation.
const HEADROOM_BYTES: u64 = 96 << 20;

/// A last backstop: the holder of the lease measures the processor time and kills long before.
const CPU_SECONDS_MAX: u64 = 3_600;

/// A required layer that this host does not allow.
#[derive(Debug)]
pub(crate) struct MissingLayer {
    pub(crate) layer: JailLayer,
    pub(crate) source: io::Error,
}

/// The zygote's last step: raises the layers that need no fork. From here on the filter is in force.
pub(crate) fn shut(tier: &mut JailTier) -> Result<(), MissingLayer> {
    raise(tier, JailLayer::NoNewPrivileges, layers::no_new_privileges())?;
    // Best effort, and after every change of identity, which resets it.
    drop(layers::become_unreadable());
    raise(tier, JailLayer::Limits, limit_zygote())?;
    if let Some(abi) = layers::landlock() {
        tier.add_landlock(abi);
    }
    let filter = filters::zygote().map_err(io::Error::other);
    let taken = filter.and_then(|filter| seccompiler::apply_filter(&filter).map_err(bare));
    raise(tier, JailLayer::Seccomp, taken)
}

/// Sets the stack limit that guests need, and returns the stack size: less if the host allows no more.
pub(crate) fn extend_stack() -> io::Result<u64> {
    layers::limit(libc::RLIMIT_STACK, STACK_BYTES_MAX, STACK_BYTES_MAX)?;
    layers::soft_limit(libc::RLIMIT_STACK)
}

/// A runner's first steps: its own limits and the second filter, before it sees a byte of guest code.
pub(crate) fn shut_runner(own_pid: u32, mapped_bytes: u64, memory_bytes: u64) -> io::Result<()> {
    let heap_bytes = runner::heap_bytes_max(memory_bytes);
    let address_space = mapped_bytes.saturating_add(heap_bytes).saturating_add(HEADROOM_BYTES);
    layers::limit(libc::RLIMIT_AS, address_space, address_space)?;
    layers::limit(libc::RLIMIT_CPU, CPU_SECONDS_MAX, CPU_SECONDS_MAX + 1)?;
    layers::limit(libc::RLIMIT_NPROC, 0, 0)?;
    seccompiler::apply_filter(&filters::runner(own_pid)).map_err(bare)
}

fn raise(
    tier: &mut JailTier,
    layer: JailLayer,
    raised: io::Result<()>,
) -> Result<(), MissingLayer> {
    raised.map_err(|source| MissingLayer { layer, source })?;
    tier.add(layer);
    Ok(())
}

fn limit_zygote() -> io::Result<()> {
    layers::limit(libc::RLIMIT_NOFILE, DESCRIPTORS_MAX, DESCRIPTORS_MAX)?;
    layers::limit(libc::RLIMIT_FSIZE, 0, 0)?;
    layers::limit(libc::RLIMIT_CORE, 0, 0)?;
    layers::limit(libc::RLIMIT_MEMLOCK, 0, 0)?;
    layers::limit(libc::RLIMIT_STACK, STACK_BYTES_MAX, STACK_BYTES_MAX)
}

/// The kernel's own error, so that its number can be reported.
fn bare(error: seccompiler::Error) -> io::Error {
    match error {
        seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => source,
        other @ (seccompiler::Error::Backend(_)
        | seccompiler::Error::EmptyFilter
        | seccompiler::Error::ThreadSync(_)) => io::Error::other(other),
    }
}
