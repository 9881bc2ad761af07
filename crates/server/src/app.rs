//! What every request can reach.

use crate::auth::sessions::{self, BrowserSessions, CodePurpose};
use crate::auth::{
    Caller, CallerCredential, Gate, RequestAdmission, SignInKey, TokenError, Tokens,
};
use crate::config::{Auth, Config, Doors};
use crate::doors::enclave::Sessions;
use crate::doors::exec_server::ExecServer;
use crate::doors::execbox::Channels;
use crate::doors::hotrepl::{Places, Repl, Shelf};
use crate::doors::mcp::{Mcp, Narration};
use crate::edge::{ConnectionTable, descriptors_max};
use crate::journal_views::JournalViews;
use crate::metrics::Metrics;
use crate::render_thread::RenderThread;
use crate::settings::{AnswerCeiling, SettingName, SettingValue, SettingsRegistry};
use crate::tasks::Tasks;
use engine::{Clock, Engine};
use protocols::executor::Account;
use sources::Sources;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) gate: Gate,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: BrowserSessions,
    pub(crate) sign_in_key: Option<SignInKey>,
    pub(crate) admission: RequestAdmission,
    /// Who may answer questions at most.
    pub(crate) answers: AnswerCeiling,
    pub(crate) clock: Clock,
    pub(crate) sources: Option<Sources>,
    pub(crate) metrics: Metrics,
    pub(crate) connections: Arc<ConnectionTable>,
    /// What long journals say, for the doors that tell it in Executor's words.
    pub(crate) accounts: JournalViews<Account>,
    /// The same for MCP.
    pub(crate) narrations: JournalViews<Narration>,
    /// Where long journals are rendered.
    pub(crate) render_thread: RenderThread,
    pub(crate) channels: Channels,
    pub(crate) enclave: Arc<Sessions>,
    pub(crate) mcp: Mcp,
    pub(crate) exec_server: Option<ExecServer>,
    pub(crate) repl: Repl,
    pub(crate) doors: Doors,
    pub(crate) settings: Option<SettingsRegistry>,
    /// Cancelled when the server stops: whoever waits is told.
    pub(crate) stopping: CancellationToken,
    /// Every task of the server; joined when it stops.
    pub(crate) tasks: Tasks,
}

impl App {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let (gate, environment) = match config.auth {
            Auth::Tokens { environment } => (Gate::Tokens, environment),
            Auth::Off => (Gate::Open, None),
        };
        let environment = environment.filter(|secret| !secret.is_empty());
        let (stopping, tasks) = (CancellationToken::new(), Tasks::new());
        let sandbox = config.engine.sandbox().clone();
        let (records, clock) = (Arc::clone(&config.records), config.clock.clone());
        let enclave = Sessions::new(config.enclave_tools, records, clock);
        let (blobs, notes) = (config.blobs, config.notes);
        let (public, named) = (config.public_origin.as_ref(), &config.allowed_origins);
        let admission = RequestAdmission::new(config.listen, public, named, &config.allowed_hosts);
        let commands = match &config.sources {
            Some(sources) => sources.commands(),
            None => tokio::sync::watch::Sender::default().subscribe(),
        };
        let places = Places { records: Arc::clone(&config.records), blobs, notes, commands };
        let shelf = Shelf::new(config.engine.clone(), config.clock.clone(), config.repl, places);
        tasks.spawn(Arc::clone(&enclave).watch(config.engine.clone(), stopping.clone()));
        Arc::new(Self {
            enclave,
            exec_server: config.exec_server,
            repl: Repl::new(shelf, stopping.clone(), tasks.clone()),
            doors: config.doors,
            settings: config.settings,
            channels: Channels::new(sandbox, stopping.clone(), tasks.clone()),
            mcp: Mcp::new(&stopping, Arc::clone(&config.records)),
            engine: config.engine,
            gate,
            tokens: Tokens::new(config.records, environment.as_deref()),
            sessions: BrowserSessions::new(config.listen.port()),
            sign_in_key: config.sign_in_key,
            admission,
            answers: AnswerCeiling::new(config.answers),
            clock: config.clock,
            sources: config.sources,
            metrics: Metrics::default(),
            connections: ConnectionTable::new(
                config.connections.within_descriptors(descriptors_max()),
            ),
            accounts: JournalViews::default(),
            narrations: JournalViews::default(),
            render_thread: RenderThread::new(tasks.clone()),
            stopping,
            tasks,
        })
    }

    /// Applies a setting that was changed while the server runs.
    pub(crate) fn apply_setting(&self, name: SettingName, value: &SettingValue) {
        match name {
            SettingName::Answers => self.answers.set(value.text().parse().unwrap_or_default()),
            SettingName::OperatorMode => {
                self.tokens.forget();
                // Sessions of tokens that were rotated ended with them.
                self.sessions.announce_endings();
            }
            // These count from the next start on.
            SettingName::AllowedHosts
            | SettingName::AllowedOrigins
            | SettingName::TrustedProxies
            | SettingName::Config
            | SettingName::UserConfig
            | SettingName::ProjectFiles
            | SettingName::VaultKey
            | SettingName::Listen
            | SettingName::PublicUrl
            | SettingName::Supervised => {}
        }
    }

    /// Resolves when the credential of a caller that was admitted earlier no longer admits it.
    pub(crate) async fn credential_end(&self, caller: &Caller) {
        self.sessions.credential_end(&self.tokens, caller, &self.clock).await;
    }

    /// Resolves when an open connection of `caller` must end: with its credential, or with the server.
    pub(crate) async fn connection_end(self: Arc<Self>, caller: Caller) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.credential_end(&caller) => {}
        }
    }

    /// A code that signs in the browser of the person who started this server; none where no token is asked for.
    pub(crate) async fn operator_code(&self) -> Result<Option<String>, TokenError> {
        if matches!(self.gate, Gate::Open) {
            return Ok(None);
        }
        let (records, now) = (self.tokens.records(), self.clock.now());
        sessions::remove_previous_sessions(records).await?;
        let Some(operator) = self.tokens.operator().await? else { return Ok(None) };
        let CallerCredential::Token(token) = operator.credential else { return Ok(None) };
        let minted = sessions::mint_code(records, CodePurpose::SignIn, &token, now).await?;
        Ok(Some(minted.code))
    }
}
