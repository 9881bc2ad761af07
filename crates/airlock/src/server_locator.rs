//! Finds the server of a client verb, and explains a failure.

use crate::profiles::{self, ProfileError, ServerProfile, ServerProfiles};
use crate::{VerbExit, autostart, data_directory, print};
use client::{AirlockClient, Error, ServerToken};
use std::env;
use std::path::{Path, PathBuf};
use store::sqlite::owner_of;

/// The server's address, and the credential for it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The server")]
pub(crate) struct ServerArgs {
    /// The server's address, or a name that airlock server gave it; without this, the one in use, or the server
    /// that owns the data directory.
    #[arg(long, value_name = "URL|NAME", env = SERVER, global = true)]
    server: Option<String>,
    /// The token for it; without this, the one in tokens/admin of the data directory, for a server on
    /// this machine that proves that it knows that token.
    #[arg(long, value_name = "TOKEN", env = TOKEN, hide_env_values = true, global = true)]
    token: Option<String>,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = DATA_DIR, global = true)]
    data_dir: Option<PathBuf>,
}

const SERVER: &str = "AIRLOCK_URL";
const TOKEN: &str = "AIRLOCK_TOKEN";
const DATA_DIR: &str = "AIRLOCK_DATA_DIR";

impl ServerArgs {
    /// Arguments from other options.
    pub(crate) fn for_server(
        server: Option<&str>,
        token: Option<&str>,
        data_dir: Option<&Path>,
    ) -> Self {
        Self {
            server: server.map(str::to_owned),
            token: token.map(str::to_owned),
            data_dir: data_dir.map(Path::to_owned),
        }
    }

    /// Performs a request at the server, and prints any error.
    pub(crate) fn visit(
        &self,
        errand: impl AsyncFnOnce(AirlockClient) -> Result<VerbExit, Error>,
    ) -> VerbExit {
        print::start_tracing();
        errand_at(self.client(owner), errand)
    }

    /// Like `visit`, for verbs that sign a browser in. The account of the server needs no token: where neither a token
    /// nor a server is named, the key of the running server is used.
    pub(crate) fn visit_to_sign_in(
        &self,
        errand: impl AsyncFnOnce(AirlockClient) -> Result<VerbExit, Error>,
    ) -> VerbExit {
        print::start_tracing();
        errand_at(self.sign_in_client(), errand)
    }

    fn sign_in_client(&self) -> Result<AirlockClient, UnreachableServer> {
        let data_dir = self.data_dir.clone().or_else(data_directory::usual);
        let is_ours = matches!(self.server(data_dir.as_deref())?, ServerChoice::Ours);
        let key = data_dir.filter(|_| is_ours && given(self.token.as_deref()).is_none());
        let key =
            key.and_then(|dir| std::fs::read_to_string(server::auth::sign_in_key_file(&dir)).ok());
        let client = self.client(owner)?;
        match key {
            Some(key) => Ok(client.with_token(&key)?),
            None => Ok(client),
        }
    }

    /// Like `visit`; a server is started where none is named and none runs.
    pub(crate) fn visit_started(
        &self,
        errand: impl AsyncFnOnce(AirlockClient) -> Result<VerbExit, Error>,
    ) -> VerbExit {
        print::start_tracing();
        errand_at(self.client(started), errand)
    }

    /// A client, or why there is none. A server is started where none is named and none runs.
    pub(crate) fn started_client(&self) -> Result<AirlockClient, String> {
        self.client(started).map_err(|unreached| unreached.why)
    }

    /// Whether a server is available without starting one.
    pub(crate) fn is_there(&self) -> bool {
        self.client(owner).is_ok()
    }

    /// The data directory, where no server is named and none owns it: it can be opened here.
    pub(crate) fn unowned(&self) -> Option<PathBuf> {
        let dir = self.data_dir.clone().or_else(data_directory::usual)?;
        let is_ours = matches!(self.server(Some(&dir)), Ok(ServerChoice::Ours));
        (is_ours && owner_of(&dir).is_none()).then_some(dir)
    }

    /// The data directory, where no server is named: it can be read here, also while a server owns it.
    pub(crate) fn own_directory(&self) -> Option<PathBuf> {
        let dir = self.data_dir.clone().or_else(data_directory::usual)?;
        matches!(self.server(Some(&dir)), Ok(ServerChoice::Ours)).then_some(dir)
    }

    /// The server that the arguments select.
    fn server(&self, data_dir: Option<&Path>) -> Result<ServerChoice, UnreachableServer> {
        Ok(named_server(given(self.server.as_deref()), data_dir)?)
    }

