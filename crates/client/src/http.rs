//! The HTTP client of `/api`.

use crate::address::BaseAddress;
use crate::connector::ProvenConnector;
use crate::error::root_cause;
use crate::event::ExecutionEvent;
use crate::follow::{EventFollower, RetryPolicy};
use crate::proof::{ProofError, ServerToken};
use crate::{Error, ExecutionPage, ExecutionRef, ExecutionReply, ExecutionStatus, wire};
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lifecycle::{Answer, AnswerExtras, Entry, ExecutionId, Json, Seq};
use serde_json::Value;
use serde_json::value::RawValue;
use std::error::Error as StdError;
use std::fmt;

/// Longest answer that is read: the largest value of a program, twice over, and its log.
const BODY_BYTES_MAX: usize = 128 << 20;

/// Longest part of another server's error page that is shown.
const SHOWN_CHARS_MAX: usize = 300;

/// A client of an Airlock server. Clones share their connections.
#[derive(Clone)]
pub struct AirlockClient {
    http: Client<ProvenConnector, Full<Bytes>>,
    address: BaseAddress,
    bearer: Option<HeaderValue>,
    pub(crate) patience: RetryPolicy,
}

/// Selects executions in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only those with this status; all, if none is given.
    pub status: Option<ExecutionStatus>,
    /// At most so many; the server has its own maximum and default.
    pub limit: Option<usize>,
    /// Only those that are older than this one.
    pub after: Option<ExecutionId>,
    /// Only those of this caller.
    pub caller: Option<String>,
    /// Only those that ended like this: `completed`, `failed` or `cancelled`.
    pub outcome: Option<String>,
    /// Only those that called such a tool: a path or a pattern.
    pub tool: Option<String>,
    /// Only those that began since then: a time before now by the server's clock, a date, or milliseconds.
    pub since: Option<String>,
}

impl AirlockClient {
    /// Creates a client of the server at `base_url`. Sends nothing yet.
    pub fn new(base_url: &str, token: Option<&str>) -> Result<Self, Error> {
        let address = BaseAddress::parse(base_url)?;
        let bearer = token.map(bearer).transpose()?;
        let http = http_client(&address, None);
        Ok(Self { http, address, bearer, patience: RetryPolicy::USUAL })
    }

    /// Sets the token.
    pub fn with_token(self, token: &str) -> Result<Self, Error> {
        Ok(Self { bearer: Some(bearer(token)?), ..self })
    }

    /// Sets the token; the server gets it once it has given the proof that the token requires.
    pub fn with_server_token(self, token: ServerToken) -> Result<Self, Error> {
        let bearer = Some(bearer(&token.secret)?);
        let http = http_client(&self.address, Some(token));
        Ok(Self { bearer, http, ..self })
    }

    /// Whether the server is on this machine, so that data which only this user may read may be sent to it.
    pub fn is_loopback(&self) -> bool {
        self.address.is_loopback()
    }

    /// The URL of the server.
    pub fn base_url(&self) -> &str {
        self.address.as_str()
    }

    /// Answers a question and waits for the next question or the end of the execution. Sending an answer again is harmless:
    /// the first one counts, and later ones receive its outcome.
    pub async fn resume(&self, id: ExecutionRef, answer: &Answer) -> Result<ExecutionReply, Error> {
        self.resume_with(id, answer, &AnswerExtras::Nothing).await
    }

    /// Like `resume`, with the extras of an accept: the tool need not ask again, or other arguments.
    pub async fn resume_with(
        &self,
        id: ExecutionRef,
        answer: &Answer,
        rider: &AnswerExtras,
    ) -> Result<ExecutionReply, Error> {
        let body = wire::ResumeBody::body(answer, rider)?;
        self.reply(Method::POST, &format!("/api/executions/{id}/resume"), Some(&body)).await
    }

    /// Returns the current state of an execution.
    pub async fn execution(&self, id: ExecutionRef) -> Result<ExecutionReply, Error> {
        self.reply(Method::GET, &format!("/api/executions/{id}"), None).await
    }

