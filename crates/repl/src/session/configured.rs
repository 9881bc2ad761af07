//! Commands from the configuration: JavaScript that is installed in the evaluator when it is first called, or an
//! alias of a catalogue tool.

use super::calls::{ToolCalled, command_result};
use super::commands::{GuestCalled, described, unknown_command};
use super::{ReplSession, TURN_MAX, TaskKind};
use lifecycle::{ToolPath, ToolRevision};
use protocols::execbox::session::{EvalOrder, TaskFailureKind, ToSession};
use protocols::hotrepl::wire::{
    Artifacts, AssemblyReload, CommandDescriptor, CommandKind, CommandSummary, FromServer,
};
use sandbox::{TaskFailure, TaskResult};
use serde_json::{Map, Value, json};
use sources::config::{ReplCommand, ReplDeed};
use std::collections::BTreeMap;
use std::time::Duration;
use tools::FoundTool;

/// The part of the configuration that is installed in the evaluator.
#[derive(Default)]
pub(super) struct InstalledCommands {
    /// The installed revision of each command's text.
    texts: BTreeMap<String, ToolRevision>,
    /// The error in the text of a command.
    broken: BTreeMap<String, String>,
}

impl ReplSession {
    /// Clients cache the list until they receive this notification.
    pub(super) fn commands_configured(&mut self) {
        let message = "The commands of the configuration changed.".to_owned();
        let reload = AssemblyReload { assembly: Some("commands".into()), message };
        self.send_to_client(&FromServer::AssemblyReload(reload));
    }

    /// Returns a configured command by its name.
    pub(super) fn configured_command(&self, name: &str) -> Option<ReplCommand> {
        self.configured.borrow().by_name.get(name).cloned()
    }

    /// Returns the configured commands that can be called now.
    pub(super) fn configured_commands(&self) -> Vec<CommandDescriptor> {
        let commands = self.configured.borrow();
        commands.by_name.values().filter_map(|command| self.describe_configured(command)).collect()
    }

    fn describe_configured(&self, command: &ReplCommand) -> Option<CommandDescriptor> {
        let mut descriptor = match &command.deed {
            ReplDeed::Code { input, output, mutates_state, .. } => CommandDescriptor {
                summary: CommandSummary {
                    name: command.name.clone(),
                    major_version: 1,
                    kind: kind(command.job),
                    mutates_state: *mutates_state,
                },
                input_schema: input.clone().unwrap_or_else(|| json!({ "type": "object" })),
                output_schema: output.clone().unwrap_or_else(|| json!({})),
                artifacts_schema: json!({ "type": "object" }),
                cancellation: Some("hardAbort".into()),
            },
            ReplDeed::Tool { tool, args } => {
                let found = self.shown_tool(tool)?;
                let mut descriptor = described(&found);
                descriptor.summary.name.clone_from(&command.name);
                descriptor.summary.kind = kind(command.job || found.spec().job);
                leave_out(&mut descriptor.input_schema, args);
                descriptor
            }
        };
        // The protocol has no other member for it.
        if let (Some(said), Value::Object(schema)) =
            (&command.description, &mut descriptor.input_schema)
        {
            schema.insert("description".into(), said.as_str().into());
        }
        Some(descriptor)
    }

    fn shown_tool(&self, tool: &ToolPath) -> Option<FoundTool> {
        let engine = &self.setting.store.engine;
        let found = engine.catalogue().find(tool)?;
        engine.policies().live().shows(&found.path(), found.traits()).then_some(found)
    }

    pub(super) fn call_configured(
        &mut self,
        id: String,
        command: ReplCommand,
        args: String,
        timeout: Option<Duration>,
    ) {
        let ReplCommand { name, deed, job, timeout: timeout_max, .. } = command;
        // A client may shorten the timeout, not extend it.
        let timeout = timeout.into_iter().chain(timeout_max).min();
        match deed {
            ReplDeed::Tool { tool, args: fixed } => match self.shown_tool(&tool) {
                Some(found) => {
                    let (args, is_job) =
                        (merge_fixed_arguments(&args, fixed), job || found.spec().job);
                    self.call_tool(ToolCalled { id, name, tool, args, is_job, timeout });
                }
                None => {
                    let frame =
                        command_result(id, Err(unknown_command(&name)), Artifacts::new(), 0);
                    self.send_to_client(&frame);
                }
            },
            ReplDeed::Code { text, input, output, .. } => {
                let handler = handler(&name);
                // Its schemas were checked when the configuration was read.
                let (kind, flaw) = (kind(job), None);
                let called = GuestCalled { id, name, handler, kind, input, output, flaw, timeout };
                self.call_guest(called, Some(&text), &args);
            }
        }
    }

    /// Installs a command's text in the evaluator, unless it is installed.
    pub(super) fn install(&mut self, name: &str, text: &str) {
        let revision = ToolRevision::from_text(text);
        if self.installed.texts.get(name) == Some(&revision) {
            return;
        }
        let before = self.installed.texts.insert(name.to_owned(), revision);
        self.installed.broken.remove(name);
        let descriptor = json!({ "name": handler(name), "replace": true });
        if before.is_some() {
            // If the new text is not a valid program, the previous one must not remain installed.
            self.evaluate_for(name, &format!("Repl.command({descriptor}, () => {{}}).dispose()"));
        }
        // On one line, so that line numbers match those in the configuration.
        let script = format!("Repl.command({descriptor}, async (args, context) => {{{text}\n}})");
        self.evaluate_for(name, &script);
    }

    fn evaluate_for(&mut self, name: &str, script: &str) {
        let task = self.open_task(name, TaskKind::Install, Some(TURN_MAX));
        let now = self.now();
        self.evaluator.send_message(&ToSession::Eval(EvalOrder { task, code: script.into(), now }));
    }

    pub(super) fn install_ended(&mut self, name: String, outcome: TaskResult) {
        if let TaskResult::Failed(TaskFailure { message, .. }) = outcome {
            tracing::warn!(name, message, "a configured command is not a valid program");
            self.installed.texts.remove(&name);
            self.installed.broken.insert(name, message);
        }
    }

    /// The result of a command: if the evaluator does not know it, the reason may be that its text is not a valid
    /// program.
    pub(super) fn explained(&self, name: &str, outcome: TaskResult) -> TaskResult {
        match (outcome, self.installed.broken.get(name)) {
            (TaskResult::Failed(failed), Some(message))
                if failed.why == TaskFailureKind::Unknown =>
            {
                let message = format!("The command's JavaScript could not be run: {message}");
                TaskResult::Failed(TaskFailure { why: TaskFailureKind::Syntax, message, ..failed })
            }
            (outcome, _) => outcome,
        }
    }
}

/// The name by which the evaluator knows a configured command. No client's command can have it.
fn handler(name: &str) -> String {
    format!("configured:{name}")
}

const fn kind(is_job: bool) -> CommandKind {
    if is_job { CommandKind::Job } else { CommandKind::Sync }
}

/// Removes from a schema the arguments that have fixed values.
fn leave_out(schema: &mut Value, fixed: &Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !fixed.contains_key(name));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !fixed.contains_key(name)));
    }
}

/// Merges the caller's arguments with the fixed ones, which take precedence.
fn merge_fixed_arguments(args: &str, fixed: Map<String, Value>) -> String {
    if fixed.is_empty() {
        return args.to_owned();
    }
    match serde_json::from_str(args) {
        Ok(Value::Object(mut said)) => {
            said.extend(fixed);
            Value::Object(said).to_string()
        }
        Ok(_) | Err(_) => args.to_owned(),
    }
}
