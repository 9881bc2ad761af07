//! The one task of a process's entry: it starts the process, answers requests about it, and notifies the client in
//! order. It never waits for a client or for a program that does not read.

use super::ExecServer;
use super::input::status;
use super::outbox::RequestReply;
use super::process_view::ProcessView;
use super::session::ExecSession;
use super::shared_terminals::{NamedTerminal, TerminalViewer};
use processes::{Process, ProcessSpec, SpawnError};
use protocols::exec_server::{
    AttachResponse, ByteChunk, ExecResponse, ExecServerDialect, OutputMode, ProcessSignal,
    ReadParams, ScreenParams, TerminalSize, TerminateParams, TerminateResponse, WaitForParams,
    WriteParams, WriteStatus,
};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS, INVALID_REQUEST};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// A request to a process task.
#[derive(Debug)]
pub(super) enum ProcessRequest {
    Read(ReadParams, RequestReply),
    Write(WriteParams, RequestReply),
    Terminate(TerminateParams, ExecServerDialect, RequestReply),
    Signal(ProcessSignal, RequestReply),
    Resize(TerminalSize, RequestReply),
    CloseStdin(RequestReply),
    Wait(Option<u64>, RequestReply),
    WaitFor(WaitForParams, RequestReply),
    Screen(ScreenParams, RequestReply),
}

impl ProcessRequest {
    pub(super) fn reply(self) -> RequestReply {
        match self {
            Self::Read(_, reply)
            | Self::Write(_, reply)
            | Self::Terminate(_, _, reply)
            | Self::Signal(_, reply)
            | Self::Resize(_, reply)
            | Self::CloseStdin(reply)
            | Self::Wait(_, reply)
            | Self::WaitFor(_, reply)
            | Self::Screen(_, reply) => reply,
        }
    }
}

/// The process that a task starts.
pub(super) struct ProcessStartOrder {
    pub(super) process_id: String,
    pub(super) spec: ProcessSpec,
    pub(super) mode: OutputMode,
    pub(super) dialect: ExecServerDialect,
    /// The owner and the name of a named terminal.
    pub(super) name: Option<(String, String)>,
    /// Whether the client's own terminal answers the program's terminal queries.
    pub(super) answers_queries: bool,
    pub(super) reply: RequestReply,
}

/// A request to view a named terminal.
pub(super) struct ViewerRequest {
    pub(super) process_id: String,
    pub(super) viewer: TerminalViewer,
    pub(super) dialect: ExecServerDialect,
    /// Whether the client's own terminal answers the program's terminal queries.
    pub(super) answers_queries: bool,
    pub(super) reply: RequestReply,
}

pub(super) struct ProcessTask {
    pub(super) session: Arc<ExecSession>,
    pub(super) asks: mpsc::Receiver<ProcessRequest>,
    pub(super) started: watch::Sender<Option<Process>>,
    pub(super) tasks: TaskTracker,
    /// How long the process is retained after its end.
    pub(super) ended_time: Duration,
}

impl ProcessTask {
    /// Starts a process and serves it until it is forgotten or its session ends.
    pub(super) async fn run(mut self, server: ExecServer, start: ProcessStartOrder) {
        match server.shared.processes.spawn(&start.spec).await {
            Ok(process) => self.conduct(&server, process, start).await,
            Err(error) => {
                // The name must be free again before the client receives the failure.
                self.session.remove_process(&start.process_id, None);
                start.reply.fail(&not_started(&error));
                while let Some(ask) = self.asks.recv().await {
                    refuse(ask, &start.process_id);
                }
            }
        }
    }

    /// Serves a client that views a running terminal.
    pub(super) async fn serve_viewer(self, request: ViewerRequest) {
        let ViewerRequest { process_id, viewer, dialect, answers_queries, reply } = request;
        let process = viewer.shared.process.clone();
        let output = Arc::clone(process.output());
        let shown = output.screen(|screen| (screen.paint(), screen.snapshot(0)));
        let Some((paint, snapshot)) = shown else { return };
        reply.send(&AttachResponse {
            process_id: process_id.clone(),
            paint: ByteChunk(paint),
            seq: snapshot.seq,
            size: TerminalSize { rows: snapshot.size.rows, cols: snapshot.size.columns },
        });
        let mut view =
            ProcessView::new(process_id, process, dialect, self.tasks.clone(), self.ended_time);
        (view.told, view.viewer) = (snapshot.seq, Some(viewer));
        view.answers_queries = answers_queries;
        self.run_until_end(view).await;
    }