    /// The flags that direct a copied command to the same server.
    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        let mut add = |name: &str, value: &str, variable: &str| {
            // A value from the environment also applies to the next command.
            if env::var_os(variable).is_none_or(|set| set != value) {
                flags.push_str(&format!(" {name} {}", shell_word(value)));
            }
        };
        if let Some(server) = &self.server {
            add("--server", server, SERVER);
        }
        if let Some(dir) = self.data_dir.as_ref().and_then(|dir| dir.to_str()) {
            add("--data-dir", dir, DATA_DIR);
        }
        flags
    }

    /// A client; `find` locates the server of a data directory.
    fn client(&self, find: FindServer) -> Result<AirlockClient, UnreachableServer> {
        let data_dir = self.data_dir.clone().or_else(data_directory::usual);
        let (client, is_ours, named) = match self.server(data_dir.as_deref())? {
            ServerChoice::At(named) => {
                let client = AirlockClient::new(&named.url, None)?;
                let is_ours = client.is_loopback();
                (client, is_ours, named)
            }
            ServerChoice::Ours => {
                let client = AirlockClient::new(&find(data_dir.as_deref())?, None)?;
                (client, true, NamedServer::default())
            }
        };
        let admin = data_dir.filter(|_| is_ours).and_then(|dir| stored_secret(&dir, "admin"));
        match named.token_for(self.token.as_deref(), admin.as_deref()) {
            Some(token) => Ok(client.with_server_token(token)?),
            None => Ok(client),
        }
    }
}

/// The selected server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerChoice {
    /// The one that owns the data directory.
    Ours,
    /// A named server.
    At(NamedServer),
}

/// A server that was named by its URL or by its profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedServer {
    /// Its URL.
    pub(crate) url: String,
    /// The token of its profile.
    pub(crate) token: Option<String>,
    /// Its own address, where its profile says that it differs from the URL.
    address: Option<String>,
}

impl NamedServer {
    /// The server at this URL.
    pub(crate) fn at_url(url: String) -> Self {
        Self { url, token: None, address: None }
    }

    /// The token for it: the one that is given, or its profile's, or `found`, which belongs to this machine. A server gets
    /// the latter two only after it has proven that it knows them.
    pub(crate) fn token_for(
        &self,
        token: Option<&str>,
        found: Option<&str>,
    ) -> Option<ServerToken> {
        let stored = || self.token.as_deref().map(ServerToken::stored);
        let found = || found.map(ServerToken::found);
        let token = given(token).map(ServerToken::given).or_else(stored).or_else(found)?;
        Some(token.of_server_at(self.address.as_deref()))
    }
}

/// The server of an address or a name; without either, the one in use.
pub(crate) fn named_server(
    said: Option<&str>,
    data_dir: Option<&Path>,
) -> Result<ServerChoice, ProfileError> {
    let profiles = data_dir.map(ServerProfiles::load).transpose()?.unwrap_or_default();
    let profile = match said {
        Some(name) if profiles::is_name(name) => {
            Some(profiles.find(name).ok_or_else(|| profiles::unknown_profile(name))?)
        }
        Some(url) => {
            return Ok(ServerChoice::At(NamedServer::at_url(url.to_owned())));
        }
        None => profiles.in_use(),
    };
    Ok(profile.map_or(ServerChoice::Ours, |profile| {
        let ServerProfile { url, token, address, .. } = profile.clone();
        ServerChoice::At(NamedServer { url, token, address })
    }))
}

impl From<ProfileError> for UnreachableServer {
    fn from(error: ProfileError) -> Self {
        let why = match error {
            ProfileError::Wrong(why) => why,
            error @ ProfileError::File(..) => format!("could not {error}"),
        };
        Self { why, exit: VerbExit::Failed }
    }
}

/// Locates the server of a data directory.
type FindServer = fn(Option<&Path>) -> Result<String, UnreachableServer>;

fn errand_at(
    client: Result<AirlockClient, UnreachableServer>,
    errand: impl AsyncFnOnce(AirlockClient) -> Result<VerbExit, Error>,
) -> VerbExit {
    let client = match client {
        Ok(client) => client,
        Err(UnreachableServer { why, exit }) => {
            print::error(&why);
            return exit;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&error.to_string());
            return VerbExit::Fault;
        }
    };
    let done = runtime.block_on(errand(client)).unwrap_or_else(|error| {
        print::error(&report_error(&error));
        exit(&error)
    });
    // A thread that blocks in a read of the terminal must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Why no request was sent.
#[derive(Debug, PartialEq, Eq)]
struct UnreachableServer {
    why: String,
    exit: VerbExit,
}

impl From<Error> for UnreachableServer {
    fn from(error: Error) -> Self {
        Self { why: report_error(&error), exit: exit(&error) }
    }
}

/// An empty variable counts as unset.
fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn shown_directory(data_dir: Option<&Path>) -> Result<&Path, UnreachableServer> {
    let why = "the server is unknown: set HOME, or use --data-dir or --server";
    data_dir.ok_or_else(|| UnreachableServer { why: why.into(), exit: VerbExit::Usage })
}

fn started(data_dir: Option<&Path>) -> Result<String, UnreachableServer> {
    let trouble =
        |error| UnreachableServer { why: format!("could not {error}"), exit: VerbExit::Failed };
    autostart::running(shown_directory(data_dir)?).map_err(trouble)
}

