//! Connections to one MCP server: opened when they are needed, cached, and reopened after a crash.

use super::bounded::BoundedLines;
use super::handler::{ActiveCalls, McpClientHandler};
use super::http::BoundedHttp;
use super::refusal::{self, sent_in_vain, too_narrow, unknown_caller, unmade, wanted_scopes};
use super::{McpEndpoint, McpLimits, progress};
use crate::child::{self, RunningChild};
use crate::envelope::ToolFailure;
use crate::{ChildProgram, ChildSupervision, PlacementKind, ToolCredential, ToolRequest};
use processes::reaper::start_error;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, PaginatedRequestParams, Tool};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

/// Maximum size of a message of the server.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Maximum number of pages of one listing: a server with more may list forever.
const PAGES_MAX: usize = 500;
const TOOLS_MAX: usize = 10_000;

/// Concurrent connections per server: one per credential, and some for callers that must not share one.
const SESSIONS_MAX: usize = 16;

/// First and longest delay before reconnecting to a lost server.
const BACK_OFF_MIN: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// A server's standard error goes to the log, line by line, each limited to this length.
const STDERR_BYTES_MAX: u64 = 1_000;

/// How long a closed server may take to exit by itself.
const CLOSING_MAX: Duration = Duration::from_secs(2);

pub(super) type McpClientService = RunningService<RoleClient, McpClientHandler>;

/// All connections to one server.
pub(super) struct McpConnections {
    endpoint: McpEndpoint,
    minding: ChildSupervision,
    limits: McpLimits,
    sessions: Mutex<Vec<Arc<McpConnection>>>,
    back_off: Mutex<BackOff>,
    /// Why the last attempt to connect failed, if it did.
    outage: std::sync::Mutex<Option<String>>,
    /// The server has asked a person before: callers get separate connections.
    asks: AtomicBool,
    changed: Arc<Notify>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

/// One connection.
struct McpConnection {
    credential: ToolCredential,
    service: McpClientService,
    desk: Arc<ActiveCalls>,
    /// Whether the server has rejected the credential.
    refused: Arc<AtomicBool>,
    /// The child process, if there is one; ends with the connection.
    _program: Option<RunningChild>,
}

#[derive(Default)]
struct BackOff {
    n_failures: u32,
    until: Option<Instant>,
    why: String,
}

impl McpConnections {
    pub(super) fn new(endpoint: McpEndpoint, minding: ChildSupervision, limits: McpLimits) -> Self {
        Self {
            endpoint,
            minding,
            limits,
            sessions: Mutex::default(),
            back_off: Mutex::default(),
            outage: std::sync::Mutex::default(),
            asks: AtomicBool::new(false),
            changed: Arc::default(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn target(&self) -> String {
        match &self.endpoint {
            McpEndpoint::Stdio(program) => program.argv.join(" "),
            McpEndpoint::Http { url, .. } => url.clone(),
        }
    }

    pub(super) fn outage(&self) -> Option<String> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Everything that the server lists.
    pub(super) async fn list_tools(
        &self,
        credential: &ToolCredential,
    ) -> Result<Vec<Tool>, String> {
        let listing = async {
            let session = self.session(credential, None).await?;
            let mut tools: Vec<Tool> = vec![];
            let mut cursor = None;
            for _ in 0..PAGES_MAX {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let page = session.service.list_tools(Some(params)).await;
                let page =
                    page.map_err(|error| format!("listing its tools failed: {}", said(&error)))?;
                tools.extend(page.tools);
                cursor = page.next_cursor;
                if cursor.is_none() || tools.len() > TOOLS_MAX {
                    break;
                }
            }
            match tools.len() > TOOLS_MAX || cursor.is_some() {
                true => Err(format!("it lists more than {TOOLS_MAX} tools or {PAGES_MAX} pages")),
                false => Ok(tools),
            }
        };
        let timed = tokio::time::timeout(self.limits.start, listing).await;
        timed.unwrap_or_else(|_| {
            Err(format!("it did not list its tools within {:?}", self.limits.start))
        })
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        read_only: bool,
        credential: &ToolCredential,
        request: &ToolRequest,
    ) -> Result<CallToolResult, ToolFailure> {
        let arguments = serde_json::from_str(request.args.as_text()).map_err(|_| {
            ToolFailure::new(
                "invalid_tool_arguments",
                "The arguments are not an object that MCP can carry.",
            )
        })?;
        let mut n_lost = 0;
        loop {
            let session = self.session(credential, Some(request)).await.map_err(unmade)?;
            let params = CallToolRequestParams::new(tool.to_owned())
                .with_arguments(arguments_of(&arguments));
            match self.call_on(&session, params, request).await {
                Err(_) if session.refused.load(Ordering::Relaxed) => return Err(unknown_caller()),
                Err(CallInterruption::Lost) if read_only && n_lost == 0 => n_lost += 1,
                Err(CallInterruption::Lost) => {
                    let why = "The server was lost in the middle of the call; whether the call happened is unknown.";
                    return Err(ToolFailure {
                        retryable: Some(read_only),
                        ..ToolFailure::new("mcp_server_lost", why)
                    });
                }
                Err(CallInterruption::Trouble(trouble)) => return Err(trouble),
                Ok(result) => return Ok(result),
            }
        }
    }

    async fn call_on(
        &self,
        session: &McpConnection,
        params: CallToolRequestParams,
        request: &ToolRequest,
    ) -> Result<CallToolResult, CallInterruption> {
        let _place = session.desk.enter_call(request.execution, request.person.clone());
        let (listeners, tasks) = (&session.desk.listeners, &self.tasks);
        let called = progress::call(&session.service, listeners, tasks, params, &request.progress);
        let outcome = tokio::select! {
            outcome = called => outcome,
            () = request.cancelled.given() => {
                return Err(ToolFailure::new("cancelled", "The call was cancelled.").into());
            }
            () = self.too_long(&session.desk) => {
                let why = format!("The server did not answer within {:?}.", self.limits.call);
                let slow = ToolFailure { retryable: Some(true), ..ToolFailure::new("mcp_timeout", why) };
                return Err(slow.into());
            }
        };
        if session.desk.has_asked() {
            self.asks.store(true, Ordering::Relaxed);
        }
        if let Some(scopes) = outcome.as_ref().err().and_then(sent_in_vain) {
            return Err(too_narrow(&scopes).into());
        }
        let is_lost = |error: &ServiceError| {
            matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_))
        };
        outcome.map_err(|error| match is_lost(&error) {
            true => CallInterruption::Lost,
            false => ToolFailure::new("mcp_error", format!("The server refused: {}", said(&error)))
                .into(),
        })
    }

    /// Resolves when a call has exceeded its time limit, not counting the time in which a person is asked.
    async fn too_long(&self, desk: &ActiveCalls) {
        let mut left = self.limits.call;
        loop {
            let changed = desk.settled.notified();
            if desk.is_asking() {
                changed.await;
                continue;
            }
            let since = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                () = changed => left = left.saturating_sub(since.elapsed()),
            }
        }
    }

