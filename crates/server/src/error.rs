//! Every error of the server: a status, a tag for programs, a sentence for people.

use crate::auth::{AccessDenied, Scope, TokenError};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::Fault;
use lifecycle::Rejection;
use protocols::executor::BadBody;
use std::fmt;

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    status: StatusCode,
    tag: &'static str,
    /// A code for programs, the same as in other protocols.
    code: Option<&'static str>,
    message: String,
    execution_id: Option<Box<str>>,
    trace_id: Option<Box<str>>,
    /// The missing scope, for pages that request it.
    scope: Option<Scope>,
    /// The source that the error is about, if any.
    slug: Option<Box<str>>,
}

/// The tag of a request that a caller's quota refuses.
pub(crate) const QUOTA_REACHED: &str = "QuotaReachedError";

impl RequestError {
    /// The sentence for people.
    pub(crate) fn sentence(&self) -> &str {
        &self.message
    }

    fn new(status: StatusCode, tag: &'static str, message: impl Into<String>) -> Self {
        let (code, execution_id, trace_id, scope, slug) = (None, None, None, None, None);
        Self { status, tag, code, message: message.into(), execution_id, trace_id, scope, slug }
    }

    /// The JSON body for programs.
    pub(crate) fn body(&self) -> String {
        let mut body = serde_json::Map::new();
        body.insert("_tag".into(), self.tag.into());
        if let Some(code) = self.code {
            body.insert("code".into(), code.into());
        }
        if let Some(id) = self.execution_id.as_deref() {
            body.insert("executionId".into(), id.into());
        }
        if let Some(id) = self.trace_id.as_deref() {
            body.insert("traceId".into(), id.into());
        }
        if let Some(scope) = self.scope {
            body.insert("scope".into(), scope.name().into());
        }
        if let Some(slug) = self.slug.as_deref() {
            body.insert("slug".into(), slug.into());
        }
        body.insert("message".into(), self.message.as_str().into());
        serde_json::Value::Object(body).to_string()
    }

