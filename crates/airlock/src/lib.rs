//! All that the binary does: one file per verb. Nothing async and nothing slow happens before the verb is known.
//!
//! A library, because those are built beside what they need; a program waits until all of it is built.

mod attend;
mod autostart;
mod call;
mod config_files;
mod connection;
mod data_directory;
mod doctor;
mod duration;
mod exec;
mod exec_server;
mod executions;
mod exit;
mod housing;
mod init;
mod input;
mod journal;
mod management_review;
mod manual;
mod mcp;
mod notify;
mod open;
mod policy;
mod print;
mod profiles;
mod progress;
mod protected;
mod reach;
mod repl;
mod repl_server;
mod resume;
mod run;
mod runner;
mod runtime;
mod serve;
mod server_verb;
mod sessions;
mod settings;
mod sign_in;
mod size;
mod source;
mod table;
mod token;
mod tools_verb;
mod trust;
mod vault;

use clap::{Parser, Subcommand};
use exit::Exit;

/// Runs code that an agent wrote, in a jail, with tools behind one guarded door.
#[derive(Debug, Parser)]
#[command(name = "airlock", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Args),
    Call(call::Args),
    Tools(tools_verb::Args),
    Doctor(doctor::Args),
    Serve(serve::Args),
    Source(source::Args),
    Connection(connection::Args),
    Server(server_verb::Args),
    Settings(settings::Args),
    Trust(trust::Args),
    Init(init::Args),
    Token(token::Args),
    Vault(vault::Args),
    Policy(policy::Args),
    Resume(resume::Args),
    Executions(executions::Args),
    Open(open::Args),
    SignIn(sign_in::Args),
    Sessions(sessions::Args),
    Runner(runner::Args),
    Mcp(mcp::Args),
    Exec(exec::Args),
    ExecServer(exec_server::Args),
    Completions(manual::Completions),
    Man(manual::Man),
    ReplServer(repl_server::Args),
    Repl(repl::Args),
    Journal(journal::Args),
}

/// Does what the command line says.
pub fn main() -> std::process::ExitCode {
    // Runners are forked from a child that runs this same binary: before anything else is set up.
    sandbox::enter_if_asked();
    processes::enter_if_asked();
    if let Some(code) = tools::minder::enter_if_asked() {
        return code;
    }
    if let Some(code) = server::exec_server::enter_if_asked() {
        return code;
    }
    let exit = match Cli::try_parse() {
        Ok(Cli { verb: Verb::Run(args) }) => run::run(args),
        Ok(Cli { verb: Verb::Call(args) }) => call::call(&args),
        Ok(Cli { verb: Verb::Tools(args) }) => tools_verb::tools(&args),
        Ok(Cli { verb: Verb::Doctor(args) }) => doctor::doctor(&args),
        Ok(Cli { verb: Verb::Serve(args) }) => serve::serve(args),
        Ok(Cli { verb: Verb::Source(args) }) => source::source(&args),
        Ok(Cli { verb: Verb::Connection(args) }) => connection::connection(&args),
        Ok(Cli { verb: Verb::Server(args) }) => server_verb::server(&args),
        Ok(Cli { verb: Verb::Settings(args) }) => settings::settings(&args),
        Ok(Cli { verb: Verb::Trust(args) }) => trust::trust(&args),
        Ok(Cli { verb: Verb::Init(args) }) => init::init(&args),
        Ok(Cli { verb: Verb::Completions(args) }) => manual::completions(&args),
        Ok(Cli { verb: Verb::Man(args) }) => manual::man(&args),
        Ok(Cli { verb: Verb::Token(args) }) => token::token(&args),
        Ok(Cli { verb: Verb::Vault(args) }) => vault::vault(&args),
        Ok(Cli { verb: Verb::Policy(args) }) => policy::policy(&args),
        Ok(Cli { verb: Verb::Resume(args) }) => resume::resume(&args),
        Ok(Cli { verb: Verb::Executions(args) }) => executions::executions(&args),
        Ok(Cli { verb: Verb::Open(args) }) => open::open(&args),
        Ok(Cli { verb: Verb::SignIn(args) }) => sign_in::sign_in(&args),
        Ok(Cli { verb: Verb::Sessions(args) }) => sessions::sessions(&args),
        Ok(Cli { verb: Verb::Runner(args) }) => runner::runner(&args),
        Ok(Cli { verb: Verb::Mcp(args) }) => mcp::mcp(args),
        Ok(Cli { verb: Verb::Exec(args) }) => exec::exec(args),
        Ok(Cli { verb: Verb::ExecServer(args) }) => exec_server::exec_server(&args),
        Ok(Cli { verb: Verb::ReplServer(args) }) => repl_server::repl_server(args),
        Ok(Cli { verb: Verb::Repl(args) }) => repl::repl(&args),
        Ok(Cli { verb: Verb::Journal(args) }) => journal::journal(&args),
        Err(refused) => print::usage(&refused),
    };
    exit.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_verbs_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