    /// A live connection: a cached one, or a new one.
    async fn session(
        &self,
        credential: &ToolCredential,
        by: Option<&ToolRequest>,
    ) -> Result<Arc<McpConnection>, String> {
        // Callers that wait here wait for the same connection attempt.
        let mut sessions = self.sessions.lock().await;
        sessions.retain(|session| {
            !session.service.is_closed()
                && !session.service.peer().is_transport_closed()
                && !session.refused.load(Ordering::Relaxed)
        });
        let alone = self.asks.load(Ordering::Relaxed);
        let fits = |session: &&Arc<McpConnection>| {
            session.credential == *credential
                && !by.is_some_and(|by| alone && session.desk.serves_another(by.execution))
        };
        if let Some(session) = sessions.iter().find(fits) {
            return Ok(Arc::clone(session));
        }
        // Tokens are renewed: a connection whose credential is no longer used is evicted first.
        let idle = |session: &Arc<McpConnection>| Arc::strong_count(session) == 1;
        if sessions.len() >= SESSIONS_MAX
            && let Some(at) = sessions.iter().position(idle)
        {
            sessions.remove(at);
        }
        if sessions.len() >= SESSIONS_MAX {
            return Err(format!("{SESSIONS_MAX} connections are busy, the most there can be"));
        }
        self.may_try().await?;
        let connecting = tokio::time::timeout(self.limits.start, self.connect(credential)).await;
        let connected = connecting.unwrap_or_else(|_| {
            Err(format!("it did not introduce itself within {:?}", self.limits.start))
        });
        // A server that requires a token is not down.
        self.remember(connected.as_ref().err().filter(|why| !refusal::is_one(why))).await;
        let session = Arc::new(connected?);
        sessions.push(Arc::clone(&session));
        Ok(session)
    }

