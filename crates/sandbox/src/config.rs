//! What a sandbox is made of.

use crate::memory;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Memory a guest gets unless the lease says otherwise; runners of this size wait ready.
pub const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;

/// The budget when nobody sets one is never larger: more guests than this need a decision.
const BUDGET_BYTES_MAX: u64 = 16 << 30;

/// How many runners, how large, and from which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whose hidden verb is the zygote.
    pub program: RunnerProgramPath,
    /// Runners of the default size that wait for a lease.
    pub warm_runners: usize,
    /// What all leased runners may use together.
    pub memory_budget_bytes: u64,
    /// How much larger the share of a caller is than that of others, by its name in [`crate::LeaseDemand::caller`]. All
    /// others have the weight 1.
    pub caller_weights: BTreeMap<String, NonZero<u32>>,
    /// A zygote is replaced after this many forks, so that no address layout serves for ever.
    pub forks_per_zygote_max: u32,
    /// Whether a finished runner is kept for the same caller.
    pub reuse: bool,
}

/// A program that calls [`crate::enter_if_asked`] first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerProgramPath {
    /// The one that is running.
    ThisBinary,
    /// Another one.
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
    /// Assumed where the system does not say: a small machine.
    const GUESS: u64 = 1 << 30;
    (memory::left_bytes(Path::new("/")).unwrap_or(GUESS) / 2)
        .clamp(MEMORY_BYTES_DEFAULT, BUDGET_BYTES_MAX)
}
