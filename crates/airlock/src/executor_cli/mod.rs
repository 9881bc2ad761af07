//! The command line under the name `executor`: output and exit codes of Executor's own command line, for scripts that call
//! it. Verbs that Executor does not have remain Airlock's.

mod browse;
mod calls;
mod daemon;
pub(crate) mod import;
mod profiles;
mod target;

use crate::{VerbExit, print};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;

/// Verbs that are handled here; all others are Airlock's.
const VERBS: [&str; 12] = [
    "call", "resume", "tools", "server", "web", "daemon", "install", "service", "login", "logout",
    "whoami", "docs",
];

/// The documentation of the differences from Executor.
const DOCS: &str = "docs/from-executor.md";

/// Airlock, with the command line of Executor.
#[derive(Debug, Parser)]
#[command(name = "executor", version, arg_required_else_help = true)]
#[command(after_help = "Further verbs are Airlock's: airlock --help lists them.")]
struct ExecutorCommand {
    /// Shows errors whole with debug, trace or all.
    #[arg(long, global = true, value_name = "LEVEL")]
    log_level: Option<String>,
    #[command(subcommand)]
    verb: ExecutorVerb,
}

#[derive(Debug, Subcommand)]
enum ExecutorVerb {
    /// Invoke a tool path. Use --help to browse by namespace or path.
    Call(calls::CallArgs),
    /// Resume a paused execution.
    Resume(calls::ResumeArgs),
    /// Discover available tools and sources.
    Tools {
        #[command(subcommand)]
        verb: calls::ToolsVerb,
    },
    /// Manage named server profiles.
    Server {
        #[command(subcommand)]
        verb: profiles::ServerVerb,
    },
    /// Open the web UI: starts a server where none runs, and prints where it is.
    Web(daemon::WebArgs),
    /// Manage the local daemon.
    Daemon {
        #[command(subcommand)]
        verb: daemon::DaemonVerb,
    },
    /// Print where the documentation is.
    Docs,
    #[command(hide = true)]
    Install(UnsupportedWords),
    #[command(hide = true)]
    Service(UnsupportedWords),
    #[command(hide = true)]
    Login(UnsupportedWords),
    #[command(hide = true)]
    Logout(UnsupportedWords),
    #[command(hide = true)]
    Whoami(UnsupportedWords),
}

/// Arguments of a verb that is not supported.
#[derive(Debug, Args)]
struct UnsupportedWords {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<String>,
}

/// Runs the command line, if its verb is one of Executor's.
pub(crate) fn run(words: &[OsString]) -> Option<VerbExit> {
    let is_flag = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    let verb = words.iter().skip(1).find(|word| !is_flag(word)).and_then(|word| word.to_str());
    if verb.is_some_and(|verb| !VERBS.contains(&verb)) {
        return None;
    }
    Some(match ExecutorCommand::try_parse_from(words) {
        Ok(line) => run_command(&line),
        Err(refused) => print::usage_as_executor(&refused),
    })
}

fn run_command(line: &ExecutorCommand) -> VerbExit {
    let is_verbose = matches!(line.log_level.as_deref(), Some("all" | "trace" | "debug"));
    let done = match &line.verb {
        ExecutorVerb::Call(args) => calls::call(args, is_verbose),
        ExecutorVerb::Resume(args) => calls::resume(args, is_verbose),
        ExecutorVerb::Tools { verb } => calls::tools(verb, is_verbose),
        ExecutorVerb::Server { verb } => profiles::server(verb),
        ExecutorVerb::Web(args) => daemon::web(args),
        ExecutorVerb::Daemon { verb } => daemon::daemon(verb),
        ExecutorVerb::Docs => {
            print::report(DOCS);
            Ok(VerbExit::Good)
        }
        ExecutorVerb::Install(_) | ExecutorVerb::Service(_) => Err(format!(
            "Airlock installs no service by itself: docs/operating.md has a unit for systemd.\nDifferences from Executor: {DOCS}"
        )),
        ExecutorVerb::Login(_) | ExecutorVerb::Logout(_) | ExecutorVerb::Whoami(_) => Err(format!(
            "There are no hosted servers to sign in to: airlock server add NAME URL --token-file FILE keeps a token.\n\
             Differences from Executor: {DOCS}"
        )),
    };
    done.unwrap_or_else(|why| {
        print::bare_note(&why);
        VerbExit::Failed
    })
}

/// The arguments of Airlock's own verbs, without the options that only Executor has.
pub(crate) fn airlock_words(words: Vec<OsString>) -> Vec<OsString> {
    let mut kept = vec![];
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--scope") => drop(words.next()),
            Some(word) if word.starts_with("--scope=") => {}
            Some(_) | None => kept.push(word),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_verbs_do_not_contradict_each_other() {
        ExecutorCommand::command().debug_assert();
        let known: Vec<_> = ExecutorCommand::command()
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        assert!(VERBS.iter().all(|verb| known.iter().any(|known| known == verb)), "{known:?}");
    }

    #[test]
    fn verbs_of_airlock_stay_airlocks_without_executors_options() {
        assert_eq!(run(&words(&["executor", "executions", "list"])), None);
        let given = words(&["executor", "mcp", "--scope", "/tmp", "--elicitation-mode", "model"]);
        let kept = words(&["executor", "mcp", "--elicitation-mode", "model"]);
        assert_eq!(airlock_words(given), kept);
    }
}
