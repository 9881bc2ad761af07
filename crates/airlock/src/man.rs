//! `airlock man`: manual pages, generated from the table of verbs.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{CommandLine, VerbExit, print};
use clap::CommandFactory as _;
use std::path::{Path, PathBuf};

/// Prints the manual page, or writes those of all verbs.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Writes a page per verb into this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  airlock man | man -l -
  airlock man --dir ~/.local/share/man/man1";

impl CommandVerb for Args {
    const NAME: &'static str = "man";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::CommandLine, 3);

    fn run(self) -> VerbExit {
        let done = match &self.dir {
            Some(dir) => write_all(dir),
            None => page().map(|page| print::report(page.trim_end())),
        };
        match done {
            Ok(()) => VerbExit::Good,
            Err(error) => {
                print::error(&format!("cannot write manual pages: {error}"));
                VerbExit::Failed
            }
        }
    }
}

fn page() -> std::io::Result<String> {
    let mut page = vec![];
    clap_mangen::Man::new(CommandLine::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(CommandLine::command(), dir)
}
