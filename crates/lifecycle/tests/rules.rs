//! Whatever anybody asks for, in whatever order, the rules hold.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

use lifecycle::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An intent before it is fitted to the state, so that most of them make sense when they arrive.
#[derive(Debug, Clone)]
enum Wish {
    Start { calls_max: u32, bytes_max: u64 },
    Ready(bool),
    Log { again: bool, text: u8 },
    Emit(u8),
    Call { again: bool, fit: u8, args: u8 },
    SetTimer { again: bool, delay_ms: u64 },
    ClearTimer(u32),
    Rest { behind: bool },
    Finish(bool),
    Ask { call: u32, link: bool },
    Lose { call: u32 },
    Progress { call: u32, n_bytes: u16 },
    Settle { call: u32, how: u8 },
    Fire(u32),
    Answer { which: u8, how: u8 },
    Cancel,
    Expire(u8),
    Recover,
    FailRecovery,
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        1 => (0..40u32, 0..2_000u64).prop_map(|(calls_max, bytes_max)| Wish::Start { calls_max, bytes_max }),
        2 => any::<bool>().prop_map(Wish::Ready),
        4 => (any::<bool>(), any::<u8>()).prop_map(|(again, text)| Wish::Log { again, text }),
        2 => any::<u8>().prop_map(Wish::Emit),
        12 => (prop::bool::weighted(0.2), any::<u8>(), any::<u8>())
            .prop_map(|(again, fit, args)| Wish::Call { again, fit, args }),
        4 => (prop::bool::weighted(0.2), any::<u64>())
            .prop_map(|(again, delay_ms)| Wish::SetTimer { again, delay_ms }),
        2 => (0..6u32).prop_map(Wish::ClearTimer),
        4 => any::<bool>().prop_map(|behind| Wish::Rest { behind }),
        1 => any::<bool>().prop_map(Wish::Finish),
        6 => (0..12u32, any::<bool>()).prop_map(|(call, link)| Wish::Ask { call, link }),
        2 => (0..12u32).prop_map(|call| Wish::Lose { call }),
        3 => (0..12u32, any::<u16>()).prop_map(|(call, n_bytes)| Wish::Progress { call, n_bytes }),
        8 => (0..12u32, any::<u8>()).prop_map(|(call, how)| Wish::Settle { call, how }),
        4 => (0..6u32).prop_map(Wish::Fire),
        8 => (any::<u8>(), any::<u8>()).prop_map(|(which, how)| Wish::Answer { which, how }),
        1 => Just(Wish::Cancel),
        1 => any::<u8>().prop_map(Wish::Expire),
        3 => Just(Wish::Recover),
        2 => Just(Wish::FailRecovery),
    ]
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn me() -> CallerName {
    CallerName("me".into())
}

fn admission(fit: u8) -> Admission {
    let nature = |read_only, runs| Nature { read_only, runs };
    let (nature, asks) = match fit % 6 {
        0 => return Admission::Unfit(Failure::new(FailureCode::ToolNotFound, "none")),
        1 => (nature(true, Runs::Here), false),
        2 => (nature(false, Runs::Here), false),
        3 => (nature(false, Runs::Here), true),
        4 => (nature(true, Runs::Here), true),
        _ => (nature(false, Runs::AtCaller), false),
    };
    let traits = Traits::lasting(asks);
    Admission::Fit { nature, traits, about: None, revision: edition(fit / 64) }
}

/// One of a few editions of a tool.
fn edition(n: u8) -> Option<Revision> {
    Some(Revision::of(&n.to_string()))
}

/// What the catalogue may say of a held call when its answer comes.
fn today(which: u8) -> Option<Admission> {
    match which % 5 {
        0 => None,
        1 => Some(Admission::Unfit(Failure::new(FailureCode::ToolNotFound, "gone"))),
        _ => Some(admission(which | 3)),
    }
}