    async fn may_try(&self) -> Result<(), String> {
        if self.closing.is_cancelled() {
            return Err("it was closed".to_owned());
        }
        let back_off = self.back_off.lock().await;
        match back_off.until {
            Some(until) if Instant::now() < until => {
                let seconds = (until - Instant::now()).as_secs() + 1;
                Err(format!("{}; it is tried again in {seconds} s at the earliest", back_off.why))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn remember(&self, failure: Option<&String>) {
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = failure.cloned();
        let mut back_off = self.back_off.lock().await;
        *back_off = match failure {
            None => BackOff::default(),
            Some(why) => {
                let pause = BACK_OFF_MIN * 2_u32.saturating_pow(back_off.n_failures.min(16));
                BackOff {
                    n_failures: back_off.n_failures + 1,
                    until: Some(Instant::now() + pause.min(BACK_OFF_MAX)),
                    why: why.clone(),
                }
            }
        };
    }

    async fn connect(&self, credential: &ToolCredential) -> Result<McpConnection, String> {
        let desk = Arc::new(ActiveCalls::default());
        let handler =
            McpClientHandler { desk: Arc::clone(&desk), changed: Arc::clone(&self.changed) };
        let mut refused: Arc<AtomicBool> = Arc::default();
        let (service, program) = match &self.endpoint {
            McpEndpoint::Stdio(program) => {
                let (running, pipes) = self.start(program, credential)?;
                self.tasks.spawn(self.closing.clone().run_until_cancelled_owned(log(pipes.stderr)));
                let stdout = BoundedLines::new(pipes.stdout, MESSAGE_BYTES_MAX);
                let transport = AsyncRwTransport::new(stdout, pipes.stdin)
                    .with_max_line_length(MESSAGE_BYTES_MAX);
                (handler.serve(transport).await, Some(running))
            }
            McpEndpoint::Http { url, client } => {
                if Url::parse(url).is_ok_and(|url| !credential.is_for(&url)) {
                    return Err("the connection's token is meant for another server".into());
                }
                let http = BoundedHttp::new(client).with_credential(credential)?;
                refused = http.refusal_error();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let transport = StreamableHttpClientTransport::with_client(http, config);
                (handler.serve(transport).await, None)
            }
        };
        let service = service.map_err(|error| {
            match (refused.load(Ordering::Relaxed), wanted_scopes(&error)) {
                (true, _) => refusal::WANTS_TOKEN.to_owned(),
                (false, Some(scopes)) => format!("{}{scopes}", refusal::WANTS_SCOPES),
                (false, None) => format!("it could not be greeted: {}", root(&error)),
            }
        })?;
        let credential = credential.clone();
        Ok(McpConnection { credential, service, desk, refused, _program: program })
    }

    fn start(
        &self,
        program: &ChildProgram,
        credential: &ToolCredential,
    ) -> Result<(RunningChild, child::ChildPipes), String> {
        let mut program = program.clone();
        let extra = credential
            .value_at(PlacementKind::Environment)
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        program.env.extend(extra);
        child::start(self.minding, &program)
            .map_err(|error| format!("its program could not be started: {}", start_error(&error)))
    }

    pub(super) async fn close(&self) {
        self.closing.cancel();
        let sessions = std::mem::take(&mut *self.sessions.lock().await);
        for session in sessions {
            if let Some(mut session) = Arc::into_inner(session) {
                let _ = session.service.close_with_timeout(CLOSING_MAX).await;
            }
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for McpConnections {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Why a call ended without a result.
enum CallInterruption {
    Lost,
    Trouble(ToolFailure),
}

impl From<ToolFailure> for CallInterruption {
    fn from(trouble: ToolFailure) -> Self {
        Self::Trouble(trouble)
    }
}

fn arguments_of(value: &serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The server's message, without the prefixes of our libraries.
fn said(error: &ServiceError) -> String {
    if let ServiceError::McpError(error) = error {
        return error.message.to_string();
    }
    root(error)
}

fn root(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let text = inner.to_string();
    // rmcp prefixes some reasons with the Rust type of its transport.
    let text = text.rsplit("] error: ").next().unwrap_or_default();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

async fn log(stderr: tokio::process::ChildStderr) {
    let mut lines = BufReader::new(stderr);
    loop {
        let mut line = vec![];
        match (&mut lines).take(STDERR_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                tracing::debug!(line = %String::from_utf8_lossy(&line).trim_end(), "MCP server")
            }
        }
    }
}
