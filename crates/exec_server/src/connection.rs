//! One client: the handshake, then requests. Each request is dispatched to its handler; nothing here waits for an
//! answer, so that no request delays those behind it.

use super::outbox::{ClientOutbox, RequestReply, UnacknowledgedOutput};
use super::process_task::{ProcessRequest, ProcessStartOrder, ProcessTask, ViewerRequest, refuse};
use super::session::{ExecSession, NotResumed, PROCESSES_MAX, SessionProcess};
use super::shared_terminals::{TerminalViewer, size_of};
use super::spec::spec;
use super::{
    DialectChoice, ExecServer, cage, environment, environment_config, files, http, watch_missing,
};
use protocols::exec_server::{
    AttachParams, ExecParams, ExecServerDialect, ExecServerRequest, InitializeParams,
    InitializeResponse, ListResponse, ListedProcess, NOBODY, OutputMode, SESSION_ATTACHED,
    TerminalsResponse, family, has_too_many_values, read,
};
use protocols::json_rpc::{
    self, ErrorObject, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcMessage,
};
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use transport::{CLOSE_TIME_MAX, IncomingMessage, MessageReader, MessageWriter};

/// How long processes may take to exit after their connection closes.
const DYING_TIME_MAX: Duration = Duration::from_secs(2);

/// The lifetime of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessLifetime {
    /// They end with the connection; there is no second one.
    OfTheConnection,
    /// They survive a disconnect, because current clients may reconnect.
    OfTheSession,
}

/// The client at the other end of a connection.
pub(super) struct ClientInfo {
    /// The owner whose named terminals the client can see.
    pub(super) owner: String,
    pub(super) life: ProcessLifetime,
}

/// Serves one client until it leaves or `ended` resolves.
pub(super) async fn serve(
    server: &ExecServer,
    ClientInfo { owner, life }: ClientInfo,
    mut reader: impl MessageReader,
    writer: impl MessageWriter + 'static,
    ended: impl Future<Output = ()> + Send,
) {
    let (outbox, unsent) = ClientOutbox::new();
    let unheard = Arc::new(UnacknowledgedOutput::default());
    let is_resumable = Arc::new(AtomicBool::new(false));
    let stopping = server.shared.stopping.child_token();
    let sending = server.shared.tasks.spawn(unsent.run(
        writer,
        Arc::clone(&unheard),
        Arc::clone(&is_resumable),
        stopping.clone(),
    ));
    let files = files::FileQueue::open(&server.shared.tasks, server.shared.processes.clone());
    let mut connection = ExecConnection {
        server: server.clone(),
        owner,
        outbox,
        life,
        phase: HandshakePhase::Silent,
        dialect: ExecServerDialect::Codex,
        n_attached: 0,
        is_resumable,
        files,
        streams: http::BodyStreams::default(),
        watch: watch_missing::PathWatch::default(),
    };
    if let DialectChoice::Always(dialect) = server.shared.choice {
        connection.dialect = dialect;
    } else {
        connection.dialect = ExecServerDialect::Seed;
    }
    let _end_sending = stopping.clone().drop_guard();
    tokio::select! {
        () = connection.receive(&mut reader, &unheard, &stopping) => {}
        () = ended => {}
    }
    stopping.cancel();
    let writer = sending.await;
    let closed = async move {
        if let Ok(mut writer) = writer {
            writer.discard_unsent();
            transport::close(&mut reader, &mut writer, None, CLOSE_TIME_MAX).await;
        }
    };
    // Ending the processes does not wait for a client that does not answer.
    tokio::join!(connection.leave(), closed);
}

/// The client is gone; no further message is read from it.
struct ClientLeft;

/// The state of the handshake.
enum HandshakePhase {
    Silent,
    /// `initialize` was answered.
    Greeted(Arc<ExecSession>),
    /// `initialized` arrived.
    Talking(Arc<ExecSession>),
}

