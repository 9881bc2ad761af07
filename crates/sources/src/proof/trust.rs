//! What the proofs of all connections share: the vault, the network, and where people find us.

use crate::Setup;
use crate::config::Connection;
use crate::vault::Vault;
use engine::Engine;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{self, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::HttpClient;
use tools::{AuthMethod, Minding, Slug};
use url::Url;

/// How long a call that needs a person waits until the server knows where it listens: it has just started.
const ORIGIN_WAIT_MAX: Duration = Duration::from_secs(10);

/// Which connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) slug: Slug,
    pub(crate) owner: String,
    pub(crate) name: String,
}

/// As it stands in records.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.slug, self.owner, self.name)
    }
}

impl Key {
    /// As people read it.
    pub(crate) fn shown(&self) -> String {
        format!("{}.{}.{}", self.slug, self.owner, self.name)
    }
}

/// What the proofs of all connections share.
pub(crate) struct Trust {
    pub(crate) vault: Vault,
    pub(crate) http: HttpClient,
    pub(crate) engine: Engine,
    pub(super) minding: Minding,
    /// Where browsers find this server; none until it listens.
    origin: watch::Sender<Option<Url>>,
    /// Whether it will ever listen.
    serves: bool,
    /// Every connection as it is now: a call that waited for a person has found it as it was.
    current: Mutex<HashMap<Key, Arc<Connection>>>,
    /// One at a time per connection: whoever waits finds what the first one got.
    turns: Mutex<HashMap<Key, Arc<sync::Mutex<()>>>>,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Trust {
    pub(crate) fn new(setup: &Setup, closing: &CancellationToken, tasks: &TaskTracker) -> Self {
        Self {
            vault: setup.vault.clone(),
            http: setup.http.clone(),
            engine: setup.engine.clone(),
            minding: setup.minding,
            origin: watch::Sender::new(None),
            serves: setup.serves,
            current: Mutex::default(),
            turns: Mutex::default(),
            closing: closing.clone(),
            tasks: tasks.clone(),
        }
    }

    /// Browsers find us there.
    pub(crate) fn listens_at(&self, origin: Url) {
        self.origin.send_replace(Some(origin));
    }

    /// Where browsers find us; none where nobody does.
    pub(crate) async fn origin(&self) -> Option<Url> {
        if !self.serves {
            return None;
        }
        let mut origin = self.origin.subscribe();
        let known = tokio::time::timeout(ORIGIN_WAIT_MAX, origin.wait_for(Option::is_some));
        known.await.ok()?.ok()?.clone()
    }

    /// The source's own ways to prove who calls.
    pub(crate) fn methods(&self, key: &Key) -> Vec<AuthMethod> {
        let snapshot = self.engine.catalogue().snapshot();
        let integration = snapshot.integration(key.slug.as_str());
        integration.map(|integration| integration.auth_methods()).unwrap_or_default()
    }

    /// Where the source's calls go, if that is an address.
    pub(crate) fn target(&self, key: &Key) -> Option<Url> {
        let snapshot = self.engine.catalogue().snapshot();
        Url::parse(&snapshot.integration(key.slug.as_str())?.target()).ok()
    }

    /// Remembers what a connection is now.
    pub(crate) fn update(&self, key: &Key, connection: &Arc<Connection>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.insert(key.clone(), Arc::clone(connection));
    }

    /// What a connection is now; none where it never was bound.
    pub(crate) fn current(&self, key: &Key) -> Option<Arc<Connection>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Forgets a connection that is gone.
    pub(crate) fn drop_current(&self, key: &Key) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// This connection's turn.
    pub(crate) fn turn(&self, key: &Key) -> Arc<sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody waits for are made anew when they are needed.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(key.clone()).or_default())
    }
}
