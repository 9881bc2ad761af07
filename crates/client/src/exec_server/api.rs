//! The methods of a client.

use super::ExecServerError;
use super::driver::{
    ConnectionSource, DriverCommand, DriverRequest, ExecServerDriver, InitializeOptions, greet,
};
use super::events::{ExecServerEvent, ProcessEvents, ReceivedOutput};
use super::link::{self, ExecServerLink};
use crate::ServerToken;
use protocols::exec_server::{
    AttachParams, AttachResponse, ByteChunk, EnvironmentInfo, ExecParams, ExecResponse,
    ListResponse, ProcessSignal, ReadParams, ReadResponse, ScreenParams, ScreenResponse,
    TerminalSize, TerminalsResponse, TerminateParams, TerminateResponse, WaitForParams,
    WaitForResponse, WaitResponse, WriteParams, WriteResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{broadcast, mpsc, oneshot};

/// Events that are buffered for a receiver that may miss some.
const BROADCAST_MAX: usize = 256;
/// Events that are buffered for a receiver that must get each one.
const EVENTS_MAX: usize = 64;
/// Requests that wait for the driver.
const TOLD_MAX: usize = 256;

/// How a client introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecServerClientConnectOptions {
    /// The client's name in the handshake.
    pub client_name: String,
    /// The longest wait for the server's answer to `initialize`.
    pub initialize_timeout: Duration,
}

impl Default for ExecServerClientConnectOptions {
    fn default() -> Self {
        Self { client_name: "airlock".into(), initialize_timeout: Duration::from_secs(10) }
    }
}

/// The address of a server and how a client introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteExecServerConnectArgs {
    /// `ws://HOST:PORT`, with `/?token=…` where one is needed.
    pub websocket_url: String,
    /// The client's name in the handshake.
    pub client_name: String,
    /// The longest wait for the connection.
    pub connect_timeout: Duration,
    /// The longest wait for the server's answer to `initialize`.
    pub initialize_timeout: Duration,
}

impl RemoteExecServerConnectArgs {
    /// Arguments with the default timeouts.
    pub fn new(websocket_url: impl Into<String>, client_name: impl Into<String>) -> Self {
        Self {
            websocket_url: websocket_url.into(),
            client_name: client_name.into(),
            connect_timeout: Duration::from_secs(10),
            initialize_timeout: Duration::from_secs(10),
        }
    }
}

/// Parameters that start this command in this folder, over pipes and with the usual `PATH`.
pub fn exec_params(process_id: &str, argv: &[&str], cwd: &str) -> ExecParams {
    ExecParams {
        process_id: process_id.to_owned(),
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        cwd: cwd.to_owned(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]),
        tty: false,
        arg0: None,
        pipe_stdin: false,
        env_policy: None,
        size: None,
        output: None,
        name: None,
        answers_queries: false,
        sandbox: None,
        enforce_managed_network: false,
        managed_network: None,
        network_proxy: None,
    }
}

/// A client. Cheap to clone; dropping the last clone closes the connection.
#[derive(Debug, Clone)]
pub struct ExecServerClient {
    told: mpsc::Sender<DriverCommand>,
    broadcast: broadcast::Sender<ExecServerEvent>,
    writes: Arc<AtomicU64>,
    session_id: Option<String>,
}

impl ExecServerClient {
    /// Connects over the pipes of a program.
    pub async fn connect_stdio(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        options: ExecServerClientConnectOptions,
    ) -> Result<Self, ExecServerError> {
        Self::initialize(link::lines(stdout, stdin), ConnectionSource::Once, hello(options)).await
    }

    /// Connects over a WebSocket, which is opened again when the connection breaks.
    pub async fn connect_websocket(
        args: RemoteExecServerConnectArgs,
    ) -> Result<Self, ExecServerError> {
        Self::connect_websocket_with(args, None).await
    }

    /// Like `connect_websocket`, with a token that is sent in a header and not in the URL.
    pub async fn connect_websocket_with(
        args: RemoteExecServerConnectArgs,
        token: Option<ServerToken>,
    ) -> Result<Self, ExecServerError> {
        let (url, timeout) = (args.websocket_url, args.connect_timeout);
        let link = link::web_socket(&url, token.as_ref(), timeout).await?;
        let way = ConnectionSource::WebSocket { url, token, timeout };
        let hello =
            InitializeOptions { client_name: args.client_name, timeout: args.initialize_timeout };
        Self::initialize(link, way, hello).await
    }

    /// Connects to a server in this process.
    pub async fn connect_in_process(
        server: DuplexStream,
        options: ExecServerClientConnectOptions,
    ) -> Result<Self, ExecServerError> {
        let (reader, writer) = tokio::io::split(server);
        Self::initialize(link::lines(reader, writer), ConnectionSource::Once, hello(options)).await
    }

    async fn initialize(
        mut link: ExecServerLink,
        way: ConnectionSource,
        hello: InitializeOptions,
    ) -> Result<Self, ExecServerError> {
        let greeting = greet(&mut link, &hello, None).await?;
        let (sender, told) = mpsc::channel(TOLD_MAX);
        let (broadcast, _) = broadcast::channel(BROADCAST_MAX);
        let driver = ExecServerDriver {
            link,
            way,
            hello,
            session_id: greeting.session_id.clone(),
            told,
            broadcast: broadcast.clone(),
            listeners: vec![],
            heard: ReceivedOutput::default(),
            open: BTreeMap::new(),
            catching_up: BTreeMap::new(),
            next_id: 0,
        };
        #[expect(clippy::disallowed_methods, reason = "it ends with the last clone of the client")]
        tokio::spawn(driver.run());
        let (writes, session_id) = (Arc::default(), greeting.session_id);
        Ok(Self { told: sender, broadcast, writes, session_id })
    }

