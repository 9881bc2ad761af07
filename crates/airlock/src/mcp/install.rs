//! `airlock mcp install CLIENT` and `airlock mcp uninstall CLIENT`: add Airlock to a client's configuration, and remove it
//! again.

use super::clients::{ConfigHome, KnownClient, command_line};
use super::config::{ConfigError, ENTRY};
use super::{ElicitationModeArg, client_token, config_file};
use crate::{VerbExit, data_directory, print};
use lifecycle::AnswerRole;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Adds Airlock to a client's configuration.
///
/// Everything else in the file is preserved, comments included, and a copy of the old file is left beside it. The client
/// gets a token of its own, with the scope run; its secret is in the data directory, in a file that only this account can
/// read, not in the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    target: InstallTarget,
    /// Who may answer the questions of programs that this client runs: person (you, on Airlock's page), client (also the
    /// client's own dialog) or model (also the agent itself). Asked for on a terminal; person otherwise.
    #[arg(long, value_name = "WHO")]
    answers: Option<AnswerRole>,
    /// How questions reach a person: the model asks, a page does, or the client's own form.
    #[arg(long, value_name = "MODE", value_enum)]
    elicitation_mode: Option<ElicitationModeArg>,
}

/// Removes Airlock from a client's configuration.
///
/// Removes the entry that install wrote, and the client's token. Everything else in the file is preserved; where nothing
/// else has changed since, the file is restored exactly.
#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    target: InstallTarget,
}

/// The client and its configuration.
#[derive(Debug, clap::Args)]
struct InstallTarget {
    /// The client.
    #[arg(value_enum)]
    client: KnownClient,
    /// The data directory, if not the default one.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The file to change, if not the default one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Shows the new file and changes nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn install(args: &InstallArgs) -> VerbExit {
    report(install_entry(args))
}

pub(super) fn uninstall(args: &UninstallArgs) -> VerbExit {
    report(uninstall_entry(&args.target))
}

fn report(done: Result<String, String>) -> VerbExit {
    match done {
        Ok(told) => {
            print::report(told.trim_end());
            VerbExit::Good
        }
        Err(why) => {
            print::error(&why);
            VerbExit::Failed
        }
    }
}

fn install_entry(args: &InstallArgs) -> Result<String, String> {
    let target = &args.target;
    let file = target.file()?;
    let shown = file.display();
    let old = config_file::read(&file)?;
    let command = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of this program: {error}"))?;
    let command = command.display().to_string();
    // A file that cannot be edited is refused before a token is minted for it.
    let text = old.as_deref().unwrap_or_default();
    let refused = |error: ConfigError, words: &[String]| {
        let line = words.join(" ");
        format!("{shown} is left alone: {error}; add this server by hand: {command} {line}")
    };
    let likely = words(args, Some(&target.client.name()))?;
    target.with_entry(text, &command, &likely).map_err(|error| refused(error, &likely))?;
    let token = match target.dry_run {
        true => Some(target.client.name()),
        false => token(args)?,
    };
    let words = words(args, token.as_deref())?;
    let new = target.with_entry(text, &command, &words).map_err(|error| refused(error, &words))?;
    if target.dry_run {
        return Ok(new);
    }
    if old.as_deref() == Some(&new) {
        return Ok(format!("{shown} has it already."));
    }
    let is_renewed = target.entry(text).is_ok_and(|entry| entry.is_some());
    let backup = config_file::replace(&file, old.is_some() && !is_renewed, &new)
        .map_err(|error| format!("cannot write {shown}: {error}"))?;
    if let Some(note) = target.client.install_note() {
        print::print_note(note);
    }
    let backup = backup.map(|backup| format!(" The old file is in {}.", backup.display()));
    Ok(format!("{shown} has Airlock now; restart the client.{}", backup.unwrap_or_default()))
}

impl InstallTarget {
    fn file(&self) -> Result<PathBuf, String> {
        let file = self.config.clone().or_else(|| self.client.file(&ConfigHome::of_environment()));
        file.ok_or_else(|| {
            "the configuration file is unknown: set HOME, or name it with --config".into()
        })
    }

    /// The file's text with our entry.
    fn with_entry(
        &self,
        text: &str,
        command: &str,
        words: &[String],
    ) -> Result<String, ConfigError> {
        let format = self.client.format();
        let config = format.value(text)?;
        let entry = self.client.entry(&config, command, words);
        format.with_entry(text, self.client.section(&config), &entry)
    }

    fn without_entry(&self, text: &str) -> Result<String, ConfigError> {
        let format = self.client.format();
        format.without_entry(text, self.client.section(&format.value(text)?))
    }

    fn entry(&self, text: &str) -> Result<Option<Map<String, Value>>, ConfigError> {
        let format = self.client.format();
        format.entry(text, self.client.section(&format.value(text)?))
    }

