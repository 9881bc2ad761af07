//! `airlock run`: runs one program in this process, on a temporary journal.

mod ask;
mod in_process;
mod rules;

use crate::follow_and_prompt::{AttendOptions, follow_and_prompt};
use crate::server_locator::{NamedServer, ServerArgs, ServerChoice, named_server, shell_word};
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, data_directory, duration, exit, input, print, size};
use ask::ApprovalMode;
use clap::ArgGroup;
use lifecycle::{ExecutionLimits, ExecutionOutcome, Json, RequestedLimits};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default limit of a program's active time.
const TIMEOUT_USUALLY: Duration = Duration::from_secs(300);

/// Longest program that is read: more is data that a tool should provide.
const SOURCE_BYTES_MAX: u64 = 8 << 20;

/// Runs a program and prints its value as JSON.
///
/// JavaScript or TypeScript; the value is what it returns, or its last expression. Its output
/// goes to stderr. It can call the demonstration tools: tools.demo.add, echo, sleep, fail, ask and
/// append (which writes to demo-append.txt in the data directory), and the sources that airlock.toml
/// names; policies in that file apply, and so do those that are stored in the data directory.
///
/// It runs here, in this process, unless a server is named: by --server, AIRLOCK_URL or airlock server use. Where a
/// server runs on the data directory and is not used, a line on stderr says so.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::RUN_HELP)]
#[command(group(ArgGroup::new("program").required(true).args(["file", "code"])))]
pub(crate) struct Args {
    /// The program's file; - reads it from stdin.
    file: Option<PathBuf>,
    /// The program's source text.
    #[arg(short = 'e', long = "eval", value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// The limit of its active time; waiting for tools and people does not count.
    /// 300s, unless a configuration file sets another.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// The limit of its processor time, if lower than the default.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    cpu: Option<Duration>,
    /// The limit of its memory, such as 32MiB, if lower than the default.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// A configuration file, instead of airlock.toml here or above and the user's own.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_CONFIG")]
    config: Option<PathBuf>,
    /// The directory for demo.append and for policies; everything else of this run is temporary.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Approves every question.
    #[arg(long, short = 'y', conflicts_with = "no")]
    yes: bool,
    /// Declines every question.
    #[arg(long)]
    no: bool,
    /// The outcome, value and output of the program, one line of JSON; questions are not asked here.
    #[arg(long)]
    json: bool,
    /// Runs it on this server, with the server's tools: an address, or a name that airlock server gave
    /// one. The server stores the program, which gives a value with return.
    #[arg(long, value_name = "URL|NAME", env = "AIRLOCK_URL")]
    server: Option<String>,
    /// Runs it here, also where a server is named by AIRLOCK_URL or airlock server use, or runs on the data directory.
    #[arg(long)]
    local: bool,
    /// The token for that server; not used here.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "run";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 1);

    fn run(self) -> VerbExit {
        run(self)
    }
}

/// How a run ended, seen from the terminal.
#[derive(Debug)]
pub(crate) struct LocalRunEnd {
    outcome: ExecutionOutcome,
    n_declined: u32,
    is_interrupted: bool,
    /// Its output, where that was not printed as it arrived.
    logs: Vec<String>,
}

