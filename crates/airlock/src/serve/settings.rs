//! The settings of a starting server: the command line, the recorded settings, and which of the two counts.

use super::Args;
use super::supervisor;
use crate::config_files;
use crate::exit::UsageError;
use crate::server_locator::shell_word;
use lifecycle::{AnswerRole, Timestamp};
use server::auth::{BadOrigin, WebOrigin};
use server::settings::{
    LooseningFlag, SettingAuthor, SettingName, SettingValue, SettingsError, SettledSettings,
    StartFlags, StoredSetting, look_up_settings, read_settings, resolve_setting, server_account,
    shared_account, write_settings,
};
use server::{ConnectionLimits, DoorSelection};
use sources::ConfigFiles;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::sqlite::SqliteStore;
use url::Url;

/// Where a server listens unless a flag or the record names an address.
const LISTEN: &str = "127.0.0.1:4788";

/// The effective settings of this server.
pub(super) struct StartSettings {
    settled: SettledSettings,
    data_dir: PathBuf,
}

type RecordedSettings = BTreeMap<SettingName, StoredSetting>;

/// Refuses a command line that would loosen a setting, before a running server is asked to stop.
pub(super) fn check_command_line(args: &Args, data_dir: &Path) -> anyhow::Result<()> {
    // A directory that cannot be read is refused with its reason when it is opened.
    let Ok(recorded) = look_up_settings(data_dir) else { return Ok(()) };
    settled(args, data_dir, &recorded).map(drop)
}

/// The effective settings of a server with this command line on this directory.
pub(super) async fn read(
    args: &Args,
    data_dir: &Path,
    store: &SqliteStore,
) -> anyhow::Result<StartSettings> {
    let recorded = read_settings(store, data_dir).await.map_err(unusable)?;
    let settled = settled(args, data_dir, &recorded)?;
    let settings = StartSettings { settled, data_dir: data_dir.to_owned() };
    settings.check_config()?;
    settings.check_account()?;
    Ok(settings)
}

fn unusable(error: SettingsError) -> anyhow::Error {
    anyhow::anyhow!("could not {error}")
}

fn settled(
    args: &Args,
    data_dir: &Path,
    recorded: &RecordedSettings,
) -> anyhow::Result<SettledSettings> {
    let values: BTreeMap<_, _> =
        recorded.iter().map(|(name, setting)| (*name, setting.value.clone())).collect();
    let flags = start_flags(args, data_dir, &values)?;
    Ok(resolve_setting(&values, &flags)
        .map_err(|refused| UsageError(refusal(&refused, recorded, data_dir)))?)
}

/// Why a flag is refused, and the command that makes the change.
fn refusal(refused: &LooseningFlag, recorded: &RecordedSettings, data_dir: &Path) -> String {
    let LooseningFlag { name, recorded: value, flag } = refused;
    let by = recorded.get(name).map_or("", |setting| setting.by.as_str());
    let dir = data_dir.display().to_string();
    format!(
        "the command line would loosen the setting {name} from {value} (set by {by}) to {flag}, and a flag never does; \
         to change it, run: airlock settings set {name} {} --data-dir {}",
        shell_word(&flag.to_string()),
        shell_word(&dir)
    )
}

