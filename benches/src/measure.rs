//! Runs a subject and its floor in turns and measures nanoseconds.

use crate::Plan;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// More samples than this would measure the memory they take.
const SAMPLES_MAX: usize = 10_000_000;

/// Something to measure.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: String,
    /// Items that one operation handles; times are per item.
    pub op_items: u64,
    op: Op<'a>,
}

/// One operation, and how its time is taken.
enum Op<'a> {
    /// The whole operation counts.
    Clocked(Box<dyn FnMut() -> Result<()> + 'a>),
    /// The operation returns the duration of the part that counts.
    Timed(Box<dyn FnMut() -> Result<Duration> + 'a>),
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, op_items, op: _ } = self;
        f.debug_struct("Contender").field("name", name).field("op_items", op_items).finish()
    }
}

impl<'a> Contender<'a> {
    /// A contender whose operation handles one item.
    pub fn new(name: impl Into<String>, op: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { name: name.into(), op_items: 1, op: Op::Clocked(Box::new(op)) }
    }

    /// A contender with setup and cleanup, which returns the duration of the rest.
    pub fn timed(name: impl Into<String>, op: impl FnMut() -> Result<Duration> + 'a) -> Self {
        Self { name: name.into(), op_items: 1, op: Op::Timed(Box::new(op)) }
    }

    /// Sets the number of items of one operation.
    #[must_use]
    pub fn batch(self, op_items: u64) -> Self {
        Self { op_items, ..self }
    }
}

/// A subject and its floor, measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The subject.
    pub subject: Samples,
    /// The least that could do the job.
    pub floor: Samples,
}

/// Nanoseconds per item, round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The name of the contender.
    pub name: String,
    rounds: Vec<Vec<f64>>,
}

impl Plan {
    /// Measures both, in turns.
    pub fn compare<'a>(&self, subject: Contender<'a>, floor: Contender<'a>) -> Result<Measured> {
        let began = Instant::now();
        self.compare_by(&|| began.elapsed().as_nanos() as f64, subject, floor)
    }

    /// Like `compare`, with any clock that counts nanoseconds.
    fn compare_by<'a>(
        &self,
        clock: &dyn Fn() -> f64,
        mut subject: Contender<'a>,
        mut floor: Contender<'a>,
    ) -> Result<Measured> {
        ensure!(self.n_rounds > 0 && self.round_ops > 0, "a plan has at least one operation");
        let n_samples = self.n_rounds.saturating_mul(self.round_ops);
        ensure!(n_samples <= SAMPLES_MAX, "a plan has at most {SAMPLES_MAX} operations");
        let mut subject_rounds = vec![];
        let mut floor_rounds = vec![];
        for contender in [&mut subject, &mut floor] {
            for _ in 0..self.warm_up_ops {
                contender.run(clock)?;
            }
        }
        for round_idx in 0..self.n_rounds {
            // The order alternates: a machine that slows down or warms up then favours neither.
            let mut turns = [(&mut subject, &mut subject_rounds), (&mut floor, &mut floor_rounds)];
            if round_idx % 2 == 1 {
                turns.reverse();
            }
            for (contender, rounds) in turns {
                rounds.push(self.round(clock, contender)?);
            }
        }
        Ok(Measured {
            subject: Samples { name: subject.name, rounds: subject_rounds },
            floor: Samples { name: floor.name, rounds: floor_rounds },
        })
    }

    fn round(&self, clock: &dyn Fn() -> f64, contender: &mut Contender<'_>) -> Result<Vec<f64>> {
        let ends = clock() + self.round_time_max.as_nanos() as f64;
        let mut samples = Vec::with_capacity(self.round_ops);
        while samples.len() < self.round_ops {
            samples.push(contender.run(clock)? / contender.op_items as f64);
            if clock() >= ends {
                break;
            }
        }
        Ok(samples)
    }
}

impl Contender<'_> {
    /// Runs one operation and returns its nanoseconds.
    fn run(&mut self, clock: &dyn Fn() -> f64) -> Result<f64> {
        let taken = match &mut self.op {
            Op::Clocked(op) => {
                let before = clock();
                op().map(|()| clock() - before)
            }
            Op::Timed(op) => op().map(|taken| taken.as_nanos() as f64),
        };
        taken.with_context(|| format!("measure {}", self.name))
    }
}

impl Measured {
    /// How many times slower the subject is than its floor: the median over rounds of the ratio of
    /// the medians. The two halves of a round share the machine's state, so it cancels out.
    pub fn ratio(&self) -> f64 {
        quantile(self.ratios(), 0.5)
    }

    /// The quartiles of the rounds' ratios.
    pub fn ratio_quartiles(&self) -> (f64, f64) {
        (quantile(self.ratios(), 0.25), quantile(self.ratios(), 0.75))
    }

    fn ratios(&self) -> Vec<f64> {
        let halves = self.subject.rounds.iter().zip(&self.floor.rounds);
        halves.map(|(subject, floor)| median(subject) / median(floor)).collect()
    }
}

impl Samples {
    /// The median of the rounds' medians. Not of all samples: a round that ends by the clock has more samples
    /// the faster it was, and slow rounds would hardly count.
    pub fn median_ns(&self) -> f64 {
        quantile(self.round_medians(), 0.5)
    }

    /// The 99th percentile of all samples.
    pub fn p99_ns(&self) -> f64 {
        quantile(self.rounds.concat(), 0.99)
    }

