//! The one task of a process's entry: starts it, answers for it, and tells the client what it does, in
//! order. It never waits for a client or for a program that does not read.

use super::ExecServer;
use super::cage;
use super::outbox::{Outbox, Reply};
use super::screen;
use super::session::{Client, Session};
use super::shared::{Shared, Viewer};
use processes::{
    End, Event, InputRoom, Output, Process, Refused, Seq, Size, SpawnError, Spec, Stream,
};
use protocols::exec_server::{
    AttachResponse, ByteChunk, Dialect, ExecOutputStream, ExecResponse, OutputMode,
    ProcessOutputChunk, ProcessSignal, ReadParams, ReadResponse, ScreenParams, TerminalSize,
    TerminateParams, TerminateResponse, WaitForParams, WaitResponse, WriteParams, WriteResponse,
    WriteStatus, closed_line, exited_line, output_line, quoted, repaint_line,
};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS, INVALID_REQUEST};
use serde_json::json;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// How long an ended process is remembered.
const REMEMBERED_TIME: Duration = Duration::from_secs(30);

/// A client that came back reads what it missed within this time; then it is not kept for it.
const MISSED_TIME: Duration = Duration::from_secs(10);

/// Ids of writes that are remembered.
const WRITE_IDS_MAX: usize = 4_096;

/// Writes that wait for a program that does not read.
const WRITES_MAX: usize = 1_024;

/// The longest that a read waits, whatever it asks for.
const WAIT_TIME_MAX: Duration = Duration::from_secs(3_600);

/// What is asked of a process.
#[derive(Debug)]
pub(super) enum Ask {
    Read(ReadParams, Reply),
    Write(WriteParams, Reply),
    Terminate(TerminateParams, Dialect, Reply),
    Signal(ProcessSignal, Reply),
    Resize(TerminalSize, Reply),
    CloseStdin(Reply),
    Wait(Option<u64>, Reply),
    WaitFor(WaitForParams, Reply),
    Screen(ScreenParams, Reply),
}

impl Ask {
    fn reply(self) -> Reply {
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

/// What a steward starts.
pub(super) struct Start {
    pub(super) process_id: String,
    pub(super) spec: Spec,
    pub(super) mode: OutputMode,
    pub(super) dialect: Dialect,
    /// Whose terminal it is, and what it is called.
    pub(super) name: Option<(String, String)>,
    pub(super) reply: Reply,
}

/// What a steward lets a client look at.
pub(super) struct Look {
    pub(super) process_id: String,
    pub(super) viewer: Viewer,
    pub(super) dialect: Dialect,
    pub(super) reply: Reply,
}

pub(super) struct Steward {
    pub(super) session: Arc<Session>,
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) started: watch::Sender<Option<Process>>,
    pub(super) tasks: TaskTracker,
}

impl Steward {
    /// Starts a process and looks after it until it is forgotten or its session ends.
    pub(super) async fn run(mut self, server: ExecServer, start: Start) {
        match server.shared.processes.spawn(&start.spec).await {
            Ok(process) => self.conduct(&server, process, start).await,
            Err(error) => {
                // The name is free again before the client hears that it failed.
                self.session.forget(&start.process_id, None);
                start.reply.fail(&not_started(&error));
                while let Some(ask) = self.asks.recv().await {
                    refuse(ask, &start.process_id);
                }
            }
        }
    }

    /// Lets a client look at a terminal that runs already.
    pub(super) async fn look(self, look: Look) {
        let Look { process_id, viewer, dialect, reply } = look;
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
        let mut desk = Desk::new(process_id, process, dialect, self.tasks.clone());
        (desk.told, desk.viewer) = (snapshot.seq, Some(viewer));
        self.attend(desk).await;
    }

    async fn conduct(self, server: &ExecServer, process: Process, start: Start) {
        let is_caged = start.spec.cage.is_some();
        let kind = if is_caged { "linuxSeccomp" } else { "none" };
        let sandbox_type = (start.dialect == Dialect::Codex || is_caged).then(|| kind.to_owned());
        start.reply.send(&ExecResponse { process_id: start.process_id.clone(), sandbox_type });
        let mut desk = Desk::new(start.process_id, process, start.dialect, self.tasks.clone());
        (desk.mode, desk.is_caged) = (start.mode, is_caged);
        if let Some((owner, name)) = start.name {
            let shared = server.shared.shareds.add(&owner, &name, desk.process.clone());
            let viewer = Viewer::new(Arc::clone(&shared), false);
            if let Some(size) = start.spec.streams.size() {
                viewer.resize(size);
            }
            desk.viewer = Some(viewer);
            self.tasks.spawn(forget_when_ended(server.clone(), shared));
        }
        self.attend(desk).await;
    }

