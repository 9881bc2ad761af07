//! A client of `/sessions`: it delivers each event once, reconnects when a stream breaks, runs the caller's tools, and
//! encrypts and decrypts the messages of sealed sessions.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::enclave::EnclaveError> {
//! use client::enclave::{EnclaveClient, Options, SessionRequest};
//!
//! let client = EnclaveClient::new("http://127.0.0.1:4788", Some("alk_…"), Options::default())?;
//! let request = SessionRequest::new("const users = await callTool('users:list', {}); users.length")
//!     .tool("users:list", |_args| async { Ok(serde_json::json!([1, 2, 3])) });
//! let ended = client.execute(request).await?;
//! assert_eq!(ended.result, Some(serde_json::json!(3)));
//! # Ok(()) }
//! ```

mod body_source;
mod error;
mod seal;
mod session;

pub use error::EnclaveError;
pub use session::{EnclaveSession, SessionEnd};

use crate::address::BaseAddress;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The options of a client.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether and how sessions are sealed.
    pub encryption: EncryptionMode,
    /// The reconnection policy for broken streams.
    pub reconnection: ReconnectOptions,
    /// The events to receive, in either of enclave's dialects; all, where there is none.
    pub filter: Option<Value>,
}

/// Whether and how sessions are sealed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EncryptionMode {
    /// Sessions are not sealed.
    #[default]
    Off,
    /// Every session is sealed: a server without support is refused.
    Required {
        /// The server's public key as returned by `GET /enclave/identity`; `None` accepts any server.
        pinned: Option<String>,
    },
}

/// The reconnection policy for broken streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReconnectOptions {
    /// Whether to reconnect at all.
    pub enabled: bool,
    /// The number of consecutive attempts without a new event.
    pub attempts_max: u32,
    /// The delay before the first attempt.
    pub initial_delay: Duration,
    /// The longest delay.
    pub delay_max: Duration,
    /// The factor between consecutive delays.
    pub backoff_multiplier: u32,
}

impl Default for ReconnectOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            attempts_max: 5,
            initial_delay: Duration::from_secs(1),
            delay_max: Duration::from_secs(30),
            backoff_multiplier: 2,
        }
    }
}

impl ReconnectOptions {
    /// The delay before attempt `n`, up to a third shorter or longer so that clients do not reconnect simultaneously.
    fn delay(&self, n: u32) -> Duration {
        let factor = self.backoff_multiplier.max(1).saturating_pow(n.min(31));
        let whole = self.initial_delay.saturating_mul(factor).min(self.delay_max);
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        let percent = u32::try_from(70 + random % 61).unwrap_or(100);
        whole.saturating_mul(percent) / 100
    }
}

/// The result of a tool that the caller runs.
pub type ToolOutcome = Result<Value, EnclaveToolError>;

/// Why a tool failed; the program receives both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclaveToolError {
    /// The error code, for programs.
    pub code: String,
    /// A message for people.
    pub message: String,
}

type CallerTool = Arc<dyn Fn(Value) -> BoxFuture<'static, ToolOutcome> + Send + Sync>;

/// A program, and the tools that the caller runs for it.
#[derive(Clone)]
pub struct SessionRequest {
    code: String,
    session_id: Option<String>,
    limits: Option<Value>,
    tools: BTreeMap<String, CallerTool>,
}

impl SessionRequest {
    /// A program without tools of its own.
    pub fn new(code: &str) -> Self {
        let code = code.to_owned();
        Self { code, session_id: None, limits: None, tools: BTreeMap::new() }
    }

    /// Sets the session's id, `s_…`.
    #[must_use]
    pub fn session_id(mut self, id: &str) -> Self {
        self.session_id = Some(id.to_owned());
        self
    }

    /// Sets limits, by enclave's names for them.
    #[must_use]
    pub fn limits(mut self, limits: Value) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Adds a tool that runs in this process.
    #[must_use]
    pub fn tool<F, R>(mut self, name: &str, run: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = ToolOutcome> + Send + 'static,
    {
        self.tools.insert(name.to_owned(), Arc::new(move |args| Box::pin(run(args))));
        self
    }
}

impl std::fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("tools", &self.tools.keys()).finish_non_exhaustive()
    }
}

/// A client of an Airlock server's enclave protocol. Clones share their connections.
#[derive(Clone)]
pub struct EnclaveClient {
    http: Client<HttpConnector, Full<Bytes>>,
    address: BaseAddress,
    bearer: Option<HeaderValue>,
    options: Options,
}

impl EnclaveClient {
    /// Creates a client of the server at `server_url`. Sends nothing yet.
    pub fn new(
        server_url: &str,
        token: Option<&str>,
        options: Options,
    ) -> Result<Self, EnclaveError> {
        let unusable = |why: String| EnclaveError::Unusable(why);
        let address =
            BaseAddress::parse(server_url).map_err(|error| unusable(error.to_string()))?;
        let bearer = token
            .map(|token| HeaderValue::try_from(format!("Bearer {}", token.trim())))
            .transpose()
            .map_err(|_| unusable("the token has characters that no token has".into()))?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        // Connections are not pooled: each stream has its own, and a broken one must not be used again.
        let http = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { http, address, bearer, options })
    }

    /// Runs a program and its tools to the end.
    pub async fn execute(&self, request: SessionRequest) -> Result<SessionEnd, EnclaveError> {
        self.start(request)?.ended().await
    }

    /// Creates a session; it starts when its first event is polled.
    pub fn start(&self, request: SessionRequest) -> Result<EnclaveSession, EnclaveError> {
        EnclaveSession::start(self.clone(), request)
    }

    /// Follows a running, unsealed session from the event `from` on.
    pub fn attach(&self, session_id: &str, from: u64) -> Result<EnclaveSession, EnclaveError> {
        EnclaveSession::attach(self.clone(), session_id, from)
    }

    /// Ends a session and deletes it: later requests for its events receive the status "gone".
    pub async fn remove(&self, session_id: &str) -> Result<(), EnclaveError> {
        let path = format!("/sessions/{session_id}");
        let answer = self.send(Method::DELETE, &path, Vec::new()).await?;
        error::check_status(answer).await.map(drop)
    }

    /// Ends a session. [`EnclaveSession::cancel`] can give a reason.
    pub async fn cancel(&self, session_id: &str) -> Result<(), EnclaveError> {
        let path = format!("/sessions/{session_id}/cancel");
        let answer = self.send(Method::POST, &path, Vec::new()).await?;
        error::check_status(answer).await.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, EnclaveError> {
        let unusable = |why: String| EnclaveError::Unusable(why);
        let uri = self.address.join_path(path).map_err(|error| unusable(error.to_string()))?;
        let mut request = hyper::Request::builder().method(method).uri(uri);
        request = request.header(CONTENT_TYPE, "application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let request = request.body(Full::new(body.into())).map_err(|e| unusable(e.to_string()))?;
        self.http.request(request).await.map_err(|error| EnclaveError::Broken(error.to_string()))
    }
}

impl std::fmt::Debug for EnclaveClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnclaveClient").field("address", &self.address).finish_non_exhaustive()
    }
}
