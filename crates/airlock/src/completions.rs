//! `airlock completions`: shell completions, generated from the table of verbs.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{CommandLine, VerbExit, print};
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Prints what a shell needs to complete verbs and flags.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

const HELP: &str = "\
Examples:
  airlock completions bash > ~/.local/share/bash-completion/completions/airlock
  airlock completions zsh > ~/.zfunc/_airlock
  airlock completions fish > ~/.config/fish/completions/airlock.fish";

impl CommandVerb for Args {
    const NAME: &'static str = "completions";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::CommandLine, 2);

    fn run(self) -> VerbExit {
        let mut script = vec![];
        clap_complete::generate(self.shell, &mut CommandLine::command(), "airlock", &mut script);
        print::report(String::from_utf8_lossy(&script).trim_end());
        VerbExit::Good
    }
}
