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

/// Which doors a server has, and the settings of those that have any.
#[derive(Clone, Default)]
pub struct DoorSettings {
    /// Which of the server's own doors there are.
    pub which: DoorSelection,
    /// Other names by which enclave's programs call tools of the catalogue.
    pub enclave_tools: BTreeMap<ToolPath, ToolPath>,
    /// What serves processes; without one `/exec` is closed.
    pub exec_server: Option<ExecServer>,
    /// What the REPL's evaluators are given.
    pub repl: repl::ReplSettings,
    /// Doors that the embedding program adds.
    pub added: Vec<Arc<dyn Door>>,
}

/// Makes a door of its settings; none where the server has no such door.
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