    /// The text before our entry was added, where nothing else has changed since; `None` otherwise.
    fn restored(&self, text: &str, backup: Option<&str>, line: &[String]) -> Option<String> {
        let before = backup.unwrap_or_default();
        let has_none = self.entry(before).ok()?.is_none();
        let (command, words) = line.split_first()?;
        let again = self.with_entry(before, command, words).ok()?;
        (has_none && again == text).then(|| before.to_owned())
    }
}

/// The client's token, minted if it has none.
fn token(args: &InstallArgs) -> Result<Option<String>, String> {
    let data_dir = data_dir(args.target.data_dir.as_deref())?;
    let client = args.target.client.name();
    let answers = args.answers.unwrap_or_else(|| client_token::asked(&client));
    let token = client_token::ensure(&data_dir, &client, answers)?;
    if let (Some(token), false) = (&token, answers.is_person()) {
        print::print_note(&format!(
            "the token {token} has answers {answers}; the server's own setting bounds it: airlock serve --answers {answers}"
        ));
    }
    Ok(token)
}

fn data_dir(named: Option<&Path>) -> Result<PathBuf, String> {
    let data_dir = named.map(Path::to_owned).or_else(data_directory::usual);
    data_dir
        .ok_or_else(|| "the data directory is unknown: set HOME, or name it with --data-dir".into())
}

fn words(args: &InstallArgs, token: Option<&str>) -> Result<Vec<String>, String> {
    let mut words = vec!["mcp".to_owned()];
    if let Some(token) = token {
        words.extend(["--as".to_owned(), token.to_owned()]);
    }
    if let Some(mode) = args.elicitation_mode {
        let value = clap::ValueEnum::to_possible_value(&mode).expect("every mode has a name");
        words.extend(["--elicitation-mode".to_owned(), value.get_name().to_owned()]);
    }
    if let Some(dir) = &args.target.data_dir {
        let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
        words.extend(["--data-dir".to_owned(), dir.display().to_string()]);
    }
    Ok(words)
}

fn uninstall_entry(target: &InstallTarget) -> Result<String, String> {
    let file = target.file()?;
    let shown = file.display();
    let text = config_file::read(&file)?.unwrap_or_default();
    let left_alone = |error: ConfigError| format!("{shown} is left alone: {error}");
    let Some(entry) = target.entry(&text).map_err(left_alone)? else {
        return Err(format!("{shown} has no entry {ENTRY:?}: there is nothing to remove"));
    };
    let line = command_line(&entry);
    if line.get(1).map(String::as_str) != Some("mcp") {
        return Err(format!(
            "{shown} is left alone: its entry {ENTRY:?} does not run `airlock mcp`, so install did not write it; remove \
             it by hand if it is not wanted"
        ));
    }
    let backup = config_file::read(&config_file::backup_of(&file))?;
    let restored = target.restored(&text, backup.as_deref(), &line);
    let new = match &restored {
        Some(before) => before.clone(),
        None => target.without_entry(&text).map_err(left_alone)?,
    };
    if target.dry_run {
        return Ok(new);
    }
    let cannot = |error| format!("cannot write {shown}: {error}");
    match (&restored, &backup) {
        // The installation created the file.
        (Some(_), None) => config_file::remove(&file).map_err(cannot)?,
        (Some(_), Some(_)) => {
            config_file::replace(&file, false, &new).map_err(cannot)?;
            config_file::remove(&config_file::backup_of(&file)).map_err(cannot)?;
        }
        (None, _) => drop(config_file::replace(&file, true, &new).map_err(cannot)?),
    }
    let token = remove_token(target, &line)?;
    let token = token.map(|name| format!(" Its token {name} is removed."));
    Ok(format!("{shown} is without Airlock; restart the client.{}", token.unwrap_or_default()))
}

/// Removes the token that the entry names, if the installation minted it for this client.
fn remove_token(target: &InstallTarget, line: &[String]) -> Result<Option<String>, String> {
    let after = |flag: &str| {
        let at = line.iter().position(|word| word == flag)?;
        line.get(at + 1).cloned()
    };
    let Some(name) = after("--as") else { return Ok(None) };
    if !client_token::is_of_client(&name, &target.client.name()) {
        return Ok(None);
    }
    let named = target.data_dir.clone().or_else(|| after("--data-dir").map(PathBuf::from));
    let data_dir = data_dir(named.as_deref())?;
    let is_removed = client_token::remove(&data_dir, &name).map_err(|why| {
        format!(
            "the entry is removed, but not the token {name}: {why}; remove it with `airlock token remove {name}`"
        )
    })?;
    Ok(is_removed.then_some(name))
}
