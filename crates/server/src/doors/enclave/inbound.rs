//! Client requests: resolves the session, opens the envelope, and passes the intent to the engine.

use super::EnclaveState;
use super::refusals::EnclaveRequestError;
use super::sessions;
use crate::auth::Caller;
use crate::query::QueryMembers;
use axum::http::{HeaderMap, StatusCode};
use engine::ExecutionStart;
use lifecycle::{
    CallRules, CallerName, CallerRuns, CodeDialect, Event, ExecutionId, ExecutionLimits, Rejection,
    Seq, ToolPath,
};
use protocols::enclave::inbound::{
    self, CallerToolResult, CreateSession, SealedMessage, SealingRequest,
};
use protocols::enclave::sealing::ServerHello;
use protocols::enclave::{EnclaveSessionId, EnclaveSessionRecord, SealingRecord, execution_of};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Starts a session; it is recorded in the journal when this returns.
pub(super) async fn start(
    door: &EnclaveState,
    caller: &CallerName,
    create: CreateSession,
) -> Result<ExecutionId, EnclaveRequestError> {
    let session = match create.session {
        Some(session) => session,
        None => EnclaveSessionId::from_uuid(sessions::uuid()?),
    };
    let mut note = EnclaveSessionRecord::new(&session, create.heartbeat_ms);
    note.sealed = seal(door, &session, create.encryption).await?;
    let aliases = aliases(door);
    // A server with tools of its own is the broker: a tool that it does not have does not exist.
    let usual = if aliases.is_empty() { CallerRuns::Anything } else { CallerRuns::Nothing };
    let terms = CallRules {
        caller_runs: create.caller_runs.unwrap_or(usual),
        aliases,
        codes: CodeDialect::Enclave,
        note: Some(note.json()),
    };
    let execution = execution_of(caller, &session);
    // Limits that a request cannot set are the server's.
    let usual = door.app.engine.limits();
    let limits = ExecutionLimits {
        memory_bytes_max: usual.memory_bytes_max,
        bytes_max: usual.bytes_max,
        ..create.limits
    };
    let start = ExecutionStart { program: create.program, caller: caller.clone(), limits };
    // A client that disconnects now has a session nevertheless: it can return to it.
    let engine = door.app.engine.clone();
    let started =
        door.app.tasks.spawn(async move { engine.submit_as(execution, start, terms).await });
    started.await.map_err(|_| Rejection::ShuttingDown).map_err(engine::Error::from)??;
    door.app.metrics.count_start();
    Ok(execution)
}

/// Aliases of tools: those that the server was started with take precedence over those in its files.
pub(super) fn aliases(door: &EnclaveState) -> BTreeMap<ToolPath, ToolPath> {
    let configured = door.app.sources.as_ref().map(|sources| sources.aliases()).unwrap_or_default();
    let mut aliases = Arc::unwrap_or_clone(configured);
    aliases.extend(door.own.aliases.clone());
    aliases
}

pub(super) async fn seal(
    door: &EnclaveState,
    session: &EnclaveSessionId,
    wanted: SealingRequest,
) -> Result<Option<SealingRecord>, EnclaveRequestError> {
    let (required, client) = match wanted {
        SealingRequest::Clear => return Ok(None),
        SealingRequest::Optional(client) => (false, client),
        SealingRequest::Required(client) => (true, client),
    };
    let (secret, identity) = (sessions::secret()?, door.own.identity().await?);
    let key_id = format!("k_{}", sessions::uuid()?);
    let hello =
        match ServerHello::answer_handshake(&client, &secret, session, &key_id, Some(&identity)) {
            Ok(hello) => hello,
            Err(_) if !required => return Ok(None),
            Err(bad) => return Err(bad.into()),
        };
    Ok(Some(SealingRecord::new(required, hello, client.client_key, &secret)))
}

/// Whether the caller had such a session, and its events are no longer retained.
pub(super) async fn is_gone(
    door: &EnclaveState,
    caller: &Caller,
    id: &str,
) -> Result<bool, EnclaveRequestError> {
    let is_theirs = EnclaveSessionId::parse(id).is_ok() || caller.sees_all();
    Ok(is_theirs && door.app.engine.was_forgotten(meant(caller, id)?).await?)
}

/// The first requested event. A text that is not a number counts as none, as in the upstream implementation.
pub(super) fn from(query: &QueryMembers, headers: &HeaderMap) -> u64 {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let from = query
        .text_member("from")
        .and_then(number)
        .or(query.text_member("fromSeq").and_then(number));
    let last = headers.get("last-event-id").and_then(|header| header.to_str().ok());
    from.or_else(|| last.and_then(number).map(|last| last.saturating_add(1))).unwrap_or(0)
}

