//! Programs as tools: arguments go into a template of `argv` and as JSON to standard input, and what the
//! program prints is the result. No shell sees any of it.

mod kind;

pub use kind::CommandKind;

use crate::child::{self, ChildPipes, ChildProgram, ChildSupervision};
use crate::envelope::{ToolFailure, done};
use crate::http::file;
use crate::{Integration, PlacementKind, SharedSchema, ToolCredential, ToolRequest, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{Failure, Json};
use processes::reaper::start_error;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// How much of what a failing program prints beside its result is shown.
const WORDS_BYTES_MAX: u64 = 4 << 10;

/// Longest word of a command line, and the longest line: the kernel starts nothing longer.
const WORD_BYTES_MAX: usize = 128 << 10;
const LINE_BYTES_MAX: usize = 1 << 20;

/// One program as a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTool {
    /// What it does.
    pub description: String,
    /// `{name}` is replaced by an argument. A part that is only `{name}` is omitted if the argument is absent,
    /// and repeated for each item of a list.
    pub argv: Vec<String>,
    /// JSON Schema of the arguments.
    pub input: Option<Value>,
    /// JSON Schema of the result.
    pub output: Option<Value>,
    /// Whether the arguments also go to standard input, as JSON.
    pub stdin: bool,
    /// Calling it twice does no harm.
    pub read_only: bool,
    /// Whether a person must approve calls if no policy applies.
    pub asks: bool,
    /// Until it has ended.
    pub time_max: Duration,
    /// Most that it may print.
    pub output_bytes_max: usize,
}

/// Programs under one name.
#[derive(Debug)]
pub struct CommandSource {
    tools: BTreeMap<String, Arc<CommandTool>>,
    frame: ChildProgram,
    minding: ChildSupervision,
}

impl CommandSource {
    /// `frame` supplies the working directory and the environment; its `argv` is not used.
    pub fn new(
        tools: BTreeMap<String, CommandTool>,
        frame: ChildProgram,
        minding: ChildSupervision,
    ) -> Self {
        let tools = tools.into_iter().map(|(name, tool)| (name, Arc::new(tool))).collect();
        Self { tools, frame, minding }
    }
}

impl Integration for CommandSource {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let spec = |(name, tool): (&String, &Arc<CommandTool>)| ToolSpec {
            description: tool.description.clone(),
            input: tool.input.as_ref().map(|schema| SharedSchema::new(&callers_schema(schema))),
            output: tool.output.as_ref().map(SharedSchema::new),
            read_only: tool.read_only,
            asks: tool.asks,
            about: Some(tool.argv.join(" ")),
            ..ToolSpec::new(name)
        };
        self.tools.iter().map(spec).collect()
    }

    fn target(&self) -> String {
        format!("{:?} {:?}", self.frame.directory, self.frame.env.keys())
    }

    fn objection(&self, tool: &str, _credential: &ToolCredential, args: &Json) -> Option<String> {
        let tool = self.tools.get(tool)?;
        words(tool, &with_defaults(tool, args)).err()
    }

    fn call(
        &self,
        tool: &str,
        credential: &ToolCredential,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let Some(tool) = self.tools.get(tool).cloned() else {
            let gone = ToolFailure::new("tool_not_found", "There is no such command.");
            return futures_util::future::ready(Ok(Some(gone.into_envelope()))).boxed();
        };
        let mut program = self.frame.clone();
        let extra = credential.value_at(PlacementKind::Environment);
        program.env.extend(extra.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let minding = self.minding;
        async move {
            let told = match run(&tool, program, minding, &request).await {
                Ok(data) => done(&data, None),
                Err(trouble) => trouble.into_envelope(),
            };
            Ok(Some(told))
        }
        .boxed()
    }
}

