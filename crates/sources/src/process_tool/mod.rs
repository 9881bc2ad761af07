//! `tools.process.run`: commands that programs run. It asks unless a policy decides otherwise, and exists only if the
//! configuration enables it.

mod command_description;
mod command_output;

use crate::config::ProcessRun;
use command_description::CommandDescription;
use command_output::CommandOutput;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{Failure, FailureCode, Json, ToolPath};
use processes::reaper::start_error;
use processes::{
    EndMode, LimitExcess, PipeInput, Process, ProcessCage, ProcessEvent, ProcessSpawner,
    ProcessSpec, ProcessStreams, SpawnError,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tools::{Source, Tool, ToolRequest};

/// The environment of every command; the configuration and the call may override it.
const ENVIRONMENT: [(&str, &str); 2] =
    [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8")];

/// Commands that programs run.
#[derive(Debug)]
pub struct ProcessTool {
    setting: Arc<CommandSetup>,
}

/// Settings shared by all commands.
#[derive(Debug)]
struct CommandSetup {
    processes: ProcessSpawner,
    run: ProcessRun,
    directory: PathBuf,
    cage: Option<ProcessCage>,
}

impl ProcessTool {
    /// The tool, as the configuration enables it. Commands are confined to `cage`, and start in `here` if no folder is
    /// named.
    pub fn new(
        run: ProcessRun,
        processes: &ProcessSpawner,
        here: &Path,
        cage: Option<ProcessCage>,
    ) -> Self {
        let directory = run.directory.clone().unwrap_or_else(|| here.to_owned());
        let setting = CommandSetup { processes: processes.clone(), run, directory, cage };
        Self { setting: Arc::new(setting) }
    }
}

impl Source for ProcessTool {
    fn name(&self) -> &'static str {
        "process"
    }

    fn tools(&self) -> Vec<Tool> {
        let path = ToolPath::parse("process.run").expect("two names make a path");
        let description = "Runs a command on the machine of the server and waits for its end. No shell is involved; \
                           what it prints is told as it comes. `exitCode` is 128 + n where signal n ended it.";
        vec![Tool {
            description: description.to_owned(),
            input_schema: Some(command_description::schema(self.setting.run.time_max())),
            output_schema: Some(told_schema()),
            asks: true,
            // A wildcard approval was given without this tool in mind.
            by_name_only: true,
            about: Some("Run a command on this machine?".to_owned()),
            job: true,
            ..Tool::new(path)
        }]
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let setting = Arc::clone(&self.setting);
        async move { run(&setting, &request).await.map(Some) }.boxed()
    }
}

async fn run(setting: &CommandSetup, request: &ToolRequest) -> Result<Json, Failure> {
    let command = CommandDescription::read(&request.args, setting.run.time_max())?;
    let process = setting.processes.spawn(&spec(setting, &command)).await.map_err(not_started)?;
    let time_max = command.time_max;
    feed(&process, command.stdin).await;
    let mut heard = CommandOutput::new();
    // Dropping the process in any case kills it and all its descendants.
    let ended = tokio::select! {
        ended = watch_command(&process, &mut heard, request, time_max) => ended,
        () = request.cancelled.given() => {
            return Err(Failure::new(FailureCode::Tool, "The command was cancelled."));
        }
    };
    if let Some(words) = heard.finish() {
        request.progress.report_text(words).await;
    }
    Ok(command_result(&ended, heard, process.output().excess()))
}

fn spec(setting: &CommandSetup, command: &CommandDescription) -> ProcessSpec {
    let usual = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut env = std::collections::BTreeMap::from(usual);
    env.extend(setting.run.env.clone());
    env.extend(command.env.clone());
    ProcessSpec {
        argv: command.argv.iter().map(Into::into).collect(),
        arg0: None,
        cwd: setting.directory.join(command.cwd.as_deref().unwrap_or_default()),
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        streams: ProcessStreams::Pipes(if command.stdin.is_some() {
            PipeInput::Pipe
        } else {
            PipeInput::Null
        }),
        cage: setting.cage.clone(),
    }
}

async fn feed(process: &Process, stdin: Option<String>) {
    let Some(stdin) = stdin else { return };
    if !stdin.is_empty() {
        // The schema limits it to what may be queued for a program.
        let room = process.input_room(stdin.len()).await;
        // A program may ignore its input.
        let _ = process.write(stdin.into(), room);
    }
    let _ = process.close_input();
}

/// How a command ended.
struct CommandEnd {
    code: i32,
    is_timed_out: bool,
}

/// Reads all output of a command until the last of its processes has closed its streams.
async fn watch_command(
    process: &Process,
    heard: &mut CommandOutput,
    request: &ToolRequest,
    time_max: Duration,
) -> CommandEnd {
    let mut follower = process.output().follow();
    let deadline = tokio::time::sleep(time_max);
    tokio::pin!(deadline);
    let mut ended = CommandEnd { code: 0, is_timed_out: false };
    let mut has_exited = false;
    loop {
        tokio::select! {
            biased; // a command that never stops printing has a deadline too
            () = &mut deadline, if !ended.is_timed_out && !has_exited => {
                ended.is_timed_out = true;
                process.end_with(EndMode::Kill);
            }
            () = heard.due() => {
                if let Some(words) = heard.take() {
                    request.progress.report_text(words).await;
                }
            }
            event = follower.next() => match event {
                ProcessEvent::Output(chunk) => heard.append_output(chunk.stream, &chunk.bytes),
                ProcessEvent::Exited { code, .. } => {
                    (ended.code, has_exited) = (code, true);
                    // Remaining processes are killed.
                    process.end_with(EndMode::Kill);
                }
                ProcessEvent::Closed { .. } => return ended,
            },
        }
    }
}

fn command_result(ended: &CommandEnd, heard: CommandOutput, excess: Option<LimitExcess>) -> Json {
    let exceeded = excess.map(|excess| match excess {
        LimitExcess::Memory => "memory",
        LimitExcess::Cpu => "cpu",
        LimitExcess::Processes => "processes",
    });
    let truncated = heard.is_truncated();
    let [stdout, stderr] = heard.texts();
    let told = json!({
        "exitCode": ended.code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": truncated,
        "timedOut": ended.is_timed_out,
        "exceeded": exceeded,
    });
    Json::from_value(&told).expect("a value can be written as JSON")
}

fn told_schema() -> serde_json::Value {
    let about = |kind: &str, description: &str| json!({"type": kind, "description": description});
    json!({
        "type": "object",
        "properties": {
            "exitCode": about("integer", "128 + n where signal n ended it"),
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "truncated": about("boolean", "whether the middle of either was left out"),
            "timedOut": {"type": "boolean"},
            "exceeded": {
                "enum": [null, "memory", "cpu", "processes"],
                "description": "what it used more of than its sandbox allows",
            },
        },
        "required": ["exitCode", "stdout", "stderr", "truncated", "timedOut", "exceeded"],
    })
}

fn not_started(error: SpawnError) -> Failure {
    let why = match error {
        SpawnError::Bad(bad) => bad.to_string(),
        SpawnError::System(error) => start_error(&error),
        SpawnError::Uncaged(_) | SpawnError::Stopping => error.to_string(),
        SpawnError::Ours(error) => {
            tracing::warn!(%error, "a command could not be prepared");
            "the server is not able to".to_owned()
        }
    };
    Failure::new(FailureCode::Tool, format!("The command could not be started: {why}."))
}
