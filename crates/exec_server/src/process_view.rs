//! The state of a process task: which events were sent, which input is queued, and which requests wait for answers.

use super::input::{ProcessInput, write_refusal};
use super::outbox::{ClientOutbox, RequestReply};
use super::process_task::ProcessRequest;
use super::reading::{self, ReadManner, denied, stream};
use super::screen;
use super::session::SessionClient;
use super::shared_terminals::TerminalViewer;
use processes::{
    EndMode, OutputSeq, Process, ProcessEvent, ProcessOutput, PtySize, TerminalAnswerer,
};
use protocols::exec_server::{
    ExecServerDialect, OutputMode, ProcessSignal, ReadParams, TerminalSize, TerminateParams,
    TerminateResponse, closed_line, exited_line, output_line, quoted, repaint_line,
};
use protocols::json_rpc::{ErrorObject, INVALID_REQUEST};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// A returning client must read the output it missed within this time; then the output is released.
const MISSED_TIME: Duration = Duration::from_secs(10);

/// Grace period in which a process may exit after a termination request that names none.
const GRACE_MS: u64 = 2_000;

/// All that a process task knows about its process, running or ended.
pub(super) struct ProcessView {
    pub(super) process_id: String,
    /// The process id as JSON text.
    name: String,
    pub(super) process: Process,
    pub(super) mode: OutputMode,
    pub(super) is_caged: bool,
    /// Set if the terminal has a name.
    pub(super) viewer: Option<TerminalViewer>,
    /// Whether the client's own terminal answers the program's terminal queries.
    pub(super) answers_queries: bool,
    /// Held while it does so.
    answerer: Option<TerminalAnswerer>,
    dialect: ExecServerDialect,
    outbox: Option<ClientOutbox>,
    n_attached: u64,
    /// The last event that was sent, or that a returning client must read itself.
    pub(super) told: OutputSeq,
    /// The permit for the next event.
    pub(super) room: Option<OwnedSemaphorePermit>,
    pub(super) input: ProcessInput,
    pub(super) missed: Option<(Instant, OutputSeq)>,
    pub(super) forget_at: Option<Instant>,
    /// How long the process is retained after its end.
    ended_time: Duration,
    tasks: TaskTracker,
}

impl ProcessView {
    pub(super) fn new(
        process_id: String,
        process: Process,
        dialect: ExecServerDialect,
        tasks: TaskTracker,
        ended_time: Duration,
    ) -> Self {
        Self {
            name: quoted(&process_id),
            input: ProcessInput::new(process_id.clone(), process.clone()),
            process_id,
            process,
            mode: OutputMode::Push,
            is_caged: false,
            viewer: None,
            answers_queries: false,
            answerer: None,
            dialect,
            outbox: None,
            n_attached: 0,
            told: 0,
            room: None,
            missed: None,
            forget_at: None,
            ended_time,
            tasks,
        }
    }

    fn output(&self) -> &Arc<ProcessOutput> {
        self.process.output()
    }

    /// Sends all events that can be sent now.
    pub(super) fn look_ahead(&mut self) {
        while let Some(outbox) = self.outbox.clone()
            && let Some(event) = self.next_event()
            && let Some(room) = self.room.take().or_else(|| outbox.try_room(size(&event)))
        {
            self.send_new_output(&outbox, room, &event);
        }
        if self.forget_at.is_none()
            && self.output().is_closed()
            && self.dialect == ExecServerDialect::Codex
        {
            self.forget_at = Some(Instant::now() + self.ended_time);
        }
    }

