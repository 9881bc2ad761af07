//! Each caller's use of its quotas, as Prometheus text. The engine names a bounded number of callers and sums up the
//! others, so the number of labels is bounded.

use engine::CallerReport;
use lifecycle::QuotaKind;

/// The label of the callers that are not named. No token has such a name.
const OTHERS: &str = "(others)";

/// Name, kind, help and lines of a metric.
type CallerMetricFamily = (&'static str, &'static str, &'static str, Vec<(String, u64)>);

pub(super) fn families(callers: &[CallerReport]) -> [CallerMetricFamily; 4] {
    let executions = callers.iter().flat_map(|line| {
        [(QuotaKind::Running, "running"), (QuotaKind::Waiting, "waiting")].map(|(kind, state)| {
            let labels = format!("{{caller=\"{}\",state=\"{state}\"}}", label(line));
            (labels, used(line, kind))
        })
    });
    let gauge = |kind| {
        let line = move |line: &CallerReport| {
            (format!("{{caller=\"{}\"}}", label(line)), used(line, kind))
        };
        callers.iter().map(line).collect::<Vec<_>>()
    };
    let refused = callers.iter().flat_map(|line| {
        let caller = label(line);
        line.refused
            .iter()
            .map(move |(kind, n)| (format!("{{caller=\"{caller}\",quota=\"{kind}\"}}"), *n))
    });
    [
        (
            "airlock_caller_executions",
            "gauge",
            "Executions of a caller that run, or wait for people or timers.",
            executions.collect(),
        ),
        (
            "airlock_caller_held_runners",
            "gauge",
            "Runners that execbox channels and REPL sessions of a caller hold.",
            gauge(QuotaKind::HeldRunners),
        ),
        (
            "airlock_caller_cpu_seconds_last_hour",
            "gauge",
            "Processor time of a caller's programs within the last hour.",
            gauge(QuotaKind::CpuSeconds),
        ),
        (
            "airlock_quota_refusals_total",
            "counter",
            "What a quota refused, by caller and quota.",
            refused.collect(),
        ),
    ]
}

fn used(line: &CallerReport, kind: QuotaKind) -> u64 {
    line.used.get(&kind).copied().unwrap_or(0)
}

/// A caller's name as a label value. Callers' names come from tokens, but those in old journals are not validated.
fn label(line: &CallerReport) -> String {
    let Some(caller) = &line.caller else { return OTHERS.to_owned() };
    let mut label = String::with_capacity(caller.0.len());
    for c in caller.0.chars() {
        match c {
            '\\' => label.push_str("\\\\"),
            '"' => label.push_str("\\\""),
            '\n' => label.push_str("\\n"),
            c => label.push(c),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::CallerName;

    #[test]
    fn callers_are_labels_and_the_rest_is_summed_up() {
        let line = |caller: Option<&str>, running| CallerReport {
            caller: caller.map(|name| CallerName(name.into())),
            used: [(QuotaKind::Running, running), (QuotaKind::CpuSeconds, 7)].into(),
            refused: [(QuotaKind::Running, 1)].into(),
        };
        let families = families(&[line(Some("a\"b"), 3), line(None, 40)]);
        let shown: Vec<_> = families
            .iter()
            .flat_map(|(name, _, _, lines)| {
                lines.iter().map(move |(labels, n)| format!("{name}{labels} {n}"))
            })
            .collect();
        let expected = [
            r#"airlock_caller_executions{caller="a\"b",state="running"} 3"#,
            r#"airlock_caller_executions{caller="a\"b",state="waiting"} 0"#,
            r#"airlock_caller_executions{caller="(others)",state="running"} 40"#,
            r#"airlock_caller_executions{caller="(others)",state="waiting"} 0"#,
            r#"airlock_caller_held_runners{caller="a\"b"} 0"#,
            r#"airlock_caller_held_runners{caller="(others)"} 0"#,
            r#"airlock_caller_cpu_seconds_last_hour{caller="a\"b"} 7"#,
            r#"airlock_caller_cpu_seconds_last_hour{caller="(others)"} 7"#,
            r#"airlock_quota_refusals_total{caller="a\"b",quota="running_max"} 1"#,
            r#"airlock_quota_refusals_total{caller="(others)",quota="running_max"} 1"#,
        ];
        assert_eq!(shown, expected);
    }
}
