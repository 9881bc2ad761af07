//! The registry of sources: those in configuration files and those that were added while serving, with
//! their connections. Opens them and updates the catalogue. Knows no protocol.

mod authorization;
mod change;
pub mod config;
mod config_files;
mod connecting;
mod descriptions;
mod engine_host;
mod health;
mod live;
mod manage;
mod named_files;
mod policy_first_seen;
mod process_tool;
mod records;
mod source_state;
mod sources;
mod tool_first_seen;
mod trusted;
mod watch;

pub use config_files::{ConfigFile, ConfigFiles, FileAuthority};
pub use manage::{ManagementTools, management_tools};
pub use process_tool::ProcessTool;
pub use source_state::ConnectionView;
pub use sources::{SourceError, SourceRegistry, SourcesSetup};
pub use trusted::TrustedFile;
pub use watch::{
    check_files, configured, listener_limits, notices, notify, processes, project_file, quotas,
    user_file,
};
