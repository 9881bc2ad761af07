//! `airlock greet`: greets somebody.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};

/// Greets somebody.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name of the person.
    name: String,
}

impl CommandVerb for Args {
    const NAME: &'static str = "greet";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::CommandLine, 9);

    fn run(self) -> VerbExit {
        print::report(&format!("Hello, {}.", self.name));
        VerbExit::Good
    }
}
