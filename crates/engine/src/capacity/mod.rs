//! Capacity: which programs that only wait give their runners to demands that cannot start.

mod accounts;
mod holders;
mod rules;

pub use accounts::CapacityUse;
pub(crate) use holders::{OfferedRunner, RunnerCapacity, watch};
pub(crate) use rules::WaitState;
