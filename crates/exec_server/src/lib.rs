//! exec-server: lets a client run processes, access files and send HTTP requests on this machine. The crate knows no
//! socket, token or permission: a transport passes in an admitted client and the two halves of its connection.

mod cage;
mod caged_files;
mod connection;
mod environment;
mod environment_config;
mod files;
mod http;
mod input;
mod outbox;
mod process_task;
mod process_view;
mod reading;
mod screen;
mod session;
mod shared_terminals;
mod spec;
mod watch_missing;

pub use cage::imposed_cage;
pub use caged_files::enter_if_asked;
pub use protocols::exec_server::{ExecServerDialect, NetworkReach, PlainSandbox, SandboxConfines};

use http::HttpSender;
use processes::ProcessSpawner;
use protocols::exec_server::MESSAGE_BYTES_MAX;
use session::ExecSessions;
use shared_terminals::SharedTerminals;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tools::http::AddressRules;
use transport::{MessageReader, MessageWriter};

/// Maximum number of concurrent connections. Each may hold many processes.
pub const CONNECTIONS_MAX: usize = 256;

/// How the dialect of a connection is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DialectChoice {
    /// Detected from the client's messages.
    #[default]
    Auto,
    /// Always the given dialect.
    Always(ExecServerDialect),
}

/// How long a server retains state that a client may still ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRetention {
    /// How long the processes of a disconnected client wait for it to reconnect; then they are killed.
    pub detached: Duration,
    /// How long a process can be queried after its end, with its latest output.
    pub ended: Duration,
}

impl Default for ProcessRetention {
    /// Measured with codex 0.169: 80 s, and 65 to 95 s. Codex 0.166 had 30 s for both.
    fn default() -> Self {
        Self { detached: Duration::from_secs(80), ended: Duration::from_secs(80) }
    }
}

/// The configuration of a server.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The dialect that clients use.
    pub dialect: DialectChoice,
    /// The sandbox of every process, regardless of what its client requests.
    pub imposed: Option<SandboxConfines>,
    /// What is retained for clients, and for how long.
    pub retention: ProcessRetention,
    /// Which addresses `http/request` may reach.
    pub address_rules: AddressRules,
}

/// Why a client was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{CONNECTIONS_MAX} connections are open, and there is room for no more; close one")]
pub struct TooManyConnections;

/// An exec-server. Cheap to clone; all clones share their sessions.
#[derive(Debug, Clone)]
pub struct ExecServer {
    shared: Arc<ServerState>,
    http: Arc<HttpSender>,
}

#[derive(Debug)]
struct ServerState {
    processes: ProcessSpawner,
    sessions: ExecSessions,
    terminals: SharedTerminals,
    choice: DialectChoice,
    imposed: Option<SandboxConfines>,
    retention: ProcessRetention,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

/// A client's slot among the connections. Dropping it frees the slot.
#[derive(Debug)]
pub struct ConnectionPlace {
    _permit: OwnedSemaphorePermit,
    _token: TaskTrackerToken,
}

impl ExecServer {
    /// Creates a server that starts its processes with this spawner.
    pub fn new(processes: ProcessSpawner, config: Config) -> Self {
        let Config { dialect, imposed, retention, address_rules } = config;
        let shared = ServerState {
            processes,
            sessions: ExecSessions::default(),
            terminals: SharedTerminals::default(),
            choice: dialect,
            imposed,
            retention,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        Self { shared: Arc::new(shared), http: Arc::new(HttpSender::new(address_rules)) }
    }

    /// The rules about the addresses that `http/request` may reach.
    pub fn address_rules(&self) -> &AddressRules {
        self.http.rules()
    }

    /// Counts one more connection, unless the limit is reached.
    pub fn admit_client(&self) -> Result<ConnectionPlace, TooManyConnections> {
        let permit = Arc::clone(&self.shared.places).try_acquire_owned();
        let _permit = permit.map_err(|_| TooManyConnections)?;
        Ok(ConnectionPlace { _permit, _token: self.shared.tasks.token() })
    }

    /// Serves a client of `owner` until it leaves or `ended` resolves. Afterwards its processes are retained as for
    /// any disconnected client.
    pub async fn serve(
        &self,
        place: ConnectionPlace,
        owner: String,
        (reader, writer): (impl MessageReader, impl MessageWriter + 'static),
        ended: impl Future<Output = ()> + Send,
    ) {
        let life = connection::ProcessLifetime::OfTheSession;
        let client = connection::ClientInfo { owner, life };
        connection::serve(self, client, reader, writer, ended).await;
        drop(place);
    }

    /// Serves one client over a stream of lines until it leaves; its processes end with it.
    pub async fn serve_lines(
        &self,
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        let (reader, writer) = transport::lines(reader, writer, MESSAGE_BYTES_MAX);
        let life = connection::ProcessLifetime::OfTheConnection;
        let client = connection::ClientInfo { owner: String::new(), life };
        connection::serve(self, client, reader, writer, std::future::pending()).await;
    }

    /// Returns the client's end of an in-process connection, which is served until that end is dropped.
    pub fn connect_in_process(&self) -> tokio::io::DuplexStream {
        /// Maximum number of bytes buffered between the two ends, as in a pipe.
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
        self.shared.terminals.clear();
        self.shared.processes.shutdown().await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
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
