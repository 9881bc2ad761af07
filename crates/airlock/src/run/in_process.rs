//! Runs a program on an engine in this process. The only file of this verb that knows the engine.

use super::LocalRunEnd;
use super::ask::{ApprovalMode, RunPrompter};
use crate::config_files::vault_key;
use crate::executions::level_name;
use crate::exit::UsageError;
use crate::print;
use crate::process_host::ProcessHost;
use crate::progress::ProgressLine;
use anyhow::Context as _;
use credentials::{KeyPlace, Vault};
use engine::policies::PolicySet;
use engine::{Clock, Config, Engine, ExecutionStart};
use futures_util::StreamExt as _;
use lifecycle::{
    Answer, BuiltinCaller, CallerName, Event, ExecutionLimits, ExecutionOutcome, LogLevel, Policy,
    Program, QuestionId, Rejection, RequestedLimits, Seq, ValueConvention,
};
use sources::{ConfigFiles, SourceRegistry, SourcesSetup};
use std::path::PathBuf;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tokio::signal::unix::{SignalKind, signal};
use tools::builtin::BuiltinTools;
use tools::demo::DemoTools;
use tools::http::ApiClient;
use tools::{Catalogue, ChildSupervision, FoundTool, SourceKinds};

/// The program, its tools and limits, and the way questions are answered.
#[derive(Debug)]
pub(super) struct LocalRun {
    pub(super) data_dir: PathBuf,
    pub(super) source: String,
    /// The default limits, where no file sets others.
    pub(super) usual: ExecutionLimits,
    /// The limit of active time, which overrides the files.
    pub(super) timeout: Option<ExecutionLimits>,
    /// Lower limits that were requested.
    pub(super) asked: RequestedLimits,
    /// The policies that are stored in the data directory.
    pub(super) kept: Policy,
    /// Configuration files, the most important first.
    pub(super) files: ConfigFiles,
    pub(super) asking: ApprovalMode,
    /// Whether output is printed as it arrives; otherwise it is collected.
    pub(super) is_told: bool,
}

/// Runs the program to its end.
pub(super) async fn run(errand: LocalRun) -> anyhow::Result<LocalRunEnd> {
    let store = SqliteStore::temporary().context("could not make a temporary journal")?;
    let wrong = |why| UsageError(format!("the configuration is wrong: {why}"));
    let files = sources::check_files(&errand.files).map_err(wrong)?;
    let clock = Clock::system();
    let configured = sources::configured(&files, &store, clock.now(), errand.usual).await;
    let (policy, limits) = configured.map_err(wrong)?;
    let policies = Arc::new(PolicySet::fixed(policy.and(errand.kept.clone())));
    let catalogue = Catalogue::new(vec![Arc::new(DemoTools::new(&errand.data_dir))])?;
    let housing = ProcessHost::open(&files, &vault_key(None, &errand.data_dir), false)?;
    housing.offer(&catalogue)?;
    let shown = Arc::clone(&policies);
    let shows = move |found: &FoundTool| shown.live().shows(&found.path(), found.traits());
    catalogue.add(Arc::new(BuiltinTools::new(&catalogue, Arc::new(shows))))?;
    // Each source is tried before the program starts: a call never needs to wait for one.
    let source_wait_ms = 0;
    let config =
        Config { policies, limits, clock, source_wait_ms, ..Config::new(store.clone(), catalogue) };
    let engine = Engine::start(config).await?;
    for notice in sources::notices(&files).map_err(wrong)? {
        print::print_note(&print::tamed(&notice));
    }
    let sources = match files.files.is_empty() {
        true => None,
        false => Some(open_sources(&engine, &store, &errand, files).await?),
    };
    let ending = run_to_end(&engine, errand).await;
    engine.shutdown().await;
    if let Some(sources) = sources {
        sources.shutdown().await;
    }
    housing.shutdown().await;
    store.close().await;
    ending
}

/// Opens the sources that the files name, and waits until each is available or has reported its error.
async fn open_sources(
    engine: &Engine,
    store: &SqliteStore,
    errand: &LocalRun,
    files: ConfigFiles,
) -> anyhow::Result<SourceRegistry> {
    let (engine, usual) = (engine.clone(), errand.usual);
    let records = Arc::new(store.clone());
    // Secrets that are sealed here are deleted with the journal.
    let vault = Vault::open(Arc::clone(&records) as _, KeyPlace::Memory).await?;
    let (minding, http) = (ChildSupervision::ThisBinary, ApiClient::default());
    // No source outlives the program, and each is tried before it starts.
    let (descriptions, serves) = (None, false);
    let kinds = SourceKinds::default();
    let setup = SourcesSetup {
        engine,
        usual,
        kinds,
        records,
        descriptions,
        files,
        minding,
        vault,
        http,
        serves,
    };
    let sources = SourceRegistry::start(setup).await?;
    sources.tried().await;
    for (_, why) in sources.troubles().await {
        print::print_note(&print::tamed(&why));
    }
    Ok(sources)
}

