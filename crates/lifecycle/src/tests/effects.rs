//! The effects that each event requires, its durability level, and whether the guest receives it.

use super::*;

const CALL: CallId = CallId(1);
const TIMER: TimerId = TimerId(1);

/// A row of the table: the expected properties of an event.
#[derive(Debug, PartialEq, Eq)]
struct EventTraits {
    effect: Option<Effect>,
    can_wait: bool,
    is_input: bool,
    strength: WriteStrength,
}

fn question() -> Question {
    let id = QuestionId::from_uuid(Uuid::nil());
    form("?").question(id, CALL, &RandomSeed([7; 32]))
}

fn answered() -> Event {
    let question = question().id;
    let (role, remember, arguments) = (AnswerRole::Person, false, None);
    Event::CallAnswered { question, call: CALL, answer: yes(), by: me(), role, remember, arguments }
}

fn started() -> Event {
    let program = Program { source: "1".into(), convention: ValueConvention::LastExpression };
    let (limits, seed, terms) = (ExecutionLimits::default(), RandomSeed([7; 32]), Box::default());
    Event::Started { program, caller: me(), limits, seed, terms }
}

/// Returns every event with its expected properties.
fn table() -> Vec<(Event, EventTraits)> {
    use WriteStrength::{Synced, Written};
    let mark = OutputMark::default();
    let outcome = CallOutcome::Returned { value: None };
    let made = Event::CallMade {
        call: CALL,
        tool: tool("a"),
        args: json("1"),
        nature: READS,
        line: None,
        alias: None,
    };
    let logged = Event::Logged { mark, level: LogLevel::Log, line: "a".into() };
    let deferred = Event::CallDeferred { call: CALL };
    let admitted = Event::CallAdmitted { call: CALL, nature: READS, revision: None };
    let prepared = PreparedProgram { text: None, prelude: 1, fingerprint: "f".into() };
    let end = ExecutionOutcome::Completed { value: None };
    let row = |event, effect, can_wait, is_input, strength| {
        (event, EventTraits { effect, can_wait, is_input, strength })
    };
    vec![
        row(started(), Some(Effect::Launch), true, false, Written),
        row(Event::Prepared(prepared), None, true, false, Written),
        row(logged, None, true, false, Written),
        row(Event::Emitted { mark, item: json("1") }, None, true, false, Written),
        row(made, None, true, false, Written),
        row(Event::CallAsked(question()), None, false, false, Synced),
        row(answered(), Some(Effect::Tell(question().id)), false, false, Synced),
        row(deferred, Some(Effect::AwaitSource(CALL)), true, false, Written),
        row(admitted, None, true, false, Written),
        row(dispatched(1, 1), Some(Effect::Dispatch(CALL)), true, false, Synced),
        row(Event::CallProgressed { call: CALL, text: "a".into() }, None, true, false, Written),
        row(Event::CallSettled { call: CALL, outcome }, Some(Effect::Deliver), true, true, Synced),
        row(
            Event::TimerSet { timer: TIMER, due: Timestamp(5) },
            Some(Effect::Arm(TIMER, Timestamp(5))),
            true,
            false,
            Written,
        ),
        row(
            Event::TimerCleared { timer: TIMER },
            Some(Effect::Disarm(TIMER)),
            true,
            false,
            Written,
        ),
        row(Event::TimerFired { timer: TIMER }, Some(Effect::Deliver), true, true, Written),
        row(Event::Paused { inputs: InputIndex(0), active_ms: 1 }, None, false, false, Written),
        row(Event::RecoveryFailed { why: "it".into() }, None, false, false, Written),
        row(Event::Parked, Some(Effect::Stop), false, false, Synced),
        row(Event::EntriesMayBeLost, None, false, false, Synced),
        row(Event::Continued { by: me() }, Some(Effect::Launch), false, false, Synced),
        row(Event::LimitReached { limit: LimitKind::Cpu }, None, false, false, Written),
        row(
            Event::Finished { outcome: end, active_ms: 1, iterations: 0 },
            Some(Effect::Stop),
            false,
            false,
            Written,
        ),
    ]
}

#[test]
fn every_event_has_its_effect_and_its_strength() {
    let state = ExecutionScript::started().state;
    for (event, expected) in table() {
        let found = EventTraits {
            effect: owe(&event),
            can_wait: event.can_wait(),
            is_input: event.input().is_some(),
            strength: state.strength(&event),
        };
        assert_eq!(found, expected, "{event:?}");
        let written = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&written).unwrap(), event, "{written}");
    }
}

#[test]
fn a_call_that_only_reads_need_not_be_synced() {
    let mut script = ExecutionScript::started();
    script.call(fit(READS, false));
    script.call(fit(WRITES, false));
    for (call, strength) in
        [(1, WriteStrength::Written), (2, WriteStrength::Synced), (3, WriteStrength::Synced)]
    {
        let outcome = CallOutcome::Returned { value: None };
        let settled = Event::CallSettled { call: CallId(call), outcome };
        for event in [dispatched(call, 1), settled] {
            assert_eq!(script.state.strength(&event), strength, "{event:?}");
        }
    }
}

#[test]
fn inputs_are_outcomes_and_timers() {
    let outcome = CallOutcome::Returned { value: None };
    let settled = Event::CallSettled { call: CALL, outcome: outcome.clone() };
    assert_eq!(settled.input(), Some(GuestInput::Settled(CALL, &outcome)));
    assert_eq!(Event::TimerFired { timer: TIMER }.input(), Some(GuestInput::Fired(TIMER)));
}

#[test]
fn what_is_usual_is_left_out_of_the_journal() {
    let finished = |iterations| {
        let outcome = ExecutionOutcome::Completed { value: Some(Json::null()) };
        serde_json::to_string(&Event::Finished { outcome, active_ms: 1, iterations }).unwrap()
    };
    let end = r#"{"finished":{"outcome":{"completed":{"value":null}},"active_ms":1"#;
    assert_eq!(
        [finished(0), finished(2)],
        [format!("{end}}}}}"), format!("{end},\"iterations\":2}}}}")]
    );
    let written = serde_json::to_string(&answered()).unwrap();
    let head = r#"{"call_answered":{"question":"exec_00000000-0000-0000-0000-000000000000","call":1,"answer":{"accept":{}},"by":"me""#;
    assert_eq!(written, format!("{head}}}}}"));
    let Event::CallAnswered { question, call, answer, by, .. } = answered() else { panic!() };
    let role = AnswerRole::Client;
    let by_client =
        Event::CallAnswered { question, call, answer, by, role, remember: true, arguments: None };
    let written = serde_json::to_string(&by_client).unwrap();
    assert_eq!(written, format!(r#"{head},"as":"client","remember":true}}}}"#));
}