/// Runs the program and prints its outcome.
pub(crate) fn run(args: Args) -> VerbExit {
    let source = match source(&args) {
        Ok(source) => source,
        Err(complaint) => {
            print::error(&complaint);
            return VerbExit::Usage;
        }
    };
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    match place(&args, &data_dir) {
        Ok(RunPlace::Server(server)) => return on_server(&args, &server, &source),
        Ok(RunPlace::Here { unused: Some(url) }) => print::print_note(&format!(
            "this runs here, and not on the server at {url}: with --server {} it has that server's tools and is kept \
             there; --local says that here is right",
            shell_word(&url)
        )),
        Ok(RunPlace::Here { unused: None }) => {}
        Err(why) => {
            print::error(&why);
            return VerbExit::Usage;
        }
    }
    print::start_tracing();
    let kept = match rules::kept(&data_dir) {
        Ok(kept) => kept,
        Err(why) => {
            print::error(&format!(
                "could not read the policies of {}: {why:#}",
                data_dir.display()
            ));
            return VerbExit::Failed;
        }
    };
    let files = match config_files::config_files(args.config.as_deref(), &data_dir) {
        Ok(files) => files,
        Err(error) => {
            print::error(&error.to_string());
            return VerbExit::Usage;
        }
    };
    match run_locally(in_process::LocalRun {
        kept,
        files,
        data_dir,
        source,
        usual: limits(TIMEOUT_USUALLY),
        timeout: args.timeout.map(limits),
        asked: asked_limits(&args, false),
        asking: asking(&args),
        is_told: !args.json,
    }) {
        Ok(ending) if args.json => {
            print::json(&RunReport::from_ending(&ending));
            exit(&ending)
        }
        Ok(ending) => print_end(&ending),
        Err(fault) => {
            print::error(&format!("{fault:#}"));
            VerbExit::of_error(&fault, VerbExit::Fault)
        }
    }
}

/// The place where a program runs.
#[derive(Debug, PartialEq, Eq)]
enum RunPlace {
    /// In this process; a server that runs on the data directory is not used.
    Here { unused: Option<String> },
    /// On a server that was named.
    Server(String),
}

/// Chooses the place: a server only where one is named. A server that happens to run must not change what a program means.
fn place(args: &Args, data_dir: &Path) -> Result<RunPlace, String> {
    let unused = || {
        let note = store::sqlite::owner_of(data_dir);
        Ok(RunPlace::Here {
            unused: note.filter(|note| note.starts_with("http://") && !args.local),
        })
    };
    if args.local {
        return unused();
    }
    let said = args.server.as_deref().map(str::trim).filter(|said| !said.is_empty());
    let url = match named_server(said, Some(data_dir)).map_err(|error| error.to_string())? {
        ServerChoice::Ours => return unused(),
        ServerChoice::At(NamedServer { url, .. }) => url,
    };
    let local_only = [(args.yes, "--yes"), (args.no, "--no")];
    match local_only.iter().find(|(is_given, _)| *is_given) {
        None => Ok(RunPlace::Server(said.map_or(url, str::to_owned))),
        Some((_, option)) => Err(format!(
            "{option} is for a program that runs here, and this one runs on {url}; with --local it runs here"
        )),
    }
}

/// Runs the program on a server, and follows it.
fn on_server(args: &Args, server: &str, source: &str) -> VerbExit {
    // A profile in use has its own token: no token is passed for it.
    let named = args.server.as_deref().filter(|named| !named.trim().is_empty()).map(|_| server);
    let reach = ServerArgs::for_server(named, args.token.as_deref(), args.data_dir.as_deref());
    reach.visit(async |client| {
        let execution = client.start_within(source, asked_limits(args, true)).await?;
        let manner = AttendOptions {
            asks_here: !args.json && !is_stdin(args) && print::is_somebody_there(),
            json: args.json,
            is_call: false,
            has_headers: false,
            flags: reach.flags(),
        };
        follow_and_prompt(&client, execution, &manner).await
    })
}

/// How a program ended, in the format of a server. A result is passed on unchanged: not every parser accepts its
/// depth, or half a surrogate pair in it.
#[derive(Serialize)]
struct RunReport<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    logs: &'e [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'e RawValue>,
    status: &'static str,
}

impl<'e> RunReport<'e> {
    fn from_ending(ending: &'e LocalRunEnd) -> Self {
        let logs = &ending.logs;
        let failed =
            |error: String| Self { error: Some(error), logs, result: None, status: "error" };
        match &ending.outcome {
            ExecutionOutcome::Completed { value } => {
                let result = value.as_ref().map_or(RawValue::NULL, Json::raw);
                Self { error: None, logs, result: Some(result), status: "completed" }
            }
            ExecutionOutcome::Failed(failure) => failed(print::failure_with_class(failure)),
            ExecutionOutcome::Cancelled { .. } => failed("The execution was cancelled.".into()),
        }
    }
}

