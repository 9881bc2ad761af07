//! The fuzz targets of `fuzz/`, in slices of a minute. The least tested target comes first.
//!
//! The corpus that libFuzzer collects stays below `target/soak/fuzz`, so that a call continues where the last one ended.

use super::records::{SliceRecords, date_and_machines, sum};
use super::slices::SliceBound;
use crate::cargo::{CargoCall, root};
use crate::print::print_line;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::fs;

/// Full duration of a target.
const SECONDS_MIN: u64 = 600;
const EXECUTIONS_MIN: u64 = 1_000_000;

/// Seconds of a slice, unless the user says otherwise.
const SLICE_SECONDS: u64 = 60;

/// Longest input that libFuzzer tries, in bytes: deep enough for nesting, short enough for thousands per second.
const INPUT_BYTES_MAX: u64 = 8_192;

/// What libFuzzer printed about a slice.
#[derive(Debug, Default, PartialEq, Eq)]
struct FuzzFigures {
    executions: u64,
    /// Edges reached.
    coverage: u64,
}

/// A target and what all its slices found.
struct FuzzTarget {
    name: String,
    seconds: u64,
    executions: u64,
    coverage: u64,
}

impl FuzzTarget {
    const fn is_done(&self) -> bool {
        self.seconds >= SECONDS_MIN && self.executions >= EXECUTIONS_MIN
    }
}

/// Runs slices until every target has its full size, and prints the sums.
pub(super) fn run(bound: SliceBound) -> Result<()> {
    install()?;
    let records = SliceRecords::for_campaign("fuzz")?;
    let seconds = bound.size.unwrap_or(SLICE_SECONDS).max(1);
    for _ in 0..bound.slices_max {
        let targets = targets(&records.read()?)?;
        let unfinished = targets.into_iter().filter(|target| !target.is_done());
        let Some(target) = unfinished.min_by_key(|target| target.seconds) else { break };
        print_line(&format!("-- {} for {seconds} s", target.name));
        run_slice(&records, &target.name, seconds)?;
    }
    report()
}

/// cargo-fuzz comes from the registry; a stable compiler accepts its flags only with this variable.
fn install() -> Result<()> {
    if CargoCall::new(&["fuzz", "--version"]).read().is_ok() {
        return Ok(());
    }
    CargoCall::new(&["install", "--locked", "cargo-fuzz"]).run()
}

fn run_slice(records: &SliceRecords, target: &str, seconds: u64) -> Result<()> {
    let corpus = records.file("corpus").join(target);
    let seeds = root().join("fuzz/seeds").join(target);
    fs::create_dir_all(&corpus).context("create a corpus")?;
    let cargo_fuzz = |verb| {
        CargoCall::new(&["fuzz", verb, "--sanitizer", "none", target]).env("RUSTC_BOOTSTRAP", "1")
    };
    // A target that does not compile must not count as one without findings.
    cargo_fuzz("build").run()?;
    let mut figures = FuzzFigures::default();
    let outcome = cargo_fuzz("run")
        // New inputs are written to the first folder; the second is only read.
        .arg(&corpus.display().to_string())
        .arg(&seeds.display().to_string())
        .arg("--")
        .arg(&format!("-max_total_time={seconds}"))
        .arg(&format!("-max_len={INPUT_BYTES_MAX}"))
        .arg("-print_final_stats=1")
        .run_watched(&mut |line| {
            figures.read(line);
            if is_progress(line) {
                print_line(line);
            }
        });
    records.append(Map::from_iter([
        ("target".to_owned(), json!(target)),
        ("passed".to_owned(), json!(outcome.is_ok())),
        ("coverage".to_owned(), json!(figures.coverage)),
        ("sums".to_owned(), json!({ "seconds": seconds, "executions": figures.executions })),
    ]))?;
    if outcome.is_err() {
        bail!(
            "{target} failed: once it is fixed, move its input from fuzz/artifacts to fuzz/seeds"
        );
    }
    outcome
}

/// New inputs come by the thousand; only a pulse, a crash and the final figures are printed.
fn is_progress(line: &str) -> bool {
    let is_new_input = line.starts_with('#') && !line.contains("\tpulse");
    !is_new_input && !line.trim().is_empty()
}

impl FuzzFigures {
    fn read(&mut self, line: &str) {
        if let Some(n) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = n.trim().parse().unwrap_or(0);
        }
        let after = line.split_once(" cov: ").and_then(|(_, rest)| rest.split(' ').next());
        if let Some(n) = after.and_then(|n| n.parse().ok()) {
            self.coverage = self.coverage.max(n);
        }
    }
}

/// Prints what all slices together found, per target.
pub(super) fn report() -> Result<()> {
    let slices = SliceRecords::for_campaign("fuzz")?.read()?;
    let good: Vec<_> = slices.iter().filter(|slice| slice["passed"] == true).collect();
    print_line(&format!("fuzz: {} slices; {}", good.len(), date_and_machines(&good)));
    for FuzzTarget { name, seconds, executions, coverage } in targets(&slices)? {
        print_line(&format!(
            "  {name:<20} {seconds:>6} s {executions:>12} executions {coverage:>7} edges"
        ));
    }
    for slice in slices.iter().filter(|slice| slice["passed"] == false) {
        print_line(&format!("  FAILED: {} at {}", slice["target"], slice["at"]));
    }
    Ok(())
}

/// All targets, sorted by name, with the sums of their slices.
fn targets(slices: &[Value]) -> Result<Vec<FuzzTarget>> {
    let files = fs::read_dir(root().join("fuzz/fuzz_targets")).context("list the fuzz targets")?;
    let mut names = vec![];
    for file in files {
        names.extend(file?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    Ok(names.into_iter().map(|name| target(name, slices)).collect())
}

fn target(name: String, slices: &[Value]) -> FuzzTarget {
    let own = || {
        slices.iter().filter(|slice| slice["target"] == name.as_str() && slice["passed"] == true)
    };
    let total = sum(own());
    let number = |what: &str| total.get(what).and_then(Value::as_u64).unwrap_or(0);
    let coverage = own().filter_map(|slice| slice["coverage"].as_u64()).max().unwrap_or(0);
    FuzzTarget { seconds: number("seconds"), executions: number("executions"), coverage, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_libfuzzer_prints() {
        let mut figures = FuzzFigures::default();
        for line in [
            "#2\tINITED cov: 210 ft: 300 corp: 1/1b exec/s: 0 rss: 60Mb",
            "#65536\tpulse  cov: 1350 ft: 5021 corp: 800/20Kb lim: 130 exec/s: 32768 rss: 90Mb",
            "stat::number_of_executed_units: 123456",
        ] {
            figures.read(line);
        }
        assert_eq!(figures, FuzzFigures { executions: 123_456, coverage: 1_350 });
    }
}
