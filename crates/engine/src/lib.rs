//! The actors: one task owns one execution and passes everything through `decide`, the journal and
//! `owe`. Knows no protocol and no socket but the runner's link.
//!
//! Embedding it takes a dozen lines:
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use engine::{Config, Engine};
//! use lifecycle::ExecutionOutcome;
//! use tools::{Catalogue, demo::DemoTools};
//!
//! let store = store::sqlite::SqliteStore::temporary()?;
//! let catalogue = Catalogue::new(vec![std::sync::Arc::new(DemoTools::new(std::env::temp_dir()))])?;
//! let engine = Engine::start(Config::new(store, catalogue)).await?;
//! let execution = engine.run("return await tools.demo.add({ a: 1, b: 2 })").await?;
//! let ExecutionOutcome::Completed { value } = engine.outcome(execution).await? else { panic!("it failed") };
//! println!("{}", value.expect("it returns a value").as_text());
//! engine.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! [`Engine::execute`] answers a program's questions with a closure; [`Engine::execute_with_pause`] and
//! [`Engine::resume`] stop at each question; [`Engine::describe`] describes the tools for a model. There is an example of
//! each in `examples/embedding`.
//!
//! The program that embeds it calls `sandbox::enter_if_asked()` first thing in `main`: runners are
//! forked from a child that runs the same binary.

mod actor;
mod after_loss;
mod alarm;
mod capacity;
mod clock;
mod config;
mod embed;
mod engine;
mod fault;
pub mod policies;
mod quotas;
mod reading;
mod recover;
mod registry;
mod reports;
mod retention;

pub use actor::replay::{ReplayOutcome, replay};
pub use capacity::CapacityUse;
pub use clock::{Clock, ClockReading, MachineBoot, ManualClock, ProcessStart, clock_generation};
pub use config::{Config, SOURCE_WAIT_MS};
pub use embed::{EmbeddedOutcome, EmbeddedPause, EmbeddedProgress};
pub use engine::{Engine, ExecutionStart};
pub use fault::{Error, Fault, FaultId};
pub use quotas::{
    CallerReport, HeldRunner, QuotaAccount, QuotaBook, QuotaSettings, REPORTED_CALLERS_MAX,
    RunnerCharge,
};
pub use reading::ExecutionSnapshot;
pub use retention::RetentionPolicy;
