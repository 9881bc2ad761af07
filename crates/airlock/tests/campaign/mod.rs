//! The size of a campaign: which cases to run, and the file for its sums. `cargo xtask soak` passes both in the
//! environment.

use serde_json::Value;
use std::ops::Range;

/// The cases of one slice of a campaign, as `FROM..TO`.
const RANGE: &str = "AIRLOCK_SOAK_RANGE";

/// The file to which the slice writes its sums.
const SUMS: &str = "AIRLOCK_SOAK_SUMS";

/// The cases that the soak requests; `None` in an ordinary test run.
pub(crate) fn soak_range() -> Option<Range<u64>> {
    let text = std::env::var(RANGE).ok()?;
    let (from, to) = text.split_once("..").expect("a range is FROM..TO");
    let number = |text: &str| text.parse().expect("a range has whole numbers");
    Some(number(from)..number(to))
}

/// Reports the findings of a slice: an object of whole numbers, which the soak adds up.
pub(crate) fn report_sums(sums: &Value) {
    if let Ok(path) = std::env::var(SUMS) {
        std::fs::write(path, sums.to_string()).expect("the soak reads the sums");
    }
}
