//! HotRepl, the client's side: evaluate in a session that retains its definitions, watch, complete, call commands.
//!
//! ```no_run
//! use client::repl::ReplClient;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let repl = ReplClient::connect("ws://127.0.0.1:18590", None).await?;
//! repl.eval("let answer = 42", None).await?;
//! let result = repl.eval("answer + 0", None).await?;
//! assert_eq!(result.value.map(|value| value.as_text().to_owned()).as_deref(), Some("42"));
//! # Ok(())
//! # }
//! ```
//!
//! Answers are matched to requests by id, so that requests need not wait for each other.

mod api;
mod driver;
mod error;

pub use api::{CommandOutcome, JobSnapshot, ReplClient, ReplWatch};
pub use error::ReplError;
pub use protocols::hotrepl::PROTOCOL_VERSION;
pub use protocols::hotrepl::wire::{
    ArtifactRef, Artifacts, AssemblyReload, CommandDescriptor, CommandKind, CommandResult,
    CommandSummary, ErrorEnvelope, ErrorKind, EvalResult, Handshake, JobResult, JobState,
    JobStatusResult, JournalEntry, JournalKind, Shown, Status, SubscribeResult,
};
