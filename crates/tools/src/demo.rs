//! Tools to try things with: `demo.add`, `demo.echo`, `demo.sleep`, `demo.fail`, `demo.ask`, `demo.form`,
//! `demo.link`, `demo.append`.

use crate::{ProgressHandle, Source, Tool, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{Failure, FailureCode, Json, ToolHost, ToolNature, ToolPath, ToolPrompt};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, json};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Longest sleep: a demonstration must not occupy a server's memory for days.
const SLEEP_MS_MAX: u64 = 600_000;

/// Minimum interval between progress reports of a sleep: twenty reports in total, but not more often than a viewer
/// can read.
const TOLD_EVERY_MIN: Duration = Duration::from_millis(100);
const TOLD_EVERY_MAX: Duration = Duration::from_secs(1);

/// Longest line that is appended: one write of this size is not torn.
const LINE_CHARS_MAX: usize = 1_000;

/// The file that `demo.append` writes to.
const APPEND_FILE: &str = "demo-append.txt";

type DemoResult = Result<Option<Json>, Failure>;

/// The demonstration tools.
#[derive(Debug)]
pub struct DemoTools {
    directory: PathBuf,
}

impl DemoTools {
    /// `demo.append` writes to a file in `directory`, which must exist by then.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }
}

impl Source for DemoTools {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn tools(&self) -> Vec<Tool> {
        let number = json!({"type": "number"});
        let text = json!({"type": "string"});
        let line =
            json!({"type": "string", "maxLength": LINE_CHARS_MAX, "pattern": "^[^\\r\\n]*$"});
        let ms = json!({"type": "integer", "minimum": 0, "maximum": SLEEP_MS_MAX});
        let appended = json!({"type": "object", "properties": {"appended": {"const": true}}});
        vec![
            Tool {
                output_schema: Some(number.clone()),
                ..tool("add", "Adds two numbers.", &[("a", &number), ("b", &number)])
            },
            tool("echo", "Returns its arguments.", &[("message", &json!({}))]),
            Tool { job: true, ..tool("sleep", "Waits, then returns how long.", &[("ms", &ms)]) },
            tool("fail", "Fails with a message.", &[("message", &text)]),
            Tool { asks: true, ..tool("ask", "Asks a person first.", &[("text", &text)]) },
            tool(
                "form",
                "Asks a person to fill in what a JSON Schema describes, and returns it.",
                &[("message", &text), ("schema", &json!({"type": "object"}))],
            ),
            tool(
                "link",
                "Asks a person to visit a page, and returns what its callback brought. {state} in \
                 the address becomes the callback's secret.",
                &[("message", &text), ("url", &text)],
            ),
            Tool {
                asks: true,
                nature: ToolNature { read_only: false, runs: ToolHost::Here },
                output_schema: Some(appended),
                ..tool("append", "Appends a line to a file.", &[("line", &line)])
            },
        ]
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'static, DemoResult> {
        match request.tool.as_str() {
            "demo.add" => future::ready(add(&request)).boxed(),
            "demo.echo" => future::ready(Ok(Some(request.args))).boxed(),
            "demo.sleep" => sleep(request).boxed(),
            "demo.fail" => future::ready(fail(&request)).boxed(),
            "demo.ask" => future::ready(ask_approval(&request)).boxed(),
            "demo.form" => form(request).boxed(),
            "demo.link" => link(request).boxed(),
            "demo.append" => append(self.directory.clone(), request).boxed(),
            _ => {
                let message = format!("Tool not found: {}", request.tool);
                future::ready(Err(Failure::new(FailureCode::ToolNotFound, message))).boxed()
            }
        }
    }
}

/// A read-only tool whose arguments are all required.
fn tool(name: &str, description: &str, properties: &[(&str, &Value)]) -> Tool {
    let path = ToolPath::parse(&format!("demo.{name}")).expect("the names above have no dots");
    let required: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), (*schema).clone())).collect();
    Tool {
        description: description.to_owned(),
        input_schema: Some(
            json!({"type": "object", "properties": properties, "required": required}),
        ),
        nature: ToolNature { read_only: true, runs: ToolHost::Here },
        ..Tool::new(path)
    }
}

