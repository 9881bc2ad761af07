//! `server`: named servers, with Executor's options. They are the same as those of `airlock server`.

use super::target::{data_dir, no_profile};
use crate::VerbExit;
use crate::print::{self, tamed};
use crate::profiles::{ProfileError, ServerProfile, ServerProfiles, is_name};
use client::AirlockClient;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ServerVerb {
    /// Add or update a named server profile.
    Add {
        name: String,
        origin: String,
        /// Accepted and ignored: a profile is shown by its name.
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        /// Accepted and ignored.
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
        /// Make this profile the default server.
        #[arg(long)]
        default: bool,
    },
    /// List configured server profiles.
    List,
    /// Set the default server profile.
    Use { name: String },
    /// Remove a server profile.
    Remove { name: String },
}

pub(super) fn server(verb: &ServerVerb) -> Result<VerbExit, String> {
    let dir = data_dir().ok_or("The data directory is unknown: set HOME or AIRLOCK_DATA_DIR.")?;
    let mut known = ServerProfiles::load(&dir).map_err(words)?;
    let lines = match verb {
        ServerVerb::Add { name, origin, default, .. } => add(&mut known, name, origin, *default)?,
        ServerVerb::List => {
            print::report(&listing(&known));
            return Ok(VerbExit::Good);
        }
        ServerVerb::Use { name } => {
            let url = known.find(name).ok_or_else(|| no_profile(name))?.url.clone();
            known.mean(Some(name)).map_err(words)?;
            format!("Default server profile: {name} ({url}).")
        }
        ServerVerb::Remove { name } => {
            known.find(name).ok_or_else(|| no_profile(name))?;
            known.remove(name).map_err(words)?;
            let none = "\nNo default server profile is configured.";
            let none = if known.used.is_none() { none } else { "" };
            format!("Removed server profile \"{name}\".{none}")
        }
    };
    known.save(&dir).map_err(words)?;
    print::report(&lines);
    Ok(VerbExit::Good)
}

fn add(
    known: &mut ServerProfiles,
    name: &str,
    origin: &str,
    default: bool,
) -> Result<String, String> {
    if !is_name(name) {
        return Err(format!(
            "Failed to save \"{}\": a name has 1 to 64 letters, digits, _ and -.",
            tamed(name)
        ));
    }
    let client = AirlockClient::new(origin, None).map_err(|error| error.to_string())?;
    let url = client.base_url().to_owned();
    // A token that was stored under this name remains valid only for the same server.
    let token = known.find(name).filter(|known| known.url == url).and_then(|it| it.token.clone());
    known
        .put(ServerProfile { name: name.to_owned(), url: url.clone(), token, address: None })
        .map_err(words)?;
    if default || known.used.is_none() {
        known.mean(Some(name)).map_err(words)?;
    }
    let is_used = known.used.as_deref() == Some(name);
    let used = if is_used { format!("\nDefault server profile: {name}") } else { String::new() };
    Ok(format!("Saved server profile \"{name}\" ({url}).{used}"))
}

fn listing(known: &ServerProfiles) -> String {
    if known.servers.is_empty() {
        return "No server profiles configured.\nAdd one: executor server add local http://localhost:4788 --default"
            .to_owned();
    }
    let width = known.servers.iter().map(|server| server.name.len()).max().unwrap_or(4).max(4);
    let line = |server: &ServerProfile| {
        let marker = if known.used.as_ref() == Some(&server.name) { "*" } else { " " };
        let auth = if server.token.is_some() { "stored-auth" } else { "env-auth" };
        let (name, url) = (tamed(&server.name), tamed(&server.url));
        format!("{marker} {name:width$}  http  {url}  {name}  {auth}")
    };
    known.servers.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn words(error: ProfileError) -> String {
    match error {
        ProfileError::Wrong(why) => why,
        error @ ProfileError::File(..) => format!("Could not {error}."),
    }
}