    fn send_new_output(
        &mut self,
        outbox: &ClientOutbox,
        room: OwnedSemaphorePermit,
        event: &ProcessEvent,
    ) {
        if self.viewer.is_some() && event.seq() > self.told + 1 {
            return self.repaint(outbox, room);
        }
        let seq = event.seq();
        self.told = seq;
        let text = match event {
            ProcessEvent::Output(chunk) => {
                output_line(&self.name, seq, stream(chunk.stream), &chunk.bytes)
            }
            ProcessEvent::Exited { code, .. } => {
                exited_line(&self.name, seq, *code, &denied(self.output(), self.is_caged))
            }
            ProcessEvent::Closed { .. } => closed_line(&self.name, seq),
        };
        // Receiving this event does not imply having received the output missed before it.
        match self.mode == OutputMode::Push && self.missed.is_none() {
            true => outbox.send_text(text, room, self.process.output(), seq),
            false => outbox.notify(text, room),
        }
    }

    /// Sends the current screen to a client that was too slow.
    fn repaint(&mut self, outbox: &ClientOutbox, room: OwnedSemaphorePermit) {
        let shown = self.output().screen(|screen| (screen.paint(), screen.heard()));
        let Some((paint, seq)) = shown else { return };
        self.told = seq;
        outbox.notify(repaint_line(&self.name, seq, &paint), room);
    }

    /// The next event to send. A client that polls is only notified of the exit and the end.
    fn next_event(&self) -> Option<ProcessEvent> {
        let mut after = self.told;
        loop {
            let event = self.process.output().next_after(after)?;
            if self.mode == OutputMode::Push || !matches!(event, ProcessEvent::Output(_)) {
                return Some(event);
            }
            after = event.seq();
        }
    }

    pub(super) fn attached(&mut self, client: SessionClient) {
        self.outbox = client.outbox;
        self.room = None;
        if let Some(viewer) = &mut self.viewer {
            viewer.is_there(self.outbox.is_some());
        }
        let answers = self.answers_queries && self.outbox.is_some();
        self.answerer = answers.then(|| self.process.answered_elsewhere());
        // No client is connected that could read the missed output in time.
        self.missed = None;
        if self.outbox.is_none() || client.n_attached == self.n_attached {
            return;
        }
        let is_back = self.n_attached > 0;
        self.n_attached = client.n_attached;
        if is_back && self.viewer.is_none() {
            // The client reads what it missed; later events are sent to it.
            self.told = self.output().last_seq();
            self.missed = Some((Instant::now() + MISSED_TIME, self.told));
        }
    }

    pub(super) fn stop_keeping(&mut self) {
        if let Some((_, seq)) = self.missed.take()
            && self.mode == OutputMode::Push
        {
            self.output().release(seq);
        }
    }

    /// Whether the request comes from a read-only viewer that would change something.
    fn looks_only(&self, ask: &ProcessRequest) -> bool {
        let is_read_only = self.viewer.as_ref().is_some_and(|viewer| viewer.is_read_only);
        is_read_only
            && match ask {
                ProcessRequest::Write(..)
                | ProcessRequest::Terminate(..)
                | ProcessRequest::Signal(..) => true,
                ProcessRequest::Resize(..) | ProcessRequest::CloseStdin(_) => true,
                ProcessRequest::Read(..)
                | ProcessRequest::Wait(..)
                | ProcessRequest::WaitFor(..)
                | ProcessRequest::Screen(..) => false,
            }
    }

