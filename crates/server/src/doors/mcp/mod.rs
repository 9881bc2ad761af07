//! mcp: `/mcp`, an agent's way in. Transport, revisions and sessions are rmcp's; what the tools do is
//! ours. Its "execution id" is a question's id, as in Executor's door.
//!
//! Where no session is needed there is none: what a client must find again is in the journal, so a
//! restart loses nothing. Only `native` mode on the older revisions has sessions, because there a
//! client's answer comes in a request of its own; records bring those back after a restart.

mod answer;
mod call;
mod content;
mod direct;
mod door;
mod files;
mod forms;
mod listen;
mod narration;
mod native;
mod native_sessions;
mod prompt;
mod resources;
mod seal;
mod serve;
mod session_records;
mod skills;
mod tasks;
mod terms;
mod visit;

pub(crate) use narration::Narration;
pub use serve::mcp_with;
pub(crate) use serve::{Mcp, mcp};
