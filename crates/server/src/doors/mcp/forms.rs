//! Questions that a client shows itself: as a form, or as a link.

use super::answer;
use super::outbound::interaction;
use super::visit::{FormSupport, McpRequestContext, QuestionChannel};
use lifecycle::{Answer, Json, QuestionId, QuestionKind};
use protocols::executor::{AskedQuestion, ExecutionView};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationSchema, InputRequest,
    InputRequests, InputResponses,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of questions that are sent to a client in one batch.
const QUESTIONS_MAX: usize = 20;

/// Why the content does not fit, by question.
pub(super) type FormMisfits = BTreeMap<QuestionId, String>;

/// The meaning of a client's *accept*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptMeaning {
    /// It answers the question.
    Answers,
    /// The person opens a page and answers there.
    Visits,
}

/// The question as an elicitation request, and the meaning of its *accept*. A misfit is reported first.
pub(super) fn request(
    visit: &McpRequestContext,
    asked: &AskedQuestion,
    forms: FormSupport,
    misfit: Option<&str>,
) -> (ElicitRequestParams, AcceptMeaning) {
    let id = asked.question.id;
    let message = match misfit {
        Some(why) => format!("{why}\n\n{}", asked.question.message),
        None => asked.question.message.clone(),
    };
    match drawn(asked, forms) {
        ClientForm::Link(url) => (linked(message, &url, id, forms), AcceptMeaning::Answers),
        ClientForm::Form(schema) => (form(message, schema), AcceptMeaning::Answers),
        ClientForm::Page => (linked(message, &visit.page(id), id, forms), AcceptMeaning::Visits),
    }
}

/// The form of a question for a client.
enum ClientForm {
    /// A link that the question asks the person to follow.
    Link(String),
    Form(ElicitationSchema),
    /// A link to the page where the question can be answered.
    Page,
}

fn drawn(asked: &AskedQuestion, forms: FormSupport) -> ClientForm {
    if !forms.counts {
        return ClientForm::Page;
    }
    let shown = interaction(asked).unwrap_or_default();
    if let Some(url) = shown["url"].as_str() {
        return ClientForm::Link(url.to_owned());
    }
    let schema = match asked.question.kind {
        // The return value of the call can have any type, so it is entered on the page.
        QuestionKind::InDoubt => in_doubt(),
        QuestionKind::Approval | QuestionKind::Form { .. } | QuestionKind::Link { .. } => {
            shown["requestedSchema"].clone()
        }
    };
    drawable(&schema).filter(|_| forms.form).map_or(ClientForm::Page, ClientForm::Form)
}

fn in_doubt() -> Value {
    let choice = json!({ "type": "string", "enum": ["retry", "fail"],
        "description": "retry: call the tool again; fail: let the call fail" });
    json!({ "type": "object", "properties": { "choice": choice }, "required": ["choice"] })
}

/// The answer in a client's form; none if the person was sent to the page, or if form answers do not count.
pub(super) fn meant(
    asked: &AskedQuestion,
    forms: FormSupport,
    form: &ElicitResult,
) -> Option<Answer> {
    if !forms.counts {
        return None;
    }
    let answer = answer::of_form(form);
    let visits = || matches!(drawn(asked, forms), ClientForm::Page);
    let is_yes = matches!(answer, Answer::Accept { .. });
    (!(is_yes && visits())).then_some(answer)
}

/// The answers that a client brings to the questions it was asked; none if the person was sent to a page.
pub(super) fn brought(
    account: &ExecutionView,
    manner: QuestionChannel,
    responses: &InputResponses,
) -> Vec<(QuestionId, Option<Answer>)> {
    let forms = match manner {
        QuestionChannel::Form(forms) | QuestionChannel::Retry(forms) => forms,
        QuestionChannel::Model | QuestionChannel::Browser => {
            FormSupport { form: true, url: true, counts: true }
        }
    };
    let read = |(id, form): (&String, &Value)| {
        let asked = account.question(id.parse().ok()?)?;
        let form = serde_json::from_value(form.clone()).ok()?;
        Some((asked.question.id, meant(asked, forms, &form)))
    };
    responses.iter().filter_map(read).collect()
}

