//! What an execution may use: CPU time, active time, total time, waiting time, and how much (calls, bytes, memory).

use serde::{Deserialize, Serialize};
use std::fmt;

/// What an execution may use. Each door sets these as its protocol promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionLimits {
    /// Processor time of the guest, replay not counted.
    pub cpu_ms_max: u64,
    /// Time on the active clock.
    pub active_ms_max: u64,
    /// When the active clock does not advance.
    pub active_clock: ActiveClock,
    /// Time from start to finish, everything included.
    pub total_ms_max: u64,
    /// Memory of the guest.
    pub memory_bytes_max: u64,
    /// Tool calls.
    pub calls_max: u32,
    /// Timers set.
    pub timers_max: u32,
    /// Log lines and emitted items.
    pub outputs_max: u32,
    /// Arguments, results, log lines and emitted items together.
    pub bytes_max: u64,
    /// Whether a finished main promise waits for calls that are not awaited.
    pub unawaited: UnawaitedCalls,
    /// Log lines together.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub log_bytes_max: u64,
    /// The result of one call; a larger one fails its call.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub result_bytes_max: u64,
    /// Time from dispatching a call to its result; after it, the call fails.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub call_ms_max: u64,
    /// Time in which nothing happens although only the caller or a person can continue the execution.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub idle_ms_max: u64,
    /// Time without a reader, if the door requires one.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub grace_ms_max: u64,
    /// Iterations of one loop, each time it is entered.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub loop_rounds_max: u64,
}

/// The value of a limit that a journal does not contain.
const fn unlimited() -> u64 {
    u64::MAX
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_unlimited(max: &u64) -> bool {
    *max == unlimited()
}

impl ExecutionLimits {
    /// The limits of journals that contain none. They never change, even if the defaults do: such journals exist.
    pub(crate) const fn unsaid() -> Self {
        Self {
            cpu_ms_max: 60_000,
            active_ms_max: 300_000,
            active_clock: ActiveClock::StopsForCallsAndQuestions,
            total_ms_max: 30 * 24 * 3_600_000,
            memory_bytes_max: 64 << 20,
            calls_max: 10_000,
            timers_max: 100_000,
            outputs_max: 100_000,
            bytes_max: 64 << 20,
            unawaited: UnawaitedCalls::Wait,
            log_bytes_max: unlimited(),
            result_bytes_max: unlimited(),
            call_ms_max: unlimited(),
            idle_ms_max: unlimited(),
            grace_ms_max: unlimited(),
            loop_rounds_max: unlimited(),
        }
    }

    /// Whether the journal omits them: they would be half of the journal of a small program.
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::unsaid()
    }
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self::unsaid()
    }
}

/// When the active clock does not advance. It always advances during timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActiveClock {
    /// While the guest only waits for tools or people.
    StopsForCallsAndQuestions,
    /// While the guest only waits for people.
    StopsForQuestions,
}

/// What a settled program does about calls that are not awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnawaitedCalls {
    /// Waits for them.
    Wait,
    /// Drops them.
    Forget,
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Processor time.
    Cpu,
    /// The active clock.
    Active,
    /// Start to finish.
    Total,
    /// Memory.
    Memory,
    /// Number of tool calls.
    Calls,
    /// Number of timers.
    Timers,
    /// Number of log lines and emitted items.
    Outputs,
    /// Bytes of arguments, results and output.
    Bytes,
    /// Bytes of log lines.
    Logs,
    /// Waiting for the caller or a person while nothing happened.
    Idle,
    /// Running without a reader.
    Grace,
    /// Iterations of one loop.
    Rounds,
}

impl LimitKind {
    /// The message for a person, with the value that was reached.
    pub fn sentence(self, limits: &ExecutionLimits) -> String {
        match self {
            Self::Cpu => format!("used more than {} ms of processor time", limits.cpu_ms_max),
            Self::Active => format!("ran longer than {} ms", limits.active_ms_max),
            Self::Total => format!("was not finished {} ms after its start", limits.total_ms_max),
            Self::Memory => format!("needed more than {} bytes of memory", limits.memory_bytes_max),
            Self::Calls => format!("made more than {} tool calls", limits.calls_max),
            Self::Timers => format!("set more than {} timers", limits.timers_max),
            Self::Outputs => format!("wrote more than {} lines and items", limits.outputs_max),
            Self::Bytes => format!("moved more than {} bytes", limits.bytes_max),
            Self::Logs => format!("printed more than {} bytes", limits.log_bytes_max),
            Self::Idle => format!("waited longer than {} ms for its caller", limits.idle_ms_max),
            Self::Grace => format!("ran {} ms while nobody listened", limits.grace_ms_max),
            Self::Rounds => {
                format!("went round one loop more than {} times", limits.loop_rounds_max)
            }
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Active => "active",
            Self::Total => "total",
            Self::Memory => "memory",
            Self::Calls => "calls",
            Self::Timers => "timers",
            Self::Outputs => "outputs",
            Self::Bytes => "bytes",
            Self::Logs => "logs",
            Self::Idle => "idle",
            Self::Grace => "grace",
            Self::Rounds => "rounds",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    #[test]
    fn a_journal_says_nothing_of_limits_that_nobody_set() {
        let json = serde_json::to_string(&ExecutionLimits::default()).unwrap();
        assert!(!json.contains("18446744073709551615"), "{json}");
        assert_eq!(
            serde_json::from_str::<ExecutionLimits>(&json).unwrap(),
            ExecutionLimits::default()
        );
        let set =
            ExecutionLimits { call_ms_max: 5, log_bytes_max: 0, ..ExecutionLimits::default() };
        let json = serde_json::to_string(&set).unwrap();
        assert!(!json.contains("18446744073709551615"), "{json}");
        assert_eq!(serde_json::from_str::<ExecutionLimits>(&json).unwrap(), set);
    }

    /// As in journals that contain every limit.
    const UNSAID: &str = r#"{"cpu_ms_max":60000,"active_ms_max":300000,"active_clock":"stops_for_calls_and_questions","total_ms_max":2592000000,"memory_bytes_max":67108864,"calls_max":10000,"timers_max":100000,"outputs_max":100000,"bytes_max":67108864,"unawaited":"wait"}"#;

    #[test]
    fn what_journals_do_not_say_never_changes() {
        assert_eq!(
            serde_json::from_str::<ExecutionLimits>(UNSAID).unwrap(),
            ExecutionLimits::unsaid()
        );
        let start = |limits: &str| {
            let rest = r#""program":{"source":"1","convention":"explicit_return"},"caller":"ann""#;
            format!(r#"{{"started":{{{rest}{limits},"seed":"{}"}}}}"#, "00".repeat(32))
        };
        let short: Event = serde_json::from_str(&start("")).unwrap();
        let long = start(&format!(r#","limits":{UNSAID}"#));
        assert_eq!(serde_json::from_str::<Event>(&long).unwrap(), short);
        assert_eq!(serde_json::to_string(&short).unwrap(), start(""));
    }
}
