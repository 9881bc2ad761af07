//! Converts the journal to enclave's events. Their numbers are a function of the journal only.

use super::codes::{call_message, code_of, ending_of, reason_of};
use super::wire::{
    About, CatalogChanged, DeadlineExceeded, Encryption, ErrorNotice, Failed, Final, Heartbeat,
    Limits, Log, PartialResult, SessionInit, Stats, Stdout, ToolCall, ToolProgress,
    ToolResultApplied,
};
use super::{
    EnclaveEvent, EnclaveEventKind, EnclaveSessionId, EnclaveSessionRecord, call_name, iso,
};
use lifecycle::{
    CallId, CallOutcome, CallRules, Entry, Event, ExecutionId, ExecutionOutcome, Json, LimitKind,
    LogLevel, Timestamp, ToolHost, ToolNature, ToolPath,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Converts a journal, from its first entry on, to events.
#[derive(Debug, Clone)]
pub struct EventRenderer {
    execution: ExecutionId,
    session: Option<(EnclaveSessionId, EnclaveSessionRecord)>,
    seq: u64,
    started: Timestamp,
    limits: lifecycle::ExecutionLimits,
    calls: BTreeMap<CallId, PendingCall>,
    n_calls: u32,
    n_emitted: u64,
    stdout_bytes: u64,
    reached: Option<LimitKind>,
    standing: SessionStatus,
}

/// An unsettled call.
#[derive(Debug, Clone)]
struct PendingCall {
    tool: ToolPath,
    /// The catalogue's address, if the program called the tool by an alias.
    address: Option<ToolPath>,
    nature: ToolNature,
    at: Timestamp,
    told: bool,
    args: Option<Json>,
    /// The bytes of progress that it has reported.
    said_bytes: u64,
}

/// The status of a session, in enclave's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub enum SessionStatus {
    Starting,
    Running,
    WaitingForTool,
    Completed,
    Cancelled,
    Failed,
}

impl SessionStatus {
    /// The status on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::WaitingForTool => "waiting_for_tool",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Whether it is a final status.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Failed)
    }
}

impl EventRenderer {
    /// A renderer for `execution` without any entries yet.
    pub fn new(execution: ExecutionId) -> Self {
        Self {
            execution,
            session: None,
            seq: 0,
            started: Timestamp(0),
            limits: lifecycle::ExecutionLimits::default(),
            calls: BTreeMap::new(),
            n_calls: 0,
            n_emitted: 0,
            stdout_bytes: 0,
            reached: None,
            standing: SessionStatus::Starting,
        }
    }

    /// The session's name and note; `None` before the first entry, and for executions of other doors.
    pub fn session(&self) -> Option<&(EnclaveSessionId, EnclaveSessionRecord)> {
        self.session.as_ref()
    }

    /// The number of the last event.
    pub const fn last(&self) -> u64 {
        self.seq
    }

    /// The status of the session.
    pub fn standing(&self) -> SessionStatus {
        let waits = |made: &PendingCall| made.told && made.nature.runs == ToolHost::AtCaller;
        match self.standing {
            SessionStatus::Running if self.calls.values().any(waits) => {
                SessionStatus::WaitingForTool
            }
            SessionStatus::Starting
            | SessionStatus::Running
            | SessionStatus::WaitingForTool
            | SessionStatus::Completed
            | SessionStatus::Cancelled
            | SessionStatus::Failed => self.standing,
        }
    }

    /// When it began, and its deadline.
    pub fn span(&self) -> (Timestamp, Timestamp) {
        let ms = self.limits.active_ms_max.min(self.limits.total_ms_max);
        (self.started, self.started.after_ms(ms))
    }

    /// How many tool calls it has made.
    pub const fn n_calls(&self) -> u32 {
        self.n_calls
    }

