//! Parses the requests of enclave's clients, in all their variants.

use super::sealing::{ClientHello, SealedEnvelope};
use super::{EnclaveSessionId, EventFilter, parse_call_name};
use crate::executor::{BadBody, ObjectMembers, member, members};
use lifecycle::{
    ActiveClock, CallId, CallOutcome, CallerRuns, ExecutionId, ExecutionLimits, Failure,
    FailureCode, Json, Program, ToolPath, UnawaitedCalls, ValueConvention,
};
use serde_json::value::RawValue;

/// Longest life of a session, including the time that it waits for people.
pub const SESSION_MS_MAX: u64 = 24 * 3_600_000;

/// Shortest interval between two heartbeats.
const HEARTBEAT_MS_MIN: u64 = 10;

/// Limit of tool calls in one session.
const TOOL_CALLS_MAX: u64 = 10_000;

/// Limit of the bytes that one session prints, or one tool returns.
const BYTES_MAX: u64 = 16 << 20;

/// Limit of the tools that a caller declares as its own.
const CALLER_TOOLS_MAX: usize = 1_000;

/// Longest message of a failed tool: some contain a whole web page.
const FAILURE_CHARS_MAX: usize = 8_000;

/// Longest code of a failed tool.
const FAILURE_CODE_BYTES_MAX: usize = 100;

/// Why a request is refused: a code for programs, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EnclaveRefusal {
    /// A code such as `INVALID_REQUEST`.
    pub code: &'static str,
    /// The message, one sentence.
    pub message: String,
}

impl EnclaveRefusal {
    /// Creates a refusal with this code.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<BadBody> for EnclaveRefusal {
    fn from(bad: BadBody) -> Self {
        Self::new("INVALID_REQUEST", bad.to_string())
    }
}

/// A request for a new session.
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// The name that the caller chose.
    pub session: Option<EnclaveSessionId>,
    /// The program to run.
    pub program: Program,
    /// The limits of its execution.
    pub limits: ExecutionLimits,
    /// The interval of heartbeats; 0 for none.
    pub heartbeat_ms: u64,
    /// The reader's event filter.
    pub filter: Option<EventFilter>,
    /// The unknown tools that the caller runs itself, if the request lists them.
    pub caller_runs: Option<CallerRuns>,
    /// Whether and how to seal the session.
    pub encryption: SealingRequest,
}

/// The client's requirements for sealing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealingRequest {
    /// No sealing.
    Clear,
    /// Sealed if the server supports it.
    Optional(ClientHello),
    /// Refused unless the session can be sealed.
    Required(ClientHello),
}

/// Parses the body of `POST /sessions`.
pub fn create(body: &[u8]) -> Result<CreateSession, EnclaveRefusal> {
    read_create(&members(body)?)
}

fn read_create(members: &ObjectMembers<'_>) -> Result<CreateSession, EnclaveRefusal> {
    let source: String = member(members, "code", "a string")?.ok_or_else(|| {
        EnclaveRefusal::new(
            "INVALID_REQUEST",
            "The member \"code\" is missing; it is the program, a string.",
        )
    })?;
    let (limits, heartbeat_ms) = limits(members)?;
    let filter = match members.get("filter").map(|raw| raw.get()) {
        None | Some("null") => None,
        Some(text) => Some(
            EventFilter::parse(text)
                .map_err(|bad| EnclaveRefusal::new("INVALID_FILTER", bad.to_string()))?,
        ),
    };
    Ok(CreateSession {
        session: session_id(members)?,
        program: Program { source, convention: ValueConvention::LastExpression },
        limits,
        heartbeat_ms,
        filter,
        caller_runs: caller_runs(members)?,
        encryption: wanted(members)?,
    })
}

fn session_id(members: &ObjectMembers<'_>) -> Result<Option<EnclaveSessionId>, EnclaveRefusal> {
    let id: Option<String> = member(members, "sessionId", "a string")?;
    let bad = |why: super::BadSessionId| EnclaveRefusal::new("INVALID_REQUEST", format!("{why}."));
    id.map(|id| EnclaveSessionId::parse(&id).map_err(bad)).transpose()
}

