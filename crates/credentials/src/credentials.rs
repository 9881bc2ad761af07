//! The state that all connections share: the vault, the network, and where browsers reach the server.

use crate::{ConnectionConfig, Vault};
use futures_util::future::BoxFuture;
use lifecycle::{Answer, ExecutionId, Timestamp};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{self, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::ApiClient;
use tools::{AuthMethod, CatalogueSnapshot, ChildSupervision, IntegrationSlug};
use url::Url;

/// How long a call that needs a person waits until the server knows its address, directly after the start.
const ORIGIN_WAIT_MAX: Duration = Duration::from_secs(10);

/// Identifies a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    /// Its source.
    pub slug: IntegrationSlug,
    /// `org` or `user`.
    pub owner: String,
    /// Its name in paths.
    pub name: String,
}

/// The form in records and in names of the vault.
impl fmt::Display for ConnectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.slug, self.owner, self.name)
    }
}

impl ConnectionKey {
    /// The form that people read.
    pub fn display_name(&self) -> String {
        format!("{}.{}.{}", self.slug, self.owner, self.name)
    }
}

/// What credentials need of the surrounding server.
pub trait CredentialHost: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// How often the clock was set back since the data directory was made.
    fn clock_generation(&self) -> u64;

    /// The current tools and sources.
    fn catalogue(&self) -> Arc<CatalogueSnapshot>;

    /// Answers the question of `execution` that sends a person to `url`. Waits until the question is open or the
    /// execution has finished.
    fn answer_link(
        &self,
        execution: ExecutionId,
        url: String,
        answer: Answer,
    ) -> BoxFuture<'static, ()>;
}

/// The dependencies of [`Credentials`].
pub struct CredentialSetup {
    /// Seals secrets.
    pub vault: Vault,
    /// The HTTP client for authorization servers.
    pub http: ApiClient,
    /// The surrounding server.
    pub host: Arc<dyn CredentialHost>,
    /// How programs that print secrets are supervised.
    pub minding: ChildSupervision,
    /// Whether browsers can reach the server: see [`Credentials::listens_at`].
    pub serves: bool,
    /// Ends the tasks.
    pub closing: CancellationToken,
    /// Tracks the tasks, so that the owner can wait for their end.
    pub tasks: TaskTracker,
}

impl fmt::Debug for CredentialSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialSetup").field("serves", &self.serves).finish_non_exhaustive()
    }
}

/// The state that all connections share.
pub struct Credentials {
    pub(crate) vault: Vault,
    pub(crate) http: ApiClient,
    pub(crate) host: Arc<dyn CredentialHost>,
    pub(crate) minding: ChildSupervision,
    /// Where browsers reach this server; none until it listens.
    origin: watch::Sender<Option<Url>>,
    /// Whether it will ever listen.
    serves: bool,
    /// The newest configuration of each connection. A call that waited for a person holds an older one.
    current: Mutex<HashMap<ConnectionKey, Arc<ConnectionConfig>>>,
    /// One lock per connection: a caller that waits for it uses the result of the first one.
    locks: Mutex<HashMap<ConnectionKey, Arc<sync::Mutex<()>>>>,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// Starts no task; see [`Self::resume_flows`].
    pub fn new(setup: CredentialSetup) -> Self {
        let CredentialSetup { vault, http, host, minding, serves, closing, tasks } = setup;
        let (origin, current) = (watch::Sender::new(None), Mutex::default());
        Self {
            vault,
            http,
            host,
            minding,
            origin,
            serves,
            current,
            locks: Mutex::default(),
            closing,
            tasks,
        }
    }

    /// Sets the address where browsers reach the server.
    pub fn listens_at(&self, origin: Url) {
        self.origin.send_replace(Some(origin));
    }

    /// Where browsers reach the server; none if they never can.
    pub(crate) async fn origin(&self) -> Option<Url> {
        if !self.serves {
            return None;
        }
        let mut origin = self.origin.subscribe();
        let known = tokio::time::timeout(ORIGIN_WAIT_MAX, origin.wait_for(Option::is_some));
        known.await.ok()?.ok()?.clone()
    }

    /// The authentication methods of the source.
    pub(crate) fn methods(&self, key: &ConnectionKey) -> Vec<AuthMethod> {
        let integration = self.host.catalogue().integration(key.slug.as_str());
        integration.map(|integration| integration.auth_methods()).unwrap_or_default()
    }

    /// Where the source's calls go, if that is an address.
    pub(crate) fn target(&self, key: &ConnectionKey) -> Option<Url> {
        Url::parse(&self.host.catalogue().integration(key.slug.as_str())?.target()).ok()
    }

    /// Records the newest configuration of a connection.
    pub fn update(&self, key: &ConnectionKey, connection: &Arc<ConnectionConfig>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.insert(key.clone(), Arc::clone(connection));
    }

    /// The newest configuration of a connection; none if it was never bound.
    pub(crate) fn current(&self, key: &ConnectionKey) -> Option<Arc<ConnectionConfig>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Drops the configuration of a connection that was removed.
    pub fn drop_current(&self, key: &ConnectionKey) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The lock of a connection, held while a token is obtained.
    pub(crate) fn connection_lock(&self, key: &ConnectionKey) -> Arc<sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Unused locks are dropped, and created again on demand.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(key.clone()).or_default())
    }
}
