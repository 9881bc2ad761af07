//! The state that every request can access.

use crate::auth::sessions::{self, BrowserSessions, CodePurpose};
use crate::auth::{
    AuthGate, Caller, CallerCredential, RequestAdmission, SignInKey, TokenError, TokenRegistry,
};
use crate::config::{AuthMode, Config, DoorSelection, ServerStores};
use crate::door::Door;
use crate::doors;
use crate::edge::{ConnectionTable, descriptors_max};
use crate::journal_views::ExecutionViews;
use crate::metrics::ServerMetrics;
use crate::render_thread::RenderThread;
use crate::settings::{AnswerCeiling, SettingName, SettingValue, SettingsRegistry};
use crate::tasks::TaskSpawner;
use engine::{Clock, Engine};
use sources::SourceRegistry;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The state that every request can access. It has no door's fields: a door's own state is in its routes.
pub struct AppState {
    pub(crate) engine: Engine,
    pub(crate) gate: AuthGate,
    pub(crate) tokens: TokenRegistry,
    pub(crate) sessions: BrowserSessions,
    pub(crate) sign_in_key: Option<SignInKey>,
    pub(crate) admission: RequestAdmission,
    /// The upper limit on who may answer questions.
    pub(crate) answers: AnswerCeiling,
    pub(crate) clock: Clock,
    pub(crate) sources: Option<SourceRegistry>,
    pub(crate) metrics: ServerMetrics,
    pub(crate) connections: Arc<ConnectionTable>,
    /// Views of executions, computed from their journals, for everything that shows or answers questions.
    pub(crate) execution_views: ExecutionViews,
    /// The thread on which long journals are rendered.
    pub(crate) render_thread: RenderThread,
    pub(crate) stores: ServerStores,
    pub(crate) which: DoorSelection,
    pub(crate) doors: Vec<Arc<dyn Door>>,
    pub(crate) settings: Option<SettingsRegistry>,
    /// Cancelled when the server stops, which ends every waiting request.
    pub(crate) stopping: CancellationToken,
    /// Tracks every task of the server; joined when it stops.
    pub(crate) tasks: TaskSpawner,
}

impl AppState {
    /// The engine that runs the programs.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn new(config: Config) -> Arc<Self> {
        let (gate, environment) = match config.auth {
            AuthMode::Tokens { environment } => (AuthGate::Tokens, environment),
            AuthMode::Off => (AuthGate::Open, None),
        };
        let environment = environment.filter(|secret| !secret.is_empty());
        let (stopping, tasks) = (CancellationToken::new(), TaskSpawner::new());
        let records = Arc::clone(&config.stores.records);
        let (public, named) = (config.public_origin.as_ref(), &config.allowed_origins);
        let admission = RequestAdmission::new(config.listen, public, named, &config.allowed_hosts);
        Arc::new(Self {
            stores: config.stores,
            which: config.doors.which,
            doors: doors::open(config.doors),
            settings: config.settings,
            engine: config.engine,
            gate,
            tokens: TokenRegistry::new(records, environment.as_deref()),
            sessions: BrowserSessions::new(config.listen.port()),
            sign_in_key: config.sign_in_key,
            admission,
            answers: AnswerCeiling::new(config.answers),
            clock: config.clock,
            sources: config.sources,
            metrics: ServerMetrics::default(),
            connections: ConnectionTable::new(
                config.connections.within_descriptors(descriptors_max()),
            ),
            execution_views: ExecutionViews::default(),
            render_thread: RenderThread::new(tasks.clone()),
            stopping,
            tasks,
        })
    }

    /// Applies a setting that was changed while the server runs.
    pub(crate) fn apply_setting(&self, name: SettingName, value: &SettingValue) {
        match name {
            SettingName::Answers => self.answers.set(value.as_text().parse().unwrap_or_default()),
            SettingName::OperatorMode => {
                self.tokens.clear_cache();
                // Sessions of rotated tokens ended with those tokens.
                self.sessions.announce_endings();
            }
            // These settings take effect at the next start.
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

    /// Resolves when the credential of a previously admitted caller no longer admits it.
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

    /// Creates a code that signs in the browser of the person who started this server; none if the server requires no
    /// token.
    pub(crate) async fn operator_code(&self) -> Result<Option<String>, TokenError> {
        if matches!(self.gate, AuthGate::Open) {
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

impl std::fmt::Debug for AppState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("which", &self.which).finish_non_exhaustive()
    }
}
