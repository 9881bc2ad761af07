//! Everything that must hold before a change lands, cheapest first, with a summary at the end.

use crate::cargo::Cargo;
use crate::nextest;
use crate::packages;
use crate::print::say;
use crate::programs;
use crate::python;
use crate::tidy::{self, TidyOptions};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// With the examples, libraries have the features that lints and tests give them: nothing is checked once more.
const DOCS: &[&str] = &["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"];

/// One thing that must hold.
struct Step {
    name: &'static str,
    run: Box<dyn Fn() -> Result<()>>,
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs all steps and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let endings = walk(&steps());
    say("");
    for (name, ending) in &endings {
        say(&line(name, *ending));
    }
    match endings.iter().find(|(_, ending)| matches!(ending, Ending::Failed(_))) {
        None => Ok(()),
        Some((name, _)) => bail!("{name} failed"),
    }
}

fn steps() -> Vec<Step> {
    let cargo = |name, cargo: Cargo| Step { name, run: Box::new(move || cargo.run()) };
    vec![
        cargo("format", Cargo::new(&["fmt", "--all", "--check"])),
        cargo(
            "lints",
            Cargo::new(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ),
        Step { name: "tidy", run: Box::new(|| tidy::run(TidyOptions::default())) },
        Step { name: "packages", run: Box::new(packages::run) },
        Step { name: "programs", run: Box::new(programs::run) },
        Step { name: "python", run: Box::new(python::run) },
        // One profile only: a second build of the engines would double the time on a small machine.
        Step { name: "tests", run: Box::new(nextest::run) },
        cargo("doctests", Cargo::new(&["test", "--workspace", "--doc", "--no-fail-fast"])),
        cargo("docs", Cargo::new(DOCS).env("RUSTDOCFLAGS", "-D warnings")),
    ]
}

fn walk(steps: &[Step]) -> Vec<(&'static str, Ending)> {
    let mut failed = false;
    let mut endings = vec![];
    for step in steps {
        if failed {
            endings.push((step.name, Ending::NotRun));
            continue;
        }
        say(&format!("\n== {} ({} of {})", step.name, endings.len() + 1, steps.len()));
        let began = Instant::now();
        let outcome = (step.run)();
        let took = began.elapsed();
        failed = outcome.is_err();
        if let Err(why) = outcome {
            say(&format!("{why:#}"));
        }
        endings.push((step.name, if failed { Ending::Failed(took) } else { Ending::Passed(took) }));
    }
    endings
}

fn line(name: &str, ending: Ending) -> String {
    let (word, took) = match ending {
        Ending::Passed(took) => ("ok", Some(took)),
        Ending::Failed(took) => ("FAILED", Some(took)),
        Ending::NotRun => ("not run", None),
    };
    let took = took.map(|took| format!("{:.1} s", took.as_secs_f64())).unwrap_or_default();
    format!("{name:<8} {word:<8} {took:>9}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, passes: bool) -> Step {
        let run = move || if passes { Ok(()) } else { bail!("as told") };
        Step { name, run: Box::new(run) }
    }

    #[test]
    fn what_follows_a_failure_is_not_run() {
        let endings = walk(&[step("one", true), step("two", false), step("three", true)]);
        let shape: Vec<_> = endings
            .iter()
            .map(|(name, ending)| match ending {
                Ending::Passed(_) => (*name, "passed"),
                Ending::Failed(_) => (*name, "failed"),
                Ending::NotRun => (*name, "not run"),
            })
            .collect();
        assert_eq!(shape, [("one", "passed"), ("two", "failed"), ("three", "not run")]);
    }

    #[test]
    fn a_line_of_the_summary_shows_name_word_and_time() {
        let took = Duration::from_millis(1_240);
        assert_eq!(line("tests", Ending::Passed(took)), "tests    ok           1.2 s");
        assert_eq!(line("docs", Ending::NotRun), "docs     not run");
    }
}
