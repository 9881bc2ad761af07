//! mcp: `/mcp`, an agent's way in. Transport, revisions and sessions are rmcp's; what the tools do is
//! ours. Its "execution id" is a question's id, as in Executor's door.
//!
//! Where no session is needed there is none: what a client must find again is in the journal, so a
//! restart loses nothing. Only `native` mode on the older revisions has sessions, because there a
//! client's answer comes in a request of its own; records bring those back after a restart.

mod answer;
mod call;
mod direct;
mod files;
mod follow;
mod forms;
mod handler;
mod inbound;
mod narration;
mod native;
mod native_sessions;
mod outbound;
mod prompt;
mod refusals;
mod resources;
mod routes;
mod seal;
mod session_records;
mod skills;
mod tasks;
mod visit;

pub use routes::mcp_with;
pub(super) use routes::open_door;

use crate::journal_views::JournalViews;
use narration::McpExecutionView;
use seal::RequestStateSealer;

/// What all requests of this door share.
struct McpState {
    /// Journals as MCP clients read them.
    narrations: JournalViews<McpExecutionView>,
    seal: RequestStateSealer,
}
