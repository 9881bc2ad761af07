//! The trait of verbs, and the table of all verbs. A verb is a file with an `Args` that implements [`CommandVerb`], and its
//! `mod` line in `lib.rs`; the build script generates the table. docs/extending.md shows an example.

use crate::VerbExit;
use clap::{ArgMatches, Command};

/// Every verb, in the order of its modules.
pub(crate) const VERBS: &[VerbEntry] = include!(concat!(env!("OUT_DIR"), "/verbs.rs"));

/// Every verb, in the order of `airlock --help`.
pub(crate) fn in_help_order() -> Vec<&'static VerbEntry> {
    let mut verbs: Vec<_> = VERBS.iter().collect();
    verbs.sort_by_key(|verb| (verb.help_place, verb.name));
    verbs
}

/// The arguments of a verb, with the method that runs it.
pub(crate) trait CommandVerb: clap::Args {
    /// The name on the command line.
    const NAME: &'static str;
    /// Where `airlock --help` lists it: the group, and the place in the group.
    const HELP_PLACE: (HelpGroup, u8);

    /// Runs the verb, and returns the exit.
    fn run(self) -> VerbExit;
}

/// A group of verbs that belong together, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HelpGroup {
    Programs,
    Server,
    Sources,
    Access,
    Protocols,
    CommandLine,
}

impl HelpGroup {
    /// The heading on the page.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Programs => "Programs and tools",
            Self::Server => "The server",
            Self::Sources => "Where tools come from",
            Self::Access => "Who may do what",
            Self::Protocols => "Other protocols",
            Self::CommandLine => "This command line",
        }
    }
}

/// A row of the table.
pub(crate) struct VerbEntry {
    pub(crate) name: &'static str,
    pub(crate) help_place: (HelpGroup, u8),
    define: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<VerbExit, clap::Error>,
}

impl VerbEntry {
    pub(crate) const fn for_verb<A: CommandVerb>() -> Self {
        Self {
            name: A::NAME,
            help_place: A::HELP_PLACE,
            define: A::augment_args,
            run: |matches| A::from_arg_matches(matches).map(A::run),
        }
    }

    /// The verb as a clap command.
    pub(crate) fn command(&self) -> Command {
        (self.define)(Command::new(self.name))
    }

    /// Runs the verb with the arguments that clap has parsed.
    pub(crate) fn run(&self, matches: &ArgMatches) -> Result<VerbExit, clap::Error> {
        (self.run)(matches)
    }
}

#[cfg(test)]
#[path = "../../../examples/extending/greet.rs"]
mod greet;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_that_the_documents_show_works() {
        let page = include_str!("../../../docs/extending.md");
        assert!(page.contains(include_str!("../../../examples/extending/greet.rs")));
        let verb = VerbEntry::for_verb::<greet::Args>();
        let matches = verb.command().try_get_matches_from(["greet", "Ann"]).unwrap();
        assert_eq!(verb.run(&matches).unwrap(), VerbExit::Good);
        assert_eq!(verb.help_place, (HelpGroup::CommandLine, 9));
    }
}
