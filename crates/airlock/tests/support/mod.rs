//! An engine in this process, with the demo tools, on a real store and in real jails.

use engine::{Config, Engine, Start};
use lifecycle::{CallerName, Convention, ExecutionId, Limits, Outcome, Program};
use std::path::Path;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::Catalogue;
use tools::demo::Demo;

pub(crate) struct House {
    pub(crate) engine: Engine,
    store: SqliteStore,
}

impl House {
    /// Opens a house in `folder`; `change` adapts what it is made of.
    pub(crate) async fn open(folder: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let store = SqliteStore::open(folder).unwrap();
        let catalogue = Catalogue::new(vec![Arc::new(Demo::new(folder))]).unwrap();
        let mut config = Config::new(store.clone(), catalogue);
        config.sandbox.program = sandbox::Program::At(env!("CARGO_BIN_EXE_airlock").into());
        change(&mut config);
        Self { engine: Engine::start(config).await.unwrap(), store }
    }

    pub(crate) async fn close(self) {
        self.engine.shutdown().await;
        self.store.close().await;
    }

    pub(crate) async fn submit(&self, source: &str, limits: Limits) -> ExecutionId {
        let program = Program { source: source.to_owned(), convention: Convention::ExplicitReturn };
        let caller = CallerName("tester".into());
        self.engine.submit(Start { program, caller, limits }).await.unwrap()
    }

    pub(crate) async fn run(&self, source: &str, limits: Limits) -> Outcome {
        let execution = self.submit(source, limits).await;
        self.engine.outcome(execution).await.unwrap()
    }
}

/// The value of a program that must have one, as JSON text.
pub(crate) fn value(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Completed { value: Some(value) } => value.text(),
        other => panic!("no value but {other:?}"),
    }
}
