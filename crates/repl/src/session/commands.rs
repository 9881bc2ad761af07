//! Typed commands: catalogue tools, those that the guest registered, and a demonstration command that writes files.

use super::calls::{ToolCalled, command_result};
use super::{ErrandResult, ReplSession, SessionTask, TaskKind};
use crate::EVAL_TIME_MAX;
use crate::messages;
use crate::repl_store::{NewFile, TaskFile, millis};
use base64::Engine as _;
use lifecycle::{Json, ToolPath};
use protocols::execbox::session::{InvokeCommand, ToSession};
use protocols::execbox::wire::RawJson;
use protocols::hotrepl::outbound::{envelope, trouble};
use protocols::hotrepl::wire::{
    Artifacts, CommandDescribeResult, CommandDescriptor, CommandKind, CommandSummary,
    CommandsListResult, ErrorEnvelope, ErrorKind, FromServer,
};
use sandbox::TaskResult;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tools::FoundTool;

/// Maximum length of the name of a command or file, and of a media type.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Maximum number of files of one command.
const FILES_MAX: usize = 64;

/// Maximum total size of the files of one command.
const FILES_BYTES_MAX: usize = 64 << 20;

/// The command that writes a file, if demonstrations are enabled.
const DEMO_ARTIFACT: &str = "demo.artifact";

/// A command that the evaluator performs, as a client called it.
pub(super) struct GuestCalled {
    pub(super) id: String,
    pub(super) name: String,
    /// The evaluator's name of the handler.
    pub(super) handler: String,
    pub(super) kind: CommandKind,
    pub(super) input: Option<Value>,
    pub(super) output: Option<Value>,
    /// Why the schemas cannot be used for validation.
    pub(super) flaw: Option<String>,
    pub(super) timeout: Option<Duration>,
}

/// A finished command of the guest, with its files.
pub(super) struct FinishedCommand {
    id: String,
    client: u64,
    name: String,
    started: Instant,
    result: Result<Value, ErrorEnvelope>,
    artifacts: Artifacts,
}

impl ReplSession {
    pub(super) fn commands_list(&mut self, id: String) {
        let commands: Vec<CommandSummary> =
            self.all_commands().into_values().map(|it| it.summary).collect();
        let revision = serde_json::to_string(&commands).unwrap_or_default();
        let since = Some(lifecycle::ToolRevision::from_text(&revision).to_string());
        self.send_to_client(&FromServer::CommandsListResult(CommandsListResult {
            id,
            commands,
            since,
        }));
    }

    pub(super) fn command_describe(&mut self, id: String, name: &str) {
        let frame = match self.all_commands().remove(name) {
            Some(descriptor) => {
                FromServer::CommandDescribeResult(CommandDescribeResult { id, descriptor })
            }
            None => trouble(Some(id), unknown_command(name)),
        };
        self.send_to_client(&frame);
    }

    /// Returns the commands by name; if two have the same name, the catalogue's takes precedence, then the
    /// configuration's.
    fn all_commands(&self) -> BTreeMap<String, CommandDescriptor> {
        let store = &self.setting.store;
        let policy = store.engine.policies().live();
        let mut all: BTreeMap<String, CommandDescriptor> =
            self.commands.iter().map(|(name, it)| (name.clone(), it.descriptor.clone())).collect();
        for configured in self.configured_commands() {
            all.insert(configured.summary.name.clone(), configured);
        }
        for found in store.engine.catalogue().snapshot().tools() {
            let path = found.path();
            if policy.shows(&path, found.traits()) {
                all.insert(path, described(&found));
            }
        }
        if store.settings.demo {
            all.insert(DEMO_ARTIFACT.to_owned(), demo_artifact());
        }
        all
    }

    pub(super) fn command_call(
        &mut self,
        id: String,
        name: String,
        args: String,
        timeout_ms: Option<u64>,
    ) {
        let timeout = timeout_ms.map(|ms| Duration::from_millis(ms).min(EVAL_TIME_MAX));
        if name == DEMO_ARTIFACT && self.setting.store.settings.demo {
            return self.write_demo(id);
        }
        let engine = self.setting.store.engine.clone();
        let shows = |found: &FoundTool| engine.policies().live().shows(&name, found.traits());
        if let Ok(tool) = ToolPath::parse(&name)
            && let Some(found) = engine.catalogue().find(&tool).filter(shows)
        {
            let is_job = found.spec().job;
            return self.call_tool(ToolCalled { id, name, tool, args, is_job, timeout });
        }
        if let Some(command) = self.configured_command(&name) {
            return self.call_configured(id, command, args, timeout);
        }
        match self.commands.get(&name) {
            Some(registered) => {
                let called = GuestCalled {
                    handler: name.clone(),
                    kind: registered.descriptor.summary.kind,
                    input: registered.input_schema.clone(),
                    output: registered.output_schema.clone(),
                    flaw: registered.flaw().map(str::to_owned),
                    id,
                    name,
                    timeout,
                };
                self.call_guest(called, None, &args);
            }
            None => {
                let frame = command_result(id, Err(unknown_command(&name)), Artifacts::new(), 0);
                self.send_to_client(&frame);
            }
        }
    }