    /// Converts the next entry to events.
    pub fn handle_entry(&mut self, entry: &Entry) -> Vec<EnclaveEvent> {
        let at = entry.at;
        match &entry.event {
            Event::Started { limits, terms, .. } => self.render_start(at, *limits, terms),
            Event::Prepared(_) => {
                self.standing = SessionStatus::Running;
                vec![]
            }
            Event::Logged { level, line, .. } => vec![self.printed(at, *level, line)],
            Event::Emitted { item, .. } => {
                let path = [self.n_emitted.to_string()];
                self.n_emitted += 1;
                let payload = PartialResult { path, has_next: true, data: item };
                vec![self.render_event(at, EnclaveEventKind::PartialResult, &payload)]
            }
            Event::CallMade { call, tool, args, nature, alias, line: _ } => {
                self.made(at, *call, (tool, alias.as_ref()), args, *nature)
            }
            Event::CallAsked(question) => {
                let message = question.message.lines().next().unwrap_or_default();
                let id = Some(question.id.to_string());
                vec![self.record_call(at, "info", message, question.call, id)]
            }
            Event::CallAnswered { question, call, .. } => {
                let id = Some(question.to_string());
                vec![self.record_call(at, "info", "A person has answered.", *call, id)]
            }
            Event::CallDeferred { call } => {
                let message = "The tool's source is not available; the call waits for it.";
                vec![self.record_call(at, "info", message, *call, None)]
            }
            Event::CallAdmitted { .. } => vec![],
            Event::CallDispatched { call, .. } => self.dispatched(at, *call),
            Event::CallProgressed { call, text } => self.said(at, *call, text),
            Event::CallSettled { call, outcome } => self.settled(at, *call, outcome),
            Event::TimerSet { .. }
            | Event::TimerCleared { .. }
            | Event::TimerFired { .. }
            | Event::Paused { .. } => vec![],
            Event::RecoveryFailed { .. } => {
                let message = "The program could not be brought back at once; it is tried again.";
                vec![self.notice(at, message, "RECOVERY_FAILED", true)]
            }
            Event::Parked => {
                let message = "The program could not be brought back.";
                vec![self.notice(at, message, "PARKED", true)]
            }
            Event::EntriesMayBeLost => {
                let message = "The server lost entries of this session, or may have.";
                vec![self.notice(at, message, "ENTRIES_MAY_BE_LOST", true)]
            }
            Event::Continued { .. } => vec![],
            Event::LimitReached { limit } => self.limited(at, *limit),
            Event::Finished { outcome, iterations, .. } => self.finish(at, outcome, *iterations),
        }
    }

    /// A heartbeat. It is not in the journal and repeats the number of the last event.
    pub fn heartbeat(&self, now: Timestamp) -> EnclaveEvent {
        EnclaveEvent::new(self.seq, now, EnclaveEventKind::Heartbeat, &Heartbeat { ts: iso(now) })
    }

    /// A notification that the catalogue has changed. It repeats the number of the last event.
    pub fn catalog_changed(&self, now: Timestamp, changed: &CatalogChanged<'_>) -> EnclaveEvent {
        EnclaveEvent::new(self.seq, now, EnclaveEventKind::CatalogChanged, changed)
    }

    fn render_event(
        &mut self,
        at: Timestamp,
        kind: EnclaveEventKind,
        payload: &impl Serialize,
    ) -> EnclaveEvent {
        self.seq += 1;
        EnclaveEvent::new(self.seq, at, kind, payload)
    }

    fn render_start(
        &mut self,
        at: Timestamp,
        limits: lifecycle::ExecutionLimits,
        terms: &CallRules,
    ) -> Vec<EnclaveEvent> {
        self.session = EnclaveSessionRecord::read(terms);
        (self.started, self.limits) = (at, limits);
        let Some((session, note)) = self.session.clone() else { return vec![] };
        let hello = note.sealed.as_ref().map(|sealed| &sealed.hello);
        let payload = SessionInit {
            cancel_url: format!("/sessions/{session}/cancel"),
            replay_url: format!("/sessions/{session}/stream"),
            expires_at: iso(self.span().1),
            encryption: Encryption {
                enabled: hello.is_some(),
                key_id: hello.map(|hello| hello.key_id.as_str()),
                server_hello: hello,
            },
            limits: Limits {
                max_duration_ms: limits.active_ms_max,
                max_tool_calls: limits.calls_max,
                max_stdout_bytes: limits.log_bytes_max,
                max_tool_result_bytes: limits.result_bytes_max,
                per_tool_deadline_ms: limits.call_ms_max,
                deadline_ms: (limits.total_ms_max < super::inbound::SESSION_MS_MAX)
                    .then_some(limits.total_ms_max),
                idle_ms: (limits.idle_ms_max < u64::MAX).then_some(limits.idle_ms_max),
                grace_ms: limits.grace_ms_max,
                heartbeat_interval_ms: note.heartbeat_ms,
                max_iterations: (limits.loop_rounds_max < u64::MAX)
                    .then_some(limits.loop_rounds_max),
            },
        };
        vec![self.render_event(at, EnclaveEventKind::SessionInit, &payload)]
    }