    async fn attend(mut self, mut desk: Desk) {
        self.started.send_replace(Some(desk.process.clone()));
        let mut client = self.session.client();
        client.mark_changed();
        let mut changes = desk.process.output().changes();
        loop {
            desk.look_ahead();
            tokio::select! {
                biased;
                // First: what a client that came back asks for is told from then on.
                changed = client.changed() => {
                    if changed.is_err() { return }
                    let now = client.borrow_and_update().clone();
                    desk.attached(now);
                }
                ask = self.asks.recv() => match ask {
                    Some(ask) => desk.answer(ask),
                    None => return,
                },
                room = room(&desk.process, desk.writes.front()) => desk.write_next(room),
                room = turn(&desk) => desk.room = Some(room),
                () = changes.next() => {}
                () = at(desk.missed.map(|(at, _)| at)) => desk.stop_keeping(),
                () = at(desk.forget_at) => {
                    let own = desk.viewer.is_none().then_some(desk.process);
                    self.session.forget(&desk.process_id, own);
                    return;
                }
            }
        }
    }
}

/// All that a steward knows of a process that runs or ran.
struct Desk {
    process_id: String,
    /// The same as JSON text.
    name: String,
    process: Process,
    mode: OutputMode,
    is_caged: bool,
    /// Where the terminal has a name.
    viewer: Option<Viewer>,
    dialect: Dialect,
    outbox: Option<Outbox>,
    n_attached: u64,
    /// The last event that was told, or that a client that came back must read for itself.
    told: Seq,
    /// Room for the next event.
    room: Option<OwnedSemaphorePermit>,
    writes: VecDeque<(bytes::Bytes, bool, Reply)>,
    write_ids: VecDeque<String>,
    known_writes: HashSet<String>,
    missed: Option<(Instant, Seq)>,
    forget_at: Option<Instant>,
    tasks: TaskTracker,
}

impl Desk {
    fn new(process_id: String, process: Process, dialect: Dialect, tasks: TaskTracker) -> Self {
        Self {
            name: quoted(&process_id),
            process_id,
            process,
            mode: OutputMode::Push,
            is_caged: false,
            viewer: None,
            dialect,
            outbox: None,
            n_attached: 0,
            told: 0,
            room: None,
            writes: VecDeque::new(),
            write_ids: VecDeque::new(),
            known_writes: HashSet::new(),
            missed: None,
            forget_at: None,
            tasks,
        }
    }

    fn output(&self) -> &Arc<Output> {
        self.process.output()
    }

    /// Tells what can be told now.
    fn look_ahead(&mut self) {
        while let Some(outbox) = self.outbox.clone()
            && let Some(event) = self.next_event()
            && let Some(room) = self.room.take().or_else(|| outbox.try_room(size(&event)))
        {
            self.tell(&outbox, room, &event);
        }
        if self.forget_at.is_none() && self.output().is_closed() && self.dialect == Dialect::Codex {
            self.forget_at = Some(Instant::now() + REMEMBERED_TIME);
        }
    }

    fn tell(&mut self, outbox: &Outbox, room: OwnedSemaphorePermit, event: &Event) {
        if self.viewer.is_some() && event.seq() > self.told + 1 {
            return self.repaint(outbox, room);
        }
        let seq = event.seq();
        self.told = seq;
        let text = match event {
            Event::Output(chunk) => {
                output_line(&self.name, seq, stream(chunk.stream), &chunk.bytes)
            }
            Event::Exited { code, .. } => {
                exited_line(&self.name, seq, *code, &denied(self.output(), self.is_caged))
            }
            Event::Closed { .. } => closed_line(&self.name, seq),
        };
        // To have heard this is not to have what was missed before it.
        match self.mode == OutputMode::Push && self.missed.is_none() {
            true => outbox.tell(text, room, self.process.output(), seq),
            false => outbox.notify(text, room),
        }
    }

    /// Shows a client that was too slow what stands on the terminal now.
    fn repaint(&mut self, outbox: &Outbox, room: OwnedSemaphorePermit) {
        let shown = self.output().screen(|screen| (screen.paint(), screen.heard()));
        let Some((paint, seq)) = shown else { return };
        self.told = seq;
        outbox.notify(repaint_line(&self.name, seq, &paint), room);
    }

