//! mcp: `/mcp`, the entry for agents. rmcp implements transport, revisions and sessions; this module implements the
//! tools. Its "execution id" is a question's id, as in Executor's door.
//!
//! Sessions exist only where they are needed. What a client must find again is in the journal, so a restart loses
//! nothing. Only `native` mode on the older revisions has sessions, because there a client's answer is a separate
//! request; records restore those sessions after a restart.

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

/// The state that all requests of this door share.
struct McpState {
    /// Views of journals for MCP clients.
    narrations: JournalViews<McpExecutionView>,
    seal: RequestStateSealer,
}
