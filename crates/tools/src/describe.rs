//! Describes a tool for the author of a call, as compact TypeScript.

use crate::{FoundTool, SharedSchema};
use protocols::typescript::TypeDefinitions;
use std::collections::BTreeMap;

/// Longest description that is included; longer texts belong in a manual.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

const TOOL_ERROR: &str =
    "{ code: string; message: string; status?: number; details?: unknown; retryable?: boolean; }";
const TOOL_HTTP_META: &str = "{ status: number; headers: { [k: string]: string; }; }";
const TOOL_FILE: &str = "{ _tag: \"ToolFile\"; name?: string; mimeType: string; encoding: \"base64\"; \
                         data: string; byteLength: number; bytes(): Uint8Array; text(): string; }";

/// The description of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDescriptionText {
    /// What it does.
    pub description: String,
    /// What it takes; none takes anything.
    pub input: Option<String>,
    /// What a call returns.
    pub output: Option<String>,
    /// Types that `input` and `output` refer to.
    pub definitions: BTreeMap<String, String>,
}

impl FoundTool {
    /// Describes the tool.
    pub fn describe(&self) -> ToolDescriptionText {
        let spec = self.spec();
        let [input, output] =
            [&spec.input, &spec.output].map(|schema| schema.as_ref().map(SharedSchema::whole));
        let mut types = TypeDefinitions::default();
        let mut written = [None, None];
        for (at, schema) in [&input, &output].into_iter().enumerate() {
            if let Some(schema) = schema {
                written[at] = Some(types.write(schema));
                types.write_named(schema);
            }
        }
        let mut definitions = types.into_definitions();
        let [input, output] = written;
        let output = if self.is_enveloped() {
            let own = [
                ("ToolError", TOOL_ERROR),
                ("ToolHttpMeta", TOOL_HTTP_META),
                ("ToolFile", TOOL_FILE),
            ];
            definitions.extend(own.map(|(name, text)| (name.to_owned(), text.to_owned())));
            Some(enveloped(output.as_deref().unwrap_or("unknown")))
        } else {
            output
        };
        let description = spec.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        ToolDescriptionText { description, input, output, definitions }
    }
}

/// The union that every tool of an integration returns.
fn enveloped(data: &str) -> String {
    format!("{{ ok: true; data: {data}; http?: ToolHttpMeta }} | {{ ok: false; error: ToolError }}")
}
