//! The arguments of `tools.process.run`.

use lifecycle::{Failure, FailureCode, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The default time limit of a command.
const TIME_USUALLY: Duration = Duration::from_secs(60);

/// Maximum number and length of the words of a command line: the kernel accepts no more.
const WORDS_MAX: usize = 4_096;
const WORD_CHARS_MAX: usize = 128 << 10;

/// Maximum number of variables of one call, and size of its standard input: larger input belongs in a file.
const VARIABLES_MAX: usize = 256;
const STDIN_CHARS_MAX: usize = 1 << 20;

/// The arguments of a call; they match the schema.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    argv: Vec<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout_ms: Option<u64>,
    stdin: Option<String>,
}

/// A command with its environment.
#[derive(Debug)]
pub(super) struct CommandDescription {
    pub(super) argv: Vec<String>,
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) time_max: Duration,
    pub(super) stdin: Option<String>,
}

impl CommandDescription {
    pub(super) fn read(args: &Json, time_max: Duration) -> Result<Self, Failure> {
        let wrong = |error: serde_json::Error| {
            let why = format!("The arguments of \"process.run\" do not fit: {error}.");
            Failure::new(FailureCode::Validation, why)
        };
        let Args { argv, cwd, env, timeout_ms, stdin } =
            serde_json::from_str(args.as_text()).map_err(wrong)?;
        let time = timeout_ms.map_or(TIME_USUALLY, Duration::from_millis);
        Ok(Self { argv, cwd, env, time_max: time.min(time_max), stdin })
    }
}

/// The schema of the arguments. What no system accepts is refused here, before a person is asked.
pub(super) fn schema(time_max: Duration) -> Value {
    let text =
        |n_max: usize| json!({"type": "string", "maxLength": n_max, "pattern": "^[^\\u0000]*$"});
    let mut program = text(WORD_CHARS_MAX);
    program["minLength"] = 1.into();
    let time_ms_max = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
    json!({
        "type": "object",
        "properties": {
            "argv": {
                "type": "array",
                "description": "The program and its arguments; no shell reads them.",
                "minItems": 1,
                "maxItems": WORDS_MAX,
                "prefixItems": [program],
                "items": text(WORD_CHARS_MAX),
            },
            "cwd": text(4_096),
            "env": {
                "type": "object",
                "description": "Variables beside PATH and LANG; nothing of the server's own is passed on.",
                "maxProperties": VARIABLES_MAX,
                "propertyNames": {"pattern": "^[^=\\u0000]+$"},
                "additionalProperties": text(WORD_CHARS_MAX),
            },
            "timeoutMs": {
                "type": "integer",
                "minimum": 1,
                "maximum": time_ms_max,
                "description": "Then it is killed with all that it has started; a minute where it is not said.",
            },
            "stdin": {"type": "string", "maxLength": STDIN_CHARS_MAX},
        },
        "required": ["argv"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fits(args: &Value) -> bool {
        let schema = Json::from_value(&schema(Duration::from_secs(5))).unwrap();
        tools::misfit(&schema, &Json::from_value(args).unwrap()).is_none()
    }

    #[test]
    fn what_no_system_could_be_told_does_not_fit() {
        let good = json!({
            "argv": ["a", ""], "cwd": "b", "env": {"A": "", "b c": "d"}, "timeoutMs": 5_000, "stdin": "\u{0}",
        });
        assert!(fits(&good));
        for bad in [
            json!({}),
            json!({"argv": []}),
            json!({"argv": [""]}),
            json!({"argv": "ls -l"}),
            json!({"argv": ["a", 1]}),
            json!({"argv": ["a\u{0}b"]}),
            json!({"argv": ["a"], "cwd": "\u{0}"}),
            json!({"argv": ["a"], "env": {"A=B": "c"}}),
            json!({"argv": ["a"], "env": {"": "c"}}),
            json!({"argv": ["a"], "env": {"A": "\u{0}"}}),
            json!({"argv": ["a"], "timeoutMs": 0}),
            json!({"argv": ["a"], "timeoutMs": 5_001}),
            json!({"argv": ["a"], "shell": true}),
        ] {
            assert!(!fits(&bad), "{bad}");
        }
    }
}
