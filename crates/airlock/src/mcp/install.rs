//! `airlock mcp install CLIENT`: puts Airlock into a client's configuration.

use super::{Mode, client_token, merge};
use crate::{Exit, data_directory, input, print};
use lifecycle::AnswerRole;
use serde_json::{Value, json};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest configuration that is read; such files hold a few pages.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Puts Airlock into a client's configuration.
///
/// Other entries stay as they are, and a copy of the old file is left beside it. The client gets a token of its own, with
/// the scope run; its secret is in the data directory, in a file that only this account can read, not in the
/// configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Whose configuration.
    #[arg(value_enum)]
    client: Client,
    /// Who may answer the questions of programs that this client runs: person (you, on Airlock's page), client (also the
    /// client's own dialog) or model (also the agent itself). Asked for on a terminal; person otherwise.
    #[arg(long, value_name = "WHO")]
    answers: Option<AnswerRole>,
    /// How questions reach a person: the model asks, a page does, or the client's own form.
    #[arg(long, value_name = "MODE", value_enum)]
    elicitation_mode: Option<Mode>,
    /// Where Airlock keeps what must last, if not in the usual place.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The file to change, if not the usual one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Shows the new file and changes nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
}

impl Client {
    /// The name on the command line, which is also that of its token.
    fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self).expect("every client has a name");
        value.get_name().to_owned()
    }

    /// Its file below the home directory.
    const fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude.json",
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                "Library/Application Support/Claude/claude_desktop_config.json"
            }
            Self::ClaudeDesktop => ".config/Claude/claude_desktop_config.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode if cfg!(target_os = "macos") => {
                "Library/Application Support/Code/User/mcp.json"
            }
            Self::Vscode => ".config/Code/User/mcp.json",
            Self::Codex => ".codex/config.toml",
        }
    }

    /// The file with Airlock in it.
    fn changed(self, text: &str, command: &str, words: &[String]) -> Result<String, merge::Odd> {
        let plain = json!({ "command": command, "args": words });
        let typed = json!({ "type": "stdio", "command": command, "args": words });
        match self {
            Self::ClaudeDesktop | Self::Cursor => {
                merge::json(text, "mcpServers", "airlock", &plain)
            }
            Self::ClaudeCode => merge::json(text, "mcpServers", "airlock", &typed),
            Self::Vscode => merge::json(text, "servers", "airlock", &typed),
            Self::Codex => {
                let quoted: Vec<String> = words.iter().map(|word| toml_text(word)).collect();
                let lines = [
                    format!("command = {}", toml_text(command)),
                    format!("args = [{}]", quoted.join(", ")),
                ];
                Ok(merge::toml(text, "[mcp_servers.airlock]", &lines))
            }
        }
    }
}

/// A basic string of TOML; JSON's escapes are among its own.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}

pub(super) fn install(args: &Args) -> Exit {
    match attempt(args) {
        Ok(told) => {
            print::report(told.trim_end());
            Exit::Good
        }
        Err(why) => {
            print::note(&why);
            Exit::Failed
        }
    }
}

fn attempt(args: &Args) -> Result<String, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let file = args.config.clone().or_else(|| Some(home?.join(args.client.file())));
    let file = file.ok_or("neither HOME nor --config says where the configuration is")?;
    let shown = file.display();
    let old = match File::open(&file) {
        Ok(open) => Some(input::read(&shown.to_string(), open, CONFIG_BYTES_MAX)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot open {shown}: {error}")),
    };
    let command =
        std::env::current_exe().map_err(|error| format!("cannot tell where I am: {error}"))?;
    let token = match args.dry_run {
        true => Some(args.client.name()),
        false => token(args)?,
    };
    let (command, words) = (command.display().to_string(), words(args, token.as_deref())?);
    let new = args.client.changed(old.as_deref().unwrap_or_default(), &command, &words);
    let new = new.map_err(|odd| {
        let line = words.join(" ");
        format!("{shown} is left alone, {odd}; add this server by hand: {command} {line}")
    })?;
    if args.dry_run {
        return Ok(new);
    }
    if old.as_deref() == Some(&new) {
        return Ok(format!("{shown} has it already."));
    }
    let kept = write(&file, old.is_some(), &new)
        .map_err(|error| format!("cannot write {shown}: {error}"))?;
    let kept = kept.map(|kept| format!(" As it was, it is kept in {}.", kept.display()));
    Ok(format!("{shown} has Airlock now; restart the client.{}", kept.unwrap_or_default()))
}

/// The client's token, minted if it has none.
fn token(args: &Args) -> Result<Option<String>, String> {
    let data_dir = args.data_dir.clone().or_else(data_directory::usual);
    let data_dir =
        data_dir.ok_or("neither HOME nor --data-dir says where the data directory is")?;
    let client = args.client.name();
    let answers = args.answers.unwrap_or_else(|| client_token::asked(&client));
    let token = client_token::ensure(&data_dir, &client, answers)?;
    if let (Some(token), false) = (&token, answers.is_person()) {
        print::note(&format!(
            "the token {token} has answers {answers}; the server's own setting bounds it: airlock serve --answers {answers}"
        ));
    }
    Ok(token)
}

fn words(args: &Args, token: Option<&str>) -> Result<Vec<String>, String> {
    let mut words = vec!["mcp".to_owned()];
    if let Some(token) = token {
        words.extend(["--as".to_owned(), token.to_owned()]);
    }
    if let Some(mode) = args.elicitation_mode {
        let value = clap::ValueEnum::to_possible_value(&mode).expect("every mode has a name");
        words.extend(["--elicitation-mode".to_owned(), value.get_name().to_owned()]);
    }
    if let Some(dir) = &args.data_dir {
        let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
        words.extend(["--data-dir".to_owned(), dir.display().to_string()]);
    }
    Ok(words)
}

/// Puts the new file in the old one's place at once, and keeps the old one beside it.
fn write(file: &Path, exists: bool, text: &str) -> io::Result<Option<PathBuf>> {
    // A link is followed: what it points to is the file that is meant.
    let file = if exists { fs::canonicalize(file)? } else { file.to_owned() };
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut kept = None;
    let mut mode = 0o600;
    if exists {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".before-airlock");
        let beside = file.with_file_name(name);
        fs::copy(&file, &beside)?;
        mode = fs::metadata(&file)?.permissions().mode();
        kept = Some(beside);
    }
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    fresh.persist(&file).map_err(|error| error.error)?;
    Ok(kept)
}