    pub(super) fn answer_request(&mut self, ask: ProcessRequest) {
        if self.looks_only(&ask) {
            let text = format!("process {} is only looked at", self.process_id);
            return ask.reply().fail(&ErrorObject::new(INVALID_REQUEST, text));
        }
        match ask {
            ProcessRequest::Read(params, reply) => self.read(params, reply),
            ProcessRequest::Write(params, reply) => self.input.write(params, reply),
            ProcessRequest::Terminate(params, dialect, reply) => {
                self.terminate(&params, dialect, reply)
            }
            ProcessRequest::Signal(signal, reply) => {
                self.process.signal(signal_of(signal));
                reply.send(&json!({}));
            }
            ProcessRequest::Resize(TerminalSize { rows, cols }, reply) => {
                let size = PtySize { rows, columns: cols };
                let resized = match &mut self.viewer {
                    Some(viewer) => {
                        viewer.resize(size);
                        Ok(())
                    }
                    None => self.process.resize(size),
                };
                let refused = |why| write_refusal(&self.process_id, why);
                reply.give(resized.map(|()| json!({})).map_err(refused));
            }
            ProcessRequest::CloseStdin(reply) => self.input.close(reply),
            ProcessRequest::Wait(wait_ms, reply) => {
                if let Some(reply) = reply.waiting() {
                    let output = Arc::clone(self.output());
                    self.tasks.spawn(reading::wait(output, wait_ms, reply));
                }
            }
            ProcessRequest::WaitFor(params, reply) => {
                screen::wait_for(self.output(), params, &self.tasks, reply);
            }
            ProcessRequest::Screen(params, reply) => {
                screen::screen_response(self.output(), &params, reply)
            }
        }
    }

    fn terminate(&self, params: &TerminateParams, dialect: ExecServerDialect, reply: RequestReply) {
        let was_running = self.output().exit_code().is_none();
        self.process.end_with(match params.signal {
            None => EndMode::Kill,
            Some(signal) => EndMode::Ask {
                signal: signal_of(signal),
                grace: Duration::from_millis(params.grace_ms.unwrap_or(GRACE_MS)),
            },
        });
        reply.send(&TerminateResponse {
            running: was_running || dialect == ExecServerDialect::Seed,
        });
    }

    /// Waits for the permit to send the next event; pending forever if there is no event or no client.
    pub(super) async fn turn(&self) -> OwnedSemaphorePermit {
        match (&self.outbox, &self.room, self.next_event()) {
            (Some(outbox), None, Some(event)) => outbox.room(size(&event)).await,
            _ => std::future::pending().await,
        }
    }

    fn read(&mut self, params: ReadParams, reply: RequestReply) {
        let after = params.after_seq.unwrap_or(0);
        if self.mode == OutputMode::Pull {
            self.output().release(after);
        }
        let manner = ReadManner { mode: self.mode, is_caged: self.is_caged };
        let output = Arc::clone(self.output());
        match reading::read_now(&output, &params, manner, reply) {
            Ok(next) => self.has_read(after, next),
            Err(reply) => {
                self.has_read(after, after + 1);
                if let Some(reply) = reply.waiting() {
                    self.tasks.spawn(reading::read_later(output, params, manner, reply));
                }
            }
        }
    }

    /// A returning client reports what it has received, and is sent everything before `next`.
    fn has_read(&mut self, after: OutputSeq, next: OutputSeq) {
        let Some((_, last)) = self.missed else { return };
        if self.mode == OutputMode::Push {
            // The client may have received all of it, and only the acknowledgement was lost.
            self.output().release(after.min(last));
        }
        if next > last {
            self.missed = None;
        }
    }
}

const fn signal_of(signal: ProcessSignal) -> processes::FamilySignal {
    match signal {
        ProcessSignal::Interrupt => processes::FamilySignal::Interrupt,
        ProcessSignal::Quit => processes::FamilySignal::Quit,
        ProcessSignal::Terminate => processes::FamilySignal::Terminate,
        ProcessSignal::Hangup => processes::FamilySignal::HangUp,
        ProcessSignal::Kill => processes::FamilySignal::Kill,
        ProcessSignal::Stop => processes::FamilySignal::Stop,
        ProcessSignal::Continue => processes::FamilySignal::Continue,
        ProcessSignal::User1 => processes::FamilySignal::User1,
        ProcessSignal::User2 => processes::FamilySignal::User2,
    }
}

/// Approximate size of an event on the wire.
fn size(event: &ProcessEvent) -> usize {
    match event {
        ProcessEvent::Output(chunk) => chunk.bytes.len() / 3 * 4,
        ProcessEvent::Exited { .. } | ProcessEvent::Closed { .. } => 0,
    }
}
