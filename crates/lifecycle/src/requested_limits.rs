//! Limits that a request sets: none can exceed its default.

use crate::ExecutionLimits;

/// The limits that a request sets for its execution. The others have their defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestedLimits([Option<u64>; NAMES.len()]);

/// Their names in requests, in the order of [`values`].
const NAMES: [&str; 8] = [
    "cpuMsMax",
    "activeMsMax",
    "totalMsMax",
    "memoryBytesMax",
    "callsMax",
    "bytesMax",
    "resultBytesMax",
    "callMsMax",
];

/// A limit that is not between 1 and its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "limits.{name} is a number from 1 to {most}, which is the limit of this server, not {asked}"
)]
pub struct RefusedLimit {
    name: &'static str,
    asked: u64,
    most: u64,
}

impl RequestedLimits {
    /// The names of all limits that a request can set.
    pub const NAMES: [&str; NAMES.len()] = NAMES;

    /// Adds a limit by its name; `None` if there is no such limit.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Option<Self> {
        let at = NAMES.iter().position(|known| *known == name)?;
        self.0[at] = Some(value);
        Some(self)
    }

    /// The requested limits, by name.
    pub fn asked(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0).filter_map(|(name, value)| Some((name, value?)))
    }

    /// The limits of an execution that would otherwise have `most`.
    pub fn within(self, most: ExecutionLimits) -> Result<ExecutionLimits, RefusedLimit> {
        let mut limits = most;
        let mut calls = u64::from(most.calls_max);
        for ((asked, value), name) in
            self.0.into_iter().zip(values(&mut limits, &mut calls)).zip(NAMES)
        {
            match asked {
                None => {}
                Some(asked) if (1..=*value).contains(&asked) => *value = asked,
                Some(asked) => return Err(RefusedLimit { name, asked, most: *value }),
            }
        }
        limits.calls_max = u32::try_from(calls).unwrap_or(limits.calls_max);
        Ok(limits)
    }
}

fn values<'l>(limits: &'l mut ExecutionLimits, calls: &'l mut u64) -> [&'l mut u64; NAMES.len()] {
    [
        &mut limits.cpu_ms_max,
        &mut limits.active_ms_max,
        &mut limits.total_ms_max,
        &mut limits.memory_bytes_max,
        calls,
        &mut limits.bytes_max,
        &mut limits.result_bytes_max,
        &mut limits.call_ms_max,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(asked: &[(&str, u64)]) -> RequestedLimits {
        let add = |limits: RequestedLimits, (name, value): &(&str, u64)| {
            limits.with(name, *value).expect("a name")
        };
        asked.iter().fold(RequestedLimits::default(), add)
    }

    #[test]
    fn a_request_sets_limits_below_those_of_the_server() {
        let most = ExecutionLimits::default();
        assert_eq!(asking(&[]).within(most), Ok(most));
        let all = RequestedLimits::NAMES.map(|name| (name, 7));
        let expected = ExecutionLimits {
            cpu_ms_max: 7,
            active_ms_max: 7,
            total_ms_max: 7,
            memory_bytes_max: 7,
            calls_max: 7,
            bytes_max: 7,
            result_bytes_max: 7,
            call_ms_max: 7,
            ..most
        };
        assert_eq!(asking(&all).within(most), Ok(expected));
        assert_eq!(asking(&all).asked().collect::<Vec<_>>(), all);
        let same = asking(&[("memoryBytesMax", most.memory_bytes_max), ("callsMax", 10_000)]);
        assert_eq!(same.within(most), Ok(most));
    }

    #[test]
    fn a_limit_above_the_servers_is_refused_and_named() {
        let refused = |asked: &[(&str, u64)]| {
            asking(asked).within(ExecutionLimits::default()).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&[("cpuMsMax", 5), ("memoryBytesMax", (64 << 20) + 1)]),
            "limits.memoryBytesMax is a number from 1 to 67108864, which is the limit of this server, not 67108865"
        );
        assert_eq!(
            refused(&[("callsMax", 0)]),
            "limits.callsMax is a number from 1 to 10000, which is the limit of this server, not 0"
        );
        assert_eq!(RequestedLimits::default().with("cpu", 1), None);
    }
}
