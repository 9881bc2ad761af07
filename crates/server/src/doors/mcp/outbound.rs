//! Answers as tool results: text for the model, structured content for programs, both bounded. What is truncated can
//! be read as a resource.

use super::files::{blocks, cut};
use super::narration::McpExecutionView;
use super::visit::{McpRequestContext, QuestionChannel};
use lifecycle::{ExecutionId, ExecutionOutcome, Json, QuestionId};
use protocols::executor::{
    AskedQuestion, ObjectMembers, QuestionReader, TEXT_CHARS_MAX, members, outbound,
};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Map, Value, json};

/// Maximum size of a member of `structuredContent`: a model reads all of it, and clients retain it in the
/// conversation.
const MEMBER_BYTES_MAX: usize = 64 << 10;

/// Maximum size of the emitted content in one answer: a few pictures.
const EMITTED_BYTES_MAX: usize = 2 << 20;

/// Maximum number of emitted items in one answer.
const EMITTED_MAX: usize = 100;

/// Length of the preview of an omitted member. Some clients show their model only `structuredContent`, so the preview
/// must be there; clients that show the text, too, pay for it twice.
const PREVIEW_CHARS_MAX: usize = 4_000;

/// The resource URI of an execution, or of a part of it.
pub(super) fn uri(execution: ExecutionId, part: &str) -> String {
    match part {
        "" => format!("airlock://executions/{execution}"),
        part => format!("airlock://executions/{execution}/{part}"),
    }
}

/// How an execution ended.
pub(super) fn finished_result(
    execution: ExecutionId,
    narration: &McpExecutionView,
    outcome: &ExecutionOutcome,
) -> CallToolResult {
    let (text, error) = outbound::in_words(execution, &narration.account, outcome);
    let is_error = error.is_some();
    let mut kept =
        StructuredMembers { execution, members: Map::new(), missing: Map::new(), links: vec![] };
    kept.members.insert("executionId".into(), execution.to_string().into());
    match outcome {
        ExecutionOutcome::Completed { value } => {
            kept.members.insert("status".into(), "completed".into());
            kept.add("result", value.as_ref().map_or("null", Json::as_text));
        }
        ExecutionOutcome::Failed(_) | ExecutionOutcome::Cancelled { .. } => {
            kept.members.insert("status".into(), "error".into());
            kept.add("error", &Value::from(error.unwrap_or_default()).to_string());
        }
    }
    if !narration.emitted.is_empty() {
        kept.members.insert("emitted".into(), narration.emitted.len().into());
    }
    kept.add("logs", &Value::from(narration.logs.as_slice()).to_string());
    let mut content = match narration.emitted.as_slice() {
        [] => vec![ContentBlock::text(text)],
        items => {
            let mut content = emitted(execution, items);
            if is_error {
                content.push(ContentBlock::text(text));
            } else if !narration.logs.is_empty() {
                let logs = format!("Logs:\n{}", narration.logs.join("\n"));
                content.push(ContentBlock::text(cut(&logs, TEXT_CHARS_MAX)));
            }
            content
        }
    };
    let (structured, links) = kept.done();
    content.extend(links);
    result(content, structured, is_error)
}

/// Members of `structuredContent` that are small enough, and links to the others.
struct StructuredMembers {
    execution: ExecutionId,
    members: Map<String, Value>,
    missing: Map<String, Value>,
    links: Vec<ContentBlock>,
}

impl StructuredMembers {
    fn add(&mut self, name: &str, json: &str) {
        let is_small = json.len() <= MEMBER_BYTES_MAX;
        let value = is_small.then(|| serde_json::from_str(json).ok()).flatten();
        if let Some(value) = value {
            self.members.insert(name.into(), value);
            return;
        }
        // Too large, nested too deep, or not representable as plain text.
        let at = uri(self.execution, name);
        self.members.insert(name.into(), if name == "logs" { json!([]) } else { Value::Null });
        let missing = json!({ "bytes": json.len(), "resource": at, "preview": beginning(json) });
        self.missing.insert(name.into(), missing);
        let link = Resource::new(at, name).with_mime_type("application/json");
        self.links.push(ContentBlock::ResourceLink(link.with_size(json.len() as u64)));
    }

    fn done(mut self) -> (Value, Vec<ContentBlock>) {
        if !self.missing.is_empty() {
            self.members.insert("truncated".into(), Value::Object(self.missing));
            self.members.insert("message".into(), TRUNCATED.into());
        }
        (Value::Object(self.members), self.links)
    }
}

/// Instructions to the model about omitted members.
const TRUNCATED: &str = "The members in `truncated` are too large to be shown: `preview` is how each begins, its \
                         resource has all of it. The program has run; do not run it again for this.";

/// How a member's JSON text begins.
fn beginning(json: &str) -> &str {
    let end = json.char_indices().nth(PREVIEW_CHARS_MAX).map_or(json.len(), |(at, _)| at);
    &json[..end]
}