    async fn conduct(self, server: &ExecServer, process: Process, start: ProcessStartOrder) {
        let is_caged = start.spec.cage.is_some();
        let kind = if is_caged { "linuxSeccomp" } else { "none" };
        let sandbox_type =
            (start.dialect == ExecServerDialect::Codex || is_caged).then(|| kind.to_owned());
        start.reply.send(&ExecResponse { process_id: start.process_id.clone(), sandbox_type });
        let tasks = self.tasks.clone();
        let mut view =
            ProcessView::new(start.process_id, process, start.dialect, tasks, self.ended_time);
        (view.mode, view.is_caged) = (start.mode, is_caged);
        view.answers_queries = start.answers_queries;
        if let Some((owner, name)) = start.name {
            let shared = server.shared.terminals.add(&owner, &name, view.process.clone());
            let mut viewer = TerminalViewer::new(Arc::clone(&shared), false);
            if let Some(size) = start.spec.streams.size() {
                viewer.resize(size);
            }
            view.viewer = Some(viewer);
            self.tasks.spawn(forget_when_ended(server.clone(), shared));
        }
        self.run_until_end(view).await;
    }

    async fn run_until_end(mut self, mut view: ProcessView) {
        self.started.send_replace(Some(view.process.clone()));
        let mut client = self.session.client();
        client.mark_changed();
        let mut changes = view.process.output().changes();
        loop {
            view.look_ahead();
            tokio::select! {
                biased;
                // First, so that a returning client is notified from this point on.
                changed = client.changed() => {
                    if changed.is_err() { return }
                    let now = client.borrow_and_update().clone();
                    view.attached(now);
                }
                ask = self.asks.recv() => match ask {
                    Some(ask) => view.answer_request(ask),
                    None => return,
                },
                room = view.input.room() => view.input.go_on(room),
                room = view.turn() => view.room = Some(room),
                () = changes.next() => {}
                () = sleep_until(view.missed.map(|(at, _)| at)) => view.stop_keeping(),
                () = sleep_until(view.forget_at) => {
                    let own = view.viewer.is_none().then_some(view.process);
                    self.session.remove_process(&view.process_id, own);
                    return;
                }
            }
        }
    }
}

/// Frees the name some time after the process has ended: until then, its final output can be viewed.
async fn forget_when_ended(server: ExecServer, shared: Arc<NamedTerminal>) {
    let mut changes = shared.process.output().changes();
    let ended = async {
        while !shared.process.output().is_closed() {
            changes.next().await;
        }
        tokio::time::sleep(server.shared.retention.ended).await;
    };
    tokio::select! {
        () = ended => server.shared.terminals.remove_terminal(&shared),
        () = server.shared.stopping.cancelled() => {}
    }
}

fn not_started(error: &SpawnError) -> ErrorObject {
    let code = match error {
        SpawnError::Bad(processes::BadSpec::NoArgv) | SpawnError::Uncaged(_) => INVALID_PARAMS,
        SpawnError::Bad(_) | SpawnError::System(_) | SpawnError::Ours(_) | SpawnError::Stopping => {
            INTERNAL
        }
    };
    ErrorObject::new(code, error.to_string())
}

/// Answers a request for a process that was never started.
pub(super) fn refuse(ask: ProcessRequest, process_id: &str) {
    let unknown = ErrorObject::new(INVALID_REQUEST, format!("unknown process id {process_id}"));
    match ask {
        ProcessRequest::Write(params, reply) if params.write_id.is_some() => {
            reply.send(&status(WriteStatus::UnknownProcess));
        }
        ProcessRequest::Terminate(.., reply) => reply.send(&TerminateResponse { running: false }),
        ProcessRequest::Signal(_, reply) => reply.send(&json!({})),
        ProcessRequest::Read(_, reply)
        | ProcessRequest::Write(_, reply)
        | ProcessRequest::Resize(_, reply)
        | ProcessRequest::CloseStdin(reply)
        | ProcessRequest::Wait(_, reply)
        | ProcessRequest::WaitFor(_, reply)
        | ProcessRequest::Screen(_, reply) => reply.fail(&unknown),
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