    /// The next event to tell. A client that reads for itself is told of the exit and the end only.
    fn next_event(&self) -> Option<Event> {
        let mut after = self.told;
        loop {
            let event = self.process.output().next_after(after)?;
            if self.mode == OutputMode::Push || !matches!(event, Event::Output(_)) {
                return Some(event);
            }
            after = event.seq();
        }
    }

    fn attached(&mut self, client: Client) {
        self.outbox = client.outbox;
        self.room = None;
        // Nobody is there who could read it in time.
        self.missed = None;
        if self.outbox.is_none() || client.n_attached == self.n_attached {
            return;
        }
        let is_back = self.n_attached > 0;
        self.n_attached = client.n_attached;
        if is_back && self.viewer.is_none() {
            // It reads what it missed; from now on it is told.
            self.told = self.output().last_seq();
            self.missed = Some((Instant::now() + MISSED_TIME, self.told));
        }
    }

    fn stop_keeping(&mut self) {
        if let Some((_, seq)) = self.missed.take()
            && self.mode == OutputMode::Push
        {
            self.output().release(seq);
        }
    }

    /// Whoever only looks changes nothing.
    fn looks_only(&self, ask: &Ask) -> bool {
        let is_read_only = self.viewer.as_ref().is_some_and(|viewer| viewer.is_read_only);
        is_read_only
            && match ask {
                Ask::Write(..) | Ask::Terminate(..) | Ask::Signal(..) => true,
                Ask::Resize(..) | Ask::CloseStdin(_) => true,
                Ask::Read(..) | Ask::Wait(..) | Ask::WaitFor(..) | Ask::Screen(..) => false,
            }
    }

    fn answer(&mut self, ask: Ask) {
        if self.looks_only(&ask) {
            let text = format!("process {} is only looked at", self.process_id);
            return ask.reply().fail(&ErrorObject::new(INVALID_REQUEST, text));
        }
        match ask {
            Ask::Read(params, reply) => self.read(params, reply),
            Ask::Write(params, reply) => self.write(params, reply),
            Ask::Terminate(params, dialect, reply) => self.terminate(&params, dialect, reply),
            Ask::Signal(signal, reply) => {
                self.process.signal(signal_of(signal));
                reply.send(&json!({}));
            }
            Ask::Resize(TerminalSize { rows, cols }, reply) => {
                let size = Size { rows, columns: cols };
                let resized = match &self.viewer {
                    Some(viewer) => {
                        viewer.resize(size);
                        Ok(())
                    }
                    None => self.process.resize(size),
                };
                reply.give(resized.map(|()| json!({})).map_err(|refused| self.refused(refused)));
            }
            Ask::CloseStdin(reply) => {
                let closed = self.process.close_input();
                reply.give(closed.map(|()| json!({})).map_err(|refused| self.refused(refused)));
            }
            Ask::Wait(wait_ms, reply) => self.wait(wait_ms, reply),
            Ask::WaitFor(params, reply) => {
                screen::wait_for(self.output(), params, &self.tasks, reply);
            }
            Ask::Screen(params, reply) => screen::show(self.output(), &params, reply),
        }
    }

    fn refused(&self, refused: Refused) -> ErrorObject {
        let id = &self.process_id;
        let message = match refused {
            Refused::Closed => format!("stdin is closed for process {id}"),
            Refused::Full => format!("too much is waiting to be read by process {id}"),
            Refused::NoTerminal => format!("process {id} has no terminal"),
        };
        ErrorObject::new(INVALID_REQUEST, message)
    }

    fn terminate(&self, params: &TerminateParams, dialect: Dialect, reply: Reply) {
        let was_running = self.output().exit_code().is_none();
        self.process.end(match params.signal {
            None => End::Kill,
            Some(signal) => End::Ask {
                signal: signal_of(signal),
                grace: Duration::from_millis(params.grace_ms.unwrap_or(GRACE_MS)),
            },
        });
        reply.send(&TerminateResponse { running: was_running || dialect == Dialect::Seed });
    }