struct ExecConnection {
    server: ExecServer,
    /// The owner whose named terminals the client can see.
    owner: String,
    outbox: ClientOutbox,
    life: ProcessLifetime,
    phase: HandshakePhase,
    dialect: ExecServerDialect,
    /// The number of this attachment within its session.
    n_attached: u64,
    is_resumable: Arc<AtomicBool>,
    files: files::FileQueue,
    streams: http::BodyStreams,
    watch: watch_missing::PathWatch,
}

impl ExecConnection {
    /// Handles incoming messages until the client leaves or `stopping` resolves.
    async fn receive(
        &mut self,
        reader: &mut impl MessageReader,
        unheard: &UnacknowledgedOutput,
        stopping: &CancellationToken,
    ) {
        loop {
            let received = tokio::select! {
                received = reader.receive() => received,
                () = stopping.cancelled() => return,
                () = self.outbox.closed() => return,
            };
            let heard = match received {
                Ok(IncomingMessage::Whole(message)) => {
                    self.handle_message(&String::from_utf8_lossy(message)).await
                }
                Ok(IncomingMessage::Pong(number)) => {
                    unheard.heard(number);
                    Ok(())
                }
                // Longer messages end the connection, as codex does.
                Ok(IncomingMessage::Oversized { .. }) | Err(_) => Err(ClientLeft),
            };
            if heard.is_err() {
                return;
            }
        }
    }

    async fn handle_message(&mut self, text: &str) -> Result<(), ClientLeft> {
        let message = match has_too_many_values(text) {
            true => Err("it holds too many values".to_owned()),
            false => json_rpc::read(text),
        };
        match message {
            Ok(RpcMessage::Request { id, method, params }) => {
                let room = self.outbox.answer_room().await;
                let reply = RequestReply::new(id, self.outbox.clone(), room);
                self.request(&method, params, reply);
                Ok(())
            }
            Ok(RpcMessage::Notification { method, .. }) if method == "initialized" => self.ready(),
            Ok(RpcMessage::Notification { .. } | RpcMessage::Response { .. }) => Err(ClientLeft),
            Err(why) => {
                let room = self.outbox.answer_room().await;
                let what = match self.life {
                    ProcessLifetime::OfTheConnection => "JSON-RPC message from exec-server stdio",
                    ProcessLifetime::OfTheSession => {
                        "websocket JSON-RPC message from exec-server websocket"
                    }
                };
                let error =
                    ErrorObject::new(INVALID_REQUEST, format!("failed to parse {what}: {why}"));
                RequestReply::new(NOBODY, self.outbox.clone(), room).fail(&error);
                Ok(())
            }
        }
    }

    fn ready(&mut self) -> Result<(), ClientLeft> {
        match std::mem::replace(&mut self.phase, HandshakePhase::Silent) {
            HandshakePhase::Silent => Err(ClientLeft),
            HandshakePhase::Greeted(session) | HandshakePhase::Talking(session) => {
                self.phase = HandshakePhase::Talking(session);
                Ok(())
            }
        }
    }

    fn request(&mut self, method: &str, params: Option<&RawValue>, reply: RequestReply) {
        let Some(family) = family(method) else {
            reply.fail(&self.unknown_process(method));
            return;
        };
        if method != "initialize" {
            let missing = match &self.phase {
                HandshakePhase::Silent => Some("call initialize"),
                HandshakePhase::Greeted(_) => Some("send initialized"),
                HandshakePhase::Talking(_) => None,
            };
            if let Some(missing) = missing {
                let text = format!("client must {missing} before using {} methods", family.name());
                reply.fail(&ErrorObject::new(INVALID_REQUEST, text));
                return;
            }
        }
        match (read(method, params), &self.phase) {
            (None, _) => reply.fail(&self.unknown_process(method)),
            (Some(Err(error)), _) => reply.fail(&error),
            (Some(Ok(ExecServerRequest::Initialize(params))), _) => self.initialize(params, reply),
            (Some(Ok(request)), HandshakePhase::Talking(session)) => {
                let session = Arc::clone(session);
                self.dispatch_request(&session, request, reply);
            }
            // Handled above.
            (Some(Ok(_)), HandshakePhase::Silent | HandshakePhase::Greeted(_)) => {}
        }
    }

