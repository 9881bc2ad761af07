//! The doors: one folder per protocol, and one for the administrator's routes.

mod admin;
mod enclave;
pub mod exec_server;
pub mod execbox;
mod executor;
mod hotrepl;
pub(crate) mod mcp;

use crate::config::DoorSelection;
use crate::door::Door;
use ::exec_server::ExecServer;
use lifecycle::ToolPath;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which doors a server opens, and their settings.
#[derive(Clone, Default)]
pub struct DoorSettings {
    /// Which of the server's own doors are opened.
    pub which: DoorSelection,
    /// Aliases by which enclave's programs call tools of the catalogue.
    pub enclave_tools: BTreeMap<ToolPath, ToolPath>,
    /// Serves processes; without it `/exec` is closed.
    pub exec_server: Option<ExecServer>,
    /// The settings of the REPL's evaluators.
    pub repl: repl::ReplSettings,
    /// Doors that the embedding program adds.
    pub added: Vec<Arc<dyn Door>>,
}

/// Creates a door from its settings; none if the server does not open it.
type OpenDoor = fn(&DoorSettings) -> Option<Arc<dyn Door>>;

/// The function `open_door` of every module above. The build script writes this list.
const DOORS: &[OpenDoor] = include!(concat!(env!("OUT_DIR"), "/doors.rs"));

/// The doors of a server.
pub(crate) fn open(settings: DoorSettings) -> Vec<Arc<dyn Door>> {
    let own = DOORS.iter().filter_map(|open| open(&settings));
    let mut doors: Vec<_> = own.collect();
    doors.extend(settings.added);
    doors
}

impl std::fmt::Debug for DoorSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoorSettings").field("which", &self.which).finish_non_exhaustive()
    }
}
