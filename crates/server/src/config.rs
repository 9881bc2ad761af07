//! The configuration of a server.

use crate::auth::{SignInKey, WebOrigin};
use crate::doors::DoorSettings;
use crate::edge::ConnectionLimits;
use crate::settings::SettingsRegistry;
use engine::{Clock, Engine};
use lifecycle::AnswerRole;
use sources::SourceRegistry;
use std::net::SocketAddr;
use std::sync::Arc;
use store::{BlobStore, NoteStore, RecordStore};

/// The configuration of a server.
#[derive(Clone)]
pub struct Config {
    /// The listen address; port 0 selects any free port.
    pub listen: SocketAddr,
    /// The engine that runs the programs.
    pub engine: Engine,
    /// Where tokens and the doors' own data are stored.
    pub stores: ServerStores,
    /// How callers are identified.
    pub auth: AuthMode,
    /// The key that lets this account mint sign-in codes without a token.
    pub sign_in_key: Option<SignInKey>,
    /// Names, besides the loopback ones and the listen address, that this server answers to.
    pub allowed_hosts: Vec<String>,
    /// Origins, besides its own, whose pages may call this server.
    pub allowed_origins: Vec<WebOrigin>,
    /// The origin under which people find this server's pages, if it is not the listen address.
    pub public_origin: Option<WebOrigin>,
    /// The limit on who may answer questions. A token's own value may be stricter.
    pub answers: AnswerRole,
    /// The time source.
    pub clock: Clock,
    /// The tools' sources, if they can be changed.
    pub sources: Option<SourceRegistry>,
    /// The settings of the data directory, if there is one.
    pub settings: Option<SettingsRegistry>,
    /// The doors and their settings.
    pub doors: DoorSettings,
    /// The limits on connections.
    pub connections: ConnectionLimits,
}

/// Where a server and its doors store persistent data, besides executions.
#[derive(Clone)]
pub struct ServerStores {
    /// Small values by kind and key: tokens, sessions, keys.
    pub records: Arc<dyn RecordStore>,
    /// Files.
    pub blobs: Arc<dyn BlobStore>,
    /// Numbered entries that are not executions, such as the REPL's.
    pub notes: Arc<dyn NoteStore>,
}

/// Which of its own doors a server opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoorSelection {
    /// All.
    #[default]
    All,
    /// The REPL at every path, and the routes needed to answer questions.
    Repl,
}

/// How callers are identified.
#[derive(Clone)]
pub enum AuthMode {
    /// By their tokens.
    Tokens {
        /// One more secret, with all rights, that is not in the store.
        environment: Option<String>,
    },
    /// Not at all. On loopback addresses only.
    Off,
}

impl Config {
    /// The default configuration for this engine and these records: tokens, and only persons answer.
    pub fn new(engine: Engine, store: impl RecordStore + BlobStore + NoteStore + 'static) -> Self {
        let store = Arc::new(store);
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            engine,
            stores: ServerStores {
                records: Arc::clone(&store) as _,
                blobs: Arc::clone(&store) as _,
                notes: store,
            },
            auth: AuthMode::Tokens { environment: None },
            sign_in_key: None,
            allowed_hosts: vec![],
            allowed_origins: vec![],
            public_origin: None,
            answers: AnswerRole::Person,
            clock: Clock::system(),
            sources: None,
            settings: None,
            doors: DoorSettings::default(),
            connections: ConnectionLimits::default(),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("listen", &self.listen).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerStores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerStores").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AuthMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tokens { .. } => "Tokens",
            Self::Off => "Off",
        })
    }
}
