//! The tools that the vectors call, as their host has them.

use serde_json::{Value, json};

/// What a host does about a call.
pub(super) enum Answer {
    Now(String),
    Failed(&'static str, String),
    After(u64),
    Never,
}

const NAMES: [&str; 21] = [
    "echo",
    "raw",
    "add",
    "badOutput",
    "fail",
    "failString",
    "failCode",
    "undef",
    "nan",
    "date",
    "proto",
    "unicode",
    "lone",
    "keys",
    "deep",
    "numbers",
    "sleep",
    "hang",
    "context",
    "my_tool",
    "my_tool__2",
];

pub(super) fn manifests() -> Value {
    let tool = |name: &str| json!({"safeName": name, "originalName": name});
    let names = NAMES.into_iter().chain(["delete_", "_3d_render"]);
    let tools: serde_json::Map<String, Value> =
        names.map(|name| (name.to_owned(), tool(name))).collect();
    json!([
        {"name": "tools", "types": "", "tools": tools},
        {"name": "other", "types": "", "tools": {"echo": tool("echo")}},
    ])
}

/// `input` is the argument's JSON, which is passed on as text: it may hold what our strings cannot.
pub(super) fn call(provider: &str, tool: &str, input: &str) -> Answer {
    let now = |json: &str| Answer::Now(json.to_owned());
    let not_json = |tool: &str| {
        let message = format!("Tool {tool} returned a non-serializable value");
        Answer::Failed("serialization_error", message)
    };
    match (provider, tool) {
        ("other", "echo") => Answer::Now(format!(r#"["other",{input}]"#)),
        (_, "echo") => Answer::Now(format!(r#"{{"got":{input}}}"#)),
        (_, "raw") => now(input),
        (_, "add") => add(input),
        (_, "badOutput") => {
            let message = "Invalid output for tool badOutput: data must be string";
            Answer::Failed("validation_error", message.to_owned())
        }
        (_, "fail") => Answer::Failed("tool_error", "boom".to_owned()),
        (_, "failString") => Answer::Failed("tool_error", "Tool failString failed".to_owned()),
        (_, "failCode") => Answer::Failed("memory_limit", "declared by host".to_owned()),
        (_, "undef" | "nan" | "date") => not_json(tool),
        (_, "proto") => now(r#"{"__proto__":{"polluted":1},"safe":1}"#),
        (_, "unicode") => now(r#""\u2028\u2029\ud83d\ude00\u0000${`x`}""#),
        (_, "lone") => now(r#""a\ud800b""#),
        (_, "keys") => now(r#"{"a\"":1,"":2,"\u2028":3}"#),
        (_, "deep") => deep(input.parse().unwrap()),
        (_, "numbers") => now("[1e21,5e-324,1.7976931348623157e308,-0,9007199254740992,0.1]"),
        (_, "sleep") => Answer::After(input.parse().unwrap()),
        (_, "hang") => Answer::Never,
        (_, "my_tool") => now(r#""dash""#),
        (_, "my_tool__2") => now(r#""dot""#),
        (_, "delete_") => now(r#""reserved""#),
        (_, "_3d_render") => now(r#""digit""#),
        _ => Answer::Failed("internal_error", format!("Unknown tool {provider}.{tool}")),
    }
}

fn add(input: &str) -> Answer {
    let input: Value = serde_json::from_str(input).unwrap();
    let wrong = |name: &str| match &input[name] {
        Value::Null => Some(format!("data must have required property '{name}'")),
        value if value.is_number() => None,
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Some(format!("data/{name} must be number")),
    };
    let wrongs: Vec<String> = ["a", "b"].into_iter().filter_map(wrong).collect();
    if wrongs.is_empty() {
        let sum = input["a"].as_f64().unwrap() + input["b"].as_f64().unwrap();
        return Answer::Now(sum.to_string());
    }
    Answer::Failed("validation_error", format!("Invalid input for tool add: {}", wrongs.join(", ")))
}

fn deep(n: usize) -> Answer {
    Answer::Now(format!("{}null{}", r#"{"o":"#.repeat(n), "}".repeat(n)))
}
