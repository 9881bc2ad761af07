//! What a program gets from a tool of an integration: `{ok: true, data}`, or `{ok: false, error}`.

use crate::ProofRefused;
use crate::http::scopes;
use lifecycle::{CallOutcome, Failure, FailureCode, Json};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Longest message of an error: some servers put a whole web page there.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// `{ok: true, data}`, with the HTTP metadata if the call used HTTP.
pub fn done(data: &Json, http: Option<&Value>) -> Json {
    let mut text = format!("{{\"ok\":true,\"data\":{}", data.as_text());
    if let Some(http) = http {
        text.push_str(&format!(",\"http\":{http}"));
    }
    text.push('}');
    Json::parse(text).expect("JSON inside JSON is JSON")
}

/// An error that a tool returned: data for the program, not an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    /// A code for programs: `upstream_http_error`, `connection_rejected`, `mcp_tool_error`, …
    pub code: &'static str,
    /// A sentence for a person.
    pub message: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// Further details, if known.
    pub details: Option<Value>,
    /// Whether the same call may succeed later.
    pub retryable: Option<bool>,
}

impl ToolFailure {
    /// An error with only a code and a message.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), status: None, details: None, retryable: None }
    }

    /// A failure as a value, for tools whose results are `{ok, data}` or `{ok, error}`.
    pub fn from_code(code: &'static str, failure: &Failure) -> Self {
        let details = failure.details.as_ref();
        let details = details.and_then(|details| serde_json::from_str(details.as_text()).ok());
        Self { details, ..Self::new(code, failure.message.clone()) }
    }

    /// `{ok: false, error}`, with its members in this order: people and models read the text.
    pub fn into_envelope(&self) -> Json {
        let message: String = self.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let members = [
            ("code", Some(Value::from(self.code))),
            ("message", Some(message.into())),
            ("status", self.status.map(Value::from)),
            ("details", self.details.clone()),
            ("retryable", self.retryable.map(Value::from)),
        ];
        let members = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let members: Vec<_> = members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let text = format!("{{\"ok\":false,\"error\":{{{}}}}}", members.join(","));
        Json::parse(text).expect("JSON inside JSON is JSON")
    }
}

/// What a program can do after an API refused a connection's credential: the management tools by their paths, as clients of
/// Executor expect them, and what to do with them.
pub(crate) fn recovery() -> Value {
    json!({
        "listConnectionsTool": "executor.coreTools.connections.list",
        "createConnectionTool": "executor.coreTools.connections.createHandoff",
        "startOAuthTool": "executor.coreTools.oauth.start",
        "connectionInstructions": "A key or token: call createConnectionTool and give its url to the user, who enters the \
            secret there; never ask for secrets in the conversation. Then try again.",
        "oauthInstructions": "OAuth: call startOAuthTool and give its url to the user, who signs in there. Then try again.",
    })
}

/// The value in an envelope, or the failure that it contains. Any other value is returned unchanged.
pub fn unwrapped(told: &Json) -> Result<Json, Failure> {
    let Ok(envelope) = serde_json::from_str::<ResultEnvelope<'_>>(told.as_text()) else {
        return Ok(told.clone());
    };
    match (envelope.ok, envelope.data, envelope.error) {
        (true, data, _) => Ok(data.map_or_else(Json::null, |data| Json::from(data.to_owned()))),
        (false, _, Some(error)) => Err(thrown(error)),
        (false, _, None) => Ok(told.clone()),
    }
}

/// How a call ended, for a program that wants the tool's own value and has failures thrown.
pub(crate) fn unwrapped_outcome(outcome: CallOutcome) -> CallOutcome {
    match outcome {
        CallOutcome::Returned { value: Some(told) } => match unwrapped(&told) {
            Ok(value) => CallOutcome::Returned { value: Some(value) },
            Err(failure) => CallOutcome::Failed(failure),
        },
        other @ (CallOutcome::Returned { value: None }
        | CallOutcome::Failed(_)
        | CallOutcome::Unknown) => other,
    }
}

#[derive(Deserialize)]
struct ResultEnvelope<'a> {
    ok: bool,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

/// A tool's error as a failure. The details have the tool's own code, else the code of the envelope.
fn thrown(error: Value) -> Failure {
    let word = error["code"].as_str().unwrap_or("tool_failed");
    let message = error["message"].as_str().unwrap_or("The tool failed.").to_owned();
    let own = own_code(&error).unwrap_or_else(|| word.to_owned());
    let code = match word {
        "tool_not_found" => FailureCode::ToolNotFound,
        "invalid_tool_arguments" => FailureCode::Validation,
        _ => FailureCode::Tool,
    };
    let mut details = error.get("details").filter(|details| details.is_object()).cloned();
    let details = details.get_or_insert_with(|| json!({}));
    details["code"] = own.into();
    if let Some(status) = error.get("status") {
        details["status"] = status.clone();
    }
    let details = Json::from_value(details).ok();
    Failure { details, ..Failure::new(code, message) }
}

