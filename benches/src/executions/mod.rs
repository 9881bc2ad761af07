//! Executions over HTTP beside their floors and, where it can be installed, beside `executor` 1.5.9 serving
//! the same requests in the same run.

mod calls;
mod hostile;
mod memory;
mod pauses;
mod rival;
mod tool_server;
mod trivial;

use anyhow::Result;
use bench::Report;
use rival::Rival;
use tool_server::ToolServer;

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let tools = ToolServer::start()?;
    let rival = Rival::install_and_start(&tools);
    if let Err(why) = &rival {
        skipped(&format!("{why:#}"));
    }
    let rival = rival.ok();
    memory::idle(rival.as_ref(), &mut report)?;
    trivial::run(rival.as_ref(), &mut report)?;
    calls::run(&tools, rival.as_ref(), &mut report)?;
    pauses::run(&tools, rival.as_ref(), &mut report)?;
    memory::under_load(rival.as_ref(), &mut report)?;
    hostile::run(rival.as_ref(), &mut report)?;
    Ok(report)
}

/// Prominent, so that an incomplete benchmark is not taken for a complete one.
#[expect(clippy::print_stderr, reason = "telling the user is what this function is for")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: nothing is measured beside executor {}: {why}", rival::VERSION);
}
