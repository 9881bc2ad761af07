//! HTTP for MCP: limits the size of what a server sends, and adds the credential.

use crate::http::{
    ApiClient, AuthChallenge, HttpTransport, RequestReach, SendError, TransportRequest,
    TransportResponse,
};
use crate::{PlacementKind, ToolCredential};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
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
use url::Url;

/// Maximum size of an answer, and of a stream before it must be reopened.
const BODY_BYTES_MAX: usize = 32 << 20;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const BOTH: &str = "text/event-stream, application/json";
const EVENTS: &str = "text/event-stream";

type McpHttpError = StreamableHttpError<SendError>;

/// An HTTP client with limited answers.
#[derive(Clone)]
pub(super) struct BoundedHttp {
    transport: HttpTransport,
    proof: HeaderMap,
    query: Vec<(String, String)>,
    /// Whether the server has rejected the credential.
    refused: Arc<AtomicBool>,
}

impl BoundedHttp {
    /// A client without a credential, with the connections and address rules of `client`.
    pub(super) fn new(client: &ApiClient) -> Self {
        let transport = client.transport().clone();
        Self { transport, proof: HeaderMap::new(), query: vec![], refused: Arc::default() }
    }

    /// The same connections with a credential.
    pub(super) fn with_credential(&self, credential: &ToolCredential) -> Result<Self, String> {
        let mut proof = HeaderMap::new();
        for (name, value) in credential.value_at(PlacementKind::Header) {
            let bad =
                || format!("the connection's value for {name} has characters that cannot be sent");
            let header: HeaderName = name.parse().map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            proof.insert(header, value);
        }
        let query = credential
            .value_at(PlacementKind::Query)
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let refused = Arc::default();
        Ok(Self { transport: self.transport.clone(), proof, query: query.collect(), refused })
    }

    /// Whether the server has rejected the credential. The flag is updated later too.
    pub(super) fn refusal_error(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.refused)
    }

    fn check_status(&self, status: StatusCode) {
        if status == StatusCode::UNAUTHORIZED {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    /// Sends a request with the credential. The server's address was configured, so it may be a private one.
    async fn send(
        &self,
        (method, uri): (Method, &str),
        session: Option<Arc<str>>,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<TransportResponse, McpHttpError> {
        let mut url = Url::parse(uri).map_err(|_| unexpected("its address is no URL".into()))?;
        for (name, value) in &self.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        if let Some(session) = session {
            let session = HeaderValue::from_str(&session);
            headers.insert(SESSION, session.map_err(|_| StreamableHttpError::SessionExpired)?);
        }
        headers.extend(self.proof.clone());
        let (body, reach) = (Bytes::from(body), RequestReach::Anywhere);
        let request = TransportRequest { method, url, headers, body, reach };
        self.transport.send(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for BoundedHttp {
    type Error = SendError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        let had_session = session_id.is_some();
        let body = serde_json::to_vec(&message)?;
        let mut headers = HeaderMap::from_iter(headers);
        headers.insert(ACCEPT, HeaderValue::from_static(BOTH));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = self.send((Method::POST, &uri), session_id, headers, body).await?;
        let status = response.status();
        self.check_status(status);
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
    ) -> Result<(), McpHttpError> {
        let headers = HeaderMap::from_iter(headers);
        let response = self.send((Method::DELETE, &uri), Some(session_id), headers, vec![]).await?;
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
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, McpHttpError> {
        let mut headers = HeaderMap::from_iter(headers);
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last_event_id.and_then(|last| HeaderValue::try_from(last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let response = self.send((Method::GET, &uri), session_id, headers, vec![]).await?;
        self.check_status(response.status());
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status if status.is_success() && is(&response, EVENTS) => Ok(events(response)),
            status => Err(unexpected(format!("HTTP {status}, and no events"))),
        }
    }
}

/// The required scopes, separated by spaces.
fn wanted(headers: &HeaderMap) -> Option<String> {
    AuthChallenge::among(headers)?.wants_scopes().map(|scopes| scopes.join(" "))
}

fn unexpected(why: String) -> McpHttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

fn is(response: &TransportResponse, kind: &str) -> bool {
    let said = response.headers().get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    said.is_some_and(|said| said.starts_with(kind))
}

fn events(response: TransportResponse) -> BoxStream<'static, Result<Sse, SseError>> {
    let bounded = stream::try_unfold((response, 0), async |(mut response, n_bytes)| {
        let Some(chunk) = response.chunk().await.map_err(io::Error::other)? else {
            return Ok(None);
        };
        let n_bytes: usize = n_bytes + chunk.len();
        match n_bytes > BODY_BYTES_MAX {
            true => Err(io::Error::other("the server sends without end")),
            false => Ok(Some((chunk, (response, n_bytes)))),
        }
    });
    SseStream::from_bytes_stream(bounded.boxed()).boxed()
}

async fn whole(mut response: TransportResponse) -> Result<Vec<u8>, McpHttpError> {
    let mut body = vec![];
    while let Some(chunk) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(unexpected(format!("an answer of more than {BODY_BYTES_MAX} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