    /// The tag for programs.
    pub(crate) const fn tag(&self) -> &'static str {
        self.tag
    }

    /// The sentence for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The execution that the error is about, if any.
    pub(crate) fn execution_id(&self) -> Option<&str> {
        self.execution_id.as_deref()
    }

    /// The number of the log entry with the cause, for internal errors.
    pub(crate) fn trace_id(&self) -> Option<&str> {
        self.trace_id.as_deref()
    }

    /// The request is invalid; the sentence explains why.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequestError", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "UnauthorizedError", "Unauthorized")
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "ForbiddenError", message)
    }

    pub(crate) fn too_many_requests() -> Self {
        let message = "This browser session sends too many requests; wait two minutes.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsError", message)
    }

    /// A caller or an address has reached a limit.
    pub(crate) fn over_limit(message: String) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsError", message)
    }

    /// All slots are taken.
    pub(crate) fn unavailable(message: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "UnavailableError", message)
    }

    /// A part of a request did not arrive in time.
    pub(crate) fn too_late(message: String) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeoutError", message)
    }

    /// Adds a code for programs.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn no_execution(id: impl fmt::Display) -> Self {
        let message =
            format!("There is no execution or question {id}, or it belongs to another caller.");
        let execution_id = Some(id.to_string().into());
        let status = StatusCode::NOT_FOUND;
        Self { execution_id, ..Self::new(status, "ExecutionNotFoundError", message) }
    }

    pub(crate) fn no_callback() -> Self {
        let message = "Nobody waits for this callback: its state is unknown.";
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", message)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(crate) fn no_policy(message: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "PolicyNotFoundError", capitalised(message.as_ref()))
    }

    pub(crate) fn no_route(path: &str) -> Self {
        let message =
            format!("There is nothing at {path}. GET /api/openapi.json describes what there is.");
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", message)
    }

    pub(crate) fn not_allowed(method: &str, path: &str) -> Self {
        let message =
            format!("{path} does not take {method}; the header Allow says what it takes.");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowedError", message)
    }

    pub(crate) fn too_large(n_max: usize) -> Self {
        let message = format!("The body is larger than {n_max} bytes, the most that is taken.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError", message)
    }

    pub(crate) fn no_channel(n_max: usize) -> Self {
        let message =
            format!("There are {n_max} channels, the most there can be; try again later.");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "UnavailableError", message)
    }

    pub(crate) fn no_session() -> Self {
        let message = "There is no such session; open a new one with initialize.";
        Self::new(StatusCode::NOT_FOUND, "SessionNotFoundError", message)
    }

    pub(crate) fn too_slow() -> Self {
        let message = "The body did not arrive in time; send it again.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeoutError", message)
    }

    pub(crate) fn not_json(content_type: Option<&str>) -> Self {
        let message = match content_type {
            Some(other) => format!("The body must be application/json, not {other}."),
            None => "The body must be application/json; the header Content-Type is missing.".into(),
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError", message)
    }

    pub(crate) fn not_found(tag: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, tag, message)
    }

    /// Adds the source that the error is about.
    pub(crate) fn about_source(self, slug: impl Into<Box<str>>) -> Self {
        Self { slug: Some(slug.into()), ..self }
    }

    /// A bad request with a tag that clients know.
    pub(crate) fn tagged(tag: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, tag, message)
    }

    /// A conflict with a tag that clients know.
    pub(crate) fn tagged_conflict(tag: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, tag, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "ConflictError", message)
    }

    pub(crate) fn parked(id: impl fmt::Display) -> Self {
        let message = format!(
            "{id} could not be brought back after a restart and is parked; its journal says why."
        );
        let execution_id = Some(id.to_string().into());
        Self { execution_id, ..Self::new(StatusCode::CONFLICT, "ExecutionParkedError", message) }
    }

    pub(crate) fn stopping() -> Self {
        let message =
            "The server is stopping. Executions continue later: ask again after the next start.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ShuttingDownError", message)
    }

    /// An internal error. The log receives the cause; the caller receives a reference number.
    pub(crate) fn broken(cause: &dyn fmt::Display) -> Self {
        let mut reference = [0; 4];
        // Without randomness the number is zero, and the cause is logged nevertheless.
        let _ = getrandom::fill(&mut reference);
        let reference = format!("{:08x}", u32::from_le_bytes(reference));
        tracing::error!(%reference, %cause, "fault");
        Self::internal(reference, "")
    }

    fn internal(trace_id: String, advice: &str) -> Self {
        let message =
            format!("Something broke on our side; the log has it as {trace_id}. {advice}");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let message = message.trim_end().to_owned();
        Self { trace_id: Some(trace_id.into()), ..Self::new(status, "InternalError", message) }
    }

    /// Converts a caller's missing permission for a request about `id`.
    pub(crate) fn denied(denied: AccessDenied, id: impl fmt::Display) -> Self {
        match denied {
            AccessDenied::Hidden => Self::no_execution(id),
            AccessDenied::Needs(scope) => Self::needs(scope),
            AccessDenied::PersonAnswers => {
                Self::person_answers(&format!("/resume/{id} of this server"))
            }
            AccessDenied::AcceptNeeds(scope) => Self::accept_needs(scope),
            AccessDenied::NotInAdvance => Self::forbidden(
                "autoApprove needs a token with the scope answer. Nothing was started. Without autoApprove the \
                 program starts, and a person decides its questions on their pages.",
            ),
        }
    }

    /// An answer that has no effect, with the page where it would.
    pub(crate) fn person_answers(page: &str) -> Self {
        Self::forbidden(format!(
            "A person decides this question, on the page {page}. Nothing was answered."
        ))
    }

    /// Accepting a call of a management tool requires more than the scope `answer`.
    fn accept_needs(scope: Scope) -> Self {
        let message = format!(
            "This call manages the server: accepting it needs a token with the scope {scope}. Nothing was answered, and the \
             question stays open; declining it needs the scope answer only."
        );
        Self { scope: Some(scope), ..Self::forbidden(message) }
    }

    pub(crate) fn needs(scope: Scope) -> Self {
        let message = format!("This token is not good for that; the scope {scope} is needed.");
        Self { scope: Some(scope), ..Self::forbidden(message) }
    }

    /// Converts an engine's rejection of a request about `id`.
    fn rejected(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::UnknownExecution(id) => Self::no_execution(id),
            Rejection::UnknownQuestion(id) => Self::no_execution(id),
            Rejection::ShuttingDown => Self::stopping(),
            Rejection::BadAnswer(help) => {
                Self::bad_request(format!("The answer does not fit the question: {help}."))
            }
            Rejection::SourceUnavailable { .. } => {
                let message =
                    format!("Nothing was recorded and the question stays open: {rejection}.");
                let problem = Self::tagged_conflict("SourceUnavailableError", message);
                Self { code: Some("source_unavailable"), ..problem }
            }
            Rejection::Diverged { .. } | Rejection::NotRestored(_) => Self::conflict(format!(
                "Nothing was recorded and the question stays open: {rejection}."
            )),
            Rejection::QuotaReached { .. } => {
                let message = format!("Nothing was started: {rejection}.");
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, QUOTA_REACHED, message);
                Self { code: Some("quota_reached"), ..problem }
            }
            Rejection::AlreadyStarted
            | Rejection::NotStarted
            | Rejection::AlreadyFinished
            | Rejection::NotFinished
            | Rejection::NotParked
            | Rejection::AlreadyAnswered(_)
            | Rejection::NotOutstanding(_)
            | Rejection::Unruly(_) => Self::conflict(format!("Not done: {rejection}.")),
        }
    }
}

