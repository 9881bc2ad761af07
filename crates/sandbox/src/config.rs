//! What a sandbox is made of.

use std::path::PathBuf;
use std::time::Duration;

/// Memory a guest gets unless the lease says otherwise; runners of this size wait ready.
pub const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;

/// The budget when nobody sets one is never larger: more guests than this need a decision.
const BUDGET_BYTES_MAX: u64 = 16 << 30;

/// How many runners, how large, and from which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whose hidden verb is the zygote.
    pub program: Program,
    /// Runners of the default size that wait for a lease.
    pub warm_runners: usize,
    /// What all leased runners may use together.
    pub memory_budget_bytes: u64,
    /// A zygote is replaced after this many forks, so that no address layout serves for ever.
    pub forks_per_zygote_max: u32,
    /// Whether a finished runner is kept for the same caller.
    pub reuse: bool,
    /// How long a program stands behind one that does not end before it starts elsewhere, at least; twice this at most.
    pub patience: Duration,
}

/// A program that calls [`crate::enter_if_asked`] first thing in `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The one that is running.
    ThisBinary,
    /// Another one.
    At(PathBuf),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            program: Program::ThisBinary,
            warm_runners: 4,
            memory_budget_bytes: half_of_free_memory(),
            forks_per_zygote_max: 10_000,
            reuse: false,
            patience: Duration::from_millis(10),
        }
    }
}

fn half_of_free_memory() -> u64 {
    /// Assumed where /proc does not say: a small machine.
    const GUESS: u64 = 1 << 30;
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (bytes_after("MemAvailable:", &meminfo).unwrap_or(GUESS) / 2)
        .clamp(MEMORY_BYTES_DEFAULT, BUDGET_BYTES_MAX)
}

/// The size behind a name, as /proc writes it.
pub(crate) fn bytes_after(name: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_the_kernel_writes_it() {
        let available = |text| bytes_after("MemAvailable:", text);
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemAvailable: lots\n"), None);
        assert_eq!(available(""), None);
    }
}
