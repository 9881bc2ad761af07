//! Answers to questions from every path: a model's `resume`, a client's form.

use super::visit::McpRequestContext;
use crate::answering::{AnswerPath, authorize, is_first_answer};
use crate::error::RequestError;
use lifecycle::{Answer, CallerName, ExecutionId, Json, QuestionId};
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::Value;
use std::sync::Arc;

/// Gives an answer, to completion even if the client disconnects in the middle. Returns whether it was the first: the
/// first answer takes effect, and later ones receive its outcome.
pub(super) async fn give(
    visit: &Arc<McpRequestContext>,
    path: AnswerPath,
    question: QuestionId,
    answer: Answer,
) -> Result<bool, RequestError> {
    let app = Arc::clone(&visit.app);
    let caller = &visit.caller;
    let execution = app.engine.asked_by(question).await?;
    let by = authorize(&app, caller, path, execution, &[(question, &answer)]).await?;
    tracing::debug!(target: "mcp", caller = %caller.name, role = %by.role, %question, ?answer, "answer");
    let giving = async move {
        let answered = tokio::select! {
            biased; // what is done already is told
            answered = app.engine.answer_question(question, answer, by) => answered,
            () = app.stopping.cancelled() => return Err(RequestError::stopping()),
        };
        is_first_answer(answered)
    };
    let given = visit.app.tasks.spawn(giving).await;
    given.unwrap_or_else(|panic| Err(RequestError::broken(&panic)))
}

/// Whether the content does not fit the question, which then stays open.
pub(super) fn is_misfit(problem: &RequestError) -> bool {
    problem.tag() == "BadRequestError"
}

/// Parses a model's `resume`: an action, and content as JSON text or as an object.
pub(super) fn said(action: &str, content: Option<&Value>) -> Result<Answer, RequestError> {
    match action {
        "accept" => Ok(Answer::Accept { content: object(content)? }),
        "decline" => Ok(Answer::Decline),
        "cancel" => Ok(Answer::Cancel),
        _ => Err(RequestError::bad_request("The action must be accept, decline or cancel.")),
    }
}

/// An object with members; other JSON counts as no content, as in the upstream implementation. Invalid JSON text is
/// an error: ignoring it would answer a form with less than the person filled in.
fn object(content: Option<&Value>) -> Result<Option<Json>, RequestError> {
    let parsed = match content {
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| {
            RequestError::bad_request(format!(
                "The argument \"content\" is not JSON ({error}), and nothing was answered; it is an object as \
                 text, such as {{\"name\":\"Ann\"}}."
            ))
        })?,
        Some(other) => other.clone(),
        None => return Ok(None),
    };
    let members = parsed.as_object().filter(|members| !members.is_empty());
    Ok(members.and_then(|members| Json::from_value(members).ok()))
}

/// The answer in a client's form.
pub(super) fn of_form(form: &ElicitResult) -> Answer {
    // Actions that a later revision may add mean neither yes nor no.
    if form.action == ElicitationAction::Accept {
        // Clients send an object; any other value does not fit a form that requires one.
        return Answer::Accept { content: object(form.content.as_ref()).ok().flatten() };
    }
    if form.action == ElicitationAction::Decline { Answer::Decline } else { Answer::Cancel }
}

/// Finds the execution that an id refers to, and the question if the id is a question's.
pub(super) async fn find(
    visit: &McpRequestContext,
    id: &str,
) -> Result<(ExecutionId, Option<QuestionId>), RequestError> {
    if let Ok(question) = id.parse::<QuestionId>() {
        return match visit.app.engine.asked_by(question).await {
            Ok(execution) => Ok((execution, Some(question))),
            Err(error) => Err(error.into()),
        };
    }
    let execution = id.parse().map_err(|_| RequestError::no_execution(id))?;
    Ok((execution, None))
}

/// Passes callers that may see an execution; for others it is treated as if it did not exist.
pub(super) fn see(
    visit: &McpRequestContext,
    owner: Option<&CallerName>,
    has_asked: bool,
    id: &str,
) -> Result<(), RequestError> {
    let owner = owner.ok_or_else(|| RequestError::no_execution(id))?;
    let may = visit.caller.may_see(owner, has_asked);
    may.map_err(|denied| RequestError::denied(denied, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_is_an_object_given_as_text_or_as_it_is_and_other_json_is_nothing() {
        let object = Some(Json::parse(r#"{"a":1}"#.into()).unwrap());
        let cases = [
            (Some(json!(r#"{"a":1}"#)), object.clone()),
            (Some(json!({ "a": 1 })), object),
            (Some(json!("{}")), None),
            (Some(json!("[1]")), None),
            (Some(json!("")), None),
            (None, None),
        ];
        for (given, content) in cases {
            assert_eq!(said("accept", given.as_ref()).unwrap(), Answer::Accept { content });
        }
        assert_eq!(said("decline", None).unwrap(), Answer::Decline);
        assert!(said("maybe", None).is_err());
        let broken = json!("{a: 4}");
        let told = said("accept", Some(&broken)).unwrap_err();
        let expected = "The argument \"content\" is not JSON (key must be a string at line 1 column 2), and nothing \
                        was answered; it is an object as text, such as {\"name\":\"Ann\"}.";
        assert_eq!((told.tag(), told.message()), ("BadRequestError", expected));
        assert_eq!(said("decline", Some(&broken)).unwrap(), Answer::Decline);
    }
}