/// Runs a program and returns its output, for callers that need a value and not a tool. The program is killed when it
/// exceeds its time or output limit. Its standard error is not part of any message: it may contain anything.
pub async fn printed(
    minding: ChildSupervision,
    program: ChildProgram,
    time_max: Duration,
    bytes_max: usize,
) -> Result<String, String> {
    let (mut running, pipes) = child::start(minding, &program)
        .map_err(|error| format!("the program cannot be started: {}", start_error(&error)))?;
    let talking = async {
        let (printed, _) =
            talk(pipes, String::new(), bytes_max).await.map_err(|trouble| trouble.message)?;
        let status = running.ended().await.map_err(|error| error.kind().to_string())?;
        match status.success() {
            true => Ok(printed),
            false => Err(format!("the program ended with {status}")),
        }
    };
    let printed = tokio::time::timeout(time_max, talking)
        .await
        .unwrap_or_else(|_| Err(format!("the program did not end within {time_max:?}")))?;
    String::from_utf8(printed).map_err(|_| "the program did not print text".to_owned())
}

async fn run(
    tool: &CommandTool,
    mut program: ChildProgram,
    minding: ChildSupervision,
    request: &ToolRequest,
) -> Result<Json, ToolFailure> {
    let args = with_defaults(tool, &request.args);
    program.argv = words(tool, &args).map_err(|why| {
        let message = format!("The arguments do not make a command: {why}.");
        ToolFailure::new("invalid_tool_arguments", message)
    })?;
    let (mut running, pipes) = child::start(minding, &program).map_err(|error| {
        ToolFailure::new(
            "command_not_started",
            format!("The program cannot be started: {}.", start_error(&error)),
        )
    })?;
    let fed = if tool.stdin { args.as_text().to_owned() } else { String::new() };
    let talking = async {
        let (printed, words) = talk(pipes, fed, tool.output_bytes_max).await?;
        let status = running.ended().await.map_err(|error| broken(&error))?;
        Ok((printed, words, status))
    };
    let (printed, words, status) = tokio::select! {
        talked = talking => talked?,
        () = request.cancelled.given() => return Err(ToolFailure::new("cancelled", "The call was cancelled.")),
        () = tokio::time::sleep(tool.time_max) => {
            let why = format!("The program did not end within {:?} and was killed.", tool.time_max);
            return Err(ToolFailure::new("command_timeout", why));
        }
    };
    if !status.success() {
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        let failed = failed_words(&words, &printed);
        let why = match (&failed, words.is_empty()) {
            (Some(failed), _) => failed.message.clone(),
            (None, true) => format!("The program ended with {status}."),
            (None, false) => words,
        };
        let mut details = serde_json::json!({ "exitCode": status.code() });
        if let Some(failed) = failed {
            details["code"] = failed.code.into();
        }
        return Err(ToolFailure {
            details: Some(details),
            ..ToolFailure::new("command_failed", why)
        });
    }
    Ok(result(printed))
}

/// The code and the message of a failing program.
#[derive(Debug, PartialEq)]
struct FailedWords {
    code: String,
    message: String,
}

/// The code and message that a failing program reports: `{"code", "message"}`, alone or as `error`, in the last line
/// of its standard error or else in its output; or `E_CODE: sentence` as the only line of its standard error.
fn failed_words(words: &str, printed: &[u8]) -> Option<FailedWords> {
    let last = words.lines().next_back().unwrap_or_default().trim();
    coded_json(words).or_else(|| coded_json(last)).or_else(|| coded_line(words)).or_else(|| {
        let printed =
            std::str::from_utf8(printed).ok().filter(|text| text.len() <= LINE_BYTES_MAX)?;
        coded_json(printed.trim())
    })
}

fn coded_json(text: &str) -> Option<FailedWords> {
    let said: Value = serde_json::from_str(text).ok()?;
    let said = said.get("error").filter(|error| error.is_object()).unwrap_or(&said);
    let code = said["code"].as_str().filter(|code| !code.is_empty())?;
    let message = said["message"].as_str().unwrap_or(code);
    Some(FailedWords { code: code.to_owned(), message: message.to_owned() })
}

fn coded_line(words: &str) -> Option<FailedWords> {
    let (code, message) = words.split_once(": ").filter(|_| !words.contains('\n'))?;
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_code = code.starts_with("E_") && code.len() > 2 && code.chars().all(fits);
    is_code.then(|| FailedWords { code: code.to_owned(), message: message.to_owned() })
}