fn run_locally(errand: in_process::LocalRun) -> anyhow::Result<LocalRunEnd> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ending = runtime.block_on(in_process::run(errand));
    // A thread that blocks in a read of the terminal must not delay the exit.
    runtime.shutdown_background();
    ending
}

fn print_end(ending: &LocalRunEnd) -> VerbExit {
    match &ending.outcome {
        ExecutionOutcome::Completed { value } => value.iter().for_each(print::value),
        ExecutionOutcome::Failed(failure) => print::local_failure(failure),
        ExecutionOutcome::Cancelled { .. } => print::print_note("cancelled"),
    }
    exit(ending)
}

fn exit(ending: &LocalRunEnd) -> VerbExit {
    match &ending.outcome {
        ExecutionOutcome::Completed { .. } => VerbExit::Good,
        ExecutionOutcome::Cancelled { .. } => VerbExit::Interrupted,
        ExecutionOutcome::Failed(_) if ending.is_interrupted => VerbExit::Interrupted,
        ExecutionOutcome::Failed(failure) => VerbExit::of_failure(failure.code, ending.n_declined),
    }
}

fn limits(timeout: Duration) -> ExecutionLimits {
    let active_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1);
    // One number for the person at the terminal: a program that only computes may use the processor until its timeout.
    ExecutionLimits { active_ms_max, cpu_ms_max: active_ms_max, ..ExecutionLimits::default() }
}

/// The limits that are named, which are lower than the defaults. In this process, the timeout may also be higher.
fn asked_limits(args: &Args, is_on_server: bool) -> RequestedLimits {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let named = [
        ("activeMsMax", args.timeout.map(ms).filter(|_| is_on_server)),
        ("cpuMsMax", args.cpu.map(ms)),
        ("memoryBytesMax", args.memory),
    ];
    let add = |limits: RequestedLimits, (name, value): (&str, Option<u64>)| match value {
        Some(value) => limits.with(name, value).expect("a name that limits have"),
        None => limits,
    };
    named.into_iter().fold(RequestedLimits::default(), add)
}

fn asking(args: &Args) -> ApprovalMode {
    match args {
        Args { yes: true, .. } => ApprovalMode::Approve,
        Args { no: true, .. } => ApprovalMode::Decline,
        _ if args.json || is_stdin(args) || !print::is_somebody_there() => {
            ApprovalMode::NobodyThere
        }
        _ => ApprovalMode::Terminal,
    }
}

fn is_stdin(args: &Args) -> bool {
    args.file.as_deref() == Some(Path::new("-"))
}

