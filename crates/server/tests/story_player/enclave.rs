//! The events that enclave's readers receive for a plot, without ids and times. The caller answers according to the
//! plot.

use super::plot::Caller;
use super::{Plot, Server};
use engine::{Clock, Engine, ExecutionStart};
use futures_util::StreamExt as _;
use lifecycle::{
    CallOutcome, CallRules, CallerName, CallerRuns, CodeDialect, ExecutionId, Failure, FailureCode,
    Json, LimitKind, Seq,
};
use protocols::enclave::{
    EnclaveEvent, EnclaveEventKind, EnclaveSessionId, EnclaveSessionRecord, EventRenderer,
    execution_of, inbound, parse_call_name,
};
use serde_json::{Value, json};

/// Plays the plot and returns the transcript.
pub(crate) async fn tell(plot: &Plot) -> String {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(plot, 1, folder.path(), Clock::system()).await;
    let mut body = plot.session.clone();
    body["code"] = plot.program.source.clone().into();
    let create = inbound::create(body.to_string().as_bytes()).unwrap();
    let (session, caller) =
        (EnclaveSessionId::parse("s_story").unwrap(), CallerName("teller".into()));
    let note = Some(EnclaveSessionRecord::new(&session, create.heartbeat_ms).json());
    let caller_runs = create.caller_runs.unwrap_or(CallerRuns::Anything);
    let terms =
        CallRules { caller_runs, codes: CodeDialect::Enclave, note, ..CallRules::default() };
    let execution = execution_of(&caller, &session);
    let start = ExecutionStart { program: create.program, caller, limits: create.limits };
    server.engine.submit_as(execution, start, terms).await.unwrap();
    let mut telling = EventRenderer::new(execution);
    let mut entries = server.engine.follow(execution, Seq(0));
    let mut said = String::new();
    while let Some(entry) = entries.next().await {
        for told in telling.handle_entry(&entry.unwrap()) {
            let event = event(&told, &session);
            if told.kind == EnclaveEventKind::ToolCall {
                answer(&server.engine, execution, plot, &event).await;
            }
            said.push_str(&line(event));
        }
    }
    server.stop().await;
    said
}

fn event(told: &EnclaveEvent, session: &EnclaveSessionId) -> Value {
    let mut line = vec![];
    told.write(session, &mut line);
    serde_json::from_slice(&line).unwrap()
}

async fn answer(engine: &Engine, execution: ExecutionId, plot: &Plot, event: &Value) {
    let payload = &event["payload"];
    let (_, call) = parse_call_name(payload["callId"].as_str().unwrap()).unwrap();
    let name = payload["toolName"].as_str().unwrap();
    let outcome = match plot.callers.get(name) {
        None => return, // the server's own, or never answered
        Some(Caller::Returns(value)) => {
            CallOutcome::Returned { value: Some(Json::parse(value.clone()).unwrap()) }
        }
        Some(Caller::Fails { code, message }) => {
            let mut failure = Failure::new(FailureCode::Tool, message);
            failure.details = Json::from_value(&json!({ "code": code })).ok();
            CallOutcome::Failed(failure)
        }
        // As the door does when its readers have been absent for too long.
        Some(Caller::Leaves) => {
            return engine.expire(execution, LimitKind::Grace).await.unwrap();
        }
        Some(Caller::WaitsForLife | Caller::Adds(_)) => {
            panic!("only a stream tells what becomes of that")
        }
        Some(Caller::Cancels(reason)) => {
            let (by, reason) = (CallerName("teller".into()), Some(reason.clone()));
            return engine.cancel_because(execution, by, reason).await.unwrap();
        }
    };
    engine.settle_call(execution, call, outcome).await.unwrap();
}

/// One line of the transcript, without the values that vary between runs.
pub(super) fn line(mut event: Value) -> String {
    let payload = &mut event["payload"];
    if let Some(call) = payload["callId"].as_str().and_then(|call| call.rsplit_once('-')) {
        payload["callId"] = format!("c_{}", call.1).into();
    }
    for name in ["expiresAt", "elapsedMs", "ts", "version"] {
        if payload.get(name).is_some() {
            payload[name] = "…".into();
        }
    }
    let is_good = payload["ok"] == true;
    if let Some(stats) = payload.get_mut("stats") {
        (stats["durationMs"], stats["duration"]) = ("…".into(), "…".into());
        // The count of a killed program is approximate.
        if !is_good {
            stats["iterationCount"] = "…".into();
        }
    }
    if let Some(error) = payload.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("stack");
    }
    format!("{} {} {}\n", event["seq"], event["type"].as_str().unwrap(), event["payload"])
}