/// The output as JSON if it parses, else as text, else as a file; nothing if there is no output.
fn result(printed: Vec<u8>) -> Json {
    let text = match String::from_utf8(printed) {
        Ok(text) => text,
        Err(error) => {
            let file = file(error.as_bytes(), "");
            return Json::from_value(&file).unwrap_or_else(|_| Json::null());
        }
    };
    match Json::parse(text.trim().to_owned()) {
        Ok(json) => json,
        Err(_) if text.trim().is_empty() => Json::null(),
        Err(_) => Json::from_value(&text.trim_end_matches('\n')).unwrap_or_else(|_| Json::null()),
    }
}

/// Writes and reads concurrently: a program may print before it has read all its input.
async fn talk(
    pipes: ChildPipes,
    fed: String,
    output_bytes_max: usize,
) -> Result<(Vec<u8>, Vec<u8>), ToolFailure> {
    let ChildPipes { mut stdin, stdout, stderr } = pipes;
    let feeding = async move {
        // A program may ignore its input.
        let _ = stdin.write_all(fed.as_bytes()).await;
        drop(stdin);
    };
    let too_much = || {
        ToolFailure::new(
            "command_output_too_large",
            format!("The program printed more than {output_bytes_max} bytes and was killed."),
        )
    };
    let hearing = async {
        let mut printed = vec![];
        let max = u64::try_from(output_bytes_max).unwrap_or(u64::MAX);
        let n = stdout.take(max.saturating_add(1)).read_to_end(&mut printed).await;
        n.map_err(|error| broken(&error))?;
        if printed.len() > output_bytes_max { Err(too_much()) } else { Ok(printed) }
    };
    let ((), printed, words) = tokio::join!(feeding, hearing, last_words(stderr));
    Ok((printed?, words))
}

/// The beginning of the standard error; the rest is read and dropped, so that the program does not block.
async fn last_words(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut words = vec![];
    let _ = (&mut from).take(WORDS_BYTES_MAX).read_to_end(&mut words).await;
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    words
}

fn broken(error: &std::io::Error) -> ToolFailure {
    ToolFailure::new("command_failed", format!("The program cannot be read: {}.", error.kind()))
}

/// The schema for callers: what has a default may be left out, also where the schema requires it, as some generators of
/// schemas write it.
fn callers_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return schema;
    };
    let mut with_default = BTreeSet::new();
    for (name, property) in properties {
        if property.get("default").is_some() {
            with_default.insert(name.clone());
        }
        *property = callers_schema(property);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_none_or(|name| !with_default.contains(name)));
    }
    schema
}

/// The arguments with the defaults of the tool's schema in place of what is absent, also within objects that are there.
fn with_defaults<'a>(tool: &CommandTool, args: &'a Json) -> Cow<'a, Json> {
    let Some(schema) = &tool.input else { return Cow::Borrowed(args) };
    let mut filled: Value = serde_json::from_str(args.as_text()).unwrap_or(Value::Null);
    if !fill_in(schema, &mut filled) {
        return Cow::Borrowed(args);
    }
    Json::from_value(&filled).map_or(Cow::Borrowed(args), Cow::Owned)
}

/// Whether something was absent and has a default.
fn fill_in(schema: &Value, value: &mut Value) -> bool {
    let (Some(properties), Some(members)) =
        (schema["properties"].as_object(), value.as_object_mut())
    else {
        return false;
    };
    let mut is_changed = false;
    for (name, property) in properties {
        match (members.get_mut(name), property.get("default")) {
            (Some(member), _) => is_changed |= fill_in(property, member),
            (None, Some(default)) => {
                let mut default = default.clone();
                fill_in(property, &mut default);
                members.insert(name.clone(), default);
                is_changed = true;
            }
            (None, None) => {}
        }
    }
    is_changed
}

/// The command line of a call, or what is wrong with its arguments.
fn words(tool: &CommandTool, args: &Json) -> Result<Vec<String>, String> {
    let args: Value = serde_json::from_str(args.as_text()).unwrap_or(Value::Null);
    let words = filled(&tool.argv, args.as_object().unwrap_or(&Map::new()));
    if words.iter().any(|word| word.contains('\0')) {
        return Err("one of them holds a zero byte".into());
    }
    let lengths = || words.iter().map(|word| word.len() + 1);
    if lengths().any(|n_bytes| n_bytes > WORD_BYTES_MAX) {
        return Err(format!("a word of the command line has {WORD_BYTES_MAX} bytes at most"));
    }
    match lengths().sum::<usize>() {
        n_bytes if n_bytes > LINE_BYTES_MAX => {
            Err(format!("the command line has {LINE_BYTES_MAX} bytes at most"))
        }
        _ => Ok(words),
    }
}

