//! exec-server: processes that a client steers. `/exec` of the server where it is enabled, and stand-alone
//! over stdio or a WebSocket of its own.

mod cage;
mod caged_files;
mod connection;
mod desk;
mod environment;
mod environment_config;
mod files;
mod http;
mod input;
mod listen;
mod outbox;
mod reading;
mod run;
mod screen;
mod session;
mod shared;
mod spec;
mod steward;
mod watch_missing;

pub use caged_files::enter_if_asked;
pub use listen::{ListenError, Listening, listen};
pub use protocols::exec_server::Dialect;
pub use run::{
    Access, BadTransport, ExecServerTransport, Options, RunError, run_main,
    run_main_with_transport, run_with,
};

use crate::app::App;
use crate::auth::{Caller, Scope};
use crate::error::Problem;
use crate::tasks::Tasks;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::HeaderMap;
use axum::http::header::ORIGIN;
use axum::response::Response;
pub use cage::imposed_cage;
use http::HttpSender;
use processes::Processes;
pub use protocols::exec_server::{Confines, PlainSandbox, Reach};
use protocols::exec_server::{FRAME_BYTES_MAX, MESSAGE_BYTES_MAX};
use session::Sessions;
use shared::Shareds;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tools::http::AddressRules;
use transport::{FrameBounds, accept_upgrade};

/// Connections at a time. Each may hold many processes.
const CONNECTIONS_MAX: usize = 256;

/// What is read of a client over a WebSocket.
const FRAME_BOUNDS: FrameBounds = FrameBounds {
    message_bytes_max: MESSAGE_BYTES_MAX,
    read_bytes_max: MESSAGE_BYTES_MAX,
    frame_bytes_max: FRAME_BYTES_MAX,
};

/// Which dialect a connection gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// What its client is seen to speak.
    #[default]
    Auto,
    /// Always this one.
    Always(Dialect),
}

/// How long a server retains what a client may still ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRetention {
    /// How long the processes of a client that was cut off wait for it to come back; then they are killed.
    pub detached: Duration,
    /// How long a process is known after its end, with the last of its output.
    pub ended: Duration,
}

impl Default for ProcessRetention {
    /// As codex 0.169 was measured: 80 s, and 65 to 95 s. Codex 0.166 had 30 s for both.
    fn default() -> Self {
        Self { detached: Duration::from_secs(80), ended: Duration::from_secs(80) }
    }
}

/// An exec-server. Cheap to clone; all clones share their sessions.
#[derive(Debug, Clone)]
pub struct ExecServer {
    shared: Arc<Shared>,
    http: Arc<HttpSender>,
}

#[derive(Debug)]
struct Shared {
    processes: Processes,
    sessions: Sessions,
    shareds: Shareds,
    choice: Choice,
    /// What every process is kept to, whatever its client asks for.
    imposed: Option<Confines>,
    retention: ProcessRetention,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
    tasks: Tasks,
}

impl ExecServer {
    /// Serves with these processes.
    pub fn new(processes: Processes, choice: Choice) -> Self {
        Self::confined(processes, choice, None)
    }

    /// The same; every process is kept to this, whatever its client asks for.
    pub fn confined(processes: Processes, choice: Choice, imposed: Option<Confines>) -> Self {
        Self::retaining(processes, choice, imposed, ProcessRetention::default())
    }

    /// The same; what a client may still ask for is retained for other times than usual.
    pub fn retaining(
        processes: Processes,
        choice: Choice,
        imposed: Option<Confines>,
        retention: ProcessRetention,
    ) -> Self {
        let (stopping, tasks) = (CancellationToken::new(), Tasks::new());
        let sessions = Sessions::default();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let shareds = Shareds::default();
        let shared = Shared {
            processes,
            sessions,
            shareds,
            choice,
            imposed,
            retention,
            places,
            stopping,
            tasks,
        };
        Self { shared: Arc::new(shared), http: Arc::default() }
    }

    /// The same with other rules about the addresses that `http/request` may reach.
    #[must_use]
    pub fn with_address_rules(self, rules: AddressRules) -> Self {
        Self { http: Arc::new(HttpSender::new(rules)), ..self }
    }

    /// The rules about the addresses that `http/request` may reach.
    pub fn address_rules(&self) -> &AddressRules {
        self.http.rules()
    }

    /// Serves one client over a stream of lines until it leaves; its processes end with it.
    pub async fn serve_lines(
        &self,
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        let (reader, writer) = transport::lines(reader, writer, MESSAGE_BYTES_MAX);
        let life = connection::Life::OfTheConnection;
        let client = connection::Client { owner: String::new(), life };
        connection::serve(self, client, reader, writer, std::future::pending()).await;
    }

    /// Both ends of a connection within this process: this one is served until the other is dropped.
    pub fn connect_in_process(&self) -> tokio::io::DuplexStream {
        /// What may lie between the two, as in a pipe.
        const BUFFER_BYTES: usize = 256 << 10;
        let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
        let server = self.clone();
        self.shared.tasks.spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            server.serve_lines(reader, writer).await;
        });
        theirs
    }

    /// Ends every connection, session and process, and returns when they are gone.
    pub async fn shutdown(&self) {
        self.shared.stopping.cancel();
        self.shared.sessions.clear();
        self.shared.shareds.clear();
        self.shared.processes.shutdown().await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Serves a client of this name until it leaves or `ended` resolves. Then its processes are retained as for any
    /// client that was cut off.
    fn open(
        &self,
        owner: String,
        upgrade: WebSocketUpgrade,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response, Problem> {
        let place = Arc::clone(&self.shared.places).try_acquire_owned();
        let place = place.map_err(|_| Problem::no_channel(CONNECTIONS_MAX))?;
        let server = self.clone();
        let token = self.shared.tasks.token();
        Ok(accept_upgrade(upgrade, FRAME_BOUNDS, async move |reader, writer| {
            let life = connection::Life::OfTheSession;
            let client = connection::Client { owner, life };
            connection::serve(&server, client, reader, writer, ended).await;
            drop((place, token));
        }))
    }
}

/// `GET /exec`: becomes a WebSocket with one JSON text per frame.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let Some(server) = &app.exec_server else { return Err(Problem::no_route("/exec")) };
    caller.may_spawn().map_err(|_| Problem::needs(Scope::Process))?;
    no_page(&headers)?;
    let owner = caller.name.0.clone();
    let watching = Arc::clone(&app);
    let ended = async move { watching.credential_end(&caller).await };
    server.open(owner, upgrade, ended)
}

/// No page has any business here, not even one of this machine.
fn no_page(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.contains_key(ORIGIN) {
        true => Err(Problem::forbidden("Web pages may not talk to an exec-server.")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_retained_is_retained_as_by_todays_codex() {
        let ProcessRetention { detached, ended } = ProcessRetention::default();
        assert_eq!(detached, Duration::from_secs(80));
        assert!((65..=95).contains(&ended.as_secs()));
    }
}
