//! The two dialects of the protocol.

/// The dialect of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecServerDialect {
    /// The original dialect of the seed: no sessions, processes end with their connection.
    Seed,
    /// The dialect of today's codex: sessions can be resumed.
    Codex,
}
