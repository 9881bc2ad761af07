//! An engine in this process, with the demo tools, on a real store and in real sandboxes.

pub(crate) mod journal;

use engine::{Clock, Config, Engine, ExecutionStart, ManualClock};
use futures_util::StreamExt;
use journal::{Mischief, Mischievous};
use lifecycle::{
    Answer, CallerName, Event, ExecutionId, ExecutionLimits, ExecutionOutcome, ExecutionPhase,
    Program, Question, Seq, Timestamp, ValueConvention,
};
use std::path::Path;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::demo::DemoTools;
use tools::{Catalogue, Source};

pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) mischief: Arc<Mischief>,
    store: SqliteStore,
}

impl House {
    /// Opens an engine in `folder`; `change` adapts its configuration.
    pub(crate) async fn open(folder: &Path, change: impl FnOnce(&mut Config)) -> Self {
        Self::open_with(folder, vec![], change).await
    }

    /// Opens an engine with a manual clock.
    pub(crate) async fn wound(
        folder: &Path,
        change: impl FnOnce(&mut Config),
    ) -> (Self, ManualClock) {
        let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
        let house = Self::open(folder, |config| {
            config.clock = Clock::Manual(clock.clone());
            change(config);
        });
        (house.await, clock)
    }

    /// Opens an engine with additional tools.
    pub(crate) async fn open_with(
        folder: &Path,
        sources: Vec<Arc<dyn Source>>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::open_mischievous(folder, sources, Mischief::default(), change).await
    }

    /// Opens an engine that records its clock and quotas, as a server does.
    pub(crate) async fn open_noting(
        folder: &Path,
        clock: &ManualClock,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let store = SqliteStore::open(folder).unwrap();
        let records = Arc::new(store.clone());
        let change = |config: &mut Config| {
            config.clock = Clock::Manual(clock.clone());
            config.records = Some(records);
            change(config);
        };
        Self::open_on(store, folder, (vec![], Mischief::default()), change).await
    }

    /// Opens an engine whose journal is faulty from the start.
    pub(crate) async fn open_mischievous(
        folder: &Path,
        sources: Vec<Arc<dyn Source>>,
        mischief: Mischief,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let store = SqliteStore::open(folder).unwrap();
        Self::open_on(store, folder, (sources, mischief), change).await
    }

    async fn open_on(
        store: SqliteStore,
        folder: &Path,
        (mut sources, mischief): (Vec<Arc<dyn Source>>, Mischief),
        change: impl FnOnce(&mut Config),
    ) -> Self {
        sources.push(Arc::new(DemoTools::new(folder)));
        let mischief = Arc::new(mischief);
        let journal = Mischievous { inner: store.clone(), mischief: Arc::clone(&mischief) };
        let mut config = Config::new(journal, Catalogue::new(sources).unwrap());
        config.sandbox.program =
            sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_airlock").into());
        change(&mut config);
        Self { engine: Engine::start(config).await.unwrap(), mischief, store }
    }

    pub(crate) async fn close(self) {
        self.engine.shutdown().await;
        self.store.close().await;
    }

    pub(crate) async fn submit(&self, source: &str, limits: ExecutionLimits) -> ExecutionId {
        self.submit_for(me(), source, limits).await
    }

    pub(crate) async fn submit_for(
        &self,
        caller: CallerName,
        source: &str,
        limits: ExecutionLimits,
    ) -> ExecutionId {
        let program =
            Program { source: source.to_owned(), convention: ValueConvention::ExplicitReturn };
        self.engine.submit(ExecutionStart { program, caller, limits }).await.unwrap()
    }

    pub(crate) async fn run(&self, source: &str, limits: ExecutionLimits) -> ExecutionOutcome {
        let execution = self.submit(source, limits).await;
        self.engine.outcome(execution).await.unwrap()
    }

    /// Waits for an entry that satisfies `wanted`.
    pub(crate) async fn until(&self, execution: ExecutionId, wanted: impl Fn(&Event) -> bool) {
        let mut entries = self.engine.follow(execution, Seq(0));
        while let Some(entry) = entries.next().await {
            if wanted(&entry.unwrap().event) {
                return;
            }
        }
        panic!("it ended before that happened");
    }

    /// Waits until every program waits for people, and returns the oldest question.
    pub(crate) async fn question(&self, execution: ExecutionId) -> Question {
        self.until(execution, |event| matches!(event, Event::Paused { .. })).await;
        let state = self.engine.look_up(execution).await.unwrap().state;
        assert_eq!(state.phase, ExecutionPhase::Paused);
        state.open_questions().next().unwrap().clone()
    }

    pub(crate) async fn accept(&self, question: &Question) {
        let answer = Answer::Accept { content: None };
        self.engine.answer_question(question.id, answer, me()).await.unwrap();
    }
}

pub(crate) fn me() -> CallerName {
    CallerName("tester".into())
}

/// The value of a program that must have one, as JSON text.
pub(crate) fn value(outcome: &ExecutionOutcome) -> &str {
    match outcome {
        ExecutionOutcome::Completed { value: Some(value) } => value.as_text(),
        other => panic!("no value but {other:?}"),
    }
}
