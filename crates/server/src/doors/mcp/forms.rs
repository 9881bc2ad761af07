//! Questions as a client shows them itself: a form, or a link to follow.

use super::content::interaction;
use super::visit::{Forms, Visit};
use lifecycle::QuestionId;
use protocols::executor::{Account, Asked};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests,
};
use serde_json::{Map, Value, json};

/// Questions put to a client at once.
const QUESTIONS_MAX: usize = 20;

/// What a client's yes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yes {
    /// The answer.
    Answers,
    /// The person goes to a page and answers there.
    Visits,
}

/// The question in the client's words, and what its yes means.
pub(super) fn request(visit: &Visit, asked: &Asked, forms: Forms) -> (ElicitRequestParams, Yes) {
    let id = asked.question.id;
    let shown = interaction(asked).unwrap_or_default();
    let message = asked.question.message.clone();
    if let Some(url) = shown["url"].as_str() {
        return (linked(message, url, id, forms), Yes::Answers);
    }
    match drawable(&shown["requestedSchema"]).filter(|_| forms.form) {
        Some(schema) => (form(message, schema), Yes::Answers),
        None => {
            let page = format!("{}/resume/{id}", visit.origin);
            (linked(message, &page, id, forms), Yes::Visits)
        }
    }
}

/// A link; where the client has none, a form that shows it.
fn linked(message: String, url: &str, id: QuestionId, forms: Forms) -> ElicitRequestParams {
    if forms.url {
        let (url, elicitation_id) = (url.to_owned(), id.to_string());
        return ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message,
            url,
            elicitation_id,
        };
    }
    form(format!("{message}\n\nOpen this page: {url}"), ElicitationSchema::new(Default::default()))
}

fn form(message: String, requested_schema: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The part of a schema that a client can draw: fields of plain values. None where a field that must
/// be filled in is not plain.
fn drawable(schema: &Value) -> Option<ElicitationSchema> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    let mut plain = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let one = json!({ "type": "object", "properties": { name: field } });
        match serde_json::from_value::<ElicitationSchema>(one) {
            Ok(_) => drop(plain.insert(name.clone(), field.clone())),
            Err(_) if required.contains(&name.as_str()) => return None,
            Err(_) => {}
        }
    }
    let mut whole = json!({ "type": "object", "properties": plain });
    if !required.is_empty() {
        whole["required"] = json!(required);
    }
    serde_json::from_value(whole).ok()
}

/// Every open question at once, each under its own id.
pub(super) fn requests(visit: &Visit, account: &Account, forms: Forms) -> InputRequests {
    let open = account.open().take(QUESTIONS_MAX);
    open.map(|asked| {
        let (params, _) = request(visit, asked, forms);
        (asked.question.id.to_string(), InputRequest::Elicitation(ElicitRequest::new(params)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_fields_are_drawn_and_a_needed_field_that_is_not_plain_sends_to_a_page() {
        let plain = json!({ "type": "string" });
        let choice = json!({ "type": "string", "enum": ["retry", "fail"] });
        let odd = json!({ "description": "anything" });
        let schema = json!({ "type": "object", "properties": { "choice": choice, "result": odd }, "required": ["choice"] });
        let drawn = serde_json::to_value(drawable(&schema).unwrap()).unwrap();
        assert_eq!(drawn["properties"].as_object().unwrap().len(), 1);
        assert_eq!(drawn["required"], json!(["choice"]));
        let nested = json!({ "type": "object", "properties": { "a": { "type": "object" }, "b": plain }, "required": ["a"] });
        assert!(drawable(&nested).is_none());
        let nothing = json!({ "type": "object", "properties": {} });
        let drawn = serde_json::to_value(drawable(&nothing).unwrap()).unwrap();
        assert_eq!(drawn, nothing);
    }
}
