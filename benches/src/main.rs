//! Runs benchmarks by name. Each is a module that returns a report.

mod apart;
mod catalogue;
mod cli;
mod core;
mod directory;
mod durable;
mod enclave;
mod exec_server;
mod executions;
mod floor_process;
mod kit;
mod mcp;
mod npm;
mod repl;
mod runner;
mod terminals;
mod workloads;

use anyhow::{Result, bail};
use bench::Report;
use clap::Parser;
use std::process::ExitCode;

/// A benchmark that can be selected by name.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Report>,
}

/// All benchmarks.
const BENCHMARKS: &[Benchmark] = &[
    Benchmark { name: "kit", about: "what measuring itself costs", run: kit::run },
    Benchmark { name: "core", about: "runners, calls and the journal", run: core::run },
    Benchmark { name: "runner", about: "an execbox runner over a pipe", run: runner::run },
    Benchmark { name: "durable", about: "the real server", run: durable::run },
    Benchmark { name: "mcp", about: "execute over MCP, beside an rmcp echo", run: mcp::run },
    Benchmark { name: "repl", about: "the REPL, beside a WebSocket echo", run: repl::run },
    Benchmark { name: "catalogue", about: "ten thousand tools", run: catalogue::run },
    Benchmark {
        name: "exec-server",
        about: "processes, beside codex exec-server",
        run: exec_server::run,
    },
    Benchmark {
        name: "terminals",
        about: "screens, beside the emulator's library alone",
        run: terminals::run,
    },
    Benchmark { name: "cli", about: "from a verb to its first output", run: cli::run },
    Benchmark {
        name: "enclave",
        about: "sessions, and streams of their events",
        run: enclave::run,
    },
    Benchmark { name: "executions", about: "beside executor 1.5.9", run: executions::run },
    Benchmark {
        name: "workloads",
        about: "what users do, in the default mode",
        run: workloads::run,
    },
];

/// Measures subjects beside their floors.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// The benchmark's name; default: all.
    name: Option<String>,
    /// Fail when a target is missed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    sandbox::enter_if_asked();
    if let Some(code) = floor_process::enter_if_asked() {
        return code;
    }
    let arguments = Arguments::parse();
    match measure(arguments.name.as_deref()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(n_missed) => {
            complain(&format!("{n_missed} targets missed"));
            if arguments.check { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(why) => {
            complain(&format!("bench: {why:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs one benchmark or all, and counts the targets that were missed.
fn measure(name: Option<&str>) -> Result<usize> {
    let mut n_missed = 0;
    for benchmark in chosen(name)? {
        say(&format!("== {}: {}", benchmark.name, benchmark.about));
        let report = (benchmark.run)()?;
        say(&report.shown());
        n_missed += report.n_missed();
    }
    Ok(n_missed)
}

fn chosen(name: Option<&str>) -> Result<Vec<&'static Benchmark>> {
    let meant = |benchmark: &&Benchmark| name.is_none_or(|name| benchmark.name == name);
    let benchmarks: Vec<_> = BENCHMARKS.iter().filter(meant).collect();
    if let (true, Some(name)) = (benchmarks.is_empty(), name) {
        let known: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        bail!("no benchmark {name}; there are: {}", known.join(", "));
    }
    Ok(benchmarks)
}

#[expect(clippy::print_stdout, reason = "telling the user is what this function is for")]
fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "telling the user is what this function is for")]
fn complain(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_by_name_or_all() {
        assert_eq!(chosen(None).unwrap().len(), BENCHMARKS.len());
        assert_eq!(chosen(Some("kit")).unwrap().len(), 1);
        let why = chosen(Some("kitt")).err().map(|why| why.to_string());
        assert!(why.is_some_and(|why| why.starts_with("no benchmark kitt; there are: kit")));
    }

    #[test]
    fn no_two_benchmarks_share_a_name() {
        let mut names: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BENCHMARKS.len());
    }
}