fn emitted(execution: ExecutionId, items: &[Json]) -> Vec<ContentBlock> {
    let mut content = vec![];
    let mut n_bytes = 0;
    for (item_idx, item) in items.iter().enumerate().take(EMITTED_MAX) {
        n_bytes += item.as_text().len();
        if n_bytes <= EMITTED_BYTES_MAX {
            content.extend(blocks(item));
            continue;
        }
        n_bytes -= item.as_text().len();
        let number = item_idx + 1;
        let at = uri(execution, &format!("emitted/{number}"));
        let link = Resource::new(at, format!("emitted {number}"));
        content.push(ContentBlock::ResourceLink(link.with_size(item.as_text().len() as u64)));
    }
    if items.len() > EMITTED_MAX {
        let n_more = items.len() - EMITTED_MAX;
        let at = uri(execution, "emitted");
        content.push(ContentBlock::text(format!("… and {n_more} more; {at} lists them all.")));
    }
    content
}

/// The result for a question that the model asks the person.
pub(super) fn paused(asked: &AskedQuestion) -> CallToolResult {
    let envelope = outbound::paused(asked, &QuestionReader::MayAnswer);
    let envelope = members(envelope.as_bytes()).expect("we wrote it ourselves");
    let mut text = text_of(&envelope);
    let structured = envelope.get("structured").and_then(|raw| plain(raw.get()));
    let mut structured = structured.unwrap_or_else(|| json!({}));
    let prompt = "Use the tool `resume`. The user decides, not you.";
    structured["resumePrompt"] = prompt.into();
    text.push_str(&format!("\n\n{prompt}"));
    result(vec![ContentBlock::text(text)], structured, false)
}

/// The question in Executor's `interaction` format. None if the arguments cannot be shown.
pub(super) fn interaction(asked: &AskedQuestion) -> Option<Value> {
    let envelope = outbound::question_json(asked, &QuestionReader::MayAnswer);
    let envelope = members(envelope.as_bytes()).ok()?;
    let mut structured = plain(envelope.get("structured")?.get())?;
    Some(structured["interaction"].take())
}

/// JSON as a value; text that has no such value is shown as text.
fn plain(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let members = members(text.as_bytes()).ok()?;
        let shown = members.into_iter().map(|(name, raw)| {
            let value = serde_json::from_str(raw.get()).ok();
            let value = value.or_else(|| raw.get().starts_with('{').then(|| plain(raw.get()))?);
            (name, value.unwrap_or_else(|| raw.get().into()))
        });
        Some(Value::Object(shown.collect()))
    })
}

/// The result for a question that the person answers on a page. Nothing in it can answer the question.
pub(super) fn approval_required(
    visit: &McpRequestContext,
    question: QuestionId,
    manner: QuestionChannel,
    why: Option<&str>,
) -> CallToolResult {
    let url = visit.page(question);
    let prompt = format!(
        "Tell the user to decide on this page, and show them the link. Then call `{}` with this \
         executionId; it waits for their decision.",
        waiter(manner)
    );
    let downgraded = visit.terms.is_downgraded.then_some(
        "Only a person may answer here, so elicitation_mode=model is served as browser: the model cannot answer.",
    );
    let before: String =
        [why, downgraded].into_iter().flatten().map(|note| format!("{note}\n\n")).collect();
    let page_note = visit.page_note();
    let note = page_note.map(|note| format!("\n{note}")).unwrap_or_default();
    let text = format!(
        "{before}User approval required.\n\n{url}{note}\n\n{prompt}\n\nexecutionId: {question}"
    );
    let mut structured = json!({
        "status": "user_approval_required",
        "executionId": question,
        "approvalUrl": url,
        "resumePrompt": prompt,
    });
    let notes: Vec<_> = [why, downgraded, page_note].into_iter().flatten().collect();
    if !notes.is_empty() {
        structured["message"] = notes.join(" ").into();
    }
    result(vec![ContentBlock::text(text)], structured, false)
}

/// The execution is running: it has neither asked a question nor ended, and the client's wait time has passed.
pub(super) fn running(execution: ExecutionId, manner: QuestionChannel) -> CallToolResult {
    let prompt = format!(
        "The program goes on. Call `{}` with this executionId to wait for its result; do not run it again.",
        waiter(manner)
    );
    let text = format!("Still running.\n\n{prompt}\n\nexecutionId: {execution}");
    let structured =
        json!({ "status": "running", "executionId": execution, "resumePrompt": prompt });
    result(vec![ContentBlock::text(text)], structured, false)
}

/// The tool that continues the wait.
pub(super) const fn waiter(manner: QuestionChannel) -> &'static str {
    match manner {
        QuestionChannel::Model | QuestionChannel::Browser => "resume",
        QuestionChannel::Form(_) | QuestionChannel::Retry(_) => "wait",
    }
}

/// A result with a text only.
pub(super) fn said(text: String, is_error: bool) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.is_error = is_error.then_some(true);
    result
}

fn text_of(envelope: &ObjectMembers<'_>) -> String {
    let text = envelope.get("text").map_or("\"\"", |raw| raw.get());
    serde_json::from_str(text).expect("we wrote it ourselves")
}

pub(super) fn result(
    content: Vec<ContentBlock>,
    structured: Value,
    is_error: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(structured);
    result.is_error = is_error.then_some(true);
    result
}
