//! HTTP for MCP: what a server may send is bounded, and the credential goes along.

use crate::http::Challenge;
use crate::{Credential, Place};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest answer, and longest stream before it must be opened anew.
const BODY_BYTES_MAX: usize = 32 << 20;

/// Until there is a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const BOTH: &str = "text/event-stream, application/json";
const EVENTS: &str = "text/event-stream";

type Failed = StreamableHttpError<reqwest::Error>;

/// A client whose answers end.
#[derive(Clone)]
pub(super) struct BoundedHttp {
    client: reqwest::Client,
    proof: HeaderMap,
    query: Vec<(String, String)>,
    /// Whether the server has said that it does not know who calls.
    refused: Arc<AtomicBool>,
}

impl Default for BoundedHttp {
    fn default() -> Self {
        let client = reqwest::Client::builder()
            .tcp_nodelay(true)
            .tls_backend_preconfigured(crate::http::tls())
            .connect_timeout(CONNECT_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("nothing but the TLS configuration can be wrong, and it is ours");
        Self { client, proof: HeaderMap::new(), query: vec![], refused: Arc::default() }
    }
}

impl BoundedHttp {
    /// The same connections with a credential.
    pub(super) fn with_credential(&self, credential: &Credential) -> Result<Self, String> {
        let mut proof = HeaderMap::new();
        for (name, value) in credential.at(Place::Header) {
            let bad =
                || format!("the connection's value for {name} has characters that cannot be sent");
            let header: HeaderName = name.parse().map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            proof.insert(header, value);
        }
        let query =
            credential.at(Place::Query).map(|(name, value)| (name.to_owned(), value.to_owned()));
        let refused = Arc::default();
        Ok(Self { client: self.client.clone(), proof, query: query.collect(), refused })
    }

    /// Whether the server has said that it does not know who calls; tells those who hold it later, too.
    pub(super) fn refused(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.refused)
    }

    fn look(&self, status: StatusCode) {
        if status == StatusCode::UNAUTHORIZED {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    fn request(
        &self,
        method: reqwest::Method,
        uri: &str,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let mut request = self.client.request(method, uri).headers(headers.into_iter().collect());
        if !self.query.is_empty() {
            request = request.query(&self.query);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        request.headers(self.proof.clone())
    }
}

impl StreamableHttpClient for BoundedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let had_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?;
        let request = self.request(reqwest::Method::POST, &uri, session_id, headers);
        let request =
            request.header(ACCEPT, BOTH).header(CONTENT_TYPE, "application/json").body(body);
        let response = request.send().await.map_err(bare)?;
        let status = response.status();
        self.look(status);
        if status == StatusCode::FORBIDDEN
            && let Some(scopes) = wanted(response.headers())
        {
            let (header, scopes) = (String::new(), Some(scopes));
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
                header, scopes,
            )));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session =
            response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if status.is_success() && is(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let expects_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && !expects_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let is_json = is(&response, "application/json");
        if !is_json {
            return Err(unexpected(format!("HTTP {status}, and neither JSON nor events")));
        }
        match serde_json::from_slice(&whole(response).await?) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(_) if !status.is_success() => Err(unexpected(format!("HTTP {status}"))),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = self.request(reqwest::Method::DELETE, &uri, Some(session_id), headers);
        let response = request.send().await.map_err(bare)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => {
                Err(StreamableHttpError::ServerDoesNotSupportDeleteSession)
            }
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut request =
            self.request(reqwest::Method::GET, &uri, session_id, headers).header(ACCEPT, EVENTS);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = request.send().await.map_err(bare)?;
        self.look(response.status());
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status if status.is_success() && is(&response, EVENTS) => Ok(events(response)),
            status => Err(unexpected(format!("HTTP {status}, and no events"))),
        }
    }
}

/// What would have to be allowed, with spaces between the scopes.
fn wanted(headers: &HeaderMap) -> Option<String> {
    Challenge::among(headers)?.wants_scopes().map(|scopes| scopes.join(" "))
}

/// Without the URL, which may hold a credential.
fn bare(error: reqwest::Error) -> Failed {
    StreamableHttpError::Client(error.without_url())
}

fn unexpected(why: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

fn is(response: &Response, kind: &str) -> bool {
    let said = response.headers().get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    said.is_some_and(|said| said.starts_with(kind))
}

fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut n_bytes = 0_usize;
    let bounded = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| io::Error::other(error.without_url()))?;
        n_bytes += chunk.len();
        match n_bytes > BODY_BYTES_MAX {
            true => Err(io::Error::other("the server sends without end")),
            false => Ok(chunk),
        }
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

async fn whole(mut response: Response) -> Result<Vec<u8>, Failed> {
    let mut body = vec![];
    while let Some(chunk) = response.chunk().await.map_err(bare)? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(unexpected(format!("an answer of more than {BODY_BYTES_MAX} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
