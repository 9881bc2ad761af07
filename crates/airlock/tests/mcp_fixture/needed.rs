//! Tools that need input from the client before they can answer.

use super::read;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

fn codec() -> RequestStateCodec {
    RequestStateCodec::try_new(*b"a key for the conformance suite!").unwrap()
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": { field: { "type": kind } }, "required": [field] } } })
}

fn sampling(prompt: &str, n_tokens: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": { "maxTokens": n_tokens,
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }] } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

pub(super) fn prompt() -> InputRequiredResult {
    let request = form("What context should the prompt use?", "context", "string");
    InputRequiredResult::from_input_requests(read(json!({ "user_context": request })))
}

/// The input that each tool needs, round by round, and its state, if it has one.
fn rounds(tool: &str, context: &RequestContext<RoleServer>) -> (Vec<Value>, bool) {
    let name = form("What is your name?", "name", "string");
    match tool {
        "test_input_required_result_sampling" => (
            vec![json!({ "capital_question": sampling("What is the capital of France?", 100) })],
            false,
        ),
        "test_input_required_result_list_roots" => {
            (vec![json!({ "client_roots": roots() })], false)
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            (vec![json!({ "confirm": form("Please confirm", "ok", "boolean") })], true)
        }
        "test_input_required_result_multiple_inputs" => (
            vec![
                json!({ "user_name": name, "greeting": sampling("Generate a greeting", 50), "client_roots": roots() }),
            ],
            true,
        ),
        "test_input_required_result_multi_round" => (
            vec![
                json!({ "step1": form("Step 1: What is your name?", "name", "string") }),
                json!({ "step2": form("Step 2: What is your favorite color?", "color", "string") }),
            ],
            true,
        ),
        "test_input_required_result_capabilities" => {
            let can = context.client_capabilities().unwrap_or_default();
            let mut needs = serde_json::Map::new();
            if can.elicitation.is_some() {
                needs.insert("user_name".into(), name);
            }
            if serde_json::to_value(&can).unwrap()["sampling"].is_object() {
                needs.insert("greeting".into(), sampling("Generate a greeting", 50));
            }
            (vec![Value::Object(needs)], false)
        }
        _ => (vec![json!({ "user_name": name })], false),
    }
}

pub(super) fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let (rounds, keeps_state) = rounds(&request.name, context);
    let round = match (&request.request_state, keeps_state) {
        (Some(sealed), true) => {
            let opened = codec().open(sealed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            opened.and_then(|round| round.parse::<usize>().ok()).ok_or_else(|| {
                ErrorData::invalid_params("requestState failed its integrity check", None)
            })?
        }
        _ => 0,
    };
    let responses = request.input_responses.clone().unwrap_or_default();
    let needed = rounds[round].as_object().unwrap();
    let has_all = needed.keys().all(|key| {
        responses.get(key).is_some_and(|response| {
            let is_form = needed[key]["method"] == "elicitation/create";
            !is_form || response["content"].is_object() || response["action"] == "decline"
        })
    });
    let next = if has_all && !needed.is_empty() { round + 1 } else { round };
    if next >= rounds.len() || needed.is_empty() {
        let text = format!("state-ok: {}", json!(responses));
        return Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into());
    }
    let state = keeps_state.then(|| codec().seal(next.to_string().as_bytes()));
    Ok(InputRequiredResult::new(Some(read(rounds[next].clone())), state).into())
}