fn add(request: &ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        a: Number,
        b: Number,
    }
    let Args { a, b } = arguments(request)?;
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return rendered(&sum);
    }
    let sum = a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b).and_then(Number::from_f64);
    match sum {
        Some(sum) => rendered(&sum),
        None => Err(Failure::new(FailureCode::Tool, "The sum is too large for a number.")),
    }
}

async fn sleep(request: ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        // JavaScript's integers may be written with a fraction of zero.
        ms: f64,
    }
    let Args { ms } = arguments(&request)?;
    let nap = Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default();
    let nap = nap.min(Duration::from_millis(SLEEP_MS_MAX));
    tokio::select! {
        () = asleep(nap, &request.progress) => {
            rendered(&json!({"slept": u64::try_from(nap.as_millis()).unwrap_or(SLEEP_MS_MAX)}))
        }
        () = request.cancelled.given() => {
            Err(Failure::new(FailureCode::Tool, "The nap was cut short: the program was cancelled."))
        }
    }
}

/// Sleeps, and reports progress.
async fn asleep(nap: Duration, progress: &ProgressHandle) {
    let ms = |time: Duration| time.as_millis() as f64;
    let pause = (nap / 20).clamp(TOLD_EVERY_MIN, TOLD_EVERY_MAX);
    let (began, mut slept) = (Instant::now(), Duration::ZERO);
    while slept < nap {
        progress.measure(ms(slept), Some(ms(nap)), None);
        tokio::time::sleep((nap - slept).min(pause)).await;
        slept = began.elapsed();
    }
}

fn fail(request: &ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        message: String,
    }
    let Args { message } = arguments(request)?;
    Err(Failure::new(FailureCode::Tool, message))
}

fn ask_approval(request: &ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        text: Json,
    }
    let Args { text } = arguments(request)?;
    #[derive(serde::Serialize)]
    struct ApprovedReply {
        approved: bool,
        text: Json,
    }
    rendered(&ApprovedReply { approved: true, text })
}

async fn form(request: ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        message: String,
        schema: Json,
    }
    let Args { message, schema } = arguments(&request)?;
    request.ask_person(ToolPrompt::Form { message, schema }).await.map(Some)
}

async fn link(request: ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        message: String,
        url: String,
    }
    let Args { message, url } = arguments(&request)?;
    request.ask_person(ToolPrompt::Link { message, url, is_prior: false }).await.map(Some)
}

async fn append(directory: PathBuf, request: ToolRequest) -> DemoResult {
    #[derive(serde::Deserialize)]
    struct Args {
        line: String,
    }
    let Args { line } = arguments(&request)?;
    let written = tokio::task::spawn_blocking(move || append_line(&directory, line)).await;
    match written.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into())) {
        Ok(()) => rendered(&json!({"appended": true})),
        // Reports only the error kind: the system's message may name a path of this machine.
        Err(error) => {
            let message = format!("The line could not be written: {}.", error.kind());
            Err(Failure::new(FailureCode::Tool, message))
        }
    }
}

/// One write, so that lines of two programs never mix; synced, so that "appended" is true after a crash.
fn append_line(directory: &Path, mut line: String) -> io::Result<()> {
    line.push('\n');
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file =
        OpenOptions::new().create(true).append(true).open(directory.join(APPEND_FILE))?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

fn arguments<A: DeserializeOwned>(request: &ToolRequest) -> Result<A, Failure> {
    serde_json::from_str(request.args.as_text()).map_err(|error| {
        let message = format!("The arguments of \"{}\" cannot be read: {error}.", request.tool);
        Failure::new(FailureCode::Validation, message)
    })
}

fn rendered(value: &impl serde::Serialize) -> DemoResult {
    Json::from_value(value)
        .map(Some)
        .map_err(|error| Failure::new(FailureCode::Serialization, error.to_string()))
}

#[cfg(test)]
mod tests;
