//! The few tools of the test host.

use serde_json::{Value, json};

/// How a host answers a call.
pub(super) enum Answer {
    Now(String),
    Never,
}

pub(super) fn manifests() -> Value {
    let tool = |name: &str| json!({"safeName": name, "originalName": name});
    json!([{
        "name": "tools",
        "types": "",
        "tools": {"echo": tool("echo"), "raw": tool("raw"), "hang": tool("hang")},
    }])
}

/// `input` is the argument's JSON. It is passed on as text, because it may contain what Rust strings cannot.
pub(super) fn call(tool: &str, input: &str) -> Answer {
    match tool {
        "echo" => Answer::Now(format!(r#"{{"got":{input}}}"#)),
        "raw" => Answer::Now(input.to_owned()),
        _ => Answer::Never,
    }
}