    /// The session's id, where the server has sessions.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Subscribes to events without back-pressure: a receiver that is 256 events behind misses the oldest.
    pub fn event_receiver(&self) -> broadcast::Receiver<ExecServerEvent> {
        self.broadcast.subscribe()
    }

    /// Subscribes to every event of the processes that are started after this call.
    pub fn events(&self) -> ProcessEvents {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        // The driver receives this before any later request; it is lost only if the driver has ended.
        let _ = self.told.try_send(DriverCommand::Listen(sender));
        ProcessEvents(events)
    }

    /// `process/start`.
    pub async fn exec(&self, params: ExecParams) -> Result<ExecResponse, ExecServerError> {
        self.call("process/start", &params, false).await
    }

    /// `process/read`.
    pub async fn read(&self, params: ReadParams) -> Result<ReadResponse, ExecServerError> {
        self.call("process/read", &params, true).await
    }

    /// `process/write`. Bytes are written once, also if the connection breaks in between.
    pub async fn write(
        &self,
        process_id: &str,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<WriteResponse, ExecServerError> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let params = WriteParams {
            process_id: process_id.to_owned(),
            chunk: ByteChunk(bytes.into()),
            write_id: Some(number.to_string()),
        };
        self.call("process/write", &params, true).await
    }

    /// `process/terminate`: kills the process and its descendants immediately.
    pub async fn terminate(&self, process_id: &str) -> Result<TerminateResponse, ExecServerError> {
        self.terminate_with(TerminateParams {
            process_id: process_id.to_owned(),
            signal: None,
            grace_ms: None,
        })
        .await
    }

    /// `process/terminate`, optionally with a signal and a grace period.
    pub async fn terminate_with(
        &self,
        params: TerminateParams,
    ) -> Result<TerminateResponse, ExecServerError> {
        self.call("process/terminate", &params, true).await
    }

    /// `process/signal`.
    pub async fn signal(
        &self,
        process_id: &str,
        signal: ProcessSignal,
    ) -> Result<(), ExecServerError> {
        let params = json!({"processId": process_id, "signal": signal});
        self.call::<_, serde_json::Value>("process/signal", &params, true).await.map(drop)
    }

    /// `process/resize`.
    pub async fn resize(
        &self,
        process_id: &str,
        size: TerminalSize,
    ) -> Result<(), ExecServerError> {
        let params = json!({"processId": process_id, "rows": size.rows, "cols": size.cols});
        self.call::<_, serde_json::Value>("process/resize", &params, true).await.map(drop)
    }

    /// `process/closeStdin`.
    pub async fn close_stdin(&self, process_id: &str) -> Result<(), ExecServerError> {
        let params = json!({"processId": process_id});
        self.call::<_, serde_json::Value>("process/closeStdin", &params, true).await.map(drop)
    }

    /// `process/wait`.
    pub async fn wait(&self, process_id: &str) -> Result<WaitResponse, ExecServerError> {
        self.call("process/wait", &json!({"processId": process_id}), true).await
    }

    /// `process/waitFor`: returns when a text is on its screen, or when its output has paused.
    pub async fn wait_for(
        &self,
        params: &WaitForParams,
    ) -> Result<WaitForResponse, ExecServerError> {
        self.call("process/waitFor", params, true).await
    }

    /// `process/screen`.
    pub async fn screen(&self, params: &ScreenParams) -> Result<ScreenResponse, ExecServerError> {
        self.call("process/screen", params, true).await
    }

    /// `process/attach`: attaches to a named terminal. Its output arrives as events, after its painted screen.
    pub async fn attach(&self, params: &AttachParams) -> Result<AttachResponse, ExecServerError> {
        self.call("process/attach", params, false).await
    }

    /// `process/terminals`: lists the named terminals.
    pub async fn terminals(&self) -> Result<TerminalsResponse, ExecServerError> {
        self.call("process/terminals", &json!({}), true).await
    }

    /// `process/list`.
    pub async fn list_processes(&self) -> Result<ListResponse, ExecServerError> {
        self.call("process/list", &json!({}), true).await
    }

    /// `environment/info`.
    pub async fn environment_info(&self) -> Result<EnvironmentInfo, ExecServerError> {
        self.call("environment/info", &json!({}), true).await
    }

    /// Any other method.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        is_repeatable: bool,
    ) -> Result<R, ExecServerError> {
        let (answer, answered) = oneshot::channel();
        let params = serde_json::to_value(params)?;
        let asked = DriverRequest { method, params, is_repeatable, answer };
        let closed = |_| ExecServerError::Closed;
        self.told.send(DriverCommand::Ask(asked)).await.map_err(closed)?;
        let raw = answered.await.map_err(|_| ExecServerError::Closed)??;
        Ok(serde_json::from_str(raw.get())?)
    }
}

fn hello(options: ExecServerClientConnectOptions) -> InitializeOptions {
    InitializeOptions { client_name: options.client_name, timeout: options.initialize_timeout }
}