/// The limits in `limits` and `config`, under all the names that clients have used.
fn limits(request: &ObjectMembers<'_>) -> Result<(ExecutionLimits, u64), EnclaveRefusal> {
    let part = |name: &str| -> Result<ObjectMembers<'_>, EnclaveRefusal> {
        match request.get(name).map(|raw| raw.get()) {
            None | Some("null") => Ok(ObjectMembers::new()),
            Some(text) => members(text.as_bytes()).map_err(|_| {
                EnclaveRefusal::new(
                    "INVALID_REQUEST",
                    format!("The member \"{name}\" must be an object."),
                )
            }),
        }
    };
    let mut said = part("limits")?;
    said.extend(part("config")?);
    let number = |names: &[&str]| -> Result<Option<u64>, EnclaveRefusal> {
        for name in names {
            let Some(n) = member::<f64>(&said, name, "a number")? else { continue };
            if !(0.0..=9e15).contains(&n) {
                let what = format!("The member \"{name}\" must be a number from 0 up, not {n}.");
                return Err(EnclaveRefusal::new("INVALID_REQUEST", what));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is between 0 and 9e15"
            )]
            return Ok(Some(n as u64));
        }
        Ok(None)
    };
    let ms = |names: &[&str], usual: u64| -> Result<u64, EnclaveRefusal> {
        Ok(number(names)?.unwrap_or(usual).clamp(1, SESSION_MS_MAX))
    };
    let duration_names = ["maxDurationMs", "maxExecutionMs", "sessionTtlMs", "timeoutMs"];
    let active_ms_max = ms(&duration_names, 30_000)?;
    let off = |n: Option<u64>| n.filter(|n| *n > 0);
    let calls = number(&["maxToolCalls"])?.unwrap_or(100).min(TOOL_CALLS_MAX);
    let heartbeat = number(&["heartbeatIntervalMs"])?.unwrap_or(5_000);
    let heartbeat =
        if heartbeat == 0 { 0 } else { heartbeat.clamp(HEARTBEAT_MS_MIN, SESSION_MS_MAX) };
    let limits = ExecutionLimits {
        active_ms_max,
        active_clock: ActiveClock::StopsForQuestions,
        // Larger than the elapsed-time limit, which is therefore reached first.
        cpu_ms_max: active_ms_max + 1_000,
        total_ms_max: off(number(&["deadlineMs"])?).unwrap_or(SESSION_MS_MAX).min(SESSION_MS_MAX),
        calls_max: u32::try_from(calls).unwrap_or(u32::MAX),
        log_bytes_max: number(&["maxStdoutBytes"])?.unwrap_or(256 << 10).min(BYTES_MAX),
        result_bytes_max: number(&["maxToolResultBytes"])?.unwrap_or(5 << 20).min(BYTES_MAX),
        call_ms_max: ms(&["perToolDeadlineMs", "toolTimeoutMs"], 30_000)?,
        idle_ms_max: off(number(&["idleMs", "idleTimeoutMs"])?).unwrap_or(u64::MAX),
        grace_ms_max: ms(&["graceMs", "gracePeriodMs"], 60_000)?,
        loop_rounds_max: number(&["maxIterations", "iterationLimit"])?.unwrap_or(u64::MAX),
        unawaited: UnawaitedCalls::Forget,
        ..ExecutionLimits::default()
    };
    Ok((limits, heartbeat))
}

/// The name in `tools` for all tools that the catalogue does not have.
const ANY_TOOL: &str = "*";

/// The unknown tools that the caller runs; `None` if the request lists none.
fn caller_runs(members: &ObjectMembers<'_>) -> Result<Option<CallerRuns>, EnclaveRefusal> {
    let Some(names) = member::<Vec<String>>(members, "tools", "an array of strings")? else {
        return Ok(None);
    };
    if names.iter().any(|name| name == ANY_TOOL) {
        return Ok(Some(CallerRuns::Anything));
    }
    let paths: Result<Vec<_>, _> = names.iter().map(|name| ToolPath::parse(name)).collect();
    match paths {
        Ok(paths) if paths.len() <= CALLER_TOOLS_MAX => Ok(Some(CallerRuns::These(paths))),
        Ok(_) => {
            let what = format!("A caller names at most {CALLER_TOOLS_MAX} tools.");
            Err(EnclaveRefusal::new("INVALID_REQUEST", what))
        }
        Err(why) => {
            let what = format!("The member \"tools\" names a tool that cannot be one: {why}.");
            Err(EnclaveRefusal::new("INVALID_REQUEST", what))
        }
    }
}

