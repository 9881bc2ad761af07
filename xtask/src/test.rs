//! Everything that must hold before a change lands, cheapest first, with a summary at the end.

use crate::cargo::CargoCall;
use crate::nextest;
use crate::packages;
use crate::print::print_line;
use crate::programs;
use crate::python;
use crate::tidy::{self, TidyOptions};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// With the examples, libraries have the same features as in lints and tests: no crate is checked a second time.
const DOCS: &[&str] = &["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"];

/// A check that must pass.
struct TestStep {
    name: &'static str,
    run: Box<dyn Fn() -> Result<()>>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepEnding {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs all steps and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let endings = walk(&steps());
    print_line("");
    for (name, ending) in &endings {
        print_line(&line(name, *ending));
    }
    match endings.iter().find(|(_, ending)| matches!(ending, StepEnding::Failed(_))) {
        None => Ok(()),
        Some((name, _)) => bail!("{name} failed"),
    }
}

fn steps() -> Vec<TestStep> {
    let cargo = |name, cargo: CargoCall| TestStep { name, run: Box::new(move || cargo.run()) };
    vec![
        cargo("format", CargoCall::new(&["fmt", "--all", "--check"])),
        cargo(
            "lints",
            CargoCall::new(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ),
        TestStep { name: "tidy", run: Box::new(|| tidy::run(TidyOptions::default())) },
        TestStep { name: "packages", run: Box::new(packages::run) },
        TestStep { name: "programs", run: Box::new(programs::run) },
        TestStep { name: "python", run: Box::new(python::run) },
        // One profile only: a second build of the engines would double the time on a small machine.
        TestStep { name: "tests", run: Box::new(nextest::run) },
        cargo("doctests", CargoCall::new(&["test", "--workspace", "--doc", "--no-fail-fast"])),
        cargo("docs", CargoCall::new(DOCS).env("RUSTDOCFLAGS", "-D warnings")),
    ]
}

fn walk(steps: &[TestStep]) -> Vec<(&'static str, StepEnding)> {
    let mut failed = false;
    let mut endings = vec![];
    for step in steps {
        if failed {
            endings.push((step.name, StepEnding::NotRun));
            continue;
        }
        print_line(&format!("\n== {} ({} of {})", step.name, endings.len() + 1, steps.len()));
        let began = Instant::now();
        let outcome = (step.run)();
        let took = began.elapsed();
        failed = outcome.is_err();
        if let Err(why) = outcome {
            print_line(&format!("{why:#}"));
        }
        endings.push((
            step.name,
            if failed { StepEnding::Failed(took) } else { StepEnding::Passed(took) },
        ));
    }
    endings
}

fn line(name: &str, ending: StepEnding) -> String {
    let (word, took) = match ending {
        StepEnding::Passed(took) => ("ok", Some(took)),
        StepEnding::Failed(took) => ("FAILED", Some(took)),
        StepEnding::NotRun => ("not run", None),
    };
    let took = took.map(|took| format!("{:.1} s", took.as_secs_f64())).unwrap_or_default();
    format!("{name:<8} {word:<8} {took:>9}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, passes: bool) -> TestStep {
        let run = move || if passes { Ok(()) } else { bail!("as told") };
        TestStep { name, run: Box::new(run) }
    }

    #[test]
    fn what_follows_a_failure_is_not_run() {
        let endings = walk(&[step("one", true), step("two", false), step("three", true)]);
        let shape: Vec<_> = endings
            .iter()
            .map(|(name, ending)| match ending {
                StepEnding::Passed(_) => (*name, "passed"),
                StepEnding::Failed(_) => (*name, "failed"),
                StepEnding::NotRun => (*name, "not run"),
            })
            .collect();
        assert_eq!(shape, [("one", "passed"), ("two", "failed"), ("three", "not run")]);
    }

    #[test]
    fn a_line_of_the_summary_shows_name_word_and_time() {
        let took = Duration::from_millis(1_240);
        assert_eq!(line("tests", StepEnding::Passed(took)), "tests    ok           1.2 s");
        assert_eq!(line("docs", StepEnding::NotRun), "docs     not run");
    }
}
