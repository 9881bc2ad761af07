//! A private server, on a journal that is deleted when the user leaves.

use anyhow::Context as _;
use engine::{Config, Engine};
use server::auth::MintedSecret;
use server::{AuthMode, DoorSelection, DoorSettings, RunningServer};
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::Catalogue;
use tools::builtin::BuiltinTools;
use tools::demo::DemoTools;

/// A server in this process.
pub(super) struct LocalReplServer {
    server: RunningServer,
    engine: Engine,
    store: SqliteStore,
    secret: String,
    _place: tempfile::TempDir,
}

impl LocalReplServer {
    pub(super) async fn start(demo: bool) -> anyhow::Result<Self> {
        let place = tempfile::tempdir().context("could not make a temporary directory")?;
        let store = SqliteStore::temporary().context("could not make a temporary journal")?;
        let catalogue = Catalogue::new(vec![])?;
        if demo {
            catalogue.add(Arc::new(DemoTools::new(place.path())))?;
        }
        catalogue.add(Arc::new(BuiltinTools::new(&catalogue, Arc::new(|_| true))))?;
        let engine = Engine::start(Config::new(store.clone(), catalogue)).await?;
        // Other users of this machine can reach the port, so it requires a secret.
        let secret = MintedSecret::new().context("could not make a token")?.as_text().to_owned();
        let config = server::Config {
            auth: AuthMode::Tokens { environment: Some(secret.clone()) },
            doors: DoorSettings {
                which: DoorSelection::Repl,
                repl: ::repl::ReplSettings { demo, ..::repl::ReplSettings::default() },
                ..DoorSettings::default()
            },
            ..server::Config::new(engine.clone(), store.clone())
        };
        let server = RunningServer::start(config).await?;
        Ok(Self { server, engine, store, secret, _place: place })
    }

    pub(super) fn url(&self) -> String {
        format!("{}/repl", self.server.url().replacen("http", "ws", 1))
    }

    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    pub(super) async fn shutdown(self) {
        let Self { server, engine, store, .. } = self;
        tokio::join!(server.shutdown(), engine.shutdown());
        store.close().await;
    }
}
