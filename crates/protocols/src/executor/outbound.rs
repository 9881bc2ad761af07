//! Serializes responses in Executor's format.

pub use super::events::{entry, result};
use super::execution_view::{AskedQuestion, ExecutionView};

use super::wire::{
    Bytes, Completed, Ended, Going, Interaction, More, Outputs, Paused, Questions, Rest, Waiting,
};
use super::{RESULT_BYTES_MAX, TEXT_CHARS_MAX};
use lifecycle::{
    Entry, Event, ExecutionId, ExecutionOutcome, Failure, FailureCode, Json, Question, QuestionId,
    QuestionKind, Seq, TruncatedText, pretty,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The schema of an approval, which has no content beyond yes or no.
const APPROVAL_SCHEMA: &str = r#"{"type":"object","properties":{}}"#;

/// The schema of a decision about a call that may or may not have run.
const IN_DOUBT_SCHEMA: &str = concat!(
    r#"{"type":"object","properties":{"choice":{"type":"string","enum":["retry","fail","supply"],"#,
    r#""description":"retry: call the tool again; fail: let the call fail; supply: go on with result"},"#,
    r#""result":{"description":"what the tool would have returned, if choice is supply"}},"#,
    r#""required":["choice"]}"#,
);

/// The end of an execution. A value of more than `result_bytes_max` bytes is omitted, and `more` contains its URL.
pub fn completed(
    execution: ExecutionId,
    account: &ExecutionView,
    outcome: &ExecutionOutcome,
    result_bytes_max: usize,
) -> String {
    let null = Json::null();
    rendered(&ended(execution, account, outcome, (&null, result_bytes_max)))
}

/// A response with a large value, which is not copied.
#[derive(Debug, Clone)]
pub struct SplitEnvelope {
    /// The text before the value.
    pub head: String,
    /// The value.
    pub value: Json,
    /// The text after it.
    pub tail: String,
}

/// The end of an execution with a value larger than [`RESULT_BYTES_MAX`]: the whole value, in parts. `None`
/// if [`completed`] includes it.
pub fn split(
    execution: ExecutionId,
    account: &ExecutionView,
    outcome: &ExecutionOutcome,
) -> Option<SplitEnvelope> {
    /// The beginning of `structured` in the response without its value. It cannot occur in `text`, where
    /// quotation marks are escaped.
    const BEGIN: &str = r#""structured":{"status":"completed","result":"#;
    let ExecutionOutcome::Completed { value: Some(value) } = outcome else { return None };
    if value.as_text().len() <= RESULT_BYTES_MAX {
        return None;
    }
    let null = Json::null();
    let mut completed = ended(execution, account, outcome, (&null, RESULT_BYTES_MAX));
    if let Ended::Value { outputs, .. } = &mut completed.structured {
        outputs.more.result = None;
    }
    let text = rendered(&completed);
    let at = text.find(BEGIN)? + BEGIN.len();
    let tail = text[at..].strip_prefix("null")?.to_owned();
    Some(SplitEnvelope { head: text[..at].to_owned(), value: value.clone(), tail })
}

/// The end of an execution with its whole value, in the parts of [`split`]. `None` if the value is small
/// enough for [`result`].
pub fn split_result(outcome: &ExecutionOutcome) -> Option<SplitEnvelope> {
    let ExecutionOutcome::Completed { value: Some(value) } = outcome else { return None };
    (value.as_text().len() > RESULT_BYTES_MAX).then(|| SplitEnvelope {
        head: r#"{"status":"completed","result":"#.to_owned(),
        value: value.clone(),
        tail: "}".to_owned(),
    })
}

/// The result as text for people, with the error message if it failed.
pub fn in_words(
    execution: ExecutionId,
    account: &ExecutionView,
    outcome: &ExecutionOutcome,
) -> (String, Option<String>) {
    let null = Json::null();
    let Completed { text, structured, .. } =
        ended(execution, account, outcome, (&null, RESULT_BYTES_MAX));
    let error = match structured {
        Ended::Value { .. } => None,
        Ended::Error { error, .. } => Some(error),
    };
    (text, error)
}

fn ended<'a>(
    execution: ExecutionId,
    account: &'a ExecutionView,
    outcome: &'a ExecutionOutcome,
    (null, result_bytes_max): (&'a Json, usize),
) -> Completed<'a> {
    let failed = |error: String| {
        let outputs = outputs(execution, account, None);
        let mut text = TruncatedText::with_chars_max(TEXT_CHARS_MAX);
        text.push_str("Error: ");
        text.push_str(&error);
        append_logs(&mut text, &outputs);
        let structured = Ended::Error { status: "error", error, outputs };
        Completed { status: "completed", text: text.done(), structured, is_error: true }
    };
    match outcome {
        ExecutionOutcome::Completed { value } => {
            let result = value.as_ref().unwrap_or(null);
            let is_left_out = result.as_text().len() > result_bytes_max;
            let outputs = outputs(execution, account, is_left_out.then(|| result.as_text().len()));
            let text = value_text(value.as_ref(), account.items.n_all(), &outputs);
            let result = if is_left_out { null.raw() } else { result.raw() };
            let structured = Ended::Value { status: "completed", result, outputs };
            Completed { status: "completed", text, structured, is_error: false }
        }
        ExecutionOutcome::Failed(failure) => failed(error_text(failure)),
        ExecutionOutcome::Cancelled { by, .. } => {
            failed(format!("The execution was cancelled by {by}."))
        }
    }
}