/// Longest code that a tool gives its failure.
const OWN_CODE_BYTES_MAX: usize = 100;

/// The code in a failed tool's answer: beside its message, in its error, or in the structured part of its answer.
fn own_code(error: &Value) -> Option<String> {
    const PLACES: [&str; 5] =
        ["/code", "/error/code", "/body/code", "/body/error/code", "/structuredContent/code"];
    let details = error.get("details")?;
    let code = PLACES.iter().find_map(|place| details.pointer(place)?.as_str())?;
    (1..=OWN_CODE_BYTES_MAX).contains(&code.len()).then(|| code.to_owned())
}

/// The member of a refusal's details that lists the scopes that would suffice, separated by spaces.
pub(crate) const WANTED_SCOPES: &str = "wantedScopes";

/// Why the server rejected the credential, if another one may be accepted.
pub(crate) fn refused_envelope(told: &Json) -> Option<ProofRefused> {
    // Most results are successes, and some are large: only possible refusals are parsed.
    if !told.as_text().contains("connection_rejected") {
        return None;
    }
    let told: Value = serde_json::from_str(told.as_text()).unwrap_or_default();
    let error = &told["error"];
    if told["ok"] != false || error["code"] != "connection_rejected" {
        return None;
    }
    match (error["status"].as_u64(), error["details"][WANTED_SCOPES].as_str()) {
        (Some(401), _) => Some(ProofRefused::Unknown),
        (Some(403), Some(wanted)) => Some(ProofRefused::Narrow(scopes(wanted))),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_trouble_are_told_apart_by_ok() {
        let data = Json::parse("[1, \"\\ud800\"]".into()).unwrap();
        assert_eq!(done(&data, None).as_text(), "{\"ok\":true,\"data\":[1, \"\\ud800\"]}");
        let http = json!({"status": 200});
        assert_eq!(
            done(&Json::null(), Some(&http)).as_text(),
            r#"{"ok":true,"data":null,"http":{"status":200}}"#
        );
        let trouble =
            ToolFailure { status: Some(404), ..ToolFailure::new("upstream_http_error", "gone") };
        assert_eq!(
            trouble.into_envelope().as_text(),
            r#"{"ok":false,"error":{"code":"upstream_http_error","message":"gone","status":404}}"#
        );
    }

    #[test]
    fn an_envelope_is_unwrapped_to_its_value_or_to_a_failure_with_its_code() {
        let value = |text: &str| {
            unwrapped(&Json::parse(text.into()).unwrap()).map_err(|failure| {
                let details: Value =
                    serde_json::from_str(failure.details.unwrap().as_text()).unwrap();
                (failure.code, failure.message, details["code"].as_str().unwrap().to_owned())
            })
        };
        assert_eq!(
            value(r#"{"ok":true,"data":{"sum":42},"http":{}}"#).unwrap().as_text(),
            r#"{"sum":42}"#
        );
        for plain in ["[1]", r#"{"ok":1}"#, r#"{"ok":false}"#, "\"\\ud800\""] {
            assert_eq!(value(plain).unwrap().as_text(), plain);
        }
        let cases = [
            (ToolFailure::new("command_failed", "no"), FailureCode::Tool, "command_failed"),
            (ToolFailure::new("tool_not_found", "no"), FailureCode::ToolNotFound, "tool_not_found"),
            (
                ToolFailure::new("invalid_tool_arguments", "no"),
                FailureCode::Validation,
                "invalid_tool_arguments",
            ),
        ];
        for (trouble, code, own) in cases {
            assert_eq!(
                value(trouble.into_envelope().as_text()),
                Err((code, "no".into(), own.into()))
            );
        }
        let custom = ToolFailure {
            details: Some(json!({"body": {"error": {"code": "E_X"}}})),
            ..ToolFailure::new("upstream_http_error", "no")
        };
        assert_eq!(
            value(custom.into_envelope().as_text()),
            Err((FailureCode::Tool, "no".into(), "E_X".into()))
        );
    }

    #[test]
    fn only_a_refusal_that_another_credential_may_mend_is_one() {
        let told = |status: u16, details: Value| {
            let (status, details) = (Some(status), Some(details));
            refused_envelope(
                &ToolFailure { status, details, ..ToolFailure::new("connection_rejected", "no") }
                    .into_envelope(),
            )
        };
        assert_eq!(told(401, Value::Null), Some(ProofRefused::Unknown));
        let narrow = Some(ProofRefused::Narrow(vec!["a".into(), "b".into()]));
        assert_eq!(told(403, json!({ WANTED_SCOPES: "a b" })), narrow);
        assert_eq!(told(403, json!({})), None);
        let data = Json::from_value(&json!("connection_rejected")).unwrap();
        assert_eq!(refused_envelope(&done(&data, None)), None);
    }
}
