//! Executions as resources: the parts that did not fit into an answer, and results after a lost connection. Large
//! resources are read in pieces.

use super::answer;
use super::files::blocks;
use super::follow::caught_up;
use super::narration::McpExecutionView;
use super::outbound::{finished_result, uri};
use super::visit::McpRequestContext;
use crate::error::RequestError;
use lifecycle::{ExecutionId, ExecutionOutcome, Json};
use protocols::executor::{QuestionReader, WaitEnd, members, outbound};
use rmcp::model::{
    CacheScope, ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use store::ListFilter;

/// Number of executions in the list, the newest first.
const LISTED_MAX: usize = 20;

/// Maximum size of one read; `?from=` continues it.
const READ_BYTES_MAX: usize = 1 << 20;

const SCHEME: &str = "airlock://executions/";
const JSON: &str = "application/json";

/// `resources/list`: the caller's newest executions.
pub(super) async fn list_resources(
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let visit = McpRequestContext::from_request(context)?;
    let caller = Some(visit.caller.name.clone());
    let filter = ListFilter { phases: vec![], caller, after: None, n_max: LISTED_MAX };
    let listed = visit.app.engine.list_executions(filter).await.map_err(|fault| {
        ErrorData::internal_error(RequestError::from(fault).message().to_owned(), None)
    })?;
    let resource = |listed: &store::ListedExecution| {
        let id = listed.execution;
        Resource::new(uri(id, ""), id.to_string())
            .with_description(format!("{:?}", listed.standing.phase).to_lowercase())
            .with_mime_type(JSON)
    };
    let all = ListResourcesResult::with_all_items(listed.iter().map(resource).collect());
    Ok(all.with_cache_scope(CacheScope::Private))
}

/// `resources/templates/list`.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |path: &str, name: &str, about: &str| {
        ResourceTemplate::new(format!("{SCHEME}{{executionId}}{path}"), name)
            .with_description(about)
            .with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            "",
            "execution",
            "The state or result of an execution; executionId is run_… or exec_…",
        ),
        template("/result", "result", "What it returned, whole"),
        template("/logs", "logs", "What it printed"),
        template("/emitted/{n}", "emitted", "The n-th thing it handed out"),
    ])
}

/// `resources/read`.
pub(super) async fn read(
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
    let visit = McpRequestContext::from_request(context)?;
    let missing = || {
        let data = Some(serde_json::json!({ "uri": uri }));
        ErrorData::resource_not_found(format!("there is no resource {uri}"), data)
    };
    let rest = uri.strip_prefix(SCHEME).ok_or_else(missing)?;
    let (path, from) = match rest.split_once("?from=") {
        Some((path, from)) => (path, from.parse().map_err(|_| missing())?),
        None => (rest, 0),
    };
    let (id, part) = path.split_once('/').unwrap_or((path, ""));
    let (execution, _) = answer::find(&visit, id).await.map_err(|_| missing())?;
    let narration = caught_up(&visit, execution).await.map_err(|_| missing())?;
    let account = &narration.account;
    answer::see(&visit, account.owner(), account.has_asked(), id).map_err(|_| missing())?;
    if let Some(number) = part.strip_prefix("emitted/") {
        let item_idx = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let item = item_idx.and_then(|idx| narration.emitted.get(idx)).ok_or_else(missing)?;
        if let Some(contents) = embedded(uri, item).filter(|_| from == 0) {
            return Ok(private(vec![contents]));
        }
        return piece(uri, item.as_text(), from).ok_or_else(missing);
    }
    let reader = visit.reader(account.owner().ok_or_else(missing)?);
    let text = resource_text(execution, &narration, part, &reader).ok_or_else(missing)?;
    piece(uri, &text, from).ok_or_else(missing)
}