/// The outputs besides the value, and where to find those that are omitted here.
fn outputs(
    execution: ExecutionId,
    account: &ExecutionView,
    left_out: Option<usize>,
) -> Outputs<'_> {
    let at = |rest: &str| format!("/api/executions/{execution}/{rest}");
    let rest = |n_left: usize, kind: &str, last: Seq| {
        (n_left > 0)
            .then(|| Rest { left: n_left, at: at(&format!("events?type={kind}&after={last}")) })
    };
    let (items, logs) = (&account.items, &account.logs);
    Outputs {
        emitted: (items.n_all() > 0).then(|| items.n_all()),
        items: &items.first,
        logs: &logs.first,
        more: More {
            result: left_out.map(|bytes| Bytes { bytes, at: at("result") }),
            items: rest(items.n_left, "emitted", items.last),
            logs: rest(logs.n_left, "log", logs.last),
        },
    }
}

/// The reader of a question, on which the instructions depend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionReader {
    /// A reader who may answer.
    MayAnswer,
    /// A reader who may not accept calls that manage the server: an administrator decides those.
    MayAnswerUnmanaged {
        /// The origin of the server's web pages.
        origin: String,
    },
    /// A reader who may not answer, and sees only the page where a person decides.
    MayNot {
        /// The origin of the server's web pages.
        origin: String,
    },
}

impl QuestionReader {
    /// The page of a question, for a reader who may not accept it.
    fn page(&self, question: &Question) -> Option<String> {
        match self {
            Self::MayAnswerUnmanaged { origin } if question.answer_only => {
                Some(format!("{origin}/resume/{}", question.id))
            }
            Self::MayAnswer | Self::MayAnswerUnmanaged { .. } => None,
            Self::MayNot { origin } => Some(format!("{origin}/resume/{}", question.id)),
        }
    }

    /// The instructions for a reader who may not accept a question.
    fn advice(&self, page: &str) -> String {
        match self {
            Self::MayAnswerUnmanaged { .. } => format!(
                "The call manages the server: an administrator decides, on the page {page}. Give them this link."
            ),
            Self::MayAnswer | Self::MayNot { .. } => format!(
                "A person decides, on the page {page}. Give them this link; an answer of yours does not count."
            ),
        }
    }
}

/// A question, for a client that waited for the next event.
pub fn paused(asked: &AskedQuestion, reader: &QuestionReader) -> String {
    rendered(&waiting(asked, Some("paused"), reader))
}

/// A question, for a client that requested it.
pub fn question_json(asked: &AskedQuestion, reader: &QuestionReader) -> String {
    rendered(&waiting(asked, None, reader))
}

/// All open questions, oldest first.
pub fn questions<'a>(
    asked: impl Iterator<Item = &'a AskedQuestion>,
    reader: &QuestionReader,
) -> String {
    let questions = asked.map(|asked| waiting(asked, None, reader).structured).collect();
    rendered(&Questions { questions })
}

/// An entry of the journal. The link of a tool's question can contain the secret that answers it, so a
/// reader who may not answer gets the question's page instead.
pub fn entry_for(entry: &Entry, reader: &QuestionReader) -> String {
    if let Event::CallAsked(question) = &entry.event
        && let QuestionKind::Link { is_prior, .. } = question.kind
        && let Some(url) = reader.page(question)
    {
        let kind = QuestionKind::Link { url, is_prior };
        let event = Event::CallAsked(Question { kind, ..question.clone() });
        return super::events::entry(&Entry { event, ..entry.clone() });
    }
    super::events::entry(entry)
}

/// The execution waits for a person, for a client that requested its end.
pub fn not_over(asked: &AskedQuestion) -> String {
    let execution_id = asked.question.id.to_string();
    rendered(&Going { status: "paused", execution_id: &execution_id })
}

/// The execution has no open question and has not ended.
pub fn running(execution: ExecutionId) -> String {
    rendered(&Going { status: "running", execution_id: &execution.to_string() })
}

/// The execution could not be recovered after a restart.
pub fn parked(execution: ExecutionId) -> String {
    rendered(&Going { status: "parked", execution_id: &execution.to_string() })
}

