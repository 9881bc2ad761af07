//! The tools that the recorded programs call.

use client::execbox::{
    ErrorCode, ExecboxToolError, ProvidedTool, ResolvedProvider, ToolContext, ToolProvider,
    ToolReturn, read, value,
};
use lifecycle::Json;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The providers of the namespaces `tools` and `other`.
pub(crate) fn providers() -> [Arc<ResolvedProvider>; 2] {
    let tools = ToolProvider::new("tools");
    let tools = [plain(), checked(), failing(), odd_values(), waiting(), odd_names()]
        .into_iter()
        .flatten()
        .fold(tools, ToolProvider::tool);
    let other = ProvidedTool::new("echo", |input: Json, _| async move {
        json_text(format!(r#"["other",{}]"#, input.as_text()))
    });
    [tools.resolve().unwrap(), ToolProvider::new("other").tool(other).resolve().unwrap()]
}

fn json_text(text: String) -> ToolReturn {
    Ok(Some(Json::parse(text)?))
}

/// A tool that always returns the same value.
fn constant(name: &str, returned: fn() -> ToolReturn) -> ProvidedTool {
    ProvidedTool::new(name, move |_, _| async move { returned() })
}

fn plain() -> Vec<ProvidedTool> {
    let echo = ProvidedTool::new("echo", |input: Json, _| async move {
        json_text(format!(r#"{{"got":{}}}"#, input.as_text()))
    });
    let raw = ProvidedTool::new("raw", |input, _| async { Ok(Some(input)) });
    let context = ProvidedTool::new("context", |_, context: ToolContext| async move {
        value(&[&*context.provider_name, &context.safe_tool_name, &context.original_tool_name])
    });
    vec![echo, raw, context]
}

fn checked() -> Vec<ProvidedTool> {
    let number = json!({"type": "number"});
    let add = ProvidedTool::new("add", |input, _| async move {
        let summands: std::collections::BTreeMap<String, f64> = read(&input)?;
        value(&(summands["a"] + summands["b"]))
    });
    let schema =
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": number, "b": number}});
    let bad_output = constant("badOutput", || value(&5)).output_schema(json!({"type": "string"}));
    vec![add.input_schema(schema).output_schema(number), bad_output]
}

fn failing() -> Vec<ProvidedTool> {
    vec![
        constant("fail", || Err(ExecboxToolError::new("boom"))),
        constant("failString", || Err(ExecboxToolError::Unsaid)),
        constant("failCode", || {
            Err(ExecboxToolError::coded(ErrorCode::MemoryLimit, "declared by host"))
        }),
        constant("undef", || Ok(None)),
        constant("nan", || Err(ExecboxToolError::NotSerializable)),
        constant("date", || Err(ExecboxToolError::NotSerializable)),
    ]
}

fn odd_values() -> Vec<ProvidedTool> {
    let deep = ProvidedTool::new("deep", |input, _| async move {
        let n: usize = read(&input)?;
        json_text(format!("{}null{}", r#"{"o":"#.repeat(n), "}".repeat(n)))
    });
    vec![
        constant("proto", || json_text(r#"{"__proto__":{"polluted":1},"safe":1}"#.to_owned())),
        constant("unicode", || value("\u{2028}\u{2029}\u{1F600}\0`${1}`")),
        constant("lone", || json_text(r#""\ud800""#.to_owned())),
        constant("keys", || json_text(r#"{"a\"":1,"":2,"\u2028":3}"#.to_owned())),
        constant("numbers", || {
            json_text("[1e21,5e-324,1.7976931348623157e308,-0,9007199254740992,0.1]".to_owned())
        }),
        deep,
    ]
}

fn waiting() -> Vec<ProvidedTool> {
    let sleep = ProvidedTool::new("sleep", |input, _| async move {
        tokio::time::sleep(Duration::from_millis(read(&input)?)).await;
        value(&true)
    });
    let hang = ProvidedTool::new("hang", |_, context: ToolContext| async move {
        context.signal.cancelled().await;
        Err(ExecboxToolError::new("aborted"))
    });
    vec![sleep, hang]
}

fn odd_names() -> Vec<ProvidedTool> {
    vec![
        constant("my-tool", || value("dash")),
        constant("my.tool", || value("dot")),
        constant("delete", || value("reserved")),
        constant("3d.render", || value("digit")),
    ]
}