fn owner(data_dir: Option<&Path>) -> Result<String, UnreachableServer> {
    let dir = shown_directory(data_dir)?;
    let shown = dir.display();
    let why = match owner_of(dir) {
        Some(note) if note.starts_with("http://") => return Ok(note),
        Some(note) => {
            format!("{shown} is in use by {note}, which has not said where it listens; ask again")
        }
        None => format!(
            "no server runs on {shown}: start one with airlock serve, or name one with --server"
        ),
    };
    Err(UnreachableServer { why, exit: VerbExit::Failed })
}

/// The secret of a first token. Where it cannot be read, the server will report that it needs one.
pub(crate) fn stored_secret(data_dir: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(server::auth::secret_file(data_dir, name)).ok()
}

fn report_error(error: &Error) -> String {
    // The server's message is shown unchanged, but may not steer the terminal.
    let mut text = print::tamed(&error.to_string());
    if let Some(advice) = error.advice() {
        text.push_str("\nhint: ");
        text.push_str(advice);
    }
    text
}

const fn exit(error: &Error) -> VerbExit {
    match error {
        Error::Unusable(_) => VerbExit::Usage,
        Error::Protocol(_) => VerbExit::Fault,
        // 503 is a server that is stopping or at capacity: nothing is broken.
        Error::Refused { status, .. } if *status >= 500 && *status != 503 => VerbExit::Fault,
        Error::CannotConnect { .. }
        | Error::BrokeOff { .. }
        | Error::Unproven { .. }
        | Error::Unauthorised { .. }
        | Error::Refused { .. } => VerbExit::Failed,
    }
}

/// A text quoted as one word of a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::sqlite::SqliteStore;

    fn at(server: Option<&str>, dir: &Path) -> ServerArgs {
        let server = server.map(str::to_owned);
        ServerArgs { server, token: None, data_dir: Some(dir.to_owned()) }
    }

    #[tokio::test]
    async fn the_server_is_the_one_that_owns_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let reach = at(None, dir.path());
        let shown = dir.path().display();
        let why = format!(
            "no server runs on {shown}: start one with airlock serve, or name one with --server"
        );
        assert_eq!(
            reach.client(owner).unwrap_err(),
            UnreachableServer { why, exit: VerbExit::Failed }
        );
        let store = SqliteStore::open(dir.path()).unwrap();
        let unheard = reach.client(owner).unwrap_err().why;
        assert!(unheard.contains("has not said where it listens"), "{unheard}");
        store.set_owner_note("http://127.0.0.1:4788").unwrap();
        assert_eq!(reach.client(owner).unwrap().base_url(), "http://127.0.0.1:4788");
        let named = at(Some("http://127.0.0.1:9/"), dir.path());
        assert_eq!(named.client(owner).unwrap().base_url(), "http://127.0.0.1:9");
        store.close().await;
    }

    #[test]
    fn a_token_is_sent_unproven_only_where_it_was_given_for_that_server() {
        let (a, b) = (format!("alk_{}", "a".repeat(43)), format!("alk_{}", "b".repeat(43)));
        let named = NamedServer::default();
        assert_eq!(named.token_for(None, None), None);
        assert_eq!(named.token_for(None, Some(&a)), Some(ServerToken::found(&a)));
        assert_eq!(named.token_for(Some(&b), Some(&a)), Some(ServerToken::given(&b)));
        assert_eq!(named.token_for(Some(" "), Some(&a)), Some(ServerToken::found(&a)));
        let profile = NamedServer { token: Some(b.clone()), address: Some("x:1".into()), ..named };
        let stored = ServerToken::found(&b).of_server_at(Some("x:1"));
        assert_eq!(profile.token_for(None, Some(&a)), Some(stored));
        let given = ServerToken::given(&a).of_server_at(Some("x:1"));
        assert_eq!(profile.token_for(Some(&a), None), Some(given));
    }

    #[test]
    fn a_bad_url_is_a_mistake_of_the_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let unreached = at(Some("https://example.org"), dir.path()).client(owner).unwrap_err();
        assert_eq!(unreached.exit, VerbExit::Usage);
        assert!(unreached.why.ends_with("only http is spoken so far"), "{}", unreached.why);
    }

    #[test]
    fn commands_to_copy_go_to_the_same_server() {
        let dir = Path::new("/tmp/it's here");
        let flags = at(Some("http://127.0.0.1:9"), dir).flags();
        assert_eq!(flags, r" --server http://127.0.0.1:9 --data-dir '/tmp/it'\''s here'");
        assert_eq!(ServerArgs::default().flags(), "");
    }

    #[test]
    fn a_no_of_the_server_and_a_broken_server_are_told_apart() {
        let refused =
            |status| exit(&Error::Refused { status, tag: String::new(), message: String::new() });
        let exits = [404, 500, 503].map(refused);
        assert_eq!(exits, [VerbExit::Failed, VerbExit::Fault, VerbExit::Failed]);
        let url = "http://x".to_owned();
        let expected = "http://x does not know this token\nhint: give one with --token or ";
        assert!(report_error(&Error::Unauthorised { url }).starts_with(expected));
    }
}