fn waiting<'a>(
    asked: &'a AskedQuestion,
    status: Option<&'static str>,
    reader: &QuestionReader,
) -> Paused<'a> {
    let id = asked.question.id;
    let message = asked.question.message.as_str();
    let page = reader.page(&asked.question);
    let (schema, url) = wanted(&asked.question.kind);
    let url = url.map(|url| page.clone().map_or(Cow::Borrowed(url), Cow::Owned));
    let instructions = match &page {
        None => instructions(id, url.is_some()),
        Some(page) => reader.advice(page),
    };
    let mut text = TruncatedText::with_chars_max(TEXT_CHARS_MAX);
    text.push_str("Execution paused: ");
    text.push_str(message);
    if let Some(url) = &url {
        text.push_str("\n\nThis waits for a person to open this page:\n");
        text.push_str(url);
    }
    if let Some(schema) = schema {
        text.push_str("\n\nRequested schema:\n");
        pretty(schema.get(), &mut text);
        text.push_str(
            "\n\nThis waits for a person. What they fill in must fit the requested schema.",
        );
    }
    text.push_str(&format!("\n\nexecutionId: {id}\n\ninstructions: {instructions}"));
    let interaction = Interaction {
        kind: if url.is_some() { "url" } else { "form" },
        message,
        instructions,
        address: format!("tools.{}", asked.tool),
        args: asked.args.raw(),
        url,
        approval_url: page,
        requested_schema: schema,
        editable: asked.question.editable,
    };
    let structured =
        Waiting { status: "waiting_for_interaction", execution_id: id.to_string(), interaction };
    Paused { status, text: text.done(), structured }
}

fn instructions(id: QuestionId, is_link: bool) -> String {
    if is_link {
        return format!(
            "A person opens the page. Once they are done there, resume \"{id}\" with action \
             \"accept\", unless the page did that itself; then resuming tells what followed. If \
             they will not, use action \"decline\" or \"cancel\"."
        );
    }
    format!(
        "A person decides. If they agree, resume \"{id}\" with action \"accept\" and, where \
         requestedSchema has properties, content that fits it. If they refuse, use action \
         \"decline\"; if they will not say, \"cancel\"."
    )
}

/// The schema to fill in, or the link to open.
fn wanted(kind: &QuestionKind) -> (Option<&RawValue>, Option<&str>) {
    let fixed =
        |text: &'static str| serde_json::from_str(text).expect("the schemas above are JSON");
    match kind {
        QuestionKind::Approval => (Some(fixed(APPROVAL_SCHEMA)), None),
        QuestionKind::InDoubt => (Some(fixed(IN_DOUBT_SCHEMA)), None),
        QuestionKind::Form { schema } => (Some(schema.raw()), None),
        QuestionKind::Link { url, .. } => (None, Some(url)),
    }
}

fn value_text(value: Option<&Json>, n_emitted: usize, outputs: &Outputs<'_>) -> String {
    let mut text = TruncatedText::with_chars_max(TEXT_CHARS_MAX);
    match value.map(Json::as_text) {
        None | Some("null" | "\"\"") => text.push_str(&no_value(n_emitted)),
        // A string with half of a surrogate pair has no plain text: it is shown as JSON.
        Some(json) => {
            match json.trim_start().starts_with('"').then(|| serde_json::from_str::<String>(json)) {
                Some(Ok(plain)) => text.push_str(&plain),
                Some(Err(_)) | None => pretty(json, &mut text),
            }
        }
    }
    let mut tail = TruncatedText::with_chars_max(TEXT_CHARS_MAX);
    append_logs(&mut tail, outputs);
    text.done() + &tail.done()
}

fn no_value(n_emitted: usize) -> String {
    match n_emitted {
        0 => "(no result)".into(),
        1 => "(no return value; 1 item emitted to the user)".into(),
        n => format!("(no return value; {n} items emitted to the user)"),
    }
}

fn append_logs(text: &mut TruncatedText, outputs: &Outputs<'_>) {
    if outputs.logs.is_empty() {
        return;
    }
    text.push_str("\n\nLogs:");
    for line in outputs.logs {
        text.push('\n');
        text.push_str(line);
    }
    if let Some(rest) = &outputs.more.logs {
        text.push_str(&format!("\n[{} more lines at {}]", rest.left, rest.at));
    }
}

/// The engine's message for a stack overflow, which is the same as in Node.
const STACK_IS_FULL: &str = "Maximum call stack size exceeded";

/// An error as text. If clients of Executor search for its engine's wording, that comes first.
fn error_text(failure: &Failure) -> String {
    let is_stack_full =
        failure.code == FailureCode::Runtime && failure.message.starts_with(STACK_IS_FULL);
    let words = match failure.code == FailureCode::MemoryLimit {
        true => "out of memory. ",
        false if is_stack_full => "stack overflow. ",
        false => "",
    };
    let mut text = match &failure.name {
        Some(name) => format!("{name}: {words}{}", failure.message),
        None => format!("{words}{}", failure.message),
    };
    if let Some(stack) = &failure.stack {
        text.push('\n');
        text.push_str(stack);
    }
    text
}

pub(super) fn rendered(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and JSON can be written as JSON")
}