    fn unknown_process(&self, method: &str) -> ErrorObject {
        match self.dialect {
            ExecServerDialect::Seed => {
                ErrorObject::new(INVALID_REQUEST, format!("unknown method: {method}"))
            }
            ExecServerDialect::Codex => ErrorObject::new(
                METHOD_NOT_FOUND,
                format!("this exec-server does not implement `{method}`"),
            ),
        }
    }

    fn initialize(&mut self, params: InitializeParams, reply: RequestReply) {
        if !matches!(self.phase, HandshakePhase::Silent) {
            let text = "initialize may only be sent once per connection";
            reply.fail(&ErrorObject::new(INVALID_REQUEST, text));
            return;
        }
        if self.server.shared.choice == DialectChoice::Auto {
            let is_codex = params.resume_session_id.is_some();
            self.dialect =
                if is_codex { ExecServerDialect::Codex } else { ExecServerDialect::Seed };
        }
        let sessions = &self.server.shared.sessions;
        let session = match params.resume_session_id.flatten() {
            None => sessions.begin_session(),
            Some(id) => match sessions.resume(&id) {
                Ok(session) => session,
                Err(not) => {
                    reply.fail(&not_resumed(&id, not));
                    return;
                }
            },
        };
        let is_codex = self.dialect == ExecServerDialect::Codex;
        self.is_resumable
            .store(is_codex && self.life == ProcessLifetime::OfTheSession, Ordering::Release);
        reply.send(&InitializeResponse {
            // In the other dialect a session ends with its connection, so there is nothing to resume.
            session_id: is_codex.then(|| session.id.clone()),
            environment_info: is_codex.then(environment::info),
        });
        // The answer is sent before any output of its processes.
        self.n_attached = session.attach(&self.outbox);
        self.phase = HandshakePhase::Greeted(session);
    }

    fn dispatch_request(
        &mut self,
        session: &Arc<ExecSession>,
        request: ExecServerRequest,
        reply: RequestReply,
    ) {
        let dialect = self.dialect;
        let to_process = |id: &str, request| ask_process(session, id, request);
        match request {
            ExecServerRequest::Initialize(params) => self.initialize(params, reply),
            ExecServerRequest::ProcessStart(params) => self.start(session, params, reply),
            ExecServerRequest::ProcessRead(params) => {
                to_process(&params.process_id.clone(), ProcessRequest::Read(params, reply));
            }
            ExecServerRequest::ProcessWrite(params) => {
                let is_empty = params.write_id.as_ref().is_some_and(String::is_empty);
                if is_empty {
                    reply.fail(&ErrorObject::new(INVALID_PARAMS, "writeId must not be empty"));
                } else {
                    to_process(&params.process_id.clone(), ProcessRequest::Write(params, reply));
                }
            }
            ExecServerRequest::ProcessTerminate(params) => {
                let id = params.process_id.clone();
                to_process(&id, ProcessRequest::Terminate(params, dialect, reply));
            }
            ExecServerRequest::ProcessSignal(params) => {
                to_process(&params.process_id, ProcessRequest::Signal(params.signal, reply));
            }
            ExecServerRequest::ProcessResize(params) => {
                to_process(&params.process_id, ProcessRequest::Resize(params.size, reply));
            }
            ExecServerRequest::ProcessCloseStdin(params) => {
                to_process(&params.process_id, ProcessRequest::CloseStdin(reply));
            }
            ExecServerRequest::ProcessWait(params) => {
                to_process(&params.process_id, ProcessRequest::Wait(params.wait_ms, reply));
            }
            ExecServerRequest::ProcessWaitFor(params) => {
                to_process(&params.process_id.clone(), ProcessRequest::WaitFor(params, reply));
            }
            ExecServerRequest::ProcessScreen(params) => {
                to_process(&params.process_id.clone(), ProcessRequest::Screen(params, reply));
            }
            ExecServerRequest::ProcessAttach(params) => self.attach(session, params, reply),
            ExecServerRequest::ProcessTerminals => {
                let terminals = self.server.shared.terminals.list_terminals(&self.owner);
                reply.send(&TerminalsResponse { terminals });
            }
            ExecServerRequest::ProcessList => reply.send(&list_processes(session)),
            ExecServerRequest::EnvironmentInfo => reply.send(&environment::info()),
            ExecServerRequest::EnvironmentStatus => reply.send(&json!({"status": "ready"})),
            ExecServerRequest::EnvironmentConfig(params) => {
                environment_config::read(&self.server.shared.tasks, params, reply);
            }
            ExecServerRequest::HttpRequest(_) | ExecServerRequest::WatchMissing(_)
                if self.server.shared.imposed.is_some() =>
            {
                let text = "this exec-server keeps its processes in a sandbox and does nothing outside of it";
                reply.fail(&ErrorObject::new(INVALID_REQUEST, text));
            }
            ExecServerRequest::WatchMissing(params) => {
                self.watch.begin_watch(&self.server.shared.tasks, params, reply);
            }
            ExecServerRequest::HttpRequest(params) => {
                self.streams.request(&self.server, params, reply);
            }
            ExecServerRequest::File(request, asked) => {
                let imposed = self.server.shared.imposed.as_ref();
                match cage::of_files(imposed, asked.as_ref()) {
                    Ok(cage) => self.files.order(request, cage, reply),
                    Err(why) => reply.fail(&ErrorObject::new(INVALID_PARAMS, why)),
                }
            }
        }
    }

