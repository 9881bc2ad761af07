//! Which sources there are: those that configuration files name and those that were added while serving, with
//! their connections. Opens them, keeps the catalogue up to date, and knows no door.

mod ages;
mod change;
pub mod config;
mod kept;
mod known;
mod live;
mod manage;
mod open;
mod said;
mod sources;
mod watch;

pub use known::ConnectionView;
pub use manage::Management;
pub use open::{Detected, detect};
pub use sources::{Setup, SourceError, Sources};
pub use watch::{check, configured, notify, processes, project_file, user_file};