fn source(args: &Args) -> Result<String, String> {
    match (&args.code, &args.file) {
        (Some(code), _) => Ok(code.clone()),
        (None, _) if is_stdin(args) => input::read("stdin", io::stdin().lock(), SOURCE_BYTES_MAX),
        (None, Some(path)) => {
            let shown = path.display();
            let file = File::open(path).map_err(|error| format!("cannot open {shown}: {error}"))?;
            input::read(&shown.to_string(), file, SOURCE_BYTES_MAX)
        }
        (None, None) => Err("name a file or give -e".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use lifecycle::{CallerName, Failure, FailureCode};

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Result<Args, clap::error::ErrorKind> {
        let words = std::iter::once(&"run").chain(words);
        Wrapper::try_parse_from(words).map(|wrapper| wrapper.args).map_err(|error| error.kind())
    }

    #[test]
    fn a_program_comes_from_one_place() {
        use clap::error::ErrorKind;
        assert_eq!(source(&args(&["-e", "-1"]).unwrap()), Ok("-1".into()));
        assert!(is_stdin(&args(&["-"]).unwrap()));
        assert_eq!(args(&[]).err(), Some(ErrorKind::MissingRequiredArgument));
        assert_eq!(args(&["f.js", "-e", "1"]).err(), Some(ErrorKind::ArgumentConflict));
        assert_eq!(args(&["-e", "1", "--yes", "--no"]).err(), Some(ErrorKind::ArgumentConflict));
        assert_eq!(args(&["-e", "1", "--timeout", "5"]).err(), Some(ErrorKind::ValueValidation));
    }

    #[test]
    fn a_program_runs_on_a_server_only_where_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let place =
            |words: &[&str]| place(&args(&[&["-e", "1"], words].concat()).unwrap(), dir.path());
        let here = Ok(RunPlace::Here { unused: None });
        let there = Ok(RunPlace::Server("http://127.0.0.1:9".into()));
        assert_eq!(place(&["--token", "alk_x"]), here, "a token alone means nothing");
        assert_eq!(place(&["--server", "http://127.0.0.1:9"]), there);
        assert_eq!(place(&["--server", "http://127.0.0.1:9", "--local", "--yes"]), here);
        let refused = place(&["--server", "http://127.0.0.1:9", "--yes"]).unwrap_err();
        assert!(refused.starts_with("--yes is for a program that runs here"), "{refused}");
    }

    #[test]
    fn a_program_that_came_from_stdin_leaves_nobody_to_ask() {
        assert_eq!(asking(&args(&["-"]).unwrap()), ApprovalMode::NobodyThere);
        assert_eq!(asking(&args(&["-", "-y"]).unwrap()), ApprovalMode::Approve);
        assert_eq!(asking(&args(&["-", "--no"]).unwrap()), ApprovalMode::Decline);
    }

    #[test]
    fn a_program_that_is_too_long_is_not_read() {
        let complaint = input::read("x.js", io::repeat(b'a'), SOURCE_BYTES_MAX).unwrap_err();
        assert_eq!(complaint, "x.js is longer than 8 MB");
        let complaint = input::read("x.js", &b"\xff"[..], SOURCE_BYTES_MAX).unwrap_err();
        assert_eq!(complaint, "cannot read x.js: stream did not contain valid UTF-8");
    }

    #[test]
    fn the_timeout_is_active_time() {
        let limits = limits(args(&["-e", "1", "--timeout", "1m30s"]).unwrap().timeout.unwrap());
        assert_eq!((limits.active_ms_max, limits.cpu_ms_max), (90_000, 90_000));
    }

    #[test]
    fn limits_that_are_named_are_asked_for() {
        let asked = |words: &[&str], is_on_server| {
            let args = args(&[&["-e", "1"], words].concat()).unwrap();
            asked_limits(&args, is_on_server).asked().collect::<Vec<_>>()
        };
        let words = ["--timeout", "2s", "--cpu", "500ms", "--memory", "32MiB"];
        let (cpu, memory) = (("cpuMsMax", 500), ("memoryBytesMax", 32 << 20));
        assert_eq!(asked(&words, false), [cpu, memory]);
        assert_eq!(asked(&words, true), [cpu, ("activeMsMax", 2_000), memory]);
        assert_eq!(asked(&[], true), []);
    }

    #[test]
    fn the_exit_code_tells_how_it_ended() {
        let failed = |code| ExecutionOutcome::Failed(Failure::new(code, ""));
        let cases = [
            (ExecutionOutcome::Completed { value: None }, 1, VerbExit::Good),
            (failed(FailureCode::Runtime), 0, VerbExit::Failed),
            (failed(FailureCode::Runtime), 1, VerbExit::Declined),
            (failed(FailureCode::Timeout), 1, VerbExit::Limit),
            (failed(FailureCode::MemoryLimit), 0, VerbExit::Limit),
            (failed(FailureCode::Internal), 0, VerbExit::Fault),
            (
                ExecutionOutcome::Cancelled { by: CallerName("x".into()), reason: None },
                0,
                VerbExit::Interrupted,
            ),
        ];
        for (outcome, n_declined, expected) in cases {
            let ending = LocalRunEnd { outcome, n_declined, is_interrupted: false, logs: vec![] };
            assert_eq!(exit(&ending), expected, "{ending:?}");
        }
    }
}
