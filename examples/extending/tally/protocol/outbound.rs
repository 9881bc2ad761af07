//! What a client is answered.

use lifecycle::Phase;
use std::collections::BTreeMap;

/// Writes a line for each phase, such as `paused 3`.
pub fn write_counts(phases: impl IntoIterator<Item = Phase>) -> String {
    let mut counts = BTreeMap::new();
    for phase in phases {
        *counts.entry(phase_name(phase)).or_insert(0_u64) += 1;
    }
    counts.into_iter().map(|(name, n)| format!("{name} {n}\n")).collect()
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Unborn | Phase::Running => "running",
        Phase::Paused | Phase::Parked => "paused",
        Phase::Finished => "finished",
    }
}
