//! The results that a guest gets from a tool, and the messages of refusals.

use crate::played::stage;
use client::execbox::{
    BadProvider, ErrorCode, ExecboxProgram, ExecboxToolError, HostSession, Options, ProvidedTool,
    ResolvedProvider, ToolContext, ToolProvider, value,
};
use lifecycle::Json;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Returns the runner's answer after its guest calls `tools.t(input)`; `input` is JSON text.
async fn answer_to(provider: Arc<ResolvedProvider>, input: &str) -> Value {
    let (mut channel, mut actor, _) = stage();
    // Some of the values are large, and the machine may be busy.
    let options = Options { timeout: Some(Duration::from_secs(60)), ..Options::default() };
    let execution = ExecboxProgram::new("code").provider(provider).options(options);
    let runner = async {
        let id = actor.hear_execute().await;
        actor
            .say_line(&format!(
                r#"{{"type":"tool_call","callId":"c","providerName":"tools","safeToolName":"t","input":{input}}}"#
            ))
            .await;
        let answer = actor.hear().await;
        actor.done(&id, Value::Null).await;
        answer
    };
    let (_, answer) = tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
    match answer.get("result") {
        Some(result) => result.clone(),
        None => json!([answer["error"]["code"], answer["error"]["message"]]),
    }
}

fn provider(tool: ProvidedTool) -> Arc<ResolvedProvider> {
    ToolProvider::new("tools").tool(tool).resolve().unwrap()
}

fn echo() -> ProvidedTool {
    ProvidedTool::new("t", |input, _| async { Ok(Some(input)) })
}

#[track_caller]
fn returning(returned: fn() -> client::execbox::ToolReturn) -> ProvidedTool {
    ProvidedTool::new("t", move |_, _| async move { returned() })
}

