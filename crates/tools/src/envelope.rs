//! What a program gets from a tool of an integration: `{ok: true, data}`, or `{ok: false, error}`.

use crate::Refused;
use crate::http::scopes;
use lifecycle::{Failure, Json};
use serde_json::{Value, json};

/// Longest message of an error: some servers put a whole web page there.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// `{ok: true, data}`, with what HTTP said beside it where there was HTTP.
pub fn done(data: &Json, http: Option<&Value>) -> Json {
    let mut text = format!("{{\"ok\":true,\"data\":{}", data.text());
    if let Some(http) = http {
        text.push_str(&format!(",\"http\":{http}"));
    }
    text.push('}');
    Json::parse(text).expect("JSON inside JSON is JSON")
}

/// A tool's own "no": data for the program, not an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// One word for programs: `upstream_http_error`, `connection_rejected`, `mcp_tool_error`, …
    pub code: &'static str,
    /// A sentence for a person.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// Whatever else is known.
    pub details: Option<Value>,
    /// Whether the same call may do better later.
    pub retryable: Option<bool>,
}

impl Trouble {
    /// Trouble with nothing but a word and a sentence.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), status: None, details: None, retryable: None }
    }

    /// A failure as a value, for tools whose results are `{ok, data}` or `{ok, error}`.
    pub fn of(code: &'static str, failure: &Failure) -> Self {
        let details = failure.details.as_ref();
        let details = details.and_then(|details| serde_json::from_str(details.text()).ok());
        Self { details, ..Self::new(code, failure.message.clone()) }
    }

    /// `{ok: false, error}`.
    pub fn told(&self) -> Json {
        let message: String = self.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let mut error = json!({ "code": self.code, "message": message });
        if let Some(status) = self.status {
            error["status"] = status.into();
        }
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        if let Some(retryable) = self.retryable {
            error["retryable"] = retryable.into();
        }
        Json::from_value(&json!({ "ok": false, "error": error }))
            .expect("a value can be written as JSON")
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

/// Where the details of a refusal say which scopes would be enough, with spaces between them.
pub(crate) const WANTED_SCOPES: &str = "wantedScopes";

/// Why the other side did not take the credential, where another one may help.
pub(crate) fn refused(told: &Json) -> Option<Refused> {
    // Most results are good, and some are large: only what may be a refusal is read.
    if !told.text().contains("connection_rejected") {
        return None;
    }
    let told: Value = serde_json::from_str(told.text()).unwrap_or_default();
    let error = &told["error"];
    if told["ok"] != false || error["code"] != "connection_rejected" {
        return None;
    }
    match (error["status"].as_u64(), error["details"][WANTED_SCOPES].as_str()) {
        (Some(401), _) => Some(Refused::Unknown),
        (Some(403), Some(wanted)) => Some(Refused::Narrow(scopes(wanted))),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_trouble_are_told_apart_by_ok() {
        let data = Json::parse("[1, \"\\ud800\"]".into()).unwrap();
        assert_eq!(done(&data, None).text(), "{\"ok\":true,\"data\":[1, \"\\ud800\"]}");
        let http = json!({"status": 200});
        assert_eq!(
            done(&Json::null(), Some(&http)).text(),
            r#"{"ok":true,"data":null,"http":{"status":200}}"#
        );
        let trouble = Trouble { status: Some(404), ..Trouble::new("upstream_http_error", "gone") };
        assert_eq!(
            trouble.told().text(),
            r#"{"error":{"code":"upstream_http_error","message":"gone","status":404},"ok":false}"#
        );
    }

    #[test]
    fn only_a_refusal_that_another_credential_may_mend_is_one() {
        let told = |status: u16, details: Value| {
            let (status, details) = (Some(status), Some(details));
            refused(
                &Trouble { status, details, ..Trouble::new("connection_rejected", "no") }.told(),
            )
        };
        assert_eq!(told(401, Value::Null), Some(Refused::Unknown));
        let narrow = Some(Refused::Narrow(vec!["a".into(), "b".into()]));
        assert_eq!(told(403, json!({ WANTED_SCOPES: "a b" })), narrow);
        assert_eq!(told(403, json!({})), None);
        let data = Json::from_value(&json!("connection_rejected")).unwrap();
        assert_eq!(refused(&done(&data, None)), None);
    }
}
