//! The one tool of this repository: test, tidy, bench, soak, bless.
//!
//! It depends on almost nothing, so that `cargo xtask tidy` answers in seconds on a cold machine.

mod bench;
mod bless;
mod cargo;
mod nextest;
mod packages;
mod print;
mod programs;
mod python;
mod soak;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The one tool of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    verb: XtaskVerb,
}

#[derive(Debug, Subcommand)]
enum XtaskVerb {
    /// Everything that must hold before a change lands: format, lints, tidy, tests, docs.
    Test,
    /// Installs what tests need from npm, once, into target/npm.
    Packages,
    /// Checks what a reviewer would ask about; fails on errors.
    Tidy(tidy::TidyOptions),
    /// Measures in release mode, all benchmarks or one.
    Bench {
        /// The benchmark's name; default: all.
        name: Option<String>,
        /// Fail when a target is missed.
        #[arg(long)]
        check: bool,
    },
    /// Runs tests at full size, all that have one or those of one name.
    Soak {
        /// The soak's name; default: all.
        name: Option<String>,
        #[command(flatten)]
        options: soak::Options,
    },
    /// Runs tests that rewrite their expectations; read the diff afterwards.
    Bless {
        /// Only this package; default: all.
        #[arg(short, long)]
        package: Option<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match XtaskArguments::parse().verb {
        XtaskVerb::Test => test::run(),
        XtaskVerb::Packages => packages::run().and_then(|()| python::run()),
        XtaskVerb::Tidy(options) => tidy::run(options),
        XtaskVerb::Bench { name, check } => bench::run(name.as_deref(), check),
        XtaskVerb::Soak { name, options } => soak::run(name.as_deref(), options),
        XtaskVerb::Bless { package } => bless::run(package.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            print::complain(&format!("xtask: {why:#}"));
            ExitCode::FAILURE
        }
    }
}