    fn printed(&mut self, at: Timestamp, level: LogLevel, line: &str) -> EnclaveEvent {
        self.stdout_bytes += line.len() as u64;
        let level = match level {
            LogLevel::Log => {
                let chunk = &format!("{line}\n");
                return self.render_event(
                    at,
                    EnclaveEventKind::Stdout,
                    &Stdout { chunk, data: chunk },
                );
            }
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        self.render_event(
            at,
            EnclaveEventKind::Log,
            &Log::<()> { level, message: line, data: None },
        )
    }

    #[expect(clippy::too_many_arguments, reason = "each is one member of the event")]
    fn made(
        &mut self,
        at: Timestamp,
        call: CallId,
        (tool, alias): (&ToolPath, Option<&ToolPath>),
        args: &Json,
        nature: ToolNature,
    ) -> Vec<EnclaveEvent> {
        self.n_calls += 1;
        let here = nature.runs == ToolHost::Here;
        // A caller's tool call is sent when it may run: it may need an approval first.
        let kept = (!here).then(|| args.clone());
        let said = alias.unwrap_or(tool).clone();
        let address = alias.map(|_| tool.clone());
        let told = here.then(|| self.called(at, call, (&said, address.as_ref()), args));
        let made =
            PendingCall { tool: said, address, nature, at, told: here, args: kept, said_bytes: 0 };
        self.calls.insert(call, made);
        told.into_iter().collect()
    }

    fn called(
        &mut self,
        at: Timestamp,
        call: CallId,
        (tool, address): (&ToolPath, Option<&ToolPath>),
        args: &Json,
    ) -> EnclaveEvent {
        let tool = tool.as_str();
        let call_id = call_name(self.execution, call);
        let address = address.map(ToolPath::as_str);
        self.render_event(
            at,
            EnclaveEventKind::ToolCall,
            &ToolCall { call_id, tool_name: tool, tool, address, args },
        )
    }

    fn dispatched(&mut self, at: Timestamp, call: CallId) -> Vec<EnclaveEvent> {
        let Some(made) = self.calls.get_mut(&call) else { return vec![] };
        let (tool, address) = (made.tool.clone(), made.address.clone());
        let (args, elapsed_ms) = (made.args.take(), at.ms_since(made.at));
        made.told = true;
        let called = args.map(|args| self.called(at, call, (&tool, address.as_ref()), &args));
        let phases = ["connecting", "processing"]
            .map(|phase| self.progress(at, call, phase, elapsed_ms, None));
        called.into_iter().chain(phases).collect()
    }

    /// Progress has no event in this protocol: it is sent as a log line that names the call.
    fn said(&mut self, at: Timestamp, call: CallId, text: &str) -> Vec<EnclaveEvent> {
        let Some(made) = self.calls.get_mut(&call) else { return vec![] };
        made.said_bytes += text.len() as u64;
        let (bytes, elapsed_ms) = (made.said_bytes, at.ms_since(made.at));
        vec![
            self.progress(at, call, "processing", elapsed_ms, Some(bytes)),
            self.record_call(at, "info", text, call, None),
        ]
    }

    fn settled(&mut self, at: Timestamp, call: CallId, outcome: &CallOutcome) -> Vec<EnclaveEvent> {
        let Some(made) = self.calls.remove(&call) else { return vec![] };
        let call_id = call_name(self.execution, call);
        match outcome {
            CallOutcome::Unknown => vec![],
            CallOutcome::Failed(failure) if !made.told => {
                vec![self.record_call(at, "warn", &failure.message, call, None)]
            }
            CallOutcome::Failed(failure) => {
                let (code, message) = (&code_of(failure, None), &call_message(failure));
                let error = Some(Failed { message, code, reason: None, stack: None });
                let applied = ToolResultApplied { call_id, ok: false, error };
                vec![self.render_event(at, EnclaveEventKind::ToolResultApplied, &applied)]
            }
            CallOutcome::Returned { .. } => {
                let applied = ToolResultApplied { call_id, ok: true, error: None };
                vec![self.render_event(at, EnclaveEventKind::ToolResultApplied, &applied)]
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is one member of the event")]
    fn progress(
        &mut self,
        at: Timestamp,
        call: CallId,
        phase: &'static str,
        elapsed_ms: u64,
        bytes_received: Option<u64>,
    ) -> EnclaveEvent {
        let call_id = call_name(self.execution, call);
        let payload = ToolProgress { call_id, phase, elapsed_ms, bytes_received };
        self.render_event(at, EnclaveEventKind::ToolProgress, &payload)
    }

    #[expect(clippy::too_many_arguments, reason = "each is one member of the event")]
    fn record_call(
        &mut self,
        at: Timestamp,
        level: &str,
        message: &str,
        call: CallId,
        question: Option<String>,
    ) -> EnclaveEvent {
        let about = About { call_id: call_name(self.execution, call), question };
        self.render_event(at, EnclaveEventKind::Log, &Log { level, message, data: Some(about) })
    }

    fn notice(
        &mut self,
        at: Timestamp,
        message: &str,
        code: &str,
        recoverable: bool,
    ) -> EnclaveEvent {
        self.render_event(at, EnclaveEventKind::Error, &ErrorNotice { message, code, recoverable })
    }

    fn limited(&mut self, at: Timestamp, limit: LimitKind) -> Vec<EnclaveEvent> {
        self.reached = Some(limit);
        if limit != LimitKind::Total {
            return vec![];
        }
        let budget_ms = self.limits.total_ms_max.max(1);
        let payload = DeadlineExceeded { elapsed_ms: at.ms_since(self.started), budget_ms };
        vec![self.render_event(at, EnclaveEventKind::DeadlineExceeded, &payload)]
    }

    fn finish(
        &mut self,
        at: Timestamp,
        outcome: &ExecutionOutcome,
        iterations: u64,
    ) -> Vec<EnclaveEvent> {
        let duration_ms = at.ms_since(self.started);
        let stats = Stats {
            duration_ms,
            tool_call_count: self.n_calls,
            stdout_bytes: self.stdout_bytes,
            duration: duration_ms,
            iteration_count: iterations,
        };
        let (message, code, stack) = match outcome {
            ExecutionOutcome::Completed { value } => {
                self.standing = SessionStatus::Completed;
                let payload = Final { ok: true, result: value.as_ref(), error: None, stats };
                return vec![self.render_event(at, EnclaveEventKind::Final, &payload)];
            }
            ExecutionOutcome::Failed(failure) => {
                self.standing = SessionStatus::Failed;
                let code = code_of(failure, self.reached);
                let message = ending_of(failure, self.reached, &self.limits).into_owned();
                (message, code, failure.stack.as_deref())
            }
            ExecutionOutcome::Cancelled { by, reason } => {
                self.standing = SessionStatus::Cancelled;
                let message = match reason {
                    Some(reason) => format!("The session was cancelled by {by}: {reason}"),
                    None => format!("The session was cancelled by {by}."),
                };
                (message, "SESSION_CANCELLED".into(), None)
            }
        };
        let notice = self.notice(at, &message, &code, false);
        let reason = reason_of(self.reached);
        let error = Some(Failed { message: &message, code: &code, reason, stack });
        let ended = self.render_event(
            at,
            EnclaveEventKind::Final,
            &Final { ok: false, result: None, error, stats },
        );
        vec![notice, ended]
    }
}