#[tokio::test]
async fn arguments_are_checked_before_the_tool_is_called() {
    let schema = json!({
        "type": "object", "required": ["a", "b"], "additionalProperties": false,
        "properties": {"a": {"type": "number"}, "b": {"type": "number", "minimum": 1}},
    });
    let cases = [
        (r#"{"a": 1}"#, "data must have required property 'b'"),
        (r#"{"a": "x", "b": "y"}"#, "data/a must be number, data/b must be number"),
        ("null", "data must be object"),
        (r#"{"a": 1, "b": 0}"#, "data/b must be >= 1"),
        (r#"{"a": 1, "b": 1, "c": 1}"#, "data must NOT have additional properties"),
    ];
    for (input, issues) in cases {
        let answer = answer_to(provider(echo().input_schema(schema.clone())), input).await;
        let message = format!("Invalid input for tool t: {issues}");
        assert_eq!(answer, json!(["validation_error", message]));
    }
    let fitting = r#"{"a":1,"b":2}"#;
    let answer = answer_to(provider(echo().input_schema(schema)), fitting).await;
    assert_eq!(answer, json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn issues_are_worded_as_clients_know_them() {
    let cases = [
        (json!({"enum": [1]}), "2", "must be equal to one of the allowed values"),
        (json!({"const": 1}), "2", "must be equal to constant"),
        (json!({"type": ["string", "null"]}), "2", "must be null,string"),
        (json!({"maximum": 1.5}), "2", "must be <= 1.5"),
        (json!({"exclusiveMinimum": 2}), "2", "must be > 2"),
        (json!({"exclusiveMaximum": 2}), "2", "must be < 2"),
        (json!({"multipleOf": 2}), "3", "must be multiple of 2"),
        (json!({"minLength": 2}), "\"\"", "must NOT have fewer than 2 characters"),
        (json!({"maxLength": 1}), "\"ab\"", "must NOT have more than 1 characters"),
        (json!({"minItems": 1}), "[]", "must NOT have fewer than 1 items"),
        (json!({"maxItems": 0}), "[1]", "must NOT have more than 0 items"),
        (json!({"minProperties": 1}), "{}", "must NOT have fewer than 1 properties"),
        (json!({"maxProperties": 0}), "{\"a\":1}", "must NOT have more than 0 properties"),
        (json!({"pattern": "^a$"}), "\"b\"", "must match pattern \"^a$\""),
        (json!({"not": {}}), "1", "must NOT be valid"),
        (json!({"contains": {"type": "null"}}), "[1]", "must contain at least 1 valid item(s)"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "1",
            "must be string, data must be null, data must match a schema in anyOf",
        ),
        (json!({"oneOf": [{}, {}]}), "1", "must match exactly one schema in oneOf"),
    ];
    for (schema, input, issue) in cases {
        let answer = answer_to(provider(echo().input_schema(schema)), input).await;
        let message = format!("Invalid input for tool t: data {issue}");
        assert_eq!(answer, json!(["validation_error", message]));
    }
}

#[tokio::test]
async fn odd_arguments_reach_the_tool_as_they_were_also_past_a_schema() {
    let schema = json!({"type": ["string", "array"]});
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for input in [r#""x\ud800y""#, &deep, "[1e999, -0, 123456789012345680000]"] {
        let (mut channel, mut actor, _) = stage();
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let noted = seen.clone();
        let tool = ProvidedTool::new("t", move |input: Json, _| {
            *noted.lock().unwrap() = input.as_text().to_owned();
            async { value(&true) }
        });
        let execution =
            ExecboxProgram::new("code").provider(provider(tool.input_schema(schema.clone())));
        let runner = async {
            let id = actor.hear_execute().await;
            let call = r#"{"type":"tool_call","callId":"c","providerName":"tools","safeToolName":"t","input":"#;
            actor.say_line(&format!("{call}{input}}}")).await;
            assert_eq!(actor.hear().await["ok"], true);
            actor.done(&id, Value::Null).await;
        };
        tokio::join!(HostSession::new(&mut *channel).run(&execution), runner);
        assert_eq!(*seen.lock().unwrap(), input);
    }
}

#[tokio::test]
async fn failures_of_tools_are_told_apart() {
    let cases: [(fn() -> client::execbox::ToolReturn, _); 7] = [
        (|| Err(ExecboxToolError::new("boom")), ["tool_error", "boom"]),
        (|| Err(ExecboxToolError::Unsaid), ["tool_error", "Tool t failed"]),
        (|| panic!("a secret"), ["tool_error", "Tool t failed"]),
        (
            || Err("x".parse::<u8>().unwrap_err().into()),
            ["tool_error", "invalid digit found in string"],
        ),
        (
            || Err(ExecboxToolError::coded(ErrorCode::MemoryLimit, "declared by host")),
            ["memory_limit", "declared by host"],
        ),
        (|| Ok(None), ["serialization_error", "Tool t returned a non-serializable value"]),
        (
            || Err(ExecboxToolError::NotSerializable),
            ["serialization_error", "Tool t returned a non-serializable value"],
        ),
    ];
    for (returned, expected) in cases {
        assert_eq!(answer_to(provider(returning(returned)), "{}").await, json!(expected));
    }
}

#[tokio::test]
async fn results_are_checked_after_they_are_known_to_be_json() {
    let text = json!({"type": "string"});
    let five = returning(|| value(&5)).output_schema(text.clone());
    let message = "Invalid output for tool t: data must be string";
    assert_eq!(answer_to(provider(five), "{}").await, json!(["validation_error", message]));
    let nothing = returning(|| Ok(None)).output_schema(text);
    let message = "Tool t returned a non-serializable value";
    assert_eq!(answer_to(provider(nothing), "{}").await, json!(["serialization_error", message]));
}

#[tokio::test]
async fn a_result_that_no_message_can_carry_is_refused() {
    let huge = returning(|| value(&"x".repeat(64 << 20)));
    assert_eq!(answer_to(provider(huge), "{}").await[0], "serialization_error");
}

#[tokio::test]
async fn a_tool_is_told_who_is_called() {
    let tool = ProvidedTool::new("t-", |_, context: ToolContext| async move {
        value(&[&*context.provider_name, &context.safe_tool_name, &context.original_tool_name])
    });
    assert_eq!(answer_to(provider(tool), "{}").await, json!(["tools", "t", "t-"]));
}

#[test]
fn a_provider_that_cannot_be_offered_says_why() {
    let check = |provider: ToolProvider, expected: &str| {
        assert_eq!(provider.resolve().unwrap_err().to_string(), expected);
    };
    check(ToolProvider::new("bad-name"), "Invalid provider namespace: bad-name");
    let twice = ToolProvider::new("p").tool(echo()).tool(echo());
    check(twice, "provider p has two tools named t");
    let tool = echo().input_schema(json!({"type": "nonsense"}));
    let error = ToolProvider::new("p").tool(tool).resolve().unwrap_err();
    assert!(matches!(&error, BadProvider::Schema { tool, which: "input", .. } if tool == "t"));
    let fetching = echo().output_schema(json!({"$ref": "http://127.0.0.1/s"}));
    let error = ToolProvider::new("p").tool(fetching).resolve().unwrap_err();
    assert!(matches!(&error, BadProvider::Schema { which: "output", .. }));
}
