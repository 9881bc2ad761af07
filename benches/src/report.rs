//! What a benchmark found, and whether it is good enough.

use crate::table::{nanoseconds, table};
use crate::{Measured, Target, Verdict};

/// All that one benchmark found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    rows: Vec<Row>,
}

/// One measurement and what was asked of it.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was measured.
    pub measured: Measured,
    /// What it must reach.
    pub targets: Vec<Target>,
}

impl Report {
    /// One more measurement.
    pub fn add(&mut self, measured: Measured, targets: Vec<Target>) {
        self.rows.push(Row { measured, targets });
    }

    /// How many targets were missed.
    pub fn n_missed(&self) -> usize {
        self.rows.iter().flat_map(Row::verdicts).filter(|(_, v)| *v == Verdict::Missed).count()
    }

    /// The table, as people read it: a line for each subject, one for its floor, one per target.
    pub fn shown(&self) -> String {
        let heads = ["", "median", "p99", "noise", "ops", "ratio", "(half of the rounds)"];
        let mut lines = vec![heads.map(str::to_owned).to_vec()];
        for row in &self.rows {
            lines.append(&mut row.lines());
        }
        let mut shown = table(&lines);
        for (name, target, verdict) in self.judged() {
            let word = match verdict {
                Verdict::Met => "met   ",
                Verdict::Missed => "MISSED",
            };
            shown += &format!("{word}  {name}: {target}\n");
        }
        shown
    }

    fn judged(&self) -> impl Iterator<Item = (&str, Target, Verdict)> {
        self.rows.iter().flat_map(|row| {
            row.verdicts().map(|(target, verdict)| (&*row.measured.subject.name, target, verdict))
        })
    }
}

impl Row {
    fn verdicts(&self) -> impl Iterator<Item = (Target, Verdict)> {
        self.targets.iter().map(|target| (*target, target.judge(&self.measured)))
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let Measured { subject, floor } = &self.measured;
        let line = |name: String, samples: &crate::Samples, ratio: Vec<String>| {
            let times = [samples.median_ns(), samples.p99_ns()].map(nanoseconds);
            let noise = format!("{:.0} %", samples.noise() * 100.0);
            [vec![name], times.to_vec(), vec![noise, samples.n_ops().to_string()], ratio].concat()
        };
        let (low, high) = self.measured.ratio_quartiles();
        let ratio = vec![format!("{:.2}", self.measured.ratio()), format!("({low:.2}-{high:.2})")];
        vec![
            line(subject.name.clone(), subject, ratio),
            line(format!("  floor: {}", floor.name), floor, vec![]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contender, Plan};
    use std::time::Duration;

    #[test]
    fn a_missed_target_is_counted_and_shown() {
        let plan = Plan {
            warm_up_ops: 0,
            n_rounds: 1,
            round_ops: 3,
            round_time_max: Duration::from_secs(1),
        };
        let nothing = |name| Contender::new(name, || Ok(()));
        let measured = plan.compare(nothing("one"), nothing("other")).unwrap();
        let mut report = Report::default();
        report.add(measured, vec![Target::MedianNsMax(f64::MAX), Target::P99NsMax(-1.0)]);
        assert_eq!(report.n_missed(), 1);
        let shown = report.shown();
        let last: Vec<&str> = shown.lines().rev().take(2).collect();
        assert_eq!(last[0], "MISSED  one: p99 <= -1 ns");
        assert!(last[1].starts_with("met     one: median <= "));
    }
}
