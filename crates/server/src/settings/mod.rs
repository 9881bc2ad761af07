//! Settings that outlive the server that was started with them: those that bind the service are records in the store,
//! those that refer to this machine are a file in the data directory. They apply to every server of the directory,
//! regardless of who starts it; a flag may tighten them but never loosen them.

mod account;
mod ceiling;
mod machine_file;
mod records;
mod registry;
mod rules;

pub use account::{AccountFacts, server_account, shared_account};
pub(crate) use ceiling::AnswerCeiling;
pub use machine_file::MACHINE_FILE;
pub use records::{
    SettingAuthor, SettingChange, SettingsError, StoredSetting, look_up_settings, read_history,
    read_settings, write_settings,
};
pub use registry::{AppliedSetting, SettingsRegistry, close_admin_access};
pub use rules::{
    LooseningFlag, SettingEffect, SettingName, SettingValue, SettledSettings, StartFlags, effect,
    resolve_setting,
};
