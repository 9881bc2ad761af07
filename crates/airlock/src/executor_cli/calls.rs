//! `call`, `resume` and `tools`: each runs a program of one call, and prints its outcome.

use super::browse;
use super::target::{ExecutorTarget, sentence};
use crate::{VerbExit, print};
use client::{AirlockClient, ExecutionRef, ExecutionReply, ExecutionStanding, OpenQuestion};
use lifecycle::{Answer, Json, TruncatedText, pretty};
use serde_json::{Map, Value, json};

/// Most lines of an error that are printed; `--log-level debug` prints all.
const ERROR_LINES_MAX: usize = 24;

/// Largest input that is read from a file.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Most characters of a schema that are printed.
const TEXT_CHARS_MAX: usize = 30_000;

/// Deepest place of a schema for which a sample is made.
const SAMPLE_DEPTH_MAX: usize = 4;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct CallArgs {
    /// The tool's path, then its input: a JSON object or @FILE.
    #[arg(value_name = "PATH… ['{JSON}' | @FILE]")]
    words: Vec<String>,
    /// Lists the tools below the path.
    #[arg(long, short)]
    help: bool,
    /// With --help: only tools with this text.
    #[arg(long = "match", value_name = "TEXT")]
    matching: Option<String>,
    /// With --help: at most so many lines.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    target: ExecutorTarget,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// Execution ID returned by a paused call.
    #[arg(long, value_name = "ID")]
    execution_id: String,
    /// Interaction response action.
    #[arg(long, value_parser = ["accept", "decline", "cancel"], default_value = "accept")]
    action: String,
    /// JSON object to send when action=accept.
    #[arg(long, value_name = "JSON")]
    content: Option<String>,
    #[command(flatten)]
    target: ExecutorTarget,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum ToolsVerb {
    /// Search tools by natural-language query.
    Search {
        query: String,
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        #[arg(long, default_value_t = 12, value_name = "N")]
        limit: u32,
        #[command(flatten)]
        target: ExecutorTarget,
    },
    /// List configured sources and tool counts.
    #[command(alias = "integrations")]
    Sources {
        #[arg(long, value_name = "TEXT")]
        query: Option<String>,
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: u32,
        #[command(flatten)]
        target: ExecutorTarget,
    },
    /// Describe a tool's TypeScript and JSON schema.
    Describe {
        path: String,
        #[command(flatten)]
        target: ExecutorTarget,
    },
}

pub(super) fn call(args: &CallArgs, is_verbose: bool) -> Result<VerbExit, String> {
    let ExecutorCall { path, input } = order(&args.words)?;
    if args.help {
        let wish = browse::ExecutorBrowseFilter {
            path,
            matching: args.matching.clone(),
            limit: args.limit,
        };
        return args.target.visit(async |client| browse::browse(client, &wish).await);
    }
    if path.is_empty() {
        return Err("Tool path must include at least one segment".into());
    }
    let names: Vec<_> = path.iter().map(|name| format!("[{}]", json!(name))).collect();
    let code = format!("return await tools{}({input});", names.concat());
    execute(&args.target, &code, is_verbose)
}

pub(super) fn tools(verb: &ToolsVerb, is_verbose: bool) -> Result<VerbExit, String> {
    let (target, call) = match verb {
        ToolsVerb::Search { query, namespace, limit, target } => {
            let mut wish = json!({ "query": query, "limit": limit });
            if let Some(namespace) = namespace {
                wish["namespace"] = namespace.as_str().into();
            }
            (target, format!("tools.search({wish})"))
        }
        ToolsVerb::Sources { query, limit, target } => {
            let wish = json!({ "query": query.clone().unwrap_or_default(), "limit": limit });
            (target, format!("tools.executor.sources.list({wish})"))
        }
        ToolsVerb::Describe { path, target } => {
            (target, format!("tools.describe.tool({})", json!({ "path": path })))
        }
    };
    execute(target, &format!("return await {call};"), is_verbose)
}

pub(super) fn resume(args: &ResumeArgs, is_verbose: bool) -> Result<VerbExit, String> {
    let content = args.content.as_deref().map(object).transpose();
    let content = content.map_err(|why| format!("Invalid --content JSON: {why}"))?;
    let content = content.and_then(|content| Json::from_value(&content).ok());
    let answer = match args.action.as_str() {
        "decline" => Answer::Decline,
        "cancel" => Answer::Cancel,
        _ => Answer::Accept { content },
    };
    let id: ExecutionRef = args.execution_id.parse().map_err(|_| {
        format!("No paused execution: {} is no id of an execution.", args.execution_id)
    })?;
    args.target.visit(async |client| {
        let reply = client.resume(id, &answer).await.map_err(|error| sentence(&error))?;
        match &reply.standing {
            ExecutionStanding::Asks(asks) => {
                print::report(&text_of(&reply));
                print::report(&format!("\nApproval required:\n{}", page(client, asks)));
                Ok(VerbExit::Good)
            }
            ExecutionStanding::Completed { .. } => {
                print::report(&text_of(&reply));
                Ok(VerbExit::Good)
            }
            ExecutionStanding::Failed { .. } => {
                let text = text_of(&reply);
                Err(if is_verbose { text } else { cleaned(&text) })
            }
            ExecutionStanding::Running | ExecutionStanding::Parked => Err(unfinished(&reply)),
        }
    })
}

fn execute(target: &ExecutorTarget, code: &str, is_verbose: bool) -> Result<VerbExit, String> {
    target.visit(async |client| {
        let reply = client.execute(code).await.map_err(|error| sentence(&error))?;
        match &reply.standing {
            ExecutionStanding::Asks(asks) => {
                print::report(&text_of(&reply));
                print::report(&advice(target, client, asks));
                Ok(VerbExit::Good)
            }
            ExecutionStanding::Completed { result, .. } => {
                print::result(result);
                Ok(VerbExit::Good)
            }
            ExecutionStanding::Failed { .. } => {
                let text = text_of(&reply);
                let short = cleaned(&text);
                Err(match is_verbose {
                    true => text,
                    false if short == text.trim() => short,
                    false => format!("{short}\n(run with --log-level debug for full details)"),
                })
            }
            ExecutionStanding::Running | ExecutionStanding::Parked => Err(unfinished(&reply)),
        }
    })
}

fn unfinished(reply: &ExecutionReply) -> String {
    let id = reply.execution.map(|id| id.to_string()).unwrap_or_default();
    format!("The execution {id} goes on: airlock executions show {id} reports how it ends.")
}

/// The text of an answer for people.
fn text_of(reply: &ExecutionReply) -> String {
    let value: Value = serde_json::from_str(reply.json.as_text()).unwrap_or_default();
    value["text"].as_str().unwrap_or_default().to_owned()
}

fn page(client: &AirlockClient, asks: &OpenQuestion) -> String {
    let usual = || format!("{}/resume/{}", client.base_url(), asks.question);
    asks.approval_url.clone().unwrap_or_else(usual)
}

/// The advice about a paused call, as Executor's command line prints it.
fn advice(target: &ExecutorTarget, client: &AirlockClient, asks: &OpenQuestion) -> String {
    let mut text = format!("\nApprove in browser:\n  {}\n", page(client, asks));
    let flags = target.flags(client);
    let resume = format!("executor resume --execution-id {} {flags}", asks.question);
    let Some(schema) = asks.schema.as_ref().filter(|_| asks.url.is_none()) else {
        return text + &format!("\nCLI fallback:\n  {resume} --action accept");
    };
    let form: Value = serde_json::from_str(schema.as_text()).unwrap_or_default();
    if form.as_object().is_some_and(|members| !members.is_empty()) {
        let mut shown = TruncatedText::with_chars_max(TEXT_CHARS_MAX);
        pretty(schema.as_text(), &mut shown);
        text.push_str(&format!("\nRequested schema:\n{}\n", shown.done()));
    }
    let content = crate::server_locator::shell_word(&sample(&form, 0).to_string());
    text + &format!(
        "\nCLI fallback:\n  {resume} --action accept --content {content}\n  {resume} --action decline\n  {resume} --action cancel"
    )
}

/// A sample value for a schema, to be edited.
fn sample(schema: &Value, depth: usize) -> Value {
    if depth > SAMPLE_DEPTH_MAX {
        return json!({});
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let first = ["oneOf", "anyOf", "allOf"].iter().find_map(|name| schema[*name].get(0));
    if let Some(first) = first {
        return sample(first, depth + 1);
    }
    match schema["type"].as_str() {
        Some("string") => "<string>".into(),
        Some("number" | "integer") => 0.into(),
        Some("boolean") => false.into(),
        Some("array") => json!([]),
        Some(_) | None => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            let required = schema["required"].as_array().filter(|names| !names.is_empty());
            let names: Vec<String> = match required {
                Some(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                None => properties.keys().cloned().collect(),
            };
            let member = |name: String| {
                let value = sample(properties.get(&name).unwrap_or(&Value::Null), depth + 1);
                (name, value)
            };
            Value::Object(names.into_iter().map(member).collect())
        }
    }
}

/// An error without its stack and without the prefix `Error:`.
fn cleaned(text: &str) -> String {
    let is_stack = |line: &&str| !line.trim_start().starts_with("at ");
    let lines: Vec<_> = text.lines().filter(is_stack).take(ERROR_LINES_MAX).collect();
    let text = lines.join("\n");
    let mut rest = text.trim();
    while let Some(after) = rest.strip_prefix("Error:") {
        rest = after.trim_start();
    }
    rest.to_owned()
}

/// A tool's path and the text of its input.
#[derive(Debug, PartialEq, Eq)]
struct ExecutorCall {
    path: Vec<String>,
    input: String,
}

fn order(words: &[String]) -> Result<ExecutorCall, String> {
    let (mut words, mut input) = (words, "{}".to_owned());
    if let Some((last, before)) = words.split_last() {
        let last = last.trim();
        if last.starts_with('{') {
            (words, input) = (before, checked(last)?);
        } else if let Some(file) = last.strip_prefix('@') {
            let file = std::fs::File::open(file)
                .map_err(|error| format!("Could not read argument file @{file}: {error}"))
                .and_then(|open| crate::input::read(file, open, INPUT_BYTES_MAX))?;
            (words, input) = (before, checked(&file)?);
        }
    }
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if words.iter().any(|word| !word.chars().all(is_good)) {
        let why = "Tool path segments must contain only letters, numbers, '.', '_' or '-'";
        return Err(why.into());
    }
    let names = words.iter().flat_map(|word| word.split('.')).filter(|name| !name.is_empty());
    Ok(ExecutorCall { path: names.map(str::to_owned).collect(), input })
}

/// The text of an object as written, so that the order of its members is preserved.
fn checked(text: &str) -> Result<String, String> {
    object(text).map(|_| text.trim().to_owned())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("Invalid JSON arguments: JSON Parse error: {error}"))?;
    match value {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("Tool arguments must decode to a JSON object".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_a_path_and_an_object() {
        let words = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).into()).collect() };
        let read = order(&words(&["a.b", "c", r#"{"n":1}"#])).unwrap();
        assert_eq!(read.path, ["a", "b", "c"]);
        assert_eq!(read.input, r#"{"n":1}"#);
        let why = order(&words(&["a", "{\"n\":"])).unwrap_err();
        assert!(why.starts_with("Invalid JSON arguments: "), "{why}");
        assert!(order(&words(&["a b"])).is_err());
        assert!(order(&words(&["a", "@/nowhere/at/all"])).unwrap_err().contains("/nowhere"));
    }

    #[test]
    fn an_error_is_printed_without_its_stack() {
        assert_eq!(
            cleaned("Error: Error: no luck\n    at <anonymous> (x.js:1:1)\nmore"),
            "no luck\nmore"
        );
    }

    #[test]
    fn a_sample_has_what_a_form_requires() {
        let schema = json!({ "type": "object", "required": ["n", "kind"], "properties": {
            "n": { "type": "integer" }, "kind": { "enum": ["a", "b"] }, "more": {} } });
        assert_eq!(sample(&schema, 0), json!({ "n": 0, "kind": "a" }));
        assert_eq!(sample(&json!({}), 0), json!({}));
    }
}
