//! The configuration of a sandbox.

use crate::memory;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Memory of a guest if the lease specifies none; waiting runners have this size.
pub const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;

/// Upper limit of the default budget: more guests than this need an explicit setting.
const BUDGET_BYTES_MAX: u64 = 16 << 30;

/// The number and size of runners, and the program that they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The program whose hidden verb starts the zygote.
    pub program: RunnerProgramPath,
    /// Runners of the default size that wait for a lease.
    pub warm_runners: usize,
    /// The memory that all leased runners may use together.
    pub memory_budget_bytes: u64,
    /// The relative share of a caller, by its name in [`crate::LeaseDemand::caller`]. All others have the
    /// weight 1.
    pub caller_weights: BTreeMap<String, NonZero<u32>>,
    /// A zygote is replaced after this many forks, so that no address layout is used for ever.
    pub forks_per_zygote_max: u32,
    /// Whether a finished runner is reused for the same caller.
    pub reuse: bool,
}

/// A program that calls [`crate::enter_if_asked`] first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerProgramPath {
    /// The program that is running.
    ThisBinary,
    /// The program at this path.
    At(PathBuf),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            program: RunnerProgramPath::ThisBinary,
            warm_runners: 4,
            memory_budget_bytes: half_of_what_is_left(),
            caller_weights: BTreeMap::new(),
            forks_per_zygote_max: 10_000,
            reuse: false,
        }
    }
}

fn half_of_what_is_left() -> u64 {
    /// Assumed if the system does not report its memory: a small machine.
    const GUESS: u64 = 1 << 30;
    (memory::left_bytes(Path::new("/")).unwrap_or(GUESS) / 2)
        .clamp(MEMORY_BYTES_DEFAULT, BUDGET_BYTES_MAX)
}
