//! What a client asks for.

use lifecycle::Phase;

/// The query names no phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no phase; there are running, paused and finished")]
pub struct BadPhase(String);

/// Reads the query: the name of a phase, or nothing, which asks for all of them.
pub fn read_phase(query: &str) -> Result<Option<Phase>, BadPhase> {
    match query {
        "" => Ok(None),
        "running" => Ok(Some(Phase::Running)),
        "paused" => Ok(Some(Phase::Paused)),
        "finished" => Ok(Some(Phase::Finished)),
        other => Err(BadPhase(other.to_owned())),
    }
}