/// The template with its arguments.
fn filled(template: &[String], args: &Map<String, Value>) -> Vec<String> {
    let mut argv = vec![];
    for part in template {
        let whole = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match whole.filter(|name| !name.contains(['{', '}'])) {
            Some(name) => match args.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => argv.extend(items.iter().map(value_text)),
                Some(value) => argv.push(value_text(value)),
            },
            None => argv.push(inserted(part, args)),
        }
    }
    argv
}

/// `--name={name}`: an absent argument is empty. The inserted argument is not expanded again.
fn inserted(part: &str, args: &Map<String, Value>) -> String {
    let mut filled = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((name, after)) if !name.is_empty() && !name.contains('{') => {
                filled.push_str(&args.get(name).map(value_text).unwrap_or_default());
                rest = after;
            }
            Some(_) | None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failing_program_gives_its_failure_a_code_in_json_or_in_a_line() {
        let said = |code: &str, message: &str| {
            Some(FailedWords { code: code.into(), message: message.into() })
        };
        let cases = [
            (r#"{"code":"E_A","message":"no"}"#, "", said("E_A", "no")),
            ("a warning\n{\"error\":{\"code\":\"x\"}}", "", said("x", "x")),
            ("E_CUSTOM: it failed", "", said("E_CUSTOM", "it failed")),
            ("it failed", r#"{"code":"E_B","message":"printed"}"#, said("E_B", "printed")),
            ("error: it failed", "", None),
            ("E_A: one\ntwo", "", None),
            (r#"{"code":7}"#, "[1]", None),
        ];
        for (words, printed, expected) in cases {
            assert_eq!(failed_words(words, printed.as_bytes()), expected, "{words}");
        }
    }

    #[test]
    fn what_a_program_prints_is_json_text_a_file_or_nothing() {
        let said = |printed: &[u8]| -> Value {
            serde_json::from_str(result(printed.to_vec()).as_text()).unwrap()
        };
        assert_eq!(said(b" {\"a\":1}\n"), json!({"a": 1}));
        assert_eq!(said("größe\n".as_bytes()), json!("größe"));
        assert_eq!(said(b" \n"), json!(null));
        let png = json!({"_tag": "ToolFile", "mimeType": "image/png", "encoding": "base64", "data": "iVBORw0KGgo=", "byteLength": 8});
        assert_eq!(said(b"\x89PNG\r\n\x1a\n"), png);
    }

    fn tool(argv: &[&str]) -> CommandTool {
        CommandTool {
            description: String::new(),
            argv: argv.iter().map(|part| (*part).to_owned()).collect(),
            input: None,
            output: None,
            stdin: true,
            read_only: true,
            asks: false,
            time_max: Duration::from_secs(20),
            output_bytes_max: 1_000,
        }
    }

    async fn call(tool: CommandTool, args: &str) -> Value {
        let tools = BTreeMap::from([("run".to_owned(), tool)]);
        let source = CommandSource::new(tools, ChildProgram::default(), ChildSupervision::Nobody);
        let told = source
            .call("run", &ToolCredential::none(), ToolRequest::sample("c.org.main.run", args))
            .await;
        serde_json::from_str(told.unwrap().unwrap().as_text()).unwrap()
    }

    #[tokio::test]
    async fn defaults_of_the_schema_are_filled_in_before_the_command_runs() {
        let input = json!({ "type": "object", "properties": {
            "who": { "type": "string", "default": "Ann" },
            "n": { "type": "integer" },
            "more": { "type": "object", "properties": { "deep": { "default": [1] } } },
        } });
        let greet =
            || CommandTool { input: Some(input.clone()), ..tool(&["echo", "-n", "Hi {who}"]) };
        assert_eq!(call(greet(), "{}").await["data"], "Hi Ann");
        assert_eq!(call(greet(), r#"{"who":"Bo"}"#).await["data"], "Hi Bo");
        let read = || CommandTool { input: Some(input.clone()), ..tool(&["cat"]) };
        assert_eq!(call(read(), "{}").await["data"], json!({ "who": "Ann" }));
        let deep = call(read(), r#"{"who":null,"more":{}}"#).await["data"].clone();
        assert_eq!(deep, json!({ "who": null, "more": { "deep": [1] } }));
        assert_eq!(call(tool(&["cat"]), r#"{"n":1}"#).await["data"], json!({ "n": 1 }));
        let mut whole = input.clone();
        whole["properties"]["more"]["default"] = json!({});
        let whole = CommandTool { input: Some(whole), ..tool(&["cat"]) };
        let expected = json!({ "who": "Ann", "more": { "deep": [1] } });
        assert_eq!(call(whole, "{}").await["data"], expected, "also within a default");
    }

    #[test]
    fn what_has_a_default_may_be_left_out_also_where_it_is_required() {
        let schema = json!({ "type": "object", "required": ["who", "n"], "properties": {
            "who": { "type": "string", "default": "Ann" },
            "n": { "required": ["deep"], "properties": { "deep": { "default": 1 } } },
        } });
        let mut expected = schema.clone();
        expected["required"] = json!(["n"]);
        expected["properties"]["n"]["required"] = json!([]);
        assert_eq!(callers_schema(&schema), expected);
        assert_eq!(callers_schema(&json!(true)), json!(true));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_a_command_that_was_not_found() {
        let told = call(tool(&["/nowhere/no-such-program"]), "{}").await;
        let expected = "The program cannot be started: command not found.";
        assert_eq!(told["error"]["message"], expected, "{told}");
    }

    #[tokio::test]
    async fn json_goes_in_and_comes_out() {
        let told = call(tool(&["cat"]), r#"{"a":[1,2]}"#).await;
        assert_eq!(told, json!({"ok": true, "data": {"a": [1, 2]}}));
        let told = call(tool(&["echo", "-n", "plain {who}"]), r#"{"who":"{x} $HOME;ls"}"#).await;
        assert_eq!(told, json!({"ok": true, "data": "plain {x} $HOME;ls"}));
        assert_eq!(call(tool(&["true"]), "{}").await, json!({"ok": true, "data": null}));
    }

    #[test]
    fn a_template_takes_lists_and_leaves_out_what_is_absent() {
        let template = ["ls", "{flag}", "--", "{files}", "--n={n}"].map(str::to_owned);
        let args = json!({"files": ["a b", "-c"], "n": 3});
        let argv = filled(&template, args.as_object().unwrap());
        assert_eq!(argv, ["ls", "--", "a b", "-c", "--n=3"]);
        let zero = json!({"files": "a\0b"});
        let refused = |args: &Value| {
            let parts: Vec<_> = template.iter().map(String::as_str).collect();
            words(&tool(&parts), &Json::from_value(args).unwrap()).unwrap_err()
        };
        assert_eq!(refused(&zero), "one of them holds a zero byte");
        let long = json!({ "files": "x".repeat(WORD_BYTES_MAX) });
        assert_eq!(refused(&long), "a word of the command line has 131072 bytes at most");
        let many = json!({ "files": vec!["x".repeat(99_999); 11] });
        assert_eq!(refused(&many), "the command line has 1048576 bytes at most");
    }

    #[tokio::test]
    async fn a_program_that_fails_floods_hangs_or_is_not_there_says_so() {
        let code = async |tool, args| call(tool, args).await["error"]["code"].clone();
        let failed = call(tool(&["sh", "-c", "echo sorry >&2; exit 3"]), "{}").await;
        let expected = json!({"ok": false, "error": {
            "code": "command_failed", "message": "sorry", "details": {"exitCode": 3}
        }});
        assert_eq!(failed, expected);
        assert_eq!(code(tool(&["yes"]), "{}").await, "command_output_too_large");
        let slow = CommandTool { time_max: Duration::from_millis(50), ..tool(&["sleep", "600"]) };
        assert_eq!(code(slow, "{}").await, "command_timeout");
        assert_eq!(code(tool(&["/nowhere/at/all"]), "{}").await, "command_not_started");
    }
}
