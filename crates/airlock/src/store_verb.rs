//! `airlock store`: checks whether a data directory has lost acknowledged entries, and recovers it.

mod report;

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, data_directory, print};
use clap::ValueHint;
use engine::Clock;
use std::path::PathBuf;
use store::sqlite::{OpenError, SqliteStore};

/// Checks a data directory that no server uses, and recovers one that a server refuses to open.
///
/// A server that finds less than it acknowledged does not start, because a call could be sent twice. `check` shows what is
/// missing and changes nothing. `recover` saves what can be read; the next start parks everything unfinished.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: StoreVerb,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR", global = true, value_hint = ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    /// One line of JSON.
    #[arg(long, global = true)]
    json: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "store";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 6);

    fn run(self) -> VerbExit {
        store(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum StoreVerb {
    /// Reads the whole store, and reports what is missing or damaged. Changes nothing.
    #[command(after_help = CHECK_HELP)]
    Check,
    /// Makes it usable with what can be read, after copying the files aside.
    #[command(after_help = RECOVER_HELP)]
    Recover,
}

const HELP: &str = "\
Examples:
  airlock store check
  airlock store recover
  airlock executions list --status parked     after the next start
  airlock executions continue --all           or one by one

Exit codes:
  0    done; check: nothing is missing
  1    another process uses the directory, or it cannot be read
  2    the command line made no sense
  5    check: something is missing or damaged";

const CHECK_HELP: &str = "\
The mark, a small file beside the database, says how far the store had come when it last acknowledged something.
Less than that is damage. A power cut is none: what was not synced may be gone then.

Exit codes:
  0    nothing is missing
  5    something is missing or damaged";

const RECOVER_HELP: &str = "\
1. The files are copied to damaged-TIME in the data directory. Delete it when you no longer need it.
2. The log is read past its damage; where the database itself is damaged, its rows are copied one by one.
3. What cannot be read is reported. Policies, tokens and settings that changed last may be older than they were:
   compare them with `airlock policy list`, `airlock token list` and `airlock settings`.
4. The next start parks every unfinished execution and ends browser sessions. Nothing is dispatched until a person
   says so: `airlock executions continue ID`, or `--all`. Calls that may have run become questions.";

/// Runs the verb, and prints the result.
pub(crate) fn store(args: &Args) -> VerbExit {
    let Some(dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    let dir = config_files::absolute(&dir);
    print::start_tracing();
    let done = match args.verb {
        StoreVerb::Check => SqliteStore::check_directory(&dir).map(|found| {
            print::print_result(args.json, &report::check_json(&found), |_| {
                report::check_text(&found)
            });
            if found.is_sound() { VerbExit::Good } else { VerbExit::Damaged }
        }),
        StoreVerb::Recover => SqliteStore::recover(&dir, Clock::system().now()).map(|done| {
            print::print_result(args.json, &report::recover_json(&done), |_| {
                report::recover_text(&done)
            });
            VerbExit::Good
        }),
    };
    done.unwrap_or_else(|error| {
        let shown = dir.display();
        print::error(&match error {
            OpenError::Owned { note } => {
                format!("{shown} is in use by {note}; stop that server first")
            }
            error @ (OpenError::Newer { .. }
            | OpenError::Short { .. }
            | OpenError::Foreign
            | OpenError::Store(_)) => format!("could not read {shown}: {error}"),
        });
        VerbExit::Failed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn check_and_recover_take_a_directory_and_nothing_else() {
        let parse = |words: &str| {
            Wrapper::try_parse_from(std::iter::once("store").chain(words.split_whitespace()))
                .is_ok()
        };
        assert!(parse("check") && parse("recover --data-dir d --json"));
        assert!(!parse("") && !parse("repair") && !parse("check d"));
    }
}
