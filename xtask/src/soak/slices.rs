//! Campaigns: a test whose cases are numbered, run in slices. A call continues where the records end.
//!
//! The test finds its range in `AIRLOCK_SOAK_RANGE` as `FROM..TO`, and writes its sums, a JSON object of whole
//! numbers, to the file named by `AIRLOCK_SOAK_SUMS`.

use super::CargoProfile;
use super::records::{SliceRecords, date_and_machines, sum};
use crate::cargo::{CargoCall, root};
use crate::print::print_line;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::fs;
use std::ops::Range;
use std::time::Instant;

/// A test with numbered cases.
pub(super) struct SoakCampaign {
    pub(super) package: &'static str,
    pub(super) binary: TestBinary,
    /// The test's name.
    pub(super) filter: &'static str,
    /// What a case is, in the plural.
    pub(super) unit: &'static str,
    pub(super) cases: CaseCount,
    /// Cases of a slice, unless the user says otherwise.
    pub(super) slice: u64,
}

/// The test binary of a package that contains the test.
#[derive(Debug, Clone, Copy)]
pub(super) enum TestBinary {
    /// The unit tests of the library.
    Library,
    /// A binary in the folder `tests`.
    Integration,
}

/// The number of cases.
pub(super) enum CaseCount {
    Number(u64),
    /// The number of lines of the files in this folder.
    LinesBelow(&'static str),
}

/// How much to run in one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct SliceBound {
    pub(super) slices_max: u64,
    /// The size of a slice, if not the default.
    pub(super) size: Option<u64>,
    pub(super) profile: CargoProfile,
}

impl SoakCampaign {
    /// Runs the slices that have not passed yet, up to the bound, and prints the sums.
    pub(super) fn run(&self, name: &str, bound: SliceBound) -> Result<()> {
        let records = SliceRecords::for_campaign(&bound.profile.records_name(name))?;
        let end = self.cases.count()?;
        for _ in 0..bound.slices_max {
            let size = bound.size.unwrap_or(self.slice).max(1);
            let Some(range) = next(&passed(&records.read()?), size, end) else { break };
            print_line(&format!("-- {} {} to {} of {end}", self.unit, range.start, range.end));
            self.run_slice(&records, &range, bound.profile)?;
        }
        self.report(name, bound.profile)
    }

    /// The call of cargo that runs these cases.
    fn cargo(&self, range: &Range<u64>, profile: CargoProfile) -> CargoCall {
        let binary = match self.binary {
            TestBinary::Library => &["--lib"][..],
            TestBinary::Integration => &["--test", "tests"],
        };
        let start = ["test", "--package", self.package];
        let end = ["--", self.filter, "--nocapture"];
        CargoCall::new(&[&start, profile.flags(), binary, &end].concat())
            .env("AIRLOCK_SOAK", "1")
            .env("AIRLOCK_SOAK_RANGE", format!("{}..{}", range.start, range.end))
    }

    fn run_slice(
        &self,
        records: &SliceRecords,
        range: &Range<u64>,
        profile: CargoProfile,
    ) -> Result<()> {
        let sums = records.file("sums.json");
        // It exists only if a slice was interrupted.
        let _ = fs::remove_file(&sums);
        let began = Instant::now();
        let outcome =
            self.cargo(range, profile).env("AIRLOCK_SOAK_SUMS", sums.display().to_string()).run();
        let text = fs::read_to_string(&sums).ok();
        let found: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
        if outcome.is_ok() && found.is_none() {
            bail!("no test of {} wrote sums: is its name still {}?", self.package, self.filter);
        }
        records.append(Map::from_iter([
            ("from".to_owned(), json!(range.start)),
            ("to".to_owned(), json!(range.end)),
            ("passed".to_owned(), json!(outcome.is_ok())),
            ("seconds".to_owned(), json!(began.elapsed().as_secs())),
            ("sums".to_owned(), found.unwrap_or_default()),
        ]))?;
        outcome
    }