    // ---- Commands of the guest ----

    /// Calls a handler in the evaluator; installs `text` first unless it is installed.
    pub(super) fn call_guest(&mut self, called: GuestCalled, text: Option<&str>, args: &str) {
        let GuestCalled { id, name, handler, kind, input, output, flaw, timeout } = called;
        if let Some(error) = unfit(flaw, input.as_ref(), args) {
            self.note_command(&id, &name, 0, Some(&error));
            return self.send_to_client(&command_result(id, Err(error), Artifacts::new(), 0));
        }
        let Some(args) = RawJson::parse(args) else { return };
        if let Err(refused) = self.evaluator.admit_program() {
            let error = messages::quota_reached(&refused);
            self.note_command(&id, &name, 0, Some(&error));
            return self.send_to_client(&command_result(id, Err(error), Artifacts::new(), 0));
        }
        if kind == CommandKind::Job && !self.has_room_for_job(&id) {
            return;
        }
        self.ensure_runner();
        if let Some(text) = text {
            self.install(&name, text);
        }
        let task = match kind {
            CommandKind::Sync => {
                let timeout = timeout.unwrap_or(crate::EVAL_TIME);
                let what = TaskKind::Command { name, output_schema: output };
                self.open_task(&id, what, Some(timeout))
            }
            CommandKind::Job => self.begin_guest_job(&id, &name, output, timeout),
        };
        let now = self.now();
        let invoke = InvokeCommand { task, name: handler.as_str().into(), args, now };
        self.evaluator.send_message(&ToSession::Invoke(invoke));
    }

    pub(super) fn wrote(&mut self, task: u64, name: String, content_type: String, base64: &str) {
        let host = self.host();
        let Some(open) = self.tasks.get_mut(&task) else { return };
        // The runner enforces the same limits, unless it is compromised.
        let names = [&name, &content_type];
        if open.files.len() >= FILES_MAX || names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return;
        }
        let n_bytes: usize = open.files.iter().map(|file| file.n_bytes).sum();
        let bytes = base64::prelude::BASE64_STANDARD.decode(base64).unwrap_or_default();
        if n_bytes + bytes.len() > FILES_BYTES_MAX {
            return;
        }
        let job = if let TaskKind::Job { job, .. } = &open.what { Some(job.clone()) } else { None };
        let file = NewFile { name, content_type, bytes };
        let file = TaskFile::new(Arc::clone(&self.setting.store), file, host);
        open.files.retain(|earlier| earlier.name != file.name);
        open.files.push(file.clone());
        if let Some(job) = job {
            self.keep_job_file(job, file);
        }
    }

    pub(super) fn guest_command_ended(&mut self, open: SessionTask, outcome: TaskResult) {
        let SessionTask { what, id, client, started, files, stop, .. } = open;
        let TaskKind::Command { name, output_schema } = what else { return };
        let outcome = self.explained(&name, outcome);
        let result = checked(outcome, output_schema.as_ref(), stop, "command");
        let ended =
            FinishedCommand { id, client, name, started, result, artifacts: Artifacts::new() };
        if files.is_empty() {
            return self.command_ended(ended);
        }
        self.keep_files(ended, files);
    }

    fn keep_files(&mut self, ended: FinishedCommand, files: Vec<TaskFile>) {
        self.errands.push(Box::pin(async move {
            let mut ended = ended;
            let (artifacts, is_complete) = TaskFile::keep_all(files).await;
            ended.artifacts = artifacts;
            if !is_complete {
                let message = "The command's files could not be stored.";
                ended.result = Err(envelope(ErrorKind::Internal, "handlerFailed", message));
            }
            ErrandResult::Command(Box::new(ended))
        }));
    }

    pub(super) fn command_ended(&mut self, ended: FinishedCommand) {
        let FinishedCommand { id, client, name, started, result, artifacts } = ended;
        let duration_ms = millis(started.elapsed());
        self.note_command(&id, &name, duration_ms, result.as_ref().err());
        let frame = command_result(id, result, artifacts, duration_ms);
        self.send_answer(client, &frame);
    }

    pub(super) fn guest_command_lost(&mut self, open: SessionTask) {
        let SessionTask { what, id, client, started, files, stop, .. } = open;
        let TaskKind::Command { name, .. } = what else { return };
        let error = messages::lost(stop, "command").with_details(json!({ "stateLost": true }));
        let artifacts = Artifacts::new();
        let ended = FinishedCommand { id, client, name, started, result: Err(error), artifacts };
        if files.is_empty() {
            return self.command_ended(ended);
        }
        self.keep_files(ended, files);
    }

    fn write_demo(&mut self, id: String) {
        let text = format!("Written by {DEMO_ARTIFACT} at {}.\n", self.setting.store.timestamp());
        let file = NewFile {
            name: "note".into(),
            content_type: "text/plain; charset=utf-8".into(),
            bytes: text.into_bytes(),
        };
        let ended = FinishedCommand {
            id,
            client: self.client_number(),
            name: DEMO_ARTIFACT.into(),
            started: Instant::now(),
            result: Ok(json!({ "written": 1 })),
            artifacts: Artifacts::new(),
        };
        let file = TaskFile::new(Arc::clone(&self.setting.store), file, self.host());
        self.keep_files(ended, vec![file]);
    }
}