    fn write(&mut self, params: WriteParams, reply: Reply) {
        let WriteParams { chunk, write_id, .. } = params;
        let is_seed = write_id.is_none();
        if !self.process.has_input() {
            match is_seed {
                true => reply.fail(&self.refused(Refused::Closed)),
                false => reply.send(&status(WriteStatus::StdinClosed)),
            }
            return;
        }
        if let Some(id) = write_id {
            if !self.known_writes.insert(id.clone()) {
                reply.send(&accepted(false));
                return;
            }
            self.write_ids.push_back(id);
            if self.write_ids.len() > WRITE_IDS_MAX
                && let Some(oldest) = self.write_ids.pop_front()
            {
                self.known_writes.remove(&oldest);
            }
        }
        if self.writes.len() >= WRITES_MAX {
            reply.fail(&self.refused(Refused::Full));
            return;
        }
        self.writes.push_back((chunk.0.into(), is_seed, reply));
        // Where there is room there is no need to wait for it.
        while let Some((bytes, ..)) = self.writes.front() {
            let Some(room) = self.process.try_input_room(bytes.len()) else { return };
            self.write_next(room);
        }
    }

    fn write_next(&mut self, room: InputRoom) {
        let Some((bytes, is_seed, reply)) = self.writes.pop_front() else { return };
        match self.process.write(bytes, room) {
            Ok(()) => reply.send(&accepted(is_seed)),
            Err(refused) => reply.fail(&self.refused(refused)),
        }
    }

    fn read(&mut self, params: ReadParams, reply: Reply) {
        let after = params.after_seq.unwrap_or(0);
        if self.mode == OutputMode::Pull {
            self.output().release(after);
        }
        let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(WAIT_TIME_MAX);
        let output = Arc::clone(self.output());
        if wait.is_zero() || has_news(&output, after) {
            let next = answer_read(&output, &params, self.mode, self.is_caged, reply);
            self.has_read(after, next);
            return;
        }
        self.has_read(after, after + 1);
        let (mode, is_caged) = (self.mode, self.is_caged);
        let mut changes = output.changes();
        self.tasks.spawn(async move {
            let news = async {
                while !has_news(&output, after) {
                    changes.next().await;
                }
            };
            let outbox = reply.outbox().clone();
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep(wait) => {}
                () = outbox.closed() => return,
            }
            answer_read(&output, &params, mode, is_caged, reply);
        });
    }

    /// A client that came back says what it has, and is given what is before `next`.
    fn has_read(&mut self, after: Seq, next: Seq) {
        let Some((_, last)) = self.missed else { return };
        if self.mode == OutputMode::Push {
            // It may have heard all of it, and only its sign was lost.
            self.output().release(after.min(last));
        }
        if next > last {
            self.missed = None;
        }
    }

    fn wait(&self, wait_ms: Option<u64>, reply: Reply) {
        let output = Arc::clone(self.output());
        let wait = wait_ms.map_or(WAIT_TIME_MAX, Duration::from_millis).min(WAIT_TIME_MAX);
        let mut changes = output.changes();
        self.tasks.spawn(async move {
            let end = async {
                while output.exit_code().is_none() {
                    changes.next().await;
                }
            };
            let outbox = reply.outbox().clone();
            tokio::select! {
                () = end => {}
                () = tokio::time::sleep(wait) => {}
                () = outbox.closed() => return,
            }
            let exit_code = output.exit_code();
            let exited = exit_code.is_some();
            reply.send(&WaitResponse { exited, exit_code, closed: output.is_closed() });
        });
    }
}

/// A name is free again some time after its process has ended: until then, its last words can be seen.
async fn forget_when_ended(server: ExecServer, shared: Arc<Shared>) {
    let mut changes = shared.process.output().changes();
    let ended = async {
        while !shared.process.output().is_closed() {
            changes.next().await;
        }
        tokio::time::sleep(REMEMBERED_TIME).await;
    };
    tokio::select! {
        () = ended => server.shared.shareds.forget(&shared),
        () = server.shared.stopping.cancelled() => {}
    }
}

/// How long a process that was asked to end may take unless something else is said.
const GRACE_MS: u64 = 2_000;

/// Whether a read need not wait: there is output, the end, or an exit that the reader has not seen.
fn has_news(output: &Output, after: Seq) -> bool {
    let page = output.page(after, Some(0));
    let has_new_exit = page.exited.is_some_and(|(seq, _)| seq > after);
    !page.chunks.is_empty() || page.closed.is_some() || has_new_exit
}