    fn start(&self, session: &Arc<ExecSession>, params: ExecParams, reply: RequestReply) {
        let fail =
            |reply: RequestReply, code, text: String| reply.fail(&ErrorObject::new(code, text));
        let id = params.process_id.clone();
        let mut entries = session.entries();
        if entries.contains_key(&id) {
            return fail(reply, INVALID_REQUEST, format!("process {id} already exists"));
        }
        if !session.make_room(&mut entries) {
            let text = format!("a session has {PROCESSES_MAX} processes at most");
            return fail(reply, INVALID_REQUEST, text);
        }
        let spec = match spec(&params, self.server.shared.imposed.as_ref()) {
            Ok(spec) => spec,
            Err(text) => return fail(reply, INVALID_PARAMS, text),
        };
        if let Some(name) = &params.name {
            let checked = match params.tty {
                true => self.server.shared.terminals.check_name(&self.owner, name),
                false => Err("only a terminal can have a name".into()),
            };
            if let Err(text) = checked {
                return fail(reply, INVALID_PARAMS, text);
            }
        }
        let is_shared = params.name.is_some();
        let (entry, task) = self.entry(session, params.tty, is_shared);
        entries.insert(id.clone(), entry);
        drop(entries);
        let mode = params.output.unwrap_or(OutputMode::Push);
        let name = params.name.map(|name| (self.owner.clone(), name));
        let start = ProcessStartOrder {
            process_id: id,
            spec,
            mode,
            dialect: self.dialect,
            name,
            answers_queries: params.answers_queries,
            reply,
        };
        self.server.shared.tasks.spawn(task.run(self.server.clone(), start));
    }

    /// Attaches a client to a named terminal as a viewer.
    fn attach(&self, session: &Arc<ExecSession>, params: AttachParams, reply: RequestReply) {
        let fail = |reply: RequestReply, text: String| {
            reply.fail(&ErrorObject::new(INVALID_REQUEST, text));
        };
        let id = params.process_id.clone();
        let mut entries = session.entries();
        if entries.contains_key(&id) {
            return fail(reply, format!("process {id} already exists"));
        }
        if !session.make_room(&mut entries) {
            return fail(reply, format!("a session has {PROCESSES_MAX} processes at most"));
        }
        let Some(shared) = self.server.shared.terminals.find(&self.owner, &params.name) else {
            return fail(reply, format!("there is no terminal {}", params.name));
        };
        let (entry, task) = self.entry(session, true, true);
        entries.insert(id.clone(), entry);
        drop(entries);
        let mut viewer = TerminalViewer::new(shared, params.read_only);
        let answers_queries = params.answers_queries && !params.read_only;
        if let Some(size) = params.size.filter(|_| !params.read_only) {
            viewer.resize(size_of(size));
        }
        let dialect = self.dialect;
        let request = ViewerRequest { process_id: id, viewer, dialect, answers_queries, reply };
        self.server.shared.tasks.spawn(task.serve_viewer(request));
    }

