//! The server of a command, and its replies.

use crate::profiles::ServerProfiles;
use crate::server_locator::{ServerArgs, shell_word};
use crate::{VerbExit, data_directory};
use client::{AirlockClient, Error};
use std::env;
use std::path::PathBuf;

/// Variables that can hold the token: Executor's clients read the first two.
const TOKENS: [&str; 3] = ["EXECUTOR_API_KEY", "EXECUTOR_AUTH_TOKEN", "AIRLOCK_TOKEN"];

/// The server of a command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ExecutorTarget {
    /// Server origin. Overrides the default profile.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Named server profile.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Accepted and ignored: Airlock's server has one configuration.
    #[arg(long, value_name = "DIR")]
    scope: Option<String>,
}

impl ExecutorTarget {
    /// Performs a request at the server, which is started where none is named and none runs.
    pub(super) fn visit(
        &self,
        errand: impl AsyncFnOnce(&AirlockClient) -> Result<VerbExit, String>,
    ) -> Result<VerbExit, String> {
        let client = self.client()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(errand(&client))
    }

    fn client(&self) -> Result<AirlockClient, String> {
        if self.base_url.is_some() && self.server.is_some() {
            return Err("Use either --server or --base-url, not both.".into());
        }
        let data_dir = data_dir();
        if let (Some(name), Some(dir)) = (&self.server, &data_dir) {
            let known = ServerProfiles::load(dir).map_err(|error| format!("could not {error}"))?;
            known.find(name).ok_or_else(|| no_profile(name))?;
        }
        let variable = |name: &&str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let named = self.base_url.clone().or_else(|| self.server.clone());
        let named = named.or_else(|| variable(&"AIRLOCK_URL"));
        let token = TOKENS.iter().find_map(variable);
        ServerArgs::for_server(named.as_deref(), token.as_deref(), data_dir.as_deref())
            .started_client()
    }

    /// The flags that direct a command to the same server.
    pub(super) fn flags(&self, client: &AirlockClient) -> String {
        match &self.server {
            Some(name) => format!("--server {}", shell_word(name)),
            None => {
                let url = self.base_url.as_deref().unwrap_or_else(|| client.base_url());
                format!("--base-url {}", shell_word(url))
            }
        }
    }
}

/// The data directory. Executor's own folder has another format and is not changed.
pub(super) fn data_dir() -> Option<PathBuf> {
    env::var_os("AIRLOCK_DATA_DIR").map(PathBuf::from).or_else(data_directory::usual)
}

pub(super) fn no_profile(name: &str) -> String {
    format!("No server profile named \"{name}\".")
}

/// An error of the client in one sentence; for a server that cannot be used, Executor's sentence and then ours.
pub(super) fn sentence(error: &Error) -> String {
    if let Error::Refused { status: 404, tag, .. } = error
        && tag == "ExecutionNotFoundError"
    {
        return format!("No paused execution: {error}");
    }
    if let Error::CannotConnect { url, .. }
    | Error::Unproven { url, .. }
    | Error::Unauthorised { url } = error
    {
        return format!("Executor server is not reachable at {url}.\n{error}");
    }
    error.to_string()
}
