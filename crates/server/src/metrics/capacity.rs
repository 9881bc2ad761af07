//! The cost of freeing capacity for programs that waited for a runner, as Prometheus text. The engine names a bounded
//! number of callers and sums up the others, so the number of labels is bounded.

use engine::CapacityUse;

/// Name, kind, help and lines of a metric.
type CapacityMetricFamily = (&'static str, &'static str, &'static str, Vec<(String, u64)>);

pub(super) fn families(used: &CapacityUse) -> [CapacityMetricFamily; 3] {
    let replays = [("restored", used.replays), ("failed", used.replays_failed)];
    let replays = replays.map(|(outcome, n)| (format!("{{outcome=\"{outcome}\"}}"), n));
    let cpu = used.replay_cpu.iter().map(|(caller, cpu)| {
        let caller = caller.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let ms = u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX);
        (format!("{{caller=\"{caller}\"}}"), ms)
    });
    [
        (
            "airlock_runners_released_total",
            "counter",
            "Runners of programs that only waited, given to programs that needed one.",
            vec![(String::new(), used.released)],
        ),
        (
            "airlock_capacity_replays_total",
            "counter",
            "Replays of programs whose runners were released, by outcome. A failed one is a fault of the server.",
            replays.to_vec(),
        ),
        (
            "airlock_capacity_replay_cpu_milliseconds_total",
            "counter",
            "Processor time of these replays, by the caller that was above its share.",
            cpu.collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn released_runners_and_replays_are_counted_by_outcome_and_caller() {
        let replay_cpu = [("a\"b".to_owned(), Duration::from_millis(7))].into();
        let used = CapacityUse { released: 3, replays: 2, replays_failed: 1, replay_cpu };
        let lines = families(&used).map(|(.., lines)| lines);
        let line = |labels: &str, n| (labels.to_owned(), n);
        assert_eq!(
            lines,
            [
                vec![line("", 3)],
                vec![line("{outcome=\"restored\"}", 2), line("{outcome=\"failed\"}", 1)],
                vec![line(r#"{caller="a\"b"}"#, 7)],
            ]
        );
    }
}