fn start_flags(
    args: &Args,
    data_dir: &Path,
    recorded: &BTreeMap<SettingName, SettingValue>,
) -> Result<StartFlags, UsageError> {
    let mut named = BTreeMap::new();
    let list = |items: &[String]| SettingValue::List(items.to_vec());
    if args.answers.is_some() || args.no_model_answers {
        named.insert(SettingName::Answers, args.answers().name().into());
    }
    if !args.allowed_hosts.is_empty() {
        named.insert(SettingName::AllowedHosts, list(&args.allowed_hosts));
    }
    if !args.allowed_origins.is_empty() {
        let origins: Vec<_> = args.allowed_origins.iter().map(ToString::to_string).collect();
        named.insert(SettingName::AllowedOrigins, list(&origins));
    }
    if !args.trusted_proxies.is_empty() {
        let name = SettingName::TrustedProxies;
        let value = name.parse_value(&args.trusted_proxies.join(",")).map_err(UsageError)?;
        named.insert(name, value);
    }
    if let Some(url) = &args.public_url {
        named.insert(SettingName::PublicUrl, url.as_str().into());
    }
    if let Some(listen) = args.listen.filter(|_| args.doors == DoorSelection::All) {
        named.insert(SettingName::Listen, listen.to_string().as_str().into());
    }
    if let Some(path) = config_files::resolve_named_file(args.config.as_deref())? {
        named.insert(SettingName::Config, path_value(&path));
    }
    if let Some(key) = args.vault_key.as_deref().filter(|path| !path.as_os_str().is_empty()) {
        named.insert(SettingName::VaultKey, path_value(&config_files::absolute(key)));
    }
    if !args.started_by_client {
        let is_supervised = supervisor::is_supervised(args.supervised);
        named.insert(SettingName::Supervised, if is_supervised { "on" } else { "off" }.into());
    }
    if let Some(projects) = project_files(args, recorded) {
        named.insert(SettingName::ProjectFiles, projects);
    }
    let mut flags = StartFlags { named, replaces: args.replace_settings, ..StartFlags::default() };
    flags.defaults = defaults(data_dir);
    if recorded.get(&SettingName::VaultKey).is_some_and(|key| !Path::new(key.as_text()).exists()) {
        flags.unused.insert(SettingName::VaultKey);
    }
    if recorded.get(&SettingName::Config).is_some_and(|config| config.as_text() == "usual") {
        let files = files(recorded, data_dir).files;
        if !files.iter().any(|file| file.path.exists()) {
            flags.unused.insert(SettingName::Config);
        }
    }
    Ok(flags)
}

/// The recorded project files, and the one that is found from here. A project's file can only tighten until a person
/// trusts it, so another one needs no explicit action.
fn project_files(
    args: &Args,
    recorded: &BTreeMap<SettingName, SettingValue>,
) -> Option<SettingValue> {
    if args.config.is_some() || args.started_by_client {
        return None;
    }
    let found = config_files::project()?;
    let mut files = vec![found.display().to_string()];
    if !args.replace_settings {
        let before = recorded.get(&SettingName::ProjectFiles);
        let before = before.map(SettingValue::as_list).unwrap_or_default();
        if before.contains(&files[0]) {
            return None;
        }
        files.extend(before.iter().cloned());
    }
    Some(SettingValue::List(files))
}

fn path_value(path: &Path) -> SettingValue {
    SettingValue::Text(path.display().to_string())
}

fn defaults(data_dir: &Path) -> BTreeMap<SettingName, SettingValue> {
    let none = || SettingValue::List(vec![]);
    let user = sources::user_file().map_or_else(|| "none".into(), |path| path_value(&path));
    BTreeMap::from([
        (SettingName::Answers, Args::usual().answers().name().into()),
        (SettingName::AllowedHosts, none()),
        (SettingName::AllowedOrigins, none()),
        (SettingName::TrustedProxies, none()),
        (SettingName::OperatorMode, "off".into()),
        (SettingName::Config, "usual".into()),
        (SettingName::UserConfig, user),
        (SettingName::ProjectFiles, none()),
        (SettingName::VaultKey, path_value(&data_dir.join("vault.key"))),
        (SettingName::Listen, LISTEN.into()),
        (SettingName::PublicUrl, "none".into()),
    ])
}

fn files(values: &BTreeMap<SettingName, SettingValue>, data_dir: &Path) -> ConfigFiles {
    let text = |name| values.get(&name).map_or("", SettingValue::as_text);
    match text(SettingName::Config) {
        "" | "usual" => {
            let projects = values.get(&SettingName::ProjectFiles);
            let projects = projects.map(SettingValue::as_list).unwrap_or_default();
            let projects: Vec<PathBuf> = projects.iter().map(PathBuf::from).collect();
            let user = Some(text(SettingName::UserConfig)).filter(|path| path.starts_with('/'));
            ConfigFiles::usual(&projects, user.map(Path::new), data_dir)
        }
        named => ConfigFiles::with_named_file(Path::new(named), data_dir),
    }
}

impl StartSettings {
    fn setting_text(&self, name: SettingName) -> &str {
        self.settled.values.get(&name).map_or("", SettingValue::as_text)
    }

    fn setting_list(&self, name: SettingName) -> &[String] {
        self.settled.values.get(&name).map(SettingValue::as_list).unwrap_or_default()
    }

    /// The configuration files that count.
    pub(super) fn files(&self) -> ConfigFiles {
        files(&self.settled.values, &self.data_dir)
    }

