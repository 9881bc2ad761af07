//! The results of a benchmark, and whether they meet the targets.

use crate::table::{bytes, nanoseconds, table};
use crate::{Measured, Target, Verdict};

/// All results of one benchmark.
#[derive(Debug, Clone, Default)]
pub struct Report {
    rows: Vec<Row>,
    sizes: Vec<Size>,
    counts: Vec<Count>,
}

/// A count, which does not depend on the machine's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The name of the count.
    pub name: String,
    /// The count.
    pub n: f64,
    /// The largest permitted count, where one is promised.
    pub n_max: Option<f64>,
}

/// Memory, which needs no floor: it does not depend on the machine's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// The name of the measurement.
    pub name: String,
    /// The size.
    pub bytes: f64,
    /// The largest permitted size, where one is promised.
    pub bytes_max: Option<f64>,
}

/// One measurement and its targets.
#[derive(Debug, Clone)]
pub struct Row {
    /// The measurement.
    pub measured: Measured,
    /// Its targets.
    pub targets: Vec<Target>,
}

impl Report {
    /// Adds a measurement.
    pub fn add(&mut self, measured: Measured, targets: Vec<Target>) {
        self.rows.push(Row { measured, targets });
    }

    /// Adds a size.
    pub fn add_size(&mut self, size: Size) {
        self.sizes.push(size);
    }

    /// Adds a count.
    pub fn add_count(&mut self, count: Count) {
        self.counts.push(count);
    }

    /// The number of missed targets.
    pub fn n_missed(&self) -> usize {
        self.judged().iter().filter(|(.., verdict)| *verdict == Verdict::Missed).count()
    }

    /// Formats the table: a line for each subject, one for its floor, one per target.
    pub fn shown(&self) -> String {
        let heads = ["", "median", "p99", "noise", "ops", "ratio", "(half of the rounds)"];
        let mut lines = vec![heads.map(str::to_owned).to_vec()];
        for row in &self.rows {
            lines.append(&mut row.lines());
        }
        let mut shown = if self.rows.is_empty() { String::new() } else { table(&lines) };
        let (sizes, counts) =
            (self.sizes.iter().map(Size::line), self.counts.iter().map(Count::line));
        shown += &table(&sizes.chain(counts).collect::<Vec<_>>());
        for (name, target, verdict) in self.judged() {
            let word = match verdict {
                Verdict::Met => "met   ",
                Verdict::Missed => "MISSED",
            };
            shown += &format!("{word}  {name}: {target}\n");
        }
        shown
    }

    fn judged(&self) -> Vec<(&str, String, Verdict)> {
        let times = self.rows.iter().flat_map(|row| {
            let name = row.measured.subject.name.as_str();
            row.verdicts().map(move |(target, verdict)| (name, target.to_string(), verdict))
        });
        let counts = self.counts.iter().filter_map(Count::judged);
        times.chain(self.sizes.iter().filter_map(Size::judged)).chain(counts).collect()
    }
}

impl Size {
    fn line(&self) -> Vec<String> {
        vec![self.name.clone(), bytes(self.bytes)]
    }

    fn judged(&self) -> Option<(&str, String, Verdict)> {
        let max = self.bytes_max?;
        // Written so that NaN counts as a miss.
        let verdict = if self.bytes <= max { Verdict::Met } else { Verdict::Missed };
        Some((&self.name, format!("<= {}", bytes(max)), verdict))
    }
}

impl Count {
    fn line(&self) -> Vec<String> {
        vec![self.name.clone(), self.n.to_string()]
    }

    fn judged(&self) -> Option<(&str, String, Verdict)> {
        let max = self.n_max?;
        let verdict = if self.n <= max { Verdict::Met } else { Verdict::Missed };
        Some((&self.name, format!("<= {max}"), verdict))
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

    #[test]
    fn a_count_is_shown_and_judged_where_something_is_promised() {
        let mut report = Report::default();
        report.add_count(Count { name: "few".into(), n: 2.0, n_max: Some(4.0) });
        report.add_count(Count { name: "many".into(), n: 9.0, n_max: Some(4.0) });
        assert_eq!(report.n_missed(), 1);
        assert_eq!(report.shown(), "few   2\nmany  9\nmet     few: <= 4\nMISSED  many: <= 4\n");
    }

    #[test]
    fn a_size_is_shown_and_judged_where_something_is_promised() {
        let size = |name: &str, bytes, bytes_max| Size { name: name.into(), bytes, bytes_max };
        let mut report = Report::default();
        report.add_size(size("small", 900.0, Some(1_000.0)));
        report.add_size(size("large", 2e6, Some(1_000.0)));
        report.add_size(size("any", 5.0, None));
        report.add_size(size("none", f64::NAN, Some(1.0)));
        assert_eq!(report.n_missed(), 2);
        let shown = report.shown();
        assert!(
            shown.starts_with("small      900 B\nlarge  2000.0 kB\nany          5 B\n"),
            "{shown}"
        );
        assert!(shown.contains("met     small: <= 1000 B\nMISSED  large: <= 1000 B\n"), "{shown}");
    }
}