/// Checks the result of a guest command: the output must fit its schema and a frame.
pub(super) fn checked(
    outcome: TaskResult,
    schema: Option<&Value>,
    stop: Option<messages::StopReason>,
    what: &str,
) -> Result<Value, ErrorEnvelope> {
    match outcome {
        TaskResult::Failed(failed) => Err(messages::command_failed(&failed, stop, what)),
        TaskResult::Nothing | TaskResult::Value { .. } => Ok(json!({})),
        TaskResult::Output(json) => match misfit(schema, &json) {
            Some(why) => {
                let message = format!("The output does not fit its schema: {why}");
                Err(envelope(ErrorKind::Internal, "handlerFailed", message))
            }
            None => messages::output(&json),
        },
    }
}

/// Returns why a command is refused before it is called.
fn unfit(flaw: Option<String>, input: Option<&Value>, args: &str) -> Option<ErrorEnvelope> {
    if let Some(flaw) = flaw {
        return Some(envelope(ErrorKind::Internal, "handlerFailed", flaw));
    }
    let why = misfit(input, args)?;
    let error = envelope(ErrorKind::ValidationFailed, "argsSchemaViolation", why.clone());
    Some(error.with_details(json!({ "errors": [why] })))
}

fn misfit(schema: Option<&Value>, json: &str) -> Option<String> {
    let schema = Json::from_value(schema?).ok()?;
    tools::misfit(&schema, &Json::parse(json.to_owned()).ok()?)
}

pub(super) fn unknown_command(name: &str) -> ErrorEnvelope {
    let mut shown = name.to_owned();
    shown.truncate(shown.floor_char_boundary(NAME_BYTES_MAX));
    envelope(ErrorKind::UnknownCommand, "unknownCommand", format!("There is no command {shown}."))
}

/// Describes a tool as a command.
pub(super) fn described(found: &FoundTool) -> CommandDescriptor {
    let spec = found.spec();
    let object = |schema: Value| match schema {
        Value::Object(_) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            json!({})
        }
    };
    let input = spec.input.as_ref().map_or_else(|| json!({}), |it| object(it.whole()));
    let output = spec.output.as_ref().map_or_else(|| json!({}), |it| object(it.whole()));
    let output_schema = if found.is_enveloped() {
        let ok = json!({ "type": "boolean" });
        json!({ "type": "object", "properties": { "ok": ok, "data": output }, "required": ["ok"] })
    } else {
        output
    };
    let kind = if spec.job { CommandKind::Job } else { CommandKind::Sync };
    CommandDescriptor {
        summary: CommandSummary {
            name: found.path(),
            major_version: 1,
            kind,
            // A client may call read-only commands freely, but this call would wait for an administrator.
            mutates_state: !found.nature().read_only || found.traits().answer_only,
        },
        input_schema: input,
        output_schema,
        artifacts_schema: no_files(),
        cancellation: Some("hardAbort".into()),
    }
}

fn no_files() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

fn demo_artifact() -> CommandDescriptor {
    let written = json!({ "type": "object", "properties": { "written": { "type": "integer" } } });
    CommandDescriptor {
        summary: CommandSummary {
            name: DEMO_ARTIFACT.into(),
            major_version: 1,
            kind: CommandKind::Sync,
            mutates_state: false,
        },
        input_schema: json!({ "type": "object", "additionalProperties": false }),
        output_schema: written,
        artifacts_schema: json!({ "type": "object", "required": ["note"] }),
        cancellation: None,
    }
}