fn rider(how: u8) -> Rider {
    match how {
        0..100 => Rider::Nothing,
        100..180 => Rider::Remember,
        180.. => Rider::Arguments(json(r#"{"edited":true}"#)),
    }
}

fn outcome(how: u8) -> CallOutcome {
    match how % 4 {
        0 => CallOutcome::Returned { value: None },
        1 => CallOutcome::Returned { value: Some(Json::null()) },
        2 => CallOutcome::Returned { value: Some(json(r#"{"v":1}"#)) },
        _ => CallOutcome::Failed(Failure::new(FailureCode::Tool, "boom")),
    }
}

fn answer(how: u8) -> Answer {
    let accept = |text: &str| Answer::Accept { content: Some(json(text)) };
    match how % 7 {
        0 => Answer::Decline,
        1 => Answer::Cancel,
        2 => Answer::Accept { content: None },
        3 => accept(r#"{"choice":"retry"}"#),
        4 => accept(r#"{"choice":"fail"}"#),
        5 => accept(r#"{"choice":"supply","result":[1]}"#),
        _ => accept("7"),
    }
}

fn limit(which: u8) -> LimitKind {
    match which % 3 {
        0 => LimitKind::Cpu,
        1 => LimitKind::Active,
        _ => LimitKind::Total,
    }
}

fn answering(state: &State, which: u8, how: u8) -> Intent {
    let ids: Vec<_> = state.questions.keys().copied().collect();
    let stranger = QuestionId::from_uuid(Uuid::from_u128(1));
    let question = *ids.get(usize::from(which) % (ids.len() + 1)).unwrap_or(&stranger);
    let (rider, today) = (rider(how), today(which));
    Intent::Answer { question, answer: answer(how), by: me(), rider, today }
}

fn fitted(state: &State, wish: &Wish) -> Intent {
    let mark = |again: bool| match (again, state.outputs.last()) {
        (true, Some((mark, _))) => *mark,
        (_, Some((mark, _))) if mark.input == state.inputs => {
            OutputMark { input: mark.input, ordinal: mark.ordinal + 1 }
        }
        _ => OutputMark { input: state.inputs, ordinal: 1 },
    };
    match *wish {
        Wish::Start { calls_max, bytes_max } => Intent::Start {
            program: Program { source: "1".into(), convention: Convention::LastExpression },
            caller: me(),
            limits: Limits { calls_max, bytes_max, ..Limits::default() },
            seed: Seed([7; 32]),
            terms: Box::default(),
        },
        Wish::Ready(same) => Intent::Ready(Prepared {
            text: if same { "a" } else { "b" }.into(),
            prelude: 1,
            fingerprint: "f".into(),
        }),
        Wish::Log { again, text } => {
            Intent::Log { mark: mark(again), level: LogLevel::Log, line: text.to_string() }
        }
        Wish::Emit(item) => Intent::Emit { mark: mark(false), item: json(&item.to_string()) },
        Wish::Call { again, fit, args } => Intent::Call {
            call: CallId(state.calls.len() as u32 + u32::from(!again)),
            tool: ToolPath::parse(["mail.send", "file.read"][usize::from(fit % 2)]).unwrap(),
            args: json(&args.to_string()),
            line: None,
            admission: admission(fit),
        },
        Wish::SetTimer { again, delay_ms } => Intent::SetTimer {
            timer: if again { state.timers_set } else { state.timers_set.next() },
            delay_ms,
        },
        Wish::ClearTimer(timer) => Intent::ClearTimer { timer: TimerId(timer) },
        Wish::Rest { behind } => Intent::Rest {
            inputs: InputIndex(state.inputs.0.saturating_sub(u32::from(behind))),
            active_ms: 5,
        },
        Wish::Finish(true) => Intent::Finish { result: Ok(Some(json("1"))), active_ms: 9 },
        Wish::Finish(false) => Intent::Finish {
            result: Err(Failure::new(FailureCode::Runtime, "threw")),
            active_ms: 9,
        },
        Wish::Ask { call, link } => {
            let (call, message) = (CallId(call), "?".to_owned());
            let url = "https://a.example/{state}".to_owned();
            let wish = match link {
                true => lifecycle::Wish::Link { message, url, is_prior: false },
                false => lifecycle::Wish::Form { message, schema: json("{}") },
            };
            Intent::Ask { call, wish }
        }
        Wish::Progress { call, n_bytes } => {
            Intent::Progress { call: CallId(call), text: "x".repeat(n_bytes.into()) }
        }
        Wish::Lose { call } => Intent::Lose { call: CallId(call) },
        Wish::Settle { call, how } => Intent::Settle { call: CallId(call), outcome: outcome(how) },
        Wish::Fire(timer) => Intent::Fire { timer: TimerId(timer) },
        Wish::Answer { which, how } => answering(state, which, how),
        Wish::Cancel => Intent::Cancel { by: me(), reason: None, active_ms: 3 },
        Wish::Expire(which) => Intent::Expire { limit: limit(which), active_ms: 4 },
        Wish::Recover => Intent::Recover,
        Wish::FailRecovery => Intent::FailRecovery { why: "it".into() },
    }
}

/// Lives through `wishes` after a start and returns every entry and the state that came of them.
fn live(wishes: &[Wish]) -> (Vec<Entry>, State) {
    let (mut entries, mut state) = (vec![], State::default());
    let start = Wish::Start { calls_max: 30, bytes_max: 4_000 };
    for (n, wish) in std::iter::once(&start).chain(wishes).enumerate() {
        let intent = fitted(&state, wish);
        let at = Timestamp(n as i64);
        let entropy = Uuid::from_u128((n as u128 + 2) << 64);
        let Ok(events) = decide(&state, &Policy::default(), Moment { at, entropy }, intent) else {
            continue;
        };
        for event in events {
            state.apply(at, &event);
            entries.push(Entry { seq: Seq(entries.len() as u64 + 1), at, event });
        }
    }
    (entries, state)
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    prop::collection::vec(wish(), 0..120)
}

fn n_cases() -> u32 {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 100_000 } else { 1_000 }
}

/// A call that asks: in which of two executions, of which tool in which edition, and what is answered.
#[derive(Debug, Clone, Copy)]
struct Asking {
    execution: usize,
    tool: &'static str,
    edition: u8,
    accepted: bool,
    remember: bool,
}

fn asking() -> impl Strategy<Value = Asking> {
    let tool = prop::sample::select(vec!["mail.send", "mail.drop", "mail"]);
    let answer = (prop::bool::weighted(0.8), any::<bool>());
    (0..2usize, tool, 0..3u8, answer).prop_map(|(execution, tool, edition, answer)| {
        let (accepted, remember) = (answer.0, answer.0 && answer.1);
        Asking { execution, tool, edition, accepted, remember }
    })
}

/// Makes the call in `state`, as a new server that knows the journal alone would, and answers what is
/// asked. Says whether anything was.
fn ask(state: &mut State, n: u128, asking: Asking) -> bool {
    let policy = Policy::default();
    let mut entropy = n << 64;
    let mut decided = |state: &mut State, intent: Intent| {
        entropy += 1 << 32;
        let moment = Moment { at: Timestamp(1), entropy: Uuid::from_u128(entropy) };
        let events = decide(state, &policy, moment, intent).unwrap();
        for event in &events {
            let written = serde_json::to_string(event).unwrap();
            state.apply(Timestamp(1), &serde_json::from_str(&written).unwrap());
        }
        events
    };
    let nature = Nature { read_only: false, runs: Runs::Here };
    let revision = edition(asking.edition);
    let admission = Admission::Fit { nature, traits: Traits::lasting(true), about: None, revision };
    let call = CallId(state.calls.len() as u32 + 1);
    let tool = ToolPath::parse(asking.tool).unwrap();
    let made =
        Intent::Call { call, tool, args: json("{}"), line: None, admission: admission.clone() };
    let asked = decided(state, made).iter().find_map(|event| match event {
        Event::CallAsked(question) => Some(question.id),
        _ => None,
    });
    if let Some(question) = asked {
        let answer = match asking.accepted {
            true => Answer::Accept { content: None },
            false => Answer::Decline,
        };
        let rider = if asking.remember { Rider::Remember } else { Rider::Nothing };
        let today = Some(admission);
        decided(state, Intent::Answer { question, answer, by: me(), rider, today });
    }
    if matches!(state.calls[&call].stage, Stage::Dispatched(_)) {
        decided(state, Intent::Settle { call, outcome: outcome(0) });
    }
    asked.is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(n_cases()))]

    #[test]
    fn a_state_is_what_its_written_events_make_of_it(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let mut rebuilt = State::default();
        for entry in &entries {
            let written = serde_json::to_string(entry).unwrap();
            let read: Entry = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(&read, entry);
            rebuilt.apply(read.at, &read.event);
        }
        prop_assert_eq!(rebuilt, state);
    }

    #[test]
    fn a_second_answer_is_refused_and_leaves_no_trace(wishes in wishes(), how in any::<u8>()) {
        let (entries, state) = live(&wishes);
        let mut n_answers = BTreeMap::new();
        for entry in &entries {
            if let Event::CallAnswered { question, .. } = &entry.event {
                *n_answers.entry(*question).or_insert(0) += 1;
            }
        }
        prop_assert!(n_answers.values().all(|n| *n == 1));
        let moment = Moment { at: Timestamp(0), entropy: Uuid::from_u128(99) };
        for question in n_answers.into_keys() {
            let by = me();
            let again =
                Intent::Answer { question, answer: answer(how), by, rider: Rider::Nothing, today: None };
            prop_assert_eq!(
                decide(&state, &Policy::default(), moment, again),
                Err(Rejection::AlreadyAnswered(question))
            );
        }
    }

    #[test]
    fn what_is_remembered_is_good_for_one_tool_in_one_edition_in_one_execution(
        askings in prop::collection::vec(asking(), 1..30)
    ) {
        let mut states = [State::default(), State::default()];
        for state in &mut states {
            let start = fitted(state, &Wish::Start { calls_max: 99, bytes_max: 9_999 });
            let moment = Moment { at: Timestamp(0), entropy: Uuid::nil() };
            for event in decide(state, &Policy::default(), moment, start).unwrap() {
                state.apply(Timestamp(0), &event);
            }
        }
        let mut expected = std::collections::BTreeSet::new();
        for (n, asking) in askings.into_iter().enumerate() {
            let key = (asking.execution, asking.tool, asking.edition);
            let asked = ask(&mut states[asking.execution], n as u128 + 1, asking);
            prop_assert_eq!(asked, !expected.contains(&key), "{:?}", asking);
            if asked && asking.remember {
                expected.insert(key);
            }
        }
    }

    #[test]
    fn a_yes_is_good_for_the_edition_that_was_asked_about(asked in 0..3u8, today in 0..3u8) {
        let mut state = State::default();
        let mut n = 0;
        let mut submit = |state: &mut State, intent| {
            n += 1;
            let moment = Moment { at: Timestamp(0), entropy: Uuid::from_u128(n << 64) };
            let events = decide(state, &Policy::default(), moment, intent).unwrap();
            events.iter().for_each(|event| state.apply(Timestamp(0), event));
            events
        };
        let fit = |n| Admission::Fit {
            nature: Nature { read_only: false, runs: Runs::Here },
            traits: Traits::lasting(true),
            about: None,
            revision: edition(n),
        };
        let start = fitted(&state, &Wish::Start { calls_max: 9, bytes_max: 999 });
        submit(&mut state, start);
        let tool = ToolPath::parse("mail.send").unwrap();
        let args = json("{}");
        submit(&mut state, Intent::Call { call: CallId(1), tool, args, line: Some(7), admission: fit(asked) });
        let question = state.open_questions().next().unwrap().id;
        let (answer, today_is) = (Answer::Accept { content: None }, Some(fit(today)));
        let by = me();
        let events = submit(
            &mut state,
            Intent::Answer { question, answer, by, rider: Rider::Nothing, today: today_is },
        );
        let runs = events.iter().any(|event| matches!(event, Event::CallDispatched { .. }));
        prop_assert_eq!(runs, asked == today);
        prop_assert_eq!(state.open_questions().count(), usize::from(asked != today));
    }

    #[test]
    fn a_call_settles_once_and_goes_out_again_only_after_a_restart_or_an_answer(wishes in wishes()) {
        let (entries, _) = live(&wishes);
        let (mut settled, mut dispatched) = (BTreeMap::new(), BTreeMap::new());
        for entry in &entries {
            match &entry.event {
                Event::CallSettled { call, .. } => *settled.entry(*call).or_insert(0) += 1,
                Event::CallDispatched { call, attempt } => {
                    prop_assert!(!settled.contains_key(call), "sent out after it was settled");
                    *dispatched.entry(*call).or_insert(0) += 1;
                    prop_assert_eq!(dispatched[call], *attempt);
                }
                _ => {}
            }
        }
        prop_assert!(settled.values().all(|n| *n == 1));
    }

    #[test]
    fn a_harmful_call_goes_out_again_only_when_a_person_said_so(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let mut allowed: BTreeMap<CallId, u32> = BTreeMap::new();
        for entry in &entries {
            match &entry.event {
                // What a tool asks by itself says nothing about calling it again.
                Event::CallAnswered { question, call, .. }
                    if !state.questions[question].0.kind.is_of_the_tool() =>
                {
                    *allowed.entry(*call).or_insert(0) += 1;
                }
                Event::CallDispatched { call, attempt } if !state.calls[call].nature.read_only => {
                    let n_allowed = allowed.get(call).copied().unwrap_or(0);
                    prop_assert!(*attempt <= n_allowed + 1);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn what_the_caller_runs_goes_out_once_whatever_happens_to_the_server(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        for entry in &entries {
            if let Event::CallDispatched { call, attempt } = &entry.event
                && state.calls[call].nature.runs == Runs::AtCaller
            {
                prop_assert_eq!(*attempt, 1);
            }
        }
    }

    #[test]
    fn nothing_follows_the_end_and_numbers_have_no_gap(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let end = entries.iter().position(|entry| matches!(entry.event, Event::Finished { .. }));
        if let Some(end) = end {
            prop_assert_eq!(end, entries.len() - 1);
            prop_assert_eq!(state.phase, Phase::Finished);
            prop_assert_eq!(state.open_questions().count(), 0);
        }
        let n_inputs = entries.iter().filter(|entry| entry.event.input().is_some()).count();
        prop_assert_eq!(state.inputs.0 as usize, n_inputs);
        let count = |wanted: fn(&Stage) -> bool| {
            state.calls.values().filter(|call| wanted(&call.stage)).count()
        };
        prop_assert_eq!(state.held as usize, count(|stage| matches!(stage, Stage::Held(_) | Stage::Asking(_))));
        prop_assert_eq!(state.in_flight as usize, count(|stage| matches!(stage, Stage::Dispatched(_))));
        let is_out = |call: &Call| matches!(call.stage, Stage::Dispatched(_));
        let out: Vec<_> = state.calls.iter().filter(|(_, call)| is_out(call)).collect();
        let at_caller = out.iter().filter(|(_, call)| call.nature.runs == Runs::AtCaller);
        prop_assert_eq!(state.at_caller as usize, at_caller.count());
        prop_assert_eq!(
            state.dispatched.keys().collect::<Vec<_>>(),
            out.iter().map(|(id, _)| *id).collect::<Vec<_>>()
        );
    }
}

fn started(limits: Limits) -> State {
    let mut state = State::default();
    let intent = Intent::Start {
        program: Program { source: "1".into(), convention: Convention::LastExpression },
        caller: me(),
        limits,
        seed: Seed([7; 32]),
        terms: Box::default(),
    };
    submit(&mut state, 0, intent);
    state
}

#[track_caller]
fn submit(state: &mut State, at: i64, intent: Intent) -> Vec<Event> {
    let moment = Moment { at: Timestamp(at), entropy: Uuid::from_u128(1 << 64) };
    let events = decide(state, &Policy::default(), moment, intent).unwrap();
    events.iter().for_each(|event| state.apply(Timestamp(at), event));
    events
}

fn call_at_caller(call: u32) -> Intent {
    let tool = ToolPath::parse("users:list").unwrap();
    Intent::Call {
        call: CallId(call),
        tool,
        args: Json::null(),
        line: None,
        admission: admission(5),
    }
}

#[test]
fn a_program_that_waits_for_its_caller_rests_and_its_clocks_run_on() {
    let limits = Limits {
        active_ms_max: 1_000,
        active_clock: ActiveClock::StopsForQuestions,
        call_ms_max: 700,
        idle_ms_max: 600,
        ..Limits::default()
    };
    let mut state = started(limits);
    submit(&mut state, 10, call_at_caller(1));
    assert_eq!(state.due(), Some(Timestamp(710)));
    let rest = Intent::Rest { inputs: InputIndex(0), active_ms: 20 };
    let paused = Event::Paused { inputs: InputIndex(0), active_ms: 20 };
    assert_eq!(submit(&mut state, 20, rest), [paused]);
    assert_eq!(state.active_at_rest(), Some(Timestamp(20)));
    assert_eq!(state.due(), Some(Timestamp(620)), "idle time ends first");
    assert_eq!(submit(&mut state, 30, Intent::Recover), [], "it stays with the caller");
    assert_eq!(state.calls_overdue(Timestamp(709)), []);
    assert_eq!(state.calls_overdue(Timestamp(710)), [CallId(1)]);
}

#[test]
fn what_is_printed_beyond_its_bytes_ends_the_program_and_is_not_recorded() {
    let mut state = started(Limits { log_bytes_max: 5, ..Limits::default() });
    let log = |ordinal, line: &str| Intent::Log {
        mark: OutputMark { input: InputIndex(0), ordinal },
        level: LogLevel::Log,
        line: line.into(),
    };
    submit(&mut state, 1, log(1, "12345"));
    let events = submit(&mut state, 2, log(2, "6"));
    assert_eq!(events[0], Event::LimitReached { limit: LimitKind::Logs });
    assert_eq!(events.len(), 2);
}

#[test]
fn a_result_beyond_its_bytes_fails_its_call_and_nothing_else() {
    let mut state = started(Limits { result_bytes_max: 3, ..Limits::default() });
    submit(&mut state, 1, call_at_caller(1));
    let outcome = CallOutcome::Returned { value: Some(json("1234")) };
    submit(&mut state, 2, Intent::Settle { call: CallId(1), outcome });
    assert_eq!((state.phase, &state.calls[&CallId(1)].stage), (Phase::Running, &Stage::Settled));
    assert_eq!(state.bytes, 4, "only the arguments are kept");
}