/// The answers that do not fit. Questions without a form accept any content.
pub(super) fn misfits(
    account: &ExecutionView,
    brought: &[(QuestionId, Option<Answer>)],
) -> FormMisfits {
    let nothing = Json::parse("{}".to_owned()).expect("an empty object is JSON");
    let misfit = |(question, answer): &(QuestionId, Option<Answer>)| {
        let Some(Answer::Accept { content }) = answer else { return None };
        let asked = account.question(*question).filter(|asked| asked.is_open())?;
        let QuestionKind::Form { schema } = &asked.question.kind else { return None };
        let why = tools::misfit(schema, content.as_ref().unwrap_or(&nothing))?;
        Some((*question, format!("The answer does not fit the question: {why}.")))
    };
    brought.iter().filter_map(misfit).collect()
}

/// A link; for a client without link support, a form that shows it.
fn linked(message: String, url: &str, id: QuestionId, forms: FormSupport) -> ElicitRequestParams {
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

/// Schema keywords besides the fields that do not change the form: one drawn from the fields alone is the same.
const HARMLESS: [&str; 9] = [
    "type",
    "properties",
    "required",
    "title",
    "description",
    "$schema",
    "$id",
    "$comment",
    "additionalProperties",
];

/// A schema that a client can draw: fields of plain values and nothing else. A form without a required field could
/// not be answered.
fn drawable(schema: &Value) -> Option<ElicitationSchema> {
    let members = schema.as_object()?;
    let is_object = members.get("type").is_none_or(|kind| kind == "object");
    if !is_object || members.keys().any(|name| !HARMLESS.contains(&name.as_str())) {
        return None;
    }
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    if required.iter().any(|name| !fields.contains_key(*name)) {
        return None;
    }
    let mut whole = json!({ "type": "object", "properties": fields });
    if !required.is_empty() {
        whole["required"] = json!(required);
    }
    serde_json::from_value(whole).ok()
}

/// Every open question in one batch, each under its own id.
pub(super) fn requests(
    visit: &McpRequestContext,
    account: &ExecutionView,
    forms: FormSupport,
    misfits: &FormMisfits,
) -> InputRequests {
    let open = account.open().take(QUESTIONS_MAX);
    open.map(|asked| {
        let misfit = misfits.get(&asked.question.id).map(String::as_str);
        let (params, _) = request(visit, asked, forms, misfit);
        (asked.question.id.to_string(), InputRequest::Elicitation(ElicitRequest::new(params)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Option<Value>) {
        let drawn = drawable(&schema).map(|drawn| serde_json::to_value(drawn).unwrap());
        assert_eq!(drawn, expected, "{schema}");
    }

    #[test]
    fn a_form_of_plain_fields_is_drawn_and_any_other_is_a_page() {
        let plain = json!({ "type": "string" });
        let choice = json!({ "type": "string", "enum": ["retry", "fail"] });
        let fields = json!({ "a": plain, "b": choice });
        let whole = json!({ "type": "object", "properties": fields, "required": ["a"] });
        check(whole.clone(), Some(whole));
        let nothing = json!({ "type": "object", "properties": {} });
        check(nothing.clone(), Some(nothing.clone()));
        let described = json!({ "title": "t", "description": "d", "additionalProperties": false });
        check(described, Some(nothing));
        assert!(drawable(&in_doubt()).is_some());
        for undrawn in [
            json!({ "oneOf": [{ "required": ["a"], "properties": { "a": plain } }] }),
            json!({ "type": "object", "properties": fields, "anyOf": [{ "required": ["a"] }] }),
            json!({ "type": "object", "properties": fields, "minProperties": 1 }),
            json!({ "type": "object", "properties": fields, "required": ["c"] }),
            json!({ "type": "object", "properties": { "a": { "type": "object" } } }),
            json!({ "type": "object", "properties": { "a": plain, "b": { "description": "any" } } }),
            json!({ "type": "array" }),
            json!(true),
        ] {
            check(undrawn, None);
        }
    }
}