/// The text of a part of an execution.
fn resource_text(
    execution: ExecutionId,
    narration: &McpExecutionView,
    part: &str,
    reader: &QuestionReader,
) -> Option<String> {
    let outcome = match narration.account.wait_end() {
        Some(WaitEnd::Over(outcome)) => Some(outcome),
        Some(WaitEnd::Asked(_) | WaitEnd::Parked) | None => None,
    };
    match (part, outcome) {
        ("logs", _) => serde_json::to_string(&narration.logs).ok(),
        ("emitted", _) => {
            let items: Vec<_> = narration.emitted.iter().map(Json::raw).collect();
            serde_json::to_string(&items).ok()
        }
        ("result", Some(ExecutionOutcome::Completed { value })) => {
            Some(value.as_ref().map_or("null", Json::as_text).to_owned())
        }
        ("error", Some(ExecutionOutcome::Failed(failure))) => {
            serde_json::to_string(&failure.message).ok()
        }
        ("", _) => whole(execution, narration, reader),
        _ => None,
    }
}

/// The current state of an execution.
fn whole(
    execution: ExecutionId,
    narration: &McpExecutionView,
    reader: &QuestionReader,
) -> Option<String> {
    let envelope = match narration.account.now() {
        Some(WaitEnd::Over(outcome)) => {
            let shown = finished_result(execution, narration, outcome).structured_content;
            return shown.map(|shown| shown.to_string());
        }
        Some(WaitEnd::Asked(asked)) => outbound::paused(asked, reader),
        Some(WaitEnd::Parked) => return Some(outbound::parked(execution)),
        None => return Some(outbound::running(execution)),
    };
    let envelope = members(envelope.as_bytes()).ok()?;
    envelope.get("structured").map(|raw| raw.get().to_owned())
}

/// A picture or a sound as bytes, not as JSON.
fn embedded(uri: &str, item: &Json) -> Option<ResourceContents> {
    let block = blocks(item).pop()?;
    let image = block.as_image().map(|image| (&image.data, &image.mime_type));
    let audio = block.as_audio().map(|audio| (&audio.data, &audio.mime_type));
    let (blob, mime_type) = image.or(audio).map(|(data, kind)| (data.clone(), kind.clone()))?;
    let (uri, mime_type) = (uri.to_owned(), Some(mime_type));
    Some(ResourceContents::BlobResourceContents { uri, mime_type, blob, meta: None })
}

/// The contents belong to one caller and must not be cached for others.
fn private(contents: Vec<ResourceContents>) -> ReadResourceResult {
    ReadResourceResult::new(contents).with_cache_scope(CacheScope::Private)
}

/// A piece of a text, and where the next piece begins.
fn piece(uri: &str, text: &str, from: usize) -> Option<ReadResourceResult> {
    let rest = text.get(from..).filter(|rest| from == 0 || !rest.is_empty())?;
    let mut end = rest.len().min(READ_BYTES_MAX);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    let contents = |uri: String, text: &str| ResourceContents::TextResourceContents {
        uri,
        mime_type: Some(JSON.into()),
        text: text.to_owned(),
        meta: None,
    };
    let mut all = vec![contents(uri.to_owned(), &rest[..end])];
    if end < rest.len() {
        let base = uri.split('?').next().unwrap_or(uri);
        let next = format!("{base}?from={}", from + end);
        all.push(contents(next.clone(), &format!("… {} bytes more at {next}", rest.len() - end)));
    }
    Some(private(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_read_piece_by_piece_and_no_character_is_torn() {
        let text = "€".repeat(READ_BYTES_MAX / 2);
        let (mut whole, mut from) = (String::new(), 0);
        loop {
            let read = piece("airlock://x", &text, from).unwrap();
            let read = serde_json::to_value(read).unwrap();
            whole.push_str(read["contents"][0]["text"].as_str().unwrap());
            let Some(next) = read["contents"][1]["uri"].as_str() else { break };
            from = next.strip_prefix("airlock://x?from=").unwrap().parse().unwrap();
        }
        assert!(whole == text);
        assert!(piece("airlock://x", &text, text.len()).is_none());
        assert!(piece("airlock://x", &text, 1).is_none());
        assert!(piece("airlock://x", "", 0).is_some());
    }
}
