//! The order of a plain execbox host: an `execute` without `airlock`.

use lifecycle::{RandomSeed, Timestamp};
use protocols::execbox::ProviderNames;
use protocols::execbox::wire::{Execute, WireText};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most log lines that are collected, even if the host allows more: empty ones use memory too.
const LOG_LINES_MAX: u64 = 1 << 16;

/// Most UTF-16 units of log text that are collected, even if the host allows more: they go into one message
/// with the result.
const LOG_CHARS_MAX: u64 = 1 << 20;

/// Longest time limit that a host may set.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// The members of a host's order in addition to the program.
pub(crate) struct HostedOrder {
    /// Namespaces, and the tools in each.
    pub(crate) providers: Vec<(String, Vec<String>)>,
    /// Includes the time that the program waits for tools.
    pub(crate) time_allowed: Duration,
    pub(crate) log_lines_max: u32,
    pub(crate) log_chars_max: u32,
    pub(super) start: Timestamp,
    pub(super) seed: RandomSeed,
}

impl HostedOrder {
    pub(super) fn read(execute: &Execute<'_>) -> Option<Self> {
        let providers = ProviderNames::read_all(execute.providers).ok()?;
        let owned = |provider: ProviderNames<'_>| {
            let tools = provider.tools.into_iter().map(WireText::into_owned).collect();
            (provider.name.into_owned(), tools)
        };
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).ok()?;
        let options = execute.options;
        Some(Self {
            providers: providers.into_iter().map(owned).collect(),
            time_allowed: Duration::from_millis(options.timeout_ms).min(TIME_MAX),
            log_lines_max: clamped(options.max_log_lines, LOG_LINES_MAX),
            log_chars_max: clamped(options.max_log_chars, LOG_CHARS_MAX),
            start: now(),
            seed: RandomSeed(seed),
        })
    }
}

/// The machine's time: a host sends no time to its programs.
#[expect(clippy::disallowed_methods, reason = "no story is told inside the jail")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn clamped(asked: u64, max: u64) -> u32 {
    u32::try_from(asked.min(max)).expect("the maximum is far smaller")
}
