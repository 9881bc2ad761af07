//! What a client asks for.

use lifecycle::ExecutionPhase;

/// The query names no phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no phase; there are running, paused and finished")]
pub struct BadPhase(String);

/// Reads the query: the name of a phase, or nothing, which asks for all of them.
pub fn read_phase(query: &str) -> Result<Option<ExecutionPhase>, BadPhase> {
    match query {
        "" => Ok(None),
        "running" => Ok(Some(ExecutionPhase::Running)),
        "paused" => Ok(Some(ExecutionPhase::Paused)),
        "finished" => Ok(Some(ExecutionPhase::Finished)),
        other => Err(BadPhase(other.to_owned())),
    }
}
