//! `airlock settings`: the settings that apply to every server of a data directory, listed and changed.

use crate::exit::UsageError;
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, listen_address, print, table};
use anyhow::Context as _;
use client::{AirlockClient, Error};
use engine::Clock;
use lifecycle::{Timestamp, UtcTime};
use serde_json::{Value, json};
use server::settings::{
    SettingAuthor, SettingChange, SettingName, SettingsError, SettingsRegistry, StoredSetting,
    look_up_settings,
};
use std::path::Path;
use std::sync::Arc;
use store::sqlite::SqliteStore;

/// Lists and changes the settings that every server of the data directory obeys.
///
/// A server records them at its first start. A later flag may tighten a setting and never loosens it; this verb does
/// both, with the server up (as an administrator) or down (on the data directory).
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<SettingsVerb>,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "settings";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 7);

    fn run(self) -> VerbExit {
        settings(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum SettingsVerb {
    /// Lists each setting with its value, who set it, and when.
    List,
    /// Changes a setting.
    Set {
        /// Its name, as `airlock settings` lists it.
        #[arg(value_parser = |text: &str| text.parse::<SettingName>())]
        name: SettingName,
        /// The new value; lists with commas, none for an empty one.
        value: String,
    },
    /// Lists the changes: author, setting, value and time.
    History,
}

const HELP: &str = "\
Examples:
  airlock settings
  airlock settings set answers client
  airlock settings set config /etc/airlock.toml
  docker exec airlock airlock settings set allowed-hosts airlock.example

Exit codes:
  0    done
  1    the server or the directory refused
  2    the command line made no sense";

/// Lists or changes settings.
pub(crate) fn settings(args: &Args) -> VerbExit {
    let done = match args.verb.as_ref().unwrap_or(&SettingsVerb::List) {
        SettingsVerb::List => list_settings(args),
        SettingsVerb::History => history(args),
        SettingsVerb::Set { name, value } => set(args, *name, value),
    };
    match done {
        Ok(exit) => exit,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::of_error(&error, VerbExit::Failed)
        }
    }
}

/// Reads the directory itself, whether or not a server has it open.
fn list_settings(args: &Args) -> anyhow::Result<VerbExit> {
    let Some(dir) = args.reach.own_directory() else {
        return Ok(args.reach.visit(async |client| {
            show_settings(args, &client.settings().await?);
            Ok(VerbExit::Good)
        }));
    };
    print::start_tracing();
    let recorded = look_up_settings(&dir).map_err(unusable)?;
    if recorded.is_empty() {
        print::print_note(
            "nothing is recorded yet, so every setting has its default, such as answers person; the first `airlock serve` \
             records them",
        );
    }
    let shown = |(name, setting): (SettingName, StoredSetting)| {
        let value = setting.value.to_string();
        json!({ "name": name.name(), "value": value, "by": setting.by, "at": setting.at.0 })
    };
    show_settings(args, &recorded.into_iter().map(shown).collect::<Vec<_>>());
    Ok(VerbExit::Good)
}

fn history(args: &Args) -> anyhow::Result<VerbExit> {
    let Some(dir) = args.reach.unowned() else {
        return Ok(args.reach.visit(async |client| {
            show_changes(args, &client.setting_changes().await?);
            Ok(VerbExit::Good)
        }));
    };
    print::start_tracing();
    let changes = on_directory(&dir, async |registry| registry.history().await)?;
    let shown = |change: SettingChange| {
        let old = change.old.map(|value| value.to_string());
        let (name, new) = (change.name, change.new.to_string());
        json!({ "name": name, "old": old, "new": new, "by": change.by, "at": change.at.0 })
    };
    show_changes(args, &changes.into_iter().map(shown).collect::<Vec<_>>());
    Ok(VerbExit::Good)
}

fn show_changes(args: &Args, changes: &[Value]) {
    if args.json {
        return changes.iter().for_each(print::json);
    }
    let row = |change: &Value| {
        let text = |name: &str| table::cell(change[name].as_str().unwrap_or("-"));
        [time(&change["at"]), text("name"), text("old"), text("new"), text("by")]
    };
    let rows: Vec<_> = changes.iter().map(row).collect();
    table::print(&["AT", "NAME", "FROM", "TO", "BY"], &rows, "Nothing has changed.");
}

fn set(args: &Args, name: SettingName, value: &str) -> anyhow::Result<VerbExit> {
    let value = resolved(name, value)?;
    let Some(dir) = args.reach.unowned() else {
        return Ok(args
            .reach
            .visit(async |client| set_over_http(args, &client, name, &value).await));
    };
    print::start_tracing();
    let author = SettingAuthor { by: config_files::author("settings"), at: Clock::system().now() };
    let applied = on_directory(&dir, async |registry| registry.set(name, &value, &author).await)?;
    let (value, at) = (applied.setting.value.to_string(), applied.setting.at.0);
    show_setting(args, &json!({ "name": name.name(), "value": value, "by": author.by, "at": at }));
    Ok(VerbExit::Good)
}

async fn set_over_http(
    args: &Args,
    client: &AirlockClient,
    name: SettingName,
    value: &str,
) -> Result<VerbExit, Error> {
    let setting = client.set_setting(name.name(), value).await?;
    show_setting(args, &setting);
    if setting["live"] == false {
        print::print_note("the running server applies this after its next start");
    }
    Ok(VerbExit::Good)
}

/// A path that means the same to the server; a file that is named must exist.
fn resolved(name: SettingName, value: &str) -> anyhow::Result<String> {
    if name == SettingName::Listen {
        let address = listen_address::parse(value).map_err(UsageError)?;
        return Ok(address.to_string());
    }
    let is_path = !matches!(value, "usual" | "none");
    let path = if !is_path {
        None
    } else if name == SettingName::Config {
        config_files::resolve_named_file(Some(Path::new(value)))?
    } else if matches!(name, SettingName::VaultKey | SettingName::UserConfig) {
        Some(config_files::absolute(Path::new(value)))
    } else {
        None
    };
    let value = path.map_or_else(|| value.to_owned(), |path| path.display().to_string());
    name.parse_value(&value).map_err(UsageError)?;
    Ok(value)
}

/// Works on the data directory itself, which is locked in the meantime.
fn on_directory<T>(
    dir: &Path,
    act: impl AsyncFnOnce(&SettingsRegistry) -> Result<T, SettingsError>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store =
            SqliteStore::open(dir).with_context(|| format!("could not open {}", dir.display()))?;
        let registry = SettingsRegistry::new(Arc::new(store.clone()), dir);
        let done = act(&registry).await;
        drop(registry);
        store.close().await;
        done.map_err(unusable)
    })
}

fn unusable(error: SettingsError) -> anyhow::Error {
    if let SettingsError::Refused(why) = error {
        return anyhow::anyhow!("{why}");
    }
    anyhow::anyhow!("could not {error}")
}

fn show_setting(args: &Args, setting: &Value) {
    show_settings(args, std::slice::from_ref(setting));
}

fn show_settings(args: &Args, settings: &[Value]) {
    if args.json {
        return settings.iter().for_each(print::json);
    }
    let row = |setting: &Value| {
        let text = |name: &str| table::cell(setting[name].as_str().unwrap_or_default());
        [text("name"), text("value"), text("by"), time(&setting["at"])]
    };
    let rows: Vec<_> = settings.iter().map(row).collect();
    table::print(&["NAME", "VALUE", "SET BY", "AT"], &rows, "Nothing is recorded.");
}

fn time(at: &Value) -> String {
    UtcTime::from(Timestamp(at.as_i64().unwrap_or_default())).to_string()
}