impl From<Fault> for RequestError {
    fn from(fault: Fault) -> Self {
        Self::internal(fault.reference.to_string(), &format!("What to do: {}.", fault.advice))
    }
}

impl From<engine::Error> for RequestError {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Rejected(rejection) => Self::rejected(&rejection),
            engine::Error::Fault(fault) => fault.into(),
        }
    }
}

impl From<BadBody> for RequestError {
    fn from(bad: BadBody) -> Self {
        Self::bad_request(bad.to_string())
    }
}

impl From<TokenError> for RequestError {
    fn from(error: TokenError) -> Self {
        let sentence = match &error {
            // These begin with a name, which must not be capitalised.
            TokenError::LastAdmin(_) | TokenError::Reserved(_) => format!("{error}."),
            TokenError::BadName
            | TokenError::Retained(_)
            | TokenError::Exists(_)
            | TokenError::Unknown(_)
            | TokenError::TooMany
            | TokenError::NoRandomness
            | TokenError::Store(_) => capitalised(&error.to_string()),
        };
        match error {
            TokenError::BadName | TokenError::Reserved(_) => Self::bad_request(sentence),
            TokenError::Exists(_)
            | TokenError::Retained(_)
            | TokenError::LastAdmin(_)
            | TokenError::TooMany => Self::conflict(sentence),
            TokenError::Unknown(_) => {
                Self::new(StatusCode::NOT_FOUND, "TokenNotFoundError", sentence)
            }
            TokenError::NoRandomness => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "UnavailableError", sentence)
            }
            TokenError::Store(error) => Fault::from(error).into(),
        }
    }
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).chain(['.']).collect()
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Bearer realm=\"airlock\"");
            return (self.status, [(WWW_AUTHENTICATE, realm)], self.message).into_response();
        }
        let body = self.body();
        let json = HeaderValue::from_static("application/json");
        let mut response = (self.status, [(CONTENT_TYPE, json)], body).into_response();
        let may_come_again =
            self.status == StatusCode::SERVICE_UNAVAILABLE || self.tag == QUOTA_REACHED;
        if may_come_again {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{Failure, FailureCode};

    async fn shown(problem: RequestError) -> (u16, String) {
        let response = problem.into_response();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn every_no_has_a_tag_and_a_sentence() {
        let question = "exec_00000000-0000-0000-0000-000000000001".parse().unwrap();
        let cases = [
            (
                RequestError::rejected(&Rejection::UnknownQuestion(question)),
                404,
                r#"{"_tag":"ExecutionNotFoundError","executionId":"exec_00000000-0000-0000-0000-000000000001","message":"There is no execution or question exec_00000000-0000-0000-0000-000000000001, or it belongs to another caller."}"#,
            ),
            (
                RequestError::denied(AccessDenied::Needs(Scope::Run), "x"),
                403,
                r#"{"_tag":"ForbiddenError","message":"This token is not good for that; the scope run is needed.","scope":"run"}"#,
            ),
            (
                RequestError::rejected(&Rejection::NotRestored(Failure::new(
                    FailureCode::Runtime,
                    "no",
                ))),
                409,
                r#"{"_tag":"ConflictError","message":"Nothing was recorded and the question stays open: the program could not be brought back: no."}"#,
            ),
            (
                RequestError::rejected(&Rejection::SourceUnavailable {
                    tool: lifecycle::ToolPath::parse("pets.org.main.add").unwrap(),
                    why: "it was not read yet".into(),
                }),
                409,
                r#"{"_tag":"SourceUnavailableError","code":"source_unavailable","message":"Nothing was recorded and the question stays open: the source of pets.org.main.add is not available (it was not read yet); try again when it is, or decline the call."}"#,
            ),
            (
                RequestError::rejected(&Rejection::QuotaReached {
                    quota: lifecycle::QuotaKind::Running,
                    max: 2,
                }),
                429,
                r#"{"_tag":"QuotaReachedError","code":"quota_reached","message":"Nothing was started: this caller has reached its quota running_max of 2 running executions; wait until one has ended, or cancel one."}"#,
            ),
            (
                RequestError::internal("0a0b0c0d".into(), ""),
                500,
                r#"{"_tag":"InternalError","message":"Something broke on our side; the log has it as 0a0b0c0d.","traceId":"0a0b0c0d"}"#,
            ),
            (
                RequestError::from(TokenError::BadName),
                400,
                r#"{"_tag":"BadRequestError","message":"A token's name has 1 to 64 letters, digits, `_`, `.` or `-`."}"#,
            ),
            (RequestError::unauthorized(), 401, "Unauthorized"),
        ];
        for (problem, status, body) in cases {
            assert_eq!(shown(problem).await, (status, body.to_owned()));
        }
    }
}
