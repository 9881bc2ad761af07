//! The tools that the suites call.

use super::{PNG, read};
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::time::Duration;

/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const NAMES: [&str; 21] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_logging_tool",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
];

pub(super) fn all() -> Vec<Tool> {
    let tool = |name: &str, schema: Value| {
        read(json!({ "name": name, "description": name, "inputSchema": schema }))
    };
    let with = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let mut tools: Vec<Tool> = NAMES
        .iter()
        .map(|name| tool(name, json!({ "type": "object", "properties": {} })))
        .collect();
    tools.push(tool(
        "test_input_required_result_capabilities",
        json!({ "type": "object", "properties": {} }),
    ));
    tools.push(tool("test_sampling", with("prompt")));
    tools.push(tool("test_elicitation", with("message")));
    tools.push(tool(
        "test_x_mcp_header",
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } }),
    ));
    tools.push(tool(
        "json_schema_2020_12_tool",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" }, "email": { "type": "string" } },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        }),
    ));
    tools
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let args = Value::Object(request.arguments.clone().unwrap_or_default());
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let embedded = |uri: &str, mime: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } });
    let content = match request.name.as_ref() {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => {
            json!([embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_error_handling" => {
            let said = read(text("This tool intentionally returns an error for testing"));
            return Ok(CallToolResult::error(vec![said]));
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            log(context).await;
            json!([text("logged")])
        }
        "test_tool_with_progress" => {
            progress(context).await;
            json!([text("progressed")])
        }
        "test_missing_capability" => {
            let needed = read(json!({ "sampling": {} }));
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        "test_sampling" => json!([text(&sample(context, &args["prompt"]).await?)]),
        "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => {
            json!([text(&elicit(context, &request.name, &args["message"]).await?)])
        }
        "test_reconnection"
        | "test_streaming_elicitation"
        | "test_x_mcp_header"
        | "json_schema_2020_12_tool" => {
            json!([text("done")])
        }
        other => return Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
    };
    Ok(CallToolResult::success(read(content)))
}

#[expect(deprecated, reason = "older revisions have logging")]
async fn log(context: &RequestContext<RoleServer>) {
    // Since 2026-07-28, a request without a level receives no log.
    let meta = serde_json::to_value(&context.meta).unwrap();
    let is_new = context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
    if is_new && meta["io.modelcontextprotocol/logLevel"].is_null() {
        return;
    }
    for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let param = read(json!({ "level": "info", "data": said }));
        let _ = context.peer.notify_logging_message(param).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn progress(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let param = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        let _ = context.peer.notify_progress(param).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[expect(deprecated, reason = "older revisions have sampling")]
async fn sample(context: &RequestContext<RoleServer>, prompt: &Value) -> Result<String, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = read(json!({ "messages": [message], "maxTokens": 100 }));
    let said = context.peer.create_message(params).await;
    let said = said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let said = serde_json::to_value(said).unwrap();
    let text = said["content"]["text"].as_str().or_else(|| said["content"][0]["text"].as_str());
    Ok(format!("LLM response: {}", text.unwrap_or_default()))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    tool: &str,
    message: &Value,
) -> Result<String, ErrorData> {
    let three = json!(["option1", "option2", "option3"]);
    let titled = |what: &str| {
        let one = |n: &str, word: &str| json!({ "const": format!("value{n}"), "title": format!("{word} {what}") });
        json!([one("1", "First"), one("2", "Second"), one("3", "Third")])
    };
    let (begin, properties, required) = match tool {
        "test_elicitation" => (
            "User response",
            json!({ "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" } }),
            json!(["username", "email"]),
        ),
        "test_elicitation_sep1034_defaults" => (
            "Elicitation completed",
            json!({ "name": { "type": "string", "default": "John Doe" }, "age": { "type": "integer", "default": 30 },
                    "score": { "type": "number", "default": 95.5 },
                    "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                    "verified": { "type": "boolean", "default": true } }),
            json!([]),
        ),
        _ => (
            "Elicitation completed",
            json!({ "untitledSingle": { "type": "string", "enum": three },
                    "titledSingle": { "type": "string", "oneOf": titled("Option") },
                    "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                                    "enumNames": ["Option One", "Option Two", "Option Three"] },
                    "untitledMulti": { "type": "array", "items": { "type": "string", "enum": three } },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } } }),
            json!([]),
        ),
    };
    let params = json!({ "mode": "form", "message": message.as_str().unwrap_or("Please fill in"),
        "requestedSchema": { "type": "object", "properties": properties, "required": required } });
    let filled = context.peer.create_elicitation(read(params)).await;
    let filled = filled.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let filled = serde_json::to_value(filled).unwrap();
    let action = filled["action"].as_str().unwrap_or_default();
    Ok(format!("{begin}: action={action}, content={}", filled["content"]))
}
