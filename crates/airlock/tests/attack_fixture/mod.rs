//! Hostile programs as data, and the doors through which they run.
//!
//! A program is a line of a file in `attacks`; the file's name is its class. `docs/testing.md` describes the members.

mod doors;
mod repl_door;
mod server;

pub(crate) use doors::{Door, TimeLimit, open_door};
pub(crate) use server::Target;

use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A hostile program and its permitted outcomes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    pub(crate) name: String,
    code: String,
    pub(crate) expect: Expectation,
    /// The doors through which it runs; all of them if empty.
    #[serde(default)]
    doors: Vec<String>,
    /// The code is sent unchanged, not as the body of a function with `return`.
    #[serde(default)]
    raw: bool,
    /// A text that is inserted before the code, and the number of repetitions.
    #[serde(default)]
    before: Option<(String, usize)>,
    /// The name of the file that contains it.
    #[serde(skip)]
    pub(crate) class: String,
}

/// The permitted outcomes of a program: the value, or one of the error codes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expectation {
    #[serde(deserialize_with = "present")]
    value: Option<Value>,
    errors: Vec<String>,
    /// A text that the error's message contains.
    message: Option<String>,
}

/// Distinguishes null from an absent member.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// How a program ended, in the same vocabulary for every door.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The returned value; `undefined` becomes null.
    Value(Value),
    Failed {
        /// A code of `lifecycle::FailureCode`, or `asks`.
        code: String,
        message: String,
    },
}

impl Expectation {
    pub(crate) fn holds(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Value(value) => self.value.as_ref() == Some(value),
            Outcome::Failed { code, message } => {
                self.errors.contains(code)
                    && self.message.as_ref().is_none_or(|part| message.contains(part.as_str()))
            }
        }
    }

    /// Whether the program is expected to time out and to return no value. A short limit then saves time.
    pub(crate) fn is_timeout(&self) -> bool {
        self.value.is_none() && self.errors.iter().any(|code| code == "timeout")
    }
}

impl Attack {
    pub(crate) fn runs_through(&self, door: &str) -> bool {
        self.doors.is_empty() || self.doors.iter().any(|name| name == door)
    }

    /// The first door through which it runs.
    pub(crate) fn first_door(&self) -> &str {
        self.doors.first().map_or(DOORS[0], String::as_str)
    }

    /// The code for a door. `{DATA}` is replaced by the server's data directory, `{OTHER}` by another caller's
    /// execution.
    pub(crate) fn code(&self, door: &str, target: &Target) -> String {
        let mut code = match &self.before {
            Some((text, n)) => text.repeat(*n) + &self.code,
            None => self.code.clone(),
        };
        code = code.replace("{DATA}", &target.data_dir).replace("{OTHER}", &target.other);
        match door {
            // An eval returns the value of its last expression and has no `return` at its top level.
            "hotrepl" if !self.raw => format!("await (async () => {{ {code}\n}})()"),
            _ => code,
        }
    }
}

/// Every door that runs guests, the fastest first.
pub(crate) const DOORS: [&str; 5] = ["execbox", "executor", "mcp", "enclave", "hotrepl"];

/// Every hostile program, in the order of the files' names.
pub(crate) fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut attacks = vec![];
    for file in files {
        let class = file.file_stem().unwrap().to_string_lossy().into_owned();
        for (n, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let attack: Attack = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{class}, line {}: {error}", n + 1));
            attacks.push(Attack { class: class.clone(), ..attack });
        }
    }
    attacks
}
