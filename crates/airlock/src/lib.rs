//! The whole binary: one module per verb. Nothing async and nothing slow happens before the verb is known.
//!
//! A library, because cargo compiles a library in parallel with its dependencies; a binary waits for all of them.

mod autostart;
mod call;
mod completions;
mod config_files;
mod connection;
mod data_directory;
mod doctor;
mod duration;
mod exec;
mod exec_server;
mod executions;
mod executor_cli;
mod exit;
mod export;
mod follow_and_prompt;
mod help;
mod init;
mod input;
mod journal;
mod listen_address;
mod logs;
mod man;
mod management_review;
mod mcp;
mod notify;
mod open;
mod policy;
mod print;
mod process_host;
mod profiles;
mod progress;
mod protected;
mod renamed;
mod repl;
mod repl_server;
mod resume;
mod run;
mod runner;
mod runtime;
mod serve;
mod server_locator;
mod server_verb;
mod sessions;
mod settings;
mod sign_in;
mod size;
mod source;
mod status;
mod stop;
mod store_verb;
mod table;
mod token;
mod tools_verb;
mod trust;
mod vault;
mod verb;

use clap::{Command, CommandFactory};
use exit::VerbExit;
use std::path::PathBuf;
use verb::{VERBS, VerbEntry};

/// The command line without the parts that depend on the name of the program: see [`command_line`].
struct CommandLine;

impl CommandFactory for CommandLine {
    fn command() -> Command {
        Command::new("airlock")
            .version(env!("CARGO_PKG_VERSION"))
            .about("Runs code that an agent wrote, in a jail, with tools behind one guarded door")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(verb::in_help_order().into_iter().map(VerbEntry::command))
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

/// Runs the verb of the command line.
pub fn main() -> std::process::ExitCode {
    // Runners are forked from a child that runs this same binary: before anything else is set up.
    sandbox::enter_if_asked();
    processes::enter_if_asked();
    if let Some(code) = ::exec_server::enter_if_asked() {
        return code;
    }
    if program_name() == EXECUTOR
        && let Some(exit) = executor_cli::run(&std::env::args_os().collect::<Vec<_>>())
    {
        return print::checked_output(exit).into();
    }
    let exit = match read_verb() {
        Ok(exit) => exit,
        Err(refused) => print::usage(refused),
    };
    print::checked_output(exit).into()
}

/// Reads the command line and runs its verb.
fn read_verb() -> Result<VerbExit, clap::Error> {
    let words: Vec<_> = std::env::args_os().collect();
    let program = program_name();
    let words = if program == EXECUTOR { executor_cli::airlock_words(words) } else { words };
    let matches = command_line(&program).try_get_matches_from(&words)?;
    if program != EXECUTOR {
        renamed::warn(words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()));
    }
    let verb = matches.subcommand().and_then(|(name, matches)| {
        VERBS.iter().find(|verb| verb.name == name).map(|verb| verb.run(matches))
    });
    verb.expect("clap demands one of the verbs")
}

/// The name by which this program was started.
fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Under this name the verbs of Executor behave as they do in Executor.
const EXECUTOR: &str = "executor";

/// Verbs with `--server` on which `--base-url` could mean the address of an API.
const API_VERBS: [&str; 2] = ["source", "connection"];

/// The command line of the program of this name. `--server` was called `--base-url`: that name remains, hidden, except
/// where it could mean an API. Under the name `executor` it is the server everywhere, as it is in Executor.
fn command_line(program: &str) -> Command {
    let is_executor = program == EXECUTOR;
    let mut command = CommandLine::command();
    if is_executor {
        command = command.mut_subcommand("source", |source| {
            source.mut_subcommand("add", |add| {
                add.mut_arg("api_base_url", |option| option.long("api-base-url"))
            })
        });
    }
    let verbs: Vec<_> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for verb in verbs {
        let keeps = is_executor || !API_VERBS.contains(&verb.as_str());
        command = command.mut_subcommand(verb, |verb| {
            let has_server = verb.get_arguments().any(|option| option.get_id() == "server");
            if keeps && has_server {
                verb.mut_arg("server", |it| it.alias("base-url"))
            } else {
                verb
            }
        });
    }
    help::grouped(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_do_not_contradict_each_other() {
        for program in ["airlock", "executor"] {
            command_line(program).debug_assert();
        }
    }

    /// The values of `--server` and the API's base URL on this command line; `None` where it is refused.
    fn read(program: &str, words: &[&str]) -> Option<(Option<String>, Option<String>)> {
        let words = std::iter::once(program).chain(words.iter().copied());
        let matches = command_line(program).try_get_matches_from(words).ok()?;
        let text = |matches: &clap::ArgMatches, id: &str| {
            matches.try_get_one::<String>(id).ok().flatten().cloned()
        };
        let (_, verb) = matches.subcommand()?;
        let api = verb.subcommand().and_then(|(_, add)| text(add, "api_base_url"));
        Some((text(verb, "server"), api))
    }

    #[test]
    fn base_url_never_means_the_server_where_it_could_mean_an_api() {
        let (server, api) = (Some("http://s".to_owned()), Some("http://s".to_owned()));
        let url = ["--base-url", "http://s"];
        for words in [&["executions", "list"][..], &["call", "a.b"], &["mcp"], &["run", "-e", "1"]]
        {
            assert_eq!(
                read("airlock", &[words, &url].concat()),
                Some((server.clone(), None)),
                "{words:?}"
            );
        }
        let add = ["source", "add", "spec.json"];
        assert_eq!(read("airlock", &[&add[..], &url].concat()), Some((None, api)));
        for words in [&["source", "list"][..], &["connection", "list"]] {
            assert_eq!(read("airlock", &[words, &url].concat()), None, "{words:?}");
        }
        assert_eq!(read("executor", &[&add[..], &url].concat()), Some((server.clone(), None)));
        let both = ["source", "add", "spec.json", "--server", "http://s", "--base-url", "http://a"];
        assert_eq!(read("airlock", &both), Some((server, Some("http://a".into()))));
    }
}
