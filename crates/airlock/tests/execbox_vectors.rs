//! Every recorded program of an execbox host, through our host, its pipes and our runner.

use crate::conformance_tools;
use client::execbox::{
    ExecboxProgram, ExecuteResult, OneShot, Options, PoolSize, PooledRunners, ResolvedProvider,
    RunnerCommand,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One recorded program. Members are parsed one by one, because an outcome may contain a text that only JavaScript can
/// represent.
struct Case(BTreeMap<String, Box<RawValue>>);

impl Case {
    fn all() -> Vec<Self> {
        let file = include_str!("../../../tests/conformance/execbox/vectors.json");
        let mut parts: BTreeMap<String, Vec<_>> = serde_json::from_str(file).unwrap();
        parts.remove("cases").unwrap().into_iter().map(Self).collect()
    }

    /// A member; `null` if it is absent.
    fn member(&self, name: &str) -> Value {
        self.0.get(name).map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
    }

    fn text(&self, name: &str) -> String {
        self.member(name).as_str().unwrap().to_owned()
    }

    fn execution(&self, providers: &[Arc<ResolvedProvider>]) -> ExecboxProgram {
        let options = self.member("options");
        let options = Options {
            timeout: options["timeoutMs"].as_u64().map(Duration::from_millis),
            memory_limit_bytes: options["memoryLimitBytes"].as_u64(),
            max_log_lines: options["maxLogLines"].as_u64(),
            max_log_chars: options["maxLogChars"].as_u64(),
            cancel_grace: None,
        };
        let execution = ExecboxProgram::new(self.text("code")).options(options);
        providers.iter().cloned().fold(execution, ExecboxProgram::provider)
    }

    /// The difference between `result` and the record, if there is one.
    fn complaint(&self, result: &ExecuteResult) -> Option<String> {
        let (id, seen, want) = (self.text("id"), shown(result), self.member("want"));
        let is_good = match self.text("compare").as_str() {
            _ if !want.is_null() => is_wanted(&want, &seen),
            "report" => true,
            "exact" if id == "logs/missing-methods" => seen["result"] == json!(RICHER_CONSOLE),
            "exact" => seen == self.recorded(&id),
            "code" => {
                let recorded = self.recorded(&id);
                seen["ok"] == recorded["ok"] && seen["error"]["code"] == recorded["error"]["code"]
            }
            other => panic!("{id}: nobody knows how to compare {other}"),
        };
        (!is_good).then(|| format!("{id}: {seen}"))
    }

    fn recorded(&self, id: &str) -> Value {
        let mut recorded = self.member("outcome");
        if NULL_FOR_NOTHING.contains(&id) {
            recorded["result"] = json!({"got": null});
        }
        recorded
    }
}

/// The types of seven methods that execbox's console lacks. Ours has all but one, because a clock that never advances
/// measures nothing.
const RICHER_CONSOLE: [&str; 7] =
    ["function", "function", "function", "function", "undefined", "function", "function"];

/// JSON has no undefined: over any wire, an omitted argument arrives as null.
const NULL_FOR_NOTHING: [&str; 2] = ["tool/no-argument", "tool/undefined-argument"];

fn is_wanted(want: &Value, seen: &Value) -> bool {
    let is_value = want.get("result").is_none_or(|result| seen["result"] == *result);
    let codes = want["error"]["code"].as_array();
    let is_failure = codes.is_none_or(|codes| codes.contains(&seen["error"]["code"]));
    seen["ok"] == want["ok"] && is_value && is_failure
}

/// The result in the record's form: without its duration, and with undefined marked explicitly.
fn shown(result: &ExecuteResult) -> Value {
    let mut shown: Value = serde_json::from_str(result.to_json().as_text()).unwrap();
    let members = shown.as_object_mut().unwrap();
    members.remove("durationMs");
    if result.outcome == Ok(None) {
        members.insert("resultIsUndefined".to_owned(), json!(true));
    }
    shown
}

fn runner() -> RunnerCommand {
    RunnerCommand::new(env!("CARGO_BIN_EXE_airlock")).arg("runner")
}

#[tokio::test]
async fn every_recorded_program_ends_as_recorded_or_better_on_a_runner_that_is_kept() {
    let providers = conformance_tools::providers();
    let pool = PooledRunners::new(runner(), PoolSize { max_size: 1, ..PoolSize::default() });
    let (cases, mut complaints) = (Case::all(), vec![]);
    for case in &cases {
        let result = pool.execute(case.execution(&providers)).await;
        complaints.extend(case.complaint(&result));
    }
    pool.dispose().await;
    assert_eq!((cases.len(), complaints), (160, vec![]));
}

#[tokio::test]
async fn recorded_programs_end_the_same_on_a_fresh_runner() {
    let providers = conformance_tools::providers();
    let executor = OneShot::new(runner());
    let mut complaints = vec![];
    // A sample of each kind is enough, because only the start differs.
    for case in Case::all().into_iter().step_by(8) {
        let result = executor.execute(case.execution(&providers)).await;
        complaints.extend(case.complaint(&result));
    }
    assert_eq!(complaints, vec![""; 0]);
}