    /// Cancels an execution and waits for its end.
    pub async fn cancel(&self, id: ExecutionRef) -> Result<ExecutionReply, Error> {
        self.reply(Method::POST, &format!("/api/executions/{id}/cancel"), None).await
    }

    /// Lets a parked execution continue. For administrators.
    pub async fn continue_parked(&self, id: ExecutionRef) -> Result<Value, Error> {
        self.asked(Method::POST, &format!("/api/executions/{id}/continue"), None).await
    }

    /// Lets all continue that are parked because entries may be lost, and returns their number. For administrators.
    pub async fn continue_all(&self) -> Result<u64, Error> {
        let reply: Value = self.asked(Method::POST, "/api/executions/continue", None).await?;
        reply["continued"].as_u64().ok_or_else(|| Error::Protocol("no number of executions".into()))
    }

    /// Lists executions, newest first.
    pub async fn list_executions(&self, which: ExecutionFilter) -> Result<ExecutionPage, Error> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(status) = which.status {
            query.append_pair("status", status.as_str());
        }
        if let Some(limit) = which.limit {
            query.append_pair("limit", &limit.to_string());
        }
        if let Some(after) = which.after {
            query.append_pair("after", &after.to_string());
        }
        let texts = [
            ("caller", which.caller),
            ("outcome", which.outcome),
            ("tool", which.tool),
            ("since", which.since),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                query.append_pair(name, &text);
            }
        }
        let path = format!("/api/executions?{}", query.finish());
        let (_, body) = self.send_request(Method::GET, &path, None).await?;
        ExecutionPage::read(&body)
    }

    /// Returns the recorded entries of a finished execution.
    pub async fn journal(&self, id: ExecutionRef) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = vec![];
        loop {
            let after = entries.last().map_or(Seq(0), |entry| entry.seq);
            let path = format!("/api/executions/{id}/journal?after={after}");
            let (_, body) = self.send_request(Method::GET, &path, None).await?;
            let page: wire::JournalBody = serde_json::from_str(&body)
                .map_err(|_| Error::Protocol("no journal that this version can read".into()))?;
            let is_last = page.entries.iter().all(|entry| entry.seq <= after);
            entries.extend(page.entries);
            if is_last {
                return Ok(entries);
            }
        }
    }

    /// Returns a page of the recorded entries of a finished execution, after this number: each entry as the server
    /// wrote it, and the number of the last one. Empty at the end.
    pub async fn journal_page(
        &self,
        id: ExecutionRef,
        after: Seq,
    ) -> Result<(Vec<Box<RawValue>>, Seq), Error> {
        let path = format!("/api/executions/{id}/journal?after={after}");
        let (_, body) = self.send_request(Method::GET, &path, None).await?;
        let page: wire::JournalPage = serde_json::from_str(&body)
            .map_err(|_| Error::Protocol("no journal that this version can read".into()))?;
        Ok((page.entries, page.last))
    }

    /// Returns the status of the server. For administrators.
    pub async fn status(&self) -> Result<Value, Error> {
        self.asked(Method::GET, "/api/status", None).await
    }

    /// Returns every event after `after`, once, as it happens, until the execution ends. Reconnects when the connection
    /// drops, for as long as a server needs to restart.
    pub fn follow(
        &self,
        id: ExecutionRef,
        after: Seq,
    ) -> impl Stream<Item = Result<ExecutionEvent, Error>> + Send + use<> {
        let follower = EventFollower::new(self.clone(), id, after);
        stream::try_unfold(follower, async |mut follower| {
            Ok(follower.next().await?.map(|event| (event, follower)))
        })
    }

    /// Requests the events as a stream; `None` where the execution has ended and no event is left.
    pub(crate) async fn stream(
        &self,
        id: ExecutionRef,
        after: Seq,
    ) -> Result<Option<Incoming>, Error> {
        let path = format!("/api/executions/{id}/events?after={after}");
        let mut request = self.request(Method::GET, self.address.join_path(&path)?, None);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("last-event-id", HeaderValue::from(after.0));
        let response = self.send(request).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        match kind {
            Some(kind) if kind.starts_with("text/event-stream") => Ok(Some(response.into_body())),
            _ => {
                Err(Error::Protocol("asked for a stream of events, it sent something else".into()))
            }
        }
    }

    /// The error for a connection that ended too early.
    pub(crate) fn broke_off(&self, why: impl Into<String>) -> Error {
        Error::BrokeOff { url: self.base_url().to_owned(), why: why.into() }
    }

    pub(crate) async fn reply(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<ExecutionReply, Error> {
        let (headers, body) = self.send_request(method, path, body).await?;
        let named = headers.get("airlock-execution").and_then(|id| id.to_str().ok());
        ExecutionReply::read(body, named.and_then(|id| id.parse().ok()))
    }

    pub(crate) async fn send_request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<(HeaderMap, String), Error> {
        let request = self.request(method, self.address.join_path(path)?, body);
        let response = self.send(request).await?;
        self.whole(response).await
    }

    fn request(&self, method: Method, uri: Uri, body: Option<&Json>) -> Request<Full<Bytes>> {
        let bytes = body.map(|json| Bytes::copy_from_slice(json.as_text().as_bytes()));
        let mut request = Request::new(Full::new(bytes.unwrap_or_default()));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(bearer) = &self.bearer {
            headers.insert(AUTHORIZATION, bearer.clone());
        }
        request
    }

    /// Builds a POST request with a JSON body.
    pub(crate) fn post_to(&self, path: &str, body: &Json) -> Result<Request<Full<Bytes>>, Error> {
        Ok(self.request(Method::POST, self.address.join_path(path)?, Some(body)))
    }

    /// Returns the server's answer with any status.
    pub(crate) async fn raw(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        self.http.request(request).await.map_err(|error| {
            let (why, url) = (root_cause(&error), self.base_url().to_owned());
            if let Some(why) = proof_error(&error) {
                return Error::Unproven { url, why };
            }
            match error.is_connect() {
                true => Error::CannotConnect { url, why },
                false => self.broke_off(why),
            }
        })
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        let url = || self.base_url().to_owned();
        let response = self.raw(request).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED => Err(Error::Unauthorised { url: url() }),
            status => {
                let (_, body) = self.whole(response).await?;
                Err(refusal_error(status, &body))
            }
        }
    }

    pub(crate) async fn whole(
        &self,
        response: Response<Incoming>,
    ) -> Result<(HeaderMap, String), Error> {
        let (head, body) = response.into_parts();
        let bytes = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|error| {
            match error.downcast_ref::<LengthLimitError>() {
                Some(_) => {
                    Error::Protocol(format!("an answer of more than {BODY_BYTES_MAX} bytes"))
                }
                None => self.broke_off(root_cause(&*error)),
            }
        })?;
        let text = String::from_utf8(bytes.to_bytes().into())
            .map_err(|_| Error::Protocol("an answer that is not UTF-8".into()))?;
        Ok((head.headers, text))
    }
}

impl fmt::Debug for AirlockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("address", &self.address).finish_non_exhaustive()
    }
}

fn http_client(
    address: &BaseAddress,
    token: Option<ServerToken>,
) -> Client<ProvenConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build(ProvenConnector::new(address.clone(), token))
}

/// Returns why the server at the other end of a connection got no token. A broken connection is not such a reason.
fn proof_error(error: &(dyn StdError + 'static)) -> Option<ProofError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(proof) = error.downcast_ref::<ProofError>() {
            return Some(proof.clone()).filter(|proof| !matches!(proof, ProofError::Broken(_)));
        }
        cause = error.source();
    }
    None
}

fn refusal_error(status: StatusCode, body: &str) -> Error {
    let problem = serde_json::from_str::<wire::ProblemBody>(body);
    let wire::ProblemBody { tag, message } = problem.unwrap_or_else(|_| {
        let shown: String = body.trim().chars().take(SHOWN_CHARS_MAX).collect();
        wire::ProblemBody { tag: String::new(), message: format!("{status} {shown}").trim().into() }
    });
    Error::Refused { status: status.as_u16(), tag, message }
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .map_err(|_| Error::Unusable("the token has characters that no token has".into()))?;
    value.set_sensitive(true);
    Ok(value)
}
