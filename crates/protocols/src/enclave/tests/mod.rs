//! Journals rendered as events and filtered.

mod borders;
mod filters;
mod inbound_shapes;
mod schema;
mod telling;

use super::*;
use lifecycle::{
    CallId, CallOutcome, CallRules, CallerName, CallerRuns, Entry, Event, ExecutionLimits,
    ExecutionOutcome, Failure, FailureCode, InputIndex, Json, LimitKind, LogLevel, OutputMark,
    Program, RandomSeed, Seq, Timestamp, ToolHost, ToolNature, ToolPath, ValueConvention,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn session() -> EnclaveSessionId {
    EnclaveSessionId::parse("s_1").unwrap()
}

fn me() -> CallerName {
    CallerName("ann".into())
}

fn raw(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn started() -> Event {
    let limits = inbound::create(br#"{"code":"1"}"#).unwrap().limits;
    Event::Started {
        program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
        caller: me(),
        limits,
        seed: RandomSeed([7; 32]),
        terms: Box::new(CallRules {
            caller_runs: CallerRuns::Anything,
            note: Some(EnclaveSessionRecord::new(&session(), 5_000).json()),
            ..CallRules::default()
        }),
    }
}

fn made(n: u32, runs: ToolHost) -> Event {
    Event::CallMade {
        call: CallId(n),
        tool: ToolPath::parse("users:list").unwrap(),
        args: raw("{\n\"limit\":10}"),
        nature: ToolNature { read_only: false, runs },
        line: None,
        alias: None,
    }
}

fn returned(n: u32) -> Event {
    let outcome = CallOutcome::Returned { value: Some(raw("[1]")) };
    Event::CallSettled { call: CallId(n), outcome }
}

fn logged(level: LogLevel, line: &str) -> Event {
    Event::Logged {
        mark: OutputMark { input: InputIndex(0), ordinal: 1 },
        level,
        line: line.into(),
    }
}

fn failed(code: FailureCode, message: &str) -> ExecutionOutcome {
    ExecutionOutcome::Failed(Failure::new(code, message))
}

fn finished(outcome: ExecutionOutcome) -> Event {
    Event::Finished { outcome, active_ms: 3, iterations: 15 }
}

fn entries(events: Vec<Event>) -> Vec<Entry> {
    let entry = |(n, event)| Entry {
        seq: Seq(n as u64 + 1),
        at: Timestamp(1_704_067_200_000 + n as i64),
        event,
    };
    events.into_iter().enumerate().map(entry).collect()
}

fn told(events: Vec<Event>) -> Vec<EnclaveEvent> {
    let mut telling = EventRenderer::new(execution_of(&me(), &session()));
    entries(events).iter().flat_map(|entry| telling.handle_entry(entry)).collect()
}

fn lines(events: Vec<Event>) -> Vec<Value> {
    told(events).iter().map(line).collect()
}

fn line(told: &EnclaveEvent) -> Value {
    let mut line = Vec::new();
    told.write(&session(), &mut line);
    assert!(!line.contains(&b'\n'), "one line each");
    serde_json::from_slice(&line).unwrap()
}
