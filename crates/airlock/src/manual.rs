//! `airlock completions` and `airlock man`: what shells and `man` know about the verbs, made from the verbs.

use crate::{Cli, Exit, print};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Prints what a shell needs to complete verbs and flags.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct Completions {
    /// Which shell.
    shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  airlock completions bash > ~/.local/share/bash-completion/completions/airlock
  airlock completions zsh > ~/.zfunc/_airlock
  airlock completions fish > ~/.config/fish/completions/airlock.fish";

/// Prints the manual page, or writes those of all verbs.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct Man {
    /// Writes a page per verb into this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const MAN_HELP: &str = "\
Examples:
  airlock man | man -l -
  airlock man --dir ~/.local/share/man/man1";

/// Prints completions.
pub(crate) fn completions(args: &Completions) -> Exit {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "airlock", &mut script);
    print::report(String::from_utf8_lossy(&script).trim_end());
    Exit::Good
}

/// Prints or writes manual pages.
pub(crate) fn man(args: &Man) -> Exit {
    let done = match &args.dir {
        Some(dir) => write_all(dir),
        None => page().map(|page| print::report(page.trim_end())),
    };
    match done {
        Ok(()) => Exit::Good,
        Err(error) => {
            print::error(&format!("cannot write manual pages: {error}"));
            Exit::Failed
        }
    }
}

fn page() -> std::io::Result<String> {
    let mut page = vec![];
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(Cli::command(), dir)
}