/// A session that this caller may see.
pub(super) struct VisibleSession {
    pub(super) execution: ExecutionId,
    pub(super) owner: CallerName,
    pub(super) session: EnclaveSessionId,
    pub(super) note: EnclaveSessionRecord,
}

impl VisibleSession {
    /// Whether unencrypted messages are refused.
    pub(super) fn is_required(&self) -> bool {
        self.note.sealed.as_ref().is_some_and(|sealed| sealed.required)
    }
}

pub(super) async fn find(
    door: &EnclaveState,
    caller: &Caller,
    id: &str,
) -> Result<VisibleSession, EnclaveRequestError> {
    let execution = meant(caller, id)?;
    let first = door.app.engine.entries(execution, Seq(0), 1).await?.pop();
    let first = first.ok_or_else(|| EnclaveRequestError::not_found(id))?;
    let Event::Started { caller: owner, terms, .. } = &first.event else {
        return Err(EnclaveRequestError::not_found(id));
    };
    caller.may_see(owner, false).map_err(|denied| EnclaveRequestError::denied(denied, id))?;
    let (session, note) =
        EnclaveSessionRecord::read(terms).ok_or_else(|| EnclaveRequestError::not_found(id))?;
    Ok(VisibleSession { execution, owner: owner.clone(), session, note })
}

/// Returns the execution that a caller's session name refers to. Callers that see all sessions name them by their
/// executions.
pub(super) fn meant(caller: &Caller, id: &str) -> Result<ExecutionId, EnclaveRequestError> {
    if let Ok(execution) = id.parse::<ExecutionId>() {
        return Ok(execution);
    }
    let session = EnclaveSessionId::parse(id).map_err(|_| EnclaveRequestError::not_found(id))?;
    Ok(execution_of(&caller.name, &session))
}

pub(super) fn read_result(
    door: &EnclaveState,
    found: &VisibleSession,
    body: &[u8],
) -> Result<CallerToolResult, EnclaveRequestError> {
    match opened(door, found, body)? {
        Some(opened) => Ok(inbound::tool_result(&opened)?),
        None if found.is_required() => Err(EnclaveRequestError::in_clear()),
        None => Ok(inbound::tool_result(body)?),
    }
}

/// Returns the content of an envelope; none if the body is not an envelope.
pub(super) fn opened(
    door: &EnclaveState,
    found: &VisibleSession,
    body: &[u8],
) -> Result<Option<Vec<u8>>, EnclaveRequestError> {
    let Some(envelope) = inbound::envelope(body) else { return Ok(None) };
    let Some(sealed) = &found.note.sealed else {
        let message = "The session is not sealed, and the body is.";
        let code = "ENCRYPTION_DECRYPTION_FAILED";
        return Err(EnclaveRequestError::new(StatusCode::BAD_REQUEST, code, message));
    };
    door.own.open(found.execution, &found.session, sealed, &envelope).map(Some)
}

pub(super) async fn settle_call(
    door: &EnclaveState,
    caller: &Caller,
    found: &VisibleSession,
    result: CallerToolResult,
) -> Result<(), EnclaveRequestError> {
    let id = found.session.as_str();
    caller.may_cancel(&found.owner).map_err(|denied| EnclaveRequestError::denied(denied, id))?;
    let elsewhere = result.session.is_some_and(|session| session != found.session);
    if result.execution != found.execution || elsewhere {
        let message = format!("The call belongs to another session than {id}.");
        return Err(EnclaveRequestError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message));
    }
    Ok(door.app.engine.settle_call(found.execution, result.call, result.outcome).await?)
}

pub(super) fn read_reason(
    door: &EnclaveState,
    found: &VisibleSession,
    body: &[u8],
) -> Result<Option<String>, EnclaveRequestError> {
    if let Some(opened) = opened(door, found, body)? {
        return match inbound::message(&opened)? {
            SealedMessage::Cancel { reason } => Ok(reason),
            SealedMessage::ToolResult(_) => {
                let message = "The envelope does not contain a request to end the session.";
                Err(EnclaveRequestError::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message))
            }
        };
    }
    match inbound::cancel_reason(body) {
        Some(_) if found.is_required() => Err(EnclaveRequestError::in_clear()),
        reason => Ok(reason),
    }
}

pub(super) async fn end_session(
    door: &EnclaveState,
    caller: &Caller,
    found: &VisibleSession,
    reason: Option<String>,
) -> Result<(), EnclaveRequestError> {
    let id = found.session.as_str();
    caller.may_cancel(&found.owner).map_err(|denied| EnclaveRequestError::denied(denied, id))?;
    match door.app.engine.cancel_because(found.execution, caller.name.clone(), reason).await {
        // It is already over, as requested.
        Ok(()) | Err(engine::Error::Rejected(Rejection::AlreadyFinished)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