fn wanted(members: &ObjectMembers<'_>) -> Result<SealingRequest, EnclaveRefusal> {
    let refused = |message: &str| EnclaveRefusal::new("ENCRYPTION_HANDSHAKE_FAILED", message);
    let Some(raw) = members.get("encryption").filter(|raw| raw.get() != "null") else {
        return Ok(SealingRequest::Clear);
    };
    let said = crate::executor::members(raw.get().as_bytes())
        .map_err(|_| refused("The member \"encryption\" must be an object."))?;
    let mode: Option<String> = member(&said, "mode", "a string")?;
    let hello: Option<ClientHello> = match said.get("clientHello").map(|raw| raw.get()) {
        None | Some("null") => None,
        Some(text) => Some(
            serde_json::from_str(text)
                .map_err(|_| refused("The member \"clientHello\" cannot be read."))?,
        ),
    };
    match (mode.as_deref(), hello) {
        (Some("disabled"), _) | (None | Some("optional"), None) => Ok(SealingRequest::Clear),
        (None | Some("optional"), Some(hello)) => Ok(SealingRequest::Optional(hello)),
        (Some("required"), Some(hello)) => Ok(SealingRequest::Required(hello)),
        (Some("required"), None) => {
            Err(refused("Encryption is required and there is no clientHello."))
        }
        (Some(_), _) => Err(refused("An encryption mode is disabled, optional or required.")),
    }
}

/// The result of a call that the caller ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerToolResult {
    /// The session, if the message names it.
    pub session: Option<EnclaveSessionId>,
    /// The execution that made the call.
    pub execution: ExecutionId,
    /// The call's id.
    pub call: CallId,
    /// The call's outcome.
    pub outcome: CallOutcome,
}

/// Parses a tool's result in any of its three forms.
pub fn tool_result(body: &[u8]) -> Result<CallerToolResult, EnclaveRefusal> {
    read_tool_result(&members(body)?)
}

fn read_tool_result(outer: &ObjectMembers<'_>) -> Result<CallerToolResult, EnclaveRefusal> {
    let inner = match outer.get("payload") {
        Some(payload) => Some(members(payload.get().as_bytes())?),
        None => None,
    };
    let said = inner.as_ref().unwrap_or(outer);
    let name: String = member(said, "callId", "a string")?.ok_or_else(|| {
        EnclaveRefusal::new(
            "INVALID_REQUEST",
            "The member \"callId\" is missing; the tool_call has it.",
        )
    })?;
    let (execution, call) = parse_call_name(&name)
        .ok_or_else(|| EnclaveRefusal::new("NOT_FOUND", format!("There is no call {name:?}.")))?;
    let ok: Option<bool> = match member(said, "ok", "true or false")? {
        Some(ok) => Some(ok),
        None => member(said, "success", "true or false")?,
    };
    let error = said.get("error").filter(|raw| raw.get() != "null");
    let outcome = match (ok, error) {
        (Some(true), _) | (None, None) => {
            let value = said.get("result").or_else(|| said.get("value"));
            CallOutcome::Returned { value: value.map(|raw| Json::from((*raw).to_owned())) }
        }
        (Some(false) | None, error) => CallOutcome::Failed(failure(error.copied())),
    };
    Ok(CallerToolResult { session: session_id(outer)?, execution, call, outcome })
}

fn failure(error: Option<&RawValue>) -> Failure {
    let said: serde_json::Value =
        error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let message = said.as_str().or_else(|| said["message"].as_str()).unwrap_or("The tool failed.");
    let code = said["code"].as_str().filter(|code| code.len() <= FAILURE_CODE_BYTES_MAX);
    let details = code.map(|code| serde_json::json!({ "code": code }));
    Failure {
        details: details.and_then(|details| Json::from_value(&details).ok()),
        ..Failure::new(
            FailureCode::Tool,
            message.chars().take(FAILURE_CHARS_MAX).collect::<String>(),
        )
    }
}

/// Longest reason for a cancellation that is stored.
const REASON_CHARS_MAX: usize = 1_000;

/// The reason for a cancellation, if the body contains one. Other members are ignored.
pub fn cancel_reason(body: &[u8]) -> Option<String> {
    read_reason(&members(body).ok()?)
}

