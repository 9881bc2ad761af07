//! Runs a program on an engine of its own. The only file of this verb that knows the engine.

use super::Ending;
use super::ask::{Asking, Desk};
use crate::executions::level_name;
use crate::print;
use anyhow::Context as _;
use engine::{Config, Engine, Start};
use futures_util::StreamExt as _;
use lifecycle::{
    CallerName, Convention, Event, Limits, LogLevel, Outcome, Program, Rejection, Seq,
};
use std::path::PathBuf;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tokio::signal::unix::{SignalKind, signal};
use tools::Catalogue;
use tools::builtin::Builtin;
use tools::demo::Demo;

/// What to run, with what, and who is asked.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) data_dir: PathBuf,
    pub(super) source: String,
    pub(super) limits: Limits,
    pub(super) asking: Asking,
    /// Whether what it prints is told as it comes; otherwise it is collected.
    pub(super) is_told: bool,
}

/// Runs it to its end.
pub(super) async fn run(errand: Errand) -> anyhow::Result<Ending> {
    let store = SqliteStore::temporary().context("could not make a temporary journal")?;
    let catalogue = Catalogue::new(vec![Arc::new(Demo::new(&errand.data_dir))])?;
    catalogue.add(Arc::new(Builtin::new(&catalogue, Arc::new(|_| true))))?;
    let engine = Engine::start(Config::new(store.clone(), catalogue)).await?;
    let ending = attend(&engine, errand).await;
    engine.shutdown().await;
    store.close().await;
    ending
}

/// Starts the program and stays with it: prints, asks, and cancels on Ctrl-C.
async fn attend(engine: &Engine, errand: Errand) -> anyhow::Result<Ending> {
    let Errand { source, limits, asking, is_told, .. } = errand;
    let mut logs = vec![];
    let program = Program { source, convention: Convention::LastExpression };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let execution = engine.submit(Start { program, caller: me(), limits }).await?;
    let mut entries = engine.follow(execution, Seq(0));
    let mut desk = Desk::new(asking);
    let mut is_interrupted = false;
    loop {
        tokio::select! {
            entry = entries.next() => {
                let entry = entry.context("the journal ended before the program did")??;
                let say = |level: LogLevel, line: &str| match is_told {
                    true => print::log(level, line),
                    false => logs.push(format!("[{}] {line}", level_name(level))),
                };
                if let Some(outcome) = hear(entry.event, &mut desk, say) {
                    let n_declined = desk.n_declined();
                    return Ok(Ending { outcome, n_declined, is_interrupted, logs });
                }
            }
            (question, answer) = desk.next() => {
                too_late_is_fine(engine.answer(question, answer, me()).await.map(drop))?;
            }
            Some(()) = interrupts.recv() => {
                if is_interrupted {
                    let outcome = Outcome::Cancelled { by: me(), reason: None };
                    let n_declined = desk.n_declined();
                    return Ok(Ending { outcome, n_declined, is_interrupted, logs });
                }
                is_interrupted = true;
                too_late_is_fine(engine.cancel(execution, me()).await)?;
            }
        }
    }
}

/// What an event means to the person at the terminal; the outcome, if it is the last.
fn hear(event: Event, desk: &mut Desk, mut say: impl FnMut(LogLevel, &str)) -> Option<Outcome> {
    match event {
        Event::Logged { level, line, .. } => say(level, &line),
        Event::Emitted { item, .. } => say(LogLevel::Log, item.text()),
        Event::CallAsked(question) => desk.add(question),
        Event::Finished { outcome, .. } => return Some(outcome),
        Event::Started { .. }
        | Event::Prepared(_)
        | Event::CallMade { .. }
        | Event::CallAnswered { .. }
        | Event::CallDispatched { .. }
        | Event::CallSettled { .. }
        | Event::TimerSet { .. }
        | Event::TimerCleared { .. }
        | Event::TimerFired { .. }
        | Event::Paused { .. }
        | Event::RecoveryFailed { .. }
        | Event::Parked
        | Event::LimitReached { .. } => {}
    }
    None
}

/// Somebody or something else was quicker: the journal says who, and that counts.
fn too_late_is_fine(done: Result<(), engine::Error>) -> Result<(), engine::Error> {
    match done {
        Err(engine::Error::Rejected(
            Rejection::AlreadyFinished | Rejection::AlreadyAnswered(_),
        )) => Ok(()),
        other => other,
    }
}

fn me() -> CallerName {
    CallerName("terminal".into())
}