/// Answers with a page; the number after it.
fn answer_read(
    output: &Arc<Output>,
    params: &ReadParams,
    mode: OutputMode,
    is_caged: bool,
    reply: Reply,
) -> Seq {
    let page = output.page(params.after_seq.unwrap_or(0), params.max_bytes);
    let denied = denied(output, is_caged);
    let last = page.chunks.last().map(|chunk| chunk.seq);
    let next = page.next_seq;
    let chunk = |chunk: processes::Chunk| ProcessOutputChunk {
        seq: chunk.seq,
        stream: stream(chunk.stream),
        chunk: ByteChunk(chunk.bytes.to_vec()),
    };
    let response = ReadResponse {
        next_seq: page.next_seq,
        exited: page.exited.is_some(),
        exit_code: page.exited.map(|(_, code)| code),
        closed: page.closed.is_some(),
        failure: None,
        sandbox_denied: !denied.is_empty(),
        denied,
        dropped_bytes: page.dropped_bytes,
        first_seq: page.first_seq,
        chunks: page.chunks.into_iter().map(chunk).collect(),
    };
    match last {
        // Whoever reads for itself says with its next read that it has this one.
        Some(last) if mode == OutputMode::Push => reply.send_output(&response, output, last),
        Some(_) | None => reply.send(&response),
    }
    next
}

/// What a process was denied; nobody denies one without a cage anything.
fn denied(output: &Output, is_caged: bool) -> Vec<String> {
    if is_caged { cage::denied(output) } else { vec![] }
}

const fn accepted(is_seed: bool) -> WriteResponse {
    let accepted = if is_seed { Some(true) } else { None };
    WriteResponse { accepted, status: Some(WriteStatus::Accepted) }
}

pub(super) const fn status(status: WriteStatus) -> WriteResponse {
    WriteResponse { accepted: None, status: Some(status) }
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

/// Answers for a process that never was.
pub(super) fn refuse(ask: Ask, process_id: &str) {
    let unknown = ErrorObject::new(INVALID_REQUEST, format!("unknown process id {process_id}"));
    match ask {
        Ask::Write(params, reply) if params.write_id.is_some() => {
            reply.send(&status(WriteStatus::UnknownProcess));
        }
        Ask::Terminate(.., reply) => reply.send(&TerminateResponse { running: false }),
        Ask::Signal(_, reply) => reply.send(&json!({})),
        Ask::Read(_, reply)
        | Ask::Write(_, reply)
        | Ask::Resize(_, reply)
        | Ask::CloseStdin(reply)
        | Ask::Wait(_, reply)
        | Ask::WaitFor(_, reply)
        | Ask::Screen(_, reply) => reply.fail(&unknown),
    }
}

const fn stream(stream: Stream) -> ExecOutputStream {
    match stream {
        Stream::Stdout => ExecOutputStream::Stdout,
        Stream::Stderr => ExecOutputStream::Stderr,
        Stream::Terminal => ExecOutputStream::Pty,
    }
}

const fn signal_of(signal: ProcessSignal) -> processes::Signal {
    match signal {
        ProcessSignal::Interrupt => processes::Signal::Interrupt,
        ProcessSignal::Quit => processes::Signal::Quit,
        ProcessSignal::Terminate => processes::Signal::Terminate,
        ProcessSignal::Hangup => processes::Signal::HangUp,
        ProcessSignal::Kill => processes::Signal::Kill,
        ProcessSignal::Stop => processes::Signal::Stop,
        ProcessSignal::Continue => processes::Signal::Continue,
        ProcessSignal::User1 => processes::Signal::User1,
        ProcessSignal::User2 => processes::Signal::User2,
    }
}

/// Room for the next write; never when none waits.
async fn room(process: &Process, next: Option<&(bytes::Bytes, bool, Reply)>) -> InputRoom {
    match next {
        Some((bytes, ..)) => process.input_room(bytes.len()).await,
        None => std::future::pending().await,
    }
}

/// The process's turn to tell its next event; never when there is none or nobody to tell.
async fn turn(desk: &Desk) -> OwnedSemaphorePermit {
    match (&desk.outbox, &desk.room, desk.next_event()) {
        (Some(outbox), None, Some(event)) => outbox.room(size(&event)).await,
        _ => std::future::pending().await,
    }
}

/// What an event takes on the wire, about.
fn size(event: &Event) -> usize {
    match event {
        Event::Output(chunk) => chunk.bytes.len() / 3 * 4,
        Event::Exited { .. } | Event::Closed { .. } => 0,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