    /// The file with the vault's key.
    pub(super) fn vault_key(&self) -> &Path {
        Path::new(self.setting_text(SettingName::VaultKey))
    }

    /// Where to listen.
    pub(super) fn listen(&self) -> anyhow::Result<SocketAddr> {
        let text = self.setting_text(SettingName::Listen);
        text.parse().map_err(|_| {
            UsageError(format!("the setting listen is not a valid address: {text}")).into()
        })
    }

    /// Where browsers find the server, if not where it listens.
    pub(super) fn public_url(&self) -> Option<Url> {
        Url::parse(self.setting_text(SettingName::PublicUrl)).ok()
    }

    /// Origins whose pages may call the server, besides its own.
    pub(super) fn allowed_origins(&self) -> anyhow::Result<Vec<WebOrigin>> {
        let origins = self.setting_list(SettingName::AllowedOrigins).iter();
        let read = |text: &String| {
            let bad = |bad| UsageError(format!("the setting allowed-origins has {text}: {bad}"));
            text.parse().map_err(|error: BadOrigin| bad(error).into())
        };
        origins.map(read).collect()
    }

    /// Host names that the server answers to.
    pub(super) fn allowed_hosts(&self) -> Vec<String> {
        let public = self.public_url().and_then(|url| url.host_str().map(str::to_owned));
        self.setting_list(SettingName::AllowedHosts).iter().cloned().chain(public).collect()
    }

    /// The limits of connections, and the proxies in front of the server.
    pub(super) fn connections(&self) -> anyhow::Result<ConnectionLimits> {
        let wrong = |why| UsageError(format!("the configuration is wrong: {why}"));
        let limits = sources::listener_limits(&self.files()).map_err(wrong)?;
        let usual = ConnectionLimits::default();
        let number = |set: Option<u64>, usual| {
            set.and_then(|number| usize::try_from(number).ok()).unwrap_or(usual)
        };
        let proxies = self.setting_list(SettingName::TrustedProxies).iter();
        let bad = |why| UsageError(format!("the setting trusted-proxies is wrong: {why}"));
        let trusted_proxies = proxies.map(|proxy| proxy.parse().map_err(bad));
        Ok(ConnectionLimits {
            connections_max: number(limits.connections_max, usual.connections_max),
            per_address_max: number(limits.connections_per_address_max, usual.per_address_max),
            streams_per_caller_max: number(
                limits.streams_per_caller_max,
                usual.streams_per_caller_max,
            ),
            head_time_max: limits.head_ms_max.map_or(usual.head_time_max, Duration::from_millis),
            trusted_proxies: trusted_proxies.collect::<Result<_, _>>()?,
        })
    }

    /// The answer role of the server.
    pub(super) fn answers(&self) -> AnswerRole {
        self.setting_text(SettingName::Answers).parse().unwrap_or_default()
    }

    /// Whether the server has a separate account and prints no sign-in link.
    pub(super) fn is_operator_mode(&self) -> bool {
        self.setting_text(SettingName::OperatorMode) == "on"
    }

    /// Records what the command line changed.
    pub(super) async fn record(&self, store: &SqliteStore, now: Timestamp) -> anyhow::Result<()> {
        let value = |name: &SettingName| (*name, self.settled.values[name].clone());
        let changed: Vec<_> = self.settled.changed.iter().map(value).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let author = SettingAuthor { by: config_files::author("serve"), at: now };
        let written = write_settings(store, &self.data_dir, &changed, &author).await;
        written.map_err(unusable)
    }

    /// A file that was named must exist: without it, calls that it blocks would run.
    fn check_config(&self) -> Result<(), UsageError> {
        let named = self.setting_text(SettingName::Config);
        if named == "usual" || Path::new(named).is_file() {
            return Ok(());
        }
        Err(UsageError(format!(
            "the recorded configuration file {named} does not exist; restore it, or name another one with: airlock \
             settings set config FILE"
        )))
    }

    fn check_account(&self) -> Result<(), UsageError> {
        match shared_account(&server_account()) {
            Some(why) if self.is_operator_mode() => Err(UsageError(format!(
                "operator mode is on, and the server's account is not its own: {why}; start the server as a service with \
                 an account of its own (docs/operating.md has a systemd unit)"
            ))),
            Some(_) | None => Ok(()),
        }
    }
}