fn read_reason(said: &ObjectMembers<'_>) -> Option<String> {
    let inner = said.get("payload").and_then(|raw| members(raw.get().as_bytes()).ok());
    let reason = inner.as_ref().unwrap_or(said).get("reason")?;
    let reason: String = serde_json::from_str(reason.get()).ok()?;
    (!reason.is_empty()).then(|| reason.chars().take(REASON_CHARS_MAX).collect())
}

/// A client's message in a sealed envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedMessage {
    /// A tool's result.
    ToolResult(CallerToolResult),
    /// A request to end the session.
    Cancel {
        /// The reason, if given.
        reason: Option<String>,
    },
}

/// Parses the content of an envelope.
pub fn message(opened: &[u8]) -> Result<SealedMessage, EnclaveRefusal> {
    let said = members(opened)?;
    let kind: Option<String> = member(&said, "type", "a string")?;
    match kind.as_deref() {
        Some("cancel") => Ok(SealedMessage::Cancel { reason: read_reason(&said) }),
        Some(_) | None => Ok(SealedMessage::ToolResult(read_tool_result(&said)?)),
    }
}

/// Parses a body as an envelope; `None` if it is none.
pub fn envelope(body: &[u8]) -> Option<SealedEnvelope> {
    let envelope: SealedEnvelope = serde_json::from_slice(body).ok()?;
    (envelope.kind == "enc").then_some(envelope)
}

/// A frame of a client's WebSocket.
#[derive(Debug, Clone)]
pub enum SocketFrame {
    /// A request for a new session.
    Execute(Box<CreateSession>),
    /// A tool's result.
    ToolResult(CallerToolResult),
    /// A request to end a session.
    Cancel {
        /// The session's name.
        session: EnclaveSessionId,
        /// The reason, if given.
        reason: Option<String>,
    },
    /// A request for the events of an existing session, from a number on.
    Attach {
        /// The session's name.
        session: EnclaveSessionId,
        /// The first event wanted.
        from: u64,
        /// The reader's event filter.
        filter: Option<EventFilter>,
    },
    /// A ping, answered by a pong.
    Ping,
    /// A sealed envelope.
    Sealed(SealedEnvelope),
}

/// Parses one frame.
pub fn frame(text: &[u8]) -> Result<SocketFrame, EnclaveRefusal> {
    let said = members(text)?;
    let kind: Option<String> = member(&said, "type", "a string")?;
    match kind.as_deref() {
        Some("execute") => Ok(SocketFrame::Execute(Box::new(read_create(&said)?))),
        Some("tool_result" | "tool_result_submit") => {
            Ok(SocketFrame::ToolResult(read_tool_result(&said)?))
        }
        Some("cancel") => Ok(SocketFrame::Cancel {
            session: requested_session_id(&said)?,
            reason: read_reason(&said),
        }),
        Some("attach" | "subscribe") => {
            let from = member(&said, "fromSeq", "a number")?;
            let from = from.or(member(&said, "from", "a number")?).unwrap_or(1);
            let filter = match said.get("filter").map(|raw| raw.get()) {
                None | Some("null") => None,
                Some(text) => Some(
                    EventFilter::parse(text)
                        .map_err(|bad| EnclaveRefusal::new("INVALID_FILTER", bad.to_string()))?,
                ),
            };
            Ok(SocketFrame::Attach { session: requested_session_id(&said)?, from, filter })
        }
        Some("ping") => Ok(SocketFrame::Ping),
        Some("enc") => envelope(text).map(SocketFrame::Sealed).ok_or_else(|| {
            EnclaveRefusal::new("ENCRYPTION_DECRYPTION_FAILED", "The envelope cannot be read.")
        }),
        Some(other) => {
            let what = format!("There is no message of type {other:?}.");
            Err(EnclaveRefusal::new("INVALID_REQUEST", what))
        }
        None => Err(EnclaveRefusal::new("INVALID_REQUEST", "The member \"type\" is missing.")),
    }
}

fn requested_session_id(said: &ObjectMembers<'_>) -> Result<EnclaveSessionId, EnclaveRefusal> {
    session_id(said)?.ok_or_else(|| {
        EnclaveRefusal::new("INVALID_REQUEST", "The member \"sessionId\" is missing.")
    })
}
