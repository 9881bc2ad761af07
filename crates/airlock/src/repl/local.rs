//! A server of one's own, on a journal that is gone when the user leaves.

use anyhow::Context as _;
use engine::{Config, Engine};
use server::auth::Secret;
use server::{Auth, DoorSettings, Doors, Server};
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::Catalogue;
use tools::builtin::Builtin;
use tools::demo::Demo;

/// A server in this process.
pub(super) struct Local {
    server: Server,
    engine: Engine,
    store: SqliteStore,
    secret: String,
    _place: tempfile::TempDir,
}

impl Local {
    pub(super) async fn start(demo: bool) -> anyhow::Result<Self> {
        let place = tempfile::tempdir().context("could not make a temporary directory")?;
        let store = SqliteStore::temporary().context("could not make a temporary journal")?;
        let catalogue = Catalogue::new(vec![])?;
        if demo {
            catalogue.add(Arc::new(Demo::new(place.path())))?;
        }
        catalogue.add(Arc::new(Builtin::new(&catalogue, Arc::new(|_| true))))?;
        let engine = Engine::start(Config::new(store.clone(), catalogue)).await?;
        // Others on this machine can reach the port: they must not get in.
        let secret = Secret::new().context("could not make a token")?.text().to_owned();
        let config = server::Config {
            auth: Auth::Tokens { environment: Some(secret.clone()) },
            doors: DoorSettings {
                which: Doors::Repl,
                repl: ::repl::Settings { demo, ..::repl::Settings::default() },
                ..DoorSettings::default()
            },
            ..server::Config::new(engine.clone(), store.clone())
        };
        let server = Server::start(config).await?;
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
