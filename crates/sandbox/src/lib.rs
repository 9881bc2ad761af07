//! The outside of the jail: a zygote that is already inside, runners forked from it, and leases on them.
//!
//! ```text
//! Sandbox --wish--> supervisor --> keeper ==control socket==> zygote --clone--> runner
//!    |                                                                            |
//!  Lease =============================== link (NDJSON) ===========================+
//! ```
//!
//! The messages of a runner are untrusted input. Only `driver` knows the meaning of the lines.

mod admission;
mod config;
mod cpu_shares;
mod driver;
mod error;
mod exit;
mod fork_request;
mod jail;
mod lease;
mod memory;
mod oom_kills;
mod sandbox;
mod spawn;
mod spin;
mod supervisor;
mod warm_pool;
#[doc(hidden)]
pub mod zygote;
mod zygote_link;

pub use admission::ReleaseOffer;
pub use config::{Config, MEMORY_BYTES_DEFAULT, RunnerProgramPath};
pub use driver::{
    LeaseRequest, LossMeaning, ProgramFailure, RunnerDriver, RunnerLoss, RunnerMessage,
    SessionMessage, TaskFailure, TaskResult,
};
pub use error::{LeaseError, RunnerGone, SandboxStartError};
pub use exit::RunnerExit;
pub use jail::{JailLayer, JailTier};
pub use lease::{CpuMeter, Lease, LeaseMessage};
pub use sandbox::{LeaseDemand, Sandbox, SandboxLoad};

/// Must be called first in `main`: if this process was started as our zygote, this becomes it and never
/// returns.
pub fn enter_if_asked() {
    zygote::enter_with(zygote::RunnerProgram {
        warm: warm_world,
        rehearsal: runner::REHEARSAL,
        limber_up: runner::GuestWorld::limber_up,
        serve: runner::GuestWorld::serve,
    });
}

/// A world whose guests may recurse as deep as this thread's stack allows.
fn warm_world() -> runner::GuestWorld {
    let stack_bytes = jail::extend_stack().unwrap_or_default();
    runner::have_stack(usize::try_from(stack_bytes).unwrap_or(usize::MAX));
    runner::GuestWorld::warm()
}