/// Starts the program and follows it: prints, asks, and cancels on Ctrl-C.
async fn run_to_end(engine: &Engine, errand: LocalRun) -> anyhow::Result<LocalRunEnd> {
    let LocalRun { source, timeout, asked, asking, is_told, .. } = errand;
    let limits = asked.within(timeout.unwrap_or_else(|| engine.limits()));
    let limits = limits.map_err(|refused| UsageError(refused.to_string()))?;
    let mut logs = vec![];
    let program = Program { source, convention: ValueConvention::LastExpression };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let execution = engine.submit(ExecutionStart { program, caller: me(), limits }).await?;
    let mut entries = engine.follow(execution, Seq(0));
    let mut desk = RunPrompter::new(asking);
    let mut is_interrupted = false;
    let mut progress = ProgressLine::if_wanted(is_told);
    loop {
        let may_draw = !desk.is_asking();
        tokio::select! {
            entry = entries.next() => {
                let entry = entry.context("the journal ended before the program did")??;
                if is_shown(&entry.event) {
                    progress.clear();
                }
                progress.hear_event(&entry.event);
                let say = |level: LogLevel, line: &str| match is_told {
                    true => print::log(level, line),
                    false => logs.push(format!("[{}] {line}", level_name(level))),
                };
                if let Some(outcome) = handle_event(entry.event, &mut desk, say) {
                    let n_declined = desk.n_declined();
                    return Ok(LocalRunEnd { outcome, n_declined, is_interrupted, logs });
                }
            }
            (question, answer) = desk.next() => {
                too_late_is_fine(give_answer(engine, question, answer).await)?;
            }
            () = progress.due(), if may_draw => progress.draw(),
            Some(()) = interrupts.recv() => {
                progress.clear();
                if is_interrupted {
                    let outcome = ExecutionOutcome::Cancelled { by: me(), reason: None };
                    let n_declined = desk.n_declined();
                    return Ok(LocalRunEnd { outcome, n_declined, is_interrupted, logs });
                }
                is_interrupted = true;
                too_late_is_fine(engine.cancel(execution, me()).await)?;
            }
        }
    }
}

/// Whether the event prints something, so that the progress line must be cleared first.
const fn is_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::Logged { .. } | Event::Emitted { .. } | Event::CallAsked(_) | Event::Finished { .. }
    )
}

/// Handles an event; returns the outcome, if it is the last.
fn handle_event(
    event: Event,
    desk: &mut RunPrompter,
    mut say: impl FnMut(LogLevel, &str),
) -> Option<ExecutionOutcome> {
    match event {
        Event::Logged { level, line, .. } => say(level, &line),
        Event::Emitted { item, .. } => say(LogLevel::Log, item.as_text()),
        Event::CallAsked(question) => desk.add(question),
        Event::Finished { outcome, .. } => return Some(outcome),
        Event::Started { .. }
        | Event::Prepared(_)
        | Event::CallMade { .. }
        | Event::CallAnswered { .. }
        | Event::CallDeferred { .. }
        | Event::CallAdmitted { .. }
        | Event::CallDispatched { .. }
        | Event::CallProgressed { .. }
        | Event::CallSettled { .. }
        | Event::TimerSet { .. }
        | Event::TimerCleared { .. }
        | Event::TimerFired { .. }
        | Event::Paused { .. }
        | Event::RecoveryFailed { .. }
        | Event::Parked
        | Event::EntriesMayBeLost
        | Event::Continued { .. }
        | Event::LimitReached { .. } => {}
    }
    None
}

/// Gives an answer. An accept that is refused because the tool's source is not available becomes a cancel: the program
/// ends with this terminal, so it cannot be accepted later.
async fn give_answer(
    engine: &Engine,
    question: QuestionId,
    answer: Answer,
) -> Result<(), engine::Error> {
    match engine.answer_question(question, answer, me()).await {
        Err(engine::Error::Rejected(why @ Rejection::SourceUnavailable { .. })) => {
            print::print_note(&format!(
                "the call is cancelled: {}",
                print::tamed(&why.to_string())
            ));
            engine.answer_question(question, Answer::Cancel, me()).await.map(drop)
        }
        given => given.map(drop),
    }
}

/// Another answer or event came first: the journal records which, and that one counts.
fn too_late_is_fine(done: Result<(), engine::Error>) -> Result<(), engine::Error> {
    match done {
        Err(engine::Error::Rejected(
            Rejection::AlreadyFinished | Rejection::AlreadyAnswered(_),
        )) => Ok(()),
        other => other,
    }
}

fn me() -> CallerName {
    BuiltinCaller::Terminal.into()
}
