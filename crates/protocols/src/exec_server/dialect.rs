//! Which of the two dialects a client speaks.

/// Which of the two dialects a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecServerDialect {
    /// That of the seed: no sessions, processes end with their connection.
    Seed,
    /// That of today's codex: sessions can be resumed.
    Codex,
}
