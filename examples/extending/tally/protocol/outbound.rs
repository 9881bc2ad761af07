//! What a client is answered.

use lifecycle::ExecutionPhase;
use std::collections::BTreeMap;

/// Writes a line for each phase, such as `paused 3`.
pub fn write_counts(phases: impl IntoIterator<Item = ExecutionPhase>) -> String {
    let mut counts = BTreeMap::new();
    for phase in phases {
        *counts.entry(phase_name(phase)).or_insert(0_u64) += 1;
    }
    counts.into_iter().map(|(name, n)| format!("{name} {n}\n")).collect()
}

const fn phase_name(phase: ExecutionPhase) -> &'static str {
    match phase {
        ExecutionPhase::Unborn | ExecutionPhase::Running => "running",
        ExecutionPhase::Paused | ExecutionPhase::Parked => "paused",
        ExecutionPhase::Finished => "finished",
    }
}
