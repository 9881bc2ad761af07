//! Which sources there are: those that configuration files name and those that were added while serving, with
//! their connections. Opens them, keeps the catalogue up to date, and knows no door.

mod ages;
mod change;
pub mod config;
mod config_files;
mod connecting;
mod descriptions;
mod handoff;
mod health;
mod kept;
mod known;
mod live;
mod manage;
mod named_files;
mod note_expiry;
mod oauth;
mod open;
mod process_tool;
mod proof;
mod said;
mod sources;
mod trusted;
pub mod vault;
mod visits;
mod watch;

pub use config_files::{ConfigFile, ConfigFiles, FileAuthority};
pub use handoff::Handoff;
pub use health::Health;
pub use known::ConnectionView;
pub use manage::{Management, management_tools};
pub use oauth::{App, AppOrigin, Begun, Probed, Returned};
pub use open::{Detected, detect};
pub use process_tool::ProcessTool;
pub use proof::Offer;
pub use sources::{Setup, SourceError, Sources};
pub use trusted::TrustedFile;
pub use watch::{
    check, configured, listener_limits, notices, notify, processes, project_file, quotas, user_file,
};