    /// The distance between the quartiles of the rounds' medians, as a share of the median: the disturbance by other
    /// processes.
    pub fn noise(&self) -> f64 {
        let medians = self.round_medians();
        let spread = quantile(medians.clone(), 0.75) - quantile(medians.clone(), 0.25);
        spread / quantile(medians, 0.5)
    }

    fn round_medians(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| median(round)).collect()
    }

    /// The number of samples.
    pub fn n_ops(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }
}

fn median(samples: &[f64]) -> f64 {
    quantile(samples.to_vec(), 0.5)
}

/// The smallest sample that at most the rest of `share` exceeds; nothing is interpolated.
fn quantile(mut samples: Vec<f64>, share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (samples.len() as f64 * share).ceil() as usize;
    samples.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    const PLAN: Plan =
        Plan { warm_up_ops: 1, n_rounds: 3, round_ops: 2, round_time_max: Duration::from_secs(1) };

    /// A contender that advances the clock explicitly.
    fn winds<'a>(
        name: &str,
        clock: &'a Cell<f64>,
        step_ns: impl Fn() -> f64 + 'a,
    ) -> Contender<'a> {
        Contender::new(name, move || {
            clock.set(clock.get() + step_ns());
            Ok(())
        })
    }

    #[test]
    fn a_subject_twice_as_slow_has_the_ratio_two() {
        let clock = Cell::new(0.0);
        let subject = winds("subject", &clock, || 200.0);
        let floor = winds("floor", &clock, || 100.0);
        let measured = PLAN.compare_by(&|| clock.get(), subject, floor).unwrap();
        let subject = Samples { name: "subject".into(), rounds: vec![vec![200.0; 2]; 3] };
        let floor = Samples { name: "floor".into(), rounds: vec![vec![100.0; 2]; 3] };
        assert_eq!(measured, Measured { subject, floor });
        assert_eq!(measured.ratio(), 2.0);
    }

    #[test]
    fn a_machine_that_slows_down_does_not_change_the_ratio() {
        let clock = Cell::new(0.0);
        let pace = |at: f64| if at > 2_000.0 { 10.0 } else { 1.0 };
        let subject = winds("subject", &clock, || 300.0 * pace(clock.get()));
        let floor = winds("floor", &clock, || 100.0 * pace(clock.get()));
        let plan = Plan { n_rounds: 9, ..PLAN };
        let measured = plan.compare_by(&|| clock.get(), subject, floor).unwrap();
        assert_eq!(measured.ratio(), 3.0);
    }

    #[test]
    fn contenders_take_turns_and_change_places() {
        let clock = Cell::new(0.0);
        let turns = RefCell::new(String::new());
        let takes = |name: &'static str| {
            Contender::new(name, || {
                turns.borrow_mut().push_str(name);
                Ok(())
            })
        };
        PLAN.compare_by(&|| clock.get(), takes("s"), takes("f")).unwrap();
        assert_eq!(*turns.borrow(), "sf ssff ffss ssff".replace(' ', ""));
    }

    #[test]
    fn a_batch_is_counted_by_the_item_and_a_slow_round_ends_early() {
        let clock = Cell::new(0.0);
        let plan = Plan { round_time_max: Duration::from_nanos(500), ..PLAN };
        let subject = winds("subject", &clock, || 1_000.0).batch(10);
        let floor = winds("floor", &clock, || 100.0);
        let measured = plan.compare_by(&|| clock.get(), subject, floor).unwrap();
        assert_eq!((measured.subject.n_ops(), measured.subject.median_ns()), (3, 100.0));
        assert_eq!((measured.floor.n_ops(), measured.floor.median_ns()), (6, 100.0));
    }

    #[test]
    fn what_an_operation_does_besides_is_not_counted() {
        let clock = Cell::new(0.0);
        let subject = Contender::timed("subject", || {
            clock.set(clock.get() + 1_000.0);
            Ok(Duration::from_nanos(400))
        });
        let floor = winds("floor", &clock, || 100.0);
        let measured = PLAN.compare_by(&|| clock.get(), subject, floor).unwrap();
        assert_eq!((measured.subject.median_ns(), measured.ratio()), (400.0, 4.0));
    }

    #[test]
    fn a_round_counts_once_however_many_operations_it_had() {
        let rounds = vec![vec![1.0; 100], vec![9.0], vec![9.0]];
        assert_eq!(Samples { name: "s".into(), rounds }.median_ns(), 9.0);
    }

    #[test]
    fn noise_is_how_far_apart_rounds_are() {
        let rounds = |medians: &[f64]| medians.iter().map(|median| vec![*median]).collect();
        let subject = Samples { name: "s".into(), rounds: rounds(&[100.0, 110.0, 90.0, 200.0]) };
        let floor = Samples { name: "f".into(), rounds: rounds(&[100.0; 4]) };
        assert_eq!((subject.noise(), floor.noise()), (0.2, 0.0));
        let measured = Measured { subject, floor };
        assert_eq!((measured.ratio(), measured.ratio_quartiles()), (1.0, (0.9, 1.1)));
    }

    #[test]
    fn a_failing_operation_fails_the_measurement_by_name() {
        let fails = Contender::new("broken", || anyhow::bail!("no socket"));
        let why = PLAN.compare(fails, Contender::new("floor", || Ok(()))).unwrap_err();
        assert_eq!(format!("{why:#}"), "measure broken: no socket");
    }

    #[test]
    fn quantiles_are_samples() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(hundred.clone(), 0.5), 50.0);
        assert_eq!(quantile(hundred, 0.99), 99.0);
        assert_eq!(quantile(vec![7.0], 0.99), 7.0);
        assert!(quantile(vec![], 0.5).is_nan());
    }
}
