//! Commands that a guest registers. The runner reports invalid names and sizes immediately. Errors in a schema are
//! only found here, and are reported to the guest that registers or the client that calls.

use super::commands::NAME_BYTES_MAX;
use super::{ReplSession, TaskKind};
use protocols::hotrepl::wire::{
    AssemblyReload, CommandDescriptor, CommandKind, CommandSummary, FromServer,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Maximum size of a descriptor that a guest registers.
const DESCRIPTOR_BYTES_MAX: usize = 256 << 10;

/// Maximum size of a descriptor whose schemas are checked when it is registered. A guest may register as fast as it
/// can, and the check uses the server's time, not the guest's; larger descriptors are checked when they are called.
const LOOKED_AT_BYTES_MAX: usize = 8 << 10;

/// Maximum number of commands that one session registers.
const COMMANDS_MAX: usize = 256;

/// A command of the guest.
pub(super) struct RegisteredCommand {
    pub(super) descriptor: CommandDescriptor,
    pub(super) input_schema: Option<Value>,
    pub(super) output_schema: Option<Value>,
    flaw: OnceLock<Option<String>>,
}

impl RegisteredCommand {
    /// Why the schemas cannot be used for validation: then the command is never called.
    pub(super) fn flaw(&self) -> Option<&str> {
        self.flaw.get_or_init(|| self.find_flaw()).as_deref()
    }

    fn find_flaw(&self) -> Option<String> {
        let schemas = [("inputSchema", &self.input_schema), ("outputSchema", &self.output_schema)];
        let flawed = |(member, schema): (&'static str, &Option<Value>)| {
            Some((member, flaw(schema.as_ref()?)?))
        };
        let (member, why) = schemas.into_iter().find_map(flawed)?;
        let name = &self.descriptor.summary.name;
        let what = format!("The command {name} cannot be called: its {member}");
        Some(format!("{what} is no usable JSON Schema: {why}"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandManifest {
    name: String,
    kind: CommandKind,
    #[serde(default)]
    version: Option<f64>,
    #[serde(default)]
    mutates_state: bool,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    artifacts_schema: Option<Value>,
}

impl ReplSession {
    pub(super) fn register(&mut self, descriptor: &str) {
        // The runner enforces the same limits, unless it is compromised.
        if descriptor.len() > DESCRIPTOR_BYTES_MAX {
            return;
        }
        let Ok(claimed) = serde_json::from_str::<CommandManifest>(descriptor) else { return };
        let name = claimed.name.clone();
        let has_room = self.commands.len() < COMMANDS_MAX || self.commands.contains_key(&name);
        if !is_name(&name) || !has_room {
            return;
        }
        let registered = registered(claimed);
        if descriptor.len() <= LOOKED_AT_BYTES_MAX
            && let Some(flaw) = registered.flaw()
        {
            self.tell_flaw(flaw);
        }
        self.commands.insert(name.clone(), registered);
        self.say_commands_changed(&name, "registered");
    }

    /// Reports the error to the guest that registers the command, not only when it is called.
    fn tell_flaw(&mut self, flaw: &str) {
        if self.tasks.values().any(|task| matches!(task.what, TaskKind::Script)) {
            tracing::warn!(flaw, "a script of the REPL registers a command");
        }
        if let Some(task) = self.running_eval {
            self.print(task, flaw);
        }
    }

    pub(super) fn unregister(&mut self, name: &str) {
        if self.commands.remove(name).is_some() {
            self.say_commands_changed(name, "removed");
        }
    }

    /// Clients cache the list until they receive this notification.
    fn say_commands_changed(&mut self, name: &str, what: &str) {
        let message = format!("The command {name} was {what}.");
        let reload = AssemblyReload { assembly: Some("commands".into()), message };
        self.send_to_client(&FromServer::AssemblyReload(reload));
    }
}

fn registered(claimed: CommandManifest) -> RegisteredCommand {
    let CommandManifest { name, kind, version, mutates_state, .. } = claimed;
    let (input_schema, output_schema) = (claimed.input_schema, claimed.output_schema);
    let any = || json!({ "type": "object" });
    let object = |schema: Option<&Value>| schema.filter(|it| it.is_object()).cloned();
    let major_version = version.filter(|version| *version >= 1.0).map_or(1, |it| it as u64);
    let descriptor = CommandDescriptor {
        summary: CommandSummary { name, major_version, kind, mutates_state },
        input_schema: object(input_schema.as_ref()).unwrap_or_else(any),
        output_schema: object(output_schema.as_ref()).unwrap_or_else(|| json!({})),
        artifacts_schema: object(claimed.artifacts_schema.as_ref()).unwrap_or_else(any),
        cancellation: Some("hardAbort".into()),
    };
    RegisteredCommand { descriptor, input_schema, output_schema, flaw: OnceLock::new() }
}

/// The error in a schema, if it has one.
fn flaw(schema: &Value) -> Option<String> {
    if !schema.is_object() {
        return Some("it is no object".to_owned());
    }
    tools::schema_defect(schema)
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_word)
}