    /// Creates a session entry and the task that serves it.
    fn entry(
        &self,
        session: &Arc<ExecSession>,
        tty: bool,
        is_shared: bool,
    ) -> (SessionProcess, ProcessTask) {
        let (sender, asks) = mpsc::channel(super::outbox::REQUESTS_MAX);
        let (started, process) = watch::channel(None);
        let number = session.number();
        let tasks = self.server.shared.tasks.clone();
        let ended_time = self.server.shared.retention.ended;
        let task = ProcessTask { session: Arc::clone(session), asks, started, tasks, ended_time };
        (SessionProcess { asks: sender, tty, is_shared, number, process }, task)
    }

    /// Detaches from the session: its processes end now, or when the client does not return in time.
    async fn leave(self) {
        let (HandshakePhase::Greeted(session) | HandshakePhase::Talking(session)) = self.phase
        else {
            return;
        };
        let n_attached = self.n_attached;
        if !session.detach(n_attached) {
            // The client reconnected before its disconnect was noticed here.
            return;
        }
        let shared = Arc::clone(&self.server.shared);
        if self.life == ProcessLifetime::OfTheSession && self.dialect == ExecServerDialect::Codex {
            let stopping = shared.stopping.clone();
            let server = self.server.clone();
            shared.tasks.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(server.shared.retention.detached) => {}
                    () = stopping.cancelled() => {}
                }
                if session.n_attached() == n_attached {
                    server.shared.sessions.end_session(&session);
                }
            });
            return;
        }
        let processes = session.processes();
        shared.sessions.end_session(&session);
        let dying = async {
            for process in &processes {
                process.gone().await;
            }
        };
        let _ = tokio::time::timeout(DYING_TIME_MAX, dying).await;
    }
}

fn not_resumed(id: &str, not: NotResumed) -> ErrorObject {
    match not {
        NotResumed::Unknown => {
            ErrorObject::new(INVALID_REQUEST, format!("unknown session id {id}"))
        }
        NotResumed::Attached => ErrorObject::new(
            SESSION_ATTACHED,
            format!("session {id} is already attached to another connection"),
        ),
    }
}

fn ask_process(session: &ExecSession, process_id: &str, ask: ProcessRequest) {
    let refused = match session.entry(process_id) {
        None => ask,
        Some(entry) => match entry.asks.try_send(ask) {
            Ok(()) => return,
            // The process was forgotten in this moment; there are never more pending messages than requests.
            Err(mpsc::error::TrySendError::Closed(ask) | mpsc::error::TrySendError::Full(ask)) => {
                ask
            }
        },
    };
    refuse(refused, process_id);
}

fn list_processes(session: &ExecSession) -> ListResponse {
    let entries = session.entries();
    let processes = entries.iter().map(|(process_id, entry)| {
        let process = entry.process.borrow();
        let output = process.as_ref().map(processes::Process::output);
        let exit_code = output.and_then(|output| output.exit_code());
        ListedProcess {
            process_id: process_id.clone(),
            pid: process.as_ref().map(processes::Process::pid),
            tty: entry.tty,
            exited: exit_code.is_some(),
            exit_code,
            closed: output.is_some_and(|output| output.is_closed()),
            next_seq: output.map_or(1, |output| output.last_seq() + 1),
        }
    });
    ListResponse { processes: processes.collect() }
}