    /// Prints what all slices together found.
    pub(super) fn report(&self, name: &str, profile: CargoProfile) -> Result<()> {
        let name = &profile.records_name(name);
        let slices = SliceRecords::for_campaign(name)?.read()?;
        let (good, bad): (Vec<_>, Vec<_>) =
            slices.iter().partition(|slice| slice["passed"] == true);
        let n_passed: u64 =
            passed(&slices).iter().map(|range| range.end.saturating_sub(range.start)).sum();
        let seconds: u64 = good.iter().filter_map(|slice| slice["seconds"].as_u64()).sum();
        print_line(&format!(
            "{name}: {n_passed} of {} {} in {} slices and {} min; {}",
            self.cases.count()?,
            self.unit,
            good.len(),
            seconds / 60,
            date_and_machines(&good),
        ));
        for (what, n) in sum(good.into_iter()) {
            print_line(&format!("  {what:<24} {n:>9}"));
        }
        for slice in bad {
            print_line(&format!(
                "  FAILED: {} to {} at {}",
                slice["from"], slice["to"], slice["at"]
            ));
        }
        Ok(())
    }
}

impl CaseCount {
    fn count(&self) -> Result<u64> {
        match self {
            Self::Number(n) => Ok(*n),
            Self::LinesBelow(folder) => {
                let files =
                    fs::read_dir(root().join(folder)).with_context(|| format!("read {folder}"))?;
                let mut n_lines = 0;
                for file in files {
                    n_lines += fs::read_to_string(file?.path())?.lines().count() as u64;
                }
                Ok(n_lines)
            }
        }
    }
}

/// The ranges that have passed, in order, without overlaps.
fn passed(slices: &[Value]) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = slices
        .iter()
        .filter(|slice| slice["passed"] == true)
        .filter_map(|slice| Some(slice["from"].as_u64()?..slice["to"].as_u64()?))
        .collect();
    ranges.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in &mut ranges {
        range.start = range.start.max(end);
        end = end.max(range.end);
    }
    ranges.retain(|range| range.start < range.end);
    ranges
}

/// The first cases that have not passed: at most `size`, and none at or beyond `end`.
fn next(passed: &[Range<u64>], size: u64, end: u64) -> Option<Range<u64>> {
    let mut from = 0;
    for range in passed {
        if range.start > from {
            return Some(from..range.start.min(from + size));
        }
        from = range.end;
    }
    (from < end).then(|| from..end.min(from + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(from: u64, to: u64, passed: bool) -> Value {
        json!({ "from": from, "to": to, "passed": passed })
    }

    #[test]
    fn a_slice_is_typed_for_a_library_or_its_folder_of_tests_in_debug_or_release() {
        let campaign = |binary| SoakCampaign {
            package: "store",
            binary,
            filter: "corrupt",
            unit: "cases",
            cases: CaseCount::Number(3),
            slice: 1,
        };
        assert_eq!(
            campaign(TestBinary::Library).cargo(&(1..2), CargoProfile::Debug).shown_command(),
            "AIRLOCK_SOAK=1 AIRLOCK_SOAK_RANGE=1..2 \
             cargo test --package store --lib -- corrupt --nocapture"
        );
        assert_eq!(
            campaign(TestBinary::Integration).cargo(&(0..3), CargoProfile::Release).shown_command(),
            "AIRLOCK_SOAK=1 AIRLOCK_SOAK_RANGE=0..3 \
             cargo test --package store --release --test tests -- corrupt --nocapture"
        );
    }

    #[test]
    fn a_call_continues_with_the_first_gap() {
        assert_eq!(next(&[], 50, 120), Some(0..50));
        let slices = [slice(0, 50, true), slice(50, 100, false), slice(100, 120, true)];
        assert_eq!(next(&passed(&slices), 50, 120), Some(50..100));
        assert_eq!(next(&passed(&slices), 20, 120), Some(50..70));
        let slices = [slice(0, 50, true), slice(50, 100, true), slice(40, 110, true)];
        assert_eq!(passed(&slices), [0..50, 50..110]);
        assert_eq!(next(&passed(&slices), 50, 120), Some(110..120));
        assert_eq!(next(&passed(&slices), 50, 110), None);
    }
}
