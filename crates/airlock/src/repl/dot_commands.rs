//! Dot commands: input that begins with a dot is handled by the prompt, not by the evaluator.

use crate::print;
use crate::table::cell;
use client::repl::{CommandOutcome, JobSnapshot, JobState, JournalEntry, ReplClient, ReplError};
use serde_json::Value;
use std::path::Path;

/// The default number of values that a watch shows.
const TICKS: u64 = 10;

/// Frames between two of them: about a quarter of a second.
const INTERVAL_FRAMES: u64 = 15;

/// The default number of journal entries.
const ENTRIES: u64 = 20;

const HELP: &str = "\
.help                 these lines
.exit                 leaves; so does Ctrl-D. Ctrl-C ends what runs
.reset                a new evaluator: all definitions go
.save FILE            writes what was evaluated here into a file
.load FILE            evaluates a file
.watch CODE           evaluates CODE again and again, ten times; .watch 50 CODE fifty times
.commands             the typed commands there are
.run NAME [JSON]      calls a command
.jobs                 the jobs that were started here
.cancel JOB           ends a job
.journal [N]          what was done lately, newest first";

const NAMES: [&str; 10] =
    ["help", "reset", "save", "load", "watch", "commands", "run", "jobs", "cancel", "journal"];

/// The text after the dot, if the input is a dot command; `.5` is a number.
pub(super) fn behind_dot(text: &str) -> Option<&str> {
    let dotted = text.trim().strip_prefix('.')?;
    let name = dotted.split_whitespace().next().unwrap_or_default();
    NAMES.contains(&name).then_some(dotted)
}

/// The state of the dot commands.
#[derive(Default)]
pub(super) struct DotCommands {
    evaluated: Vec<String>,
    jobs: Vec<(String, String)>,
}

impl DotCommands {
    /// Records a text for `.save`.
    pub(super) fn remember_text(&mut self, text: &str) {
        if !text.trim_start().starts_with('.') {
            self.evaluated.push(text.to_owned());
        }
    }

    pub(super) async fn run(&mut self, client: &ReplClient, line: &str) -> Result<(), ReplError> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match name {
            "help" => print::printed(HELP),
            "reset" => {
                client.reset().await?;
                self.evaluated.clear();
            }
            "save" => self.save(rest),
            "load" => return self.load(client, rest).await,
            "watch" => return watch(client, rest).await,
            "commands" => {
                for command in client.commands().await? {
                    print::printed(&command.name);
                }
            }
            "run" => return self.call(client, rest).await,
            "jobs" => return self.jobs(client).await,
            "cancel" => {
                let (_, state) = client.cancel_job(rest).await?;
                print::printed(state_name(state));
            }
            _ => return journal(client, rest).await,
        }
        Ok(())
    }

    fn save(&self, file: &str) {
        let mut text = self.evaluated.join("\n");
        text.push('\n');
        match std::fs::write(Path::new(file), text) {
            Ok(()) => print::printed(&format!("{} texts are in {file}", self.evaluated.len())),
            Err(error) => print::complaint(&format!("could not write {file}: {error}")),
        }
    }

    async fn load(&mut self, client: &ReplClient, file: &str) -> Result<(), ReplError> {
        match std::fs::read_to_string(Path::new(file)) {
            Ok(text) => {
                super::evaluate(client, &text).await?;
                self.evaluated.push(text.trim_end().to_owned());
            }
            Err(error) => print::complaint(&format!("could not read {file}: {error}")),
        }
        Ok(())
    }

    async fn call(&mut self, client: &ReplClient, rest: &str) -> Result<(), ReplError> {
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        let Ok(args) = serde_json::from_str::<Value>(args.trim()) else {
            print::complaint("the arguments must be a JSON object");
            return Ok(());
        };
        match client.call(name, args, None).await? {
            CommandOutcome::Ended(result) => match result.error {
                Some(error) => return Err(ReplError::Failed(Box::new(error))),
                None => {
                    print::print_evaluated(&result.output.unwrap_or_default().to_string());
                    for (name, file) in result.artifacts {
                        print::printed(&format!("{name}: {}", file.uri));
                    }
                }
            },
            CommandOutcome::Job(job) => {
                print::printed(&format!("job {job}"));
                self.jobs.push((job, name.to_owned()));
            }
        }
        Ok(())
    }

    async fn jobs(&self, client: &ReplClient) -> Result<(), ReplError> {
        if self.jobs.is_empty() {
            print::printed("no job was started here");
        }
        for (job, name) in &self.jobs {
            let state = match client.job(job).await? {
                JobSnapshot::Running(running) => {
                    let progress = running.progress.map(|it| it.to_string()).unwrap_or_default();
                    format!("running {progress}")
                }
                JobSnapshot::Ended(ended) => {
                    let output = ended.output.map(|it| it.to_string());
                    let error = ended.error.map(|it| it.message);
                    let said = output.or(error).unwrap_or_default();
                    format!("{} {said}", state_name(ended.state))
                }
            };
            print::printed(&format!("{job} {name} {state}"));
        }
        Ok(())
    }
}

async fn watch(client: &ReplClient, rest: &str) -> Result<(), ReplError> {
    let counted = rest.split_once(char::is_whitespace);
    let (limit, code) = match counted.and_then(|(n, code)| Some((n.parse().ok()?, code))) {
        Some((limit, code)) => (limit, code),
        None => (TICKS, rest),
    };
    let mut watch = client.watch(code, INTERVAL_FRAMES, Some(limit)).await?;
    while let Some(tick) = watch.next().await {
        let tick = tick?;
        let shown = tick.value.as_ref().map_or("undefined", |value| value.as_text());
        print::print_evaluated(shown);
    }
    Ok(())
}

async fn journal(client: &ReplClient, rest: &str) -> Result<(), ReplError> {
    let entries = client.journal(None, rest.parse().unwrap_or(ENTRIES)).await?;
    for entry in &entries {
        print::printed(&journal_line(entry));
    }
    Ok(())
}

/// Formats one entry as a line.
fn journal_line(entry: &JournalEntry) -> String {
    let [at, took, how, first] = journal_row(entry);
    format!("{at}  {took:>9}  {how:<17}  {first}")
}

/// The time, duration, outcome and first source line of an entry.
pub(crate) fn journal_row(entry: &JournalEntry) -> [String; 4] {
    let what = entry.code.as_deref().or(entry.name.as_deref()).unwrap_or_default();
    let first = what.lines().next().unwrap_or_default();
    let how = match entry.error_kind {
        Some(kind) => kind.name(),
        None => "ok",
    };
    let took = format!("{} ms", entry.duration_ms);
    [cell(&entry.timestamp), took, how.to_owned(), cell(first)]
}

const fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}
