//! Random intents, adapted to a state so that most of them are valid when they arrive.

use lifecycle::*;
use proptest::prelude::*;
use uuid::Uuid;

/// An intent before it is adapted to the state.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
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
    Defer { call: u32 },
    Admit { call: u32, fit: u8 },
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

pub(crate) fn wish() -> impl Strategy<Value = Wish> {
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
        4 => (0..12u32).prop_map(|call| Wish::Defer { call }),
        6 => (0..12u32, any::<u8>()).prop_map(|(call, fit)| Wish::Admit { call, fit }),
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

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub(crate) fn me() -> CallerName {
    CallerName("me".into())
}

pub(crate) fn admission(fit: u8) -> CallAdmission {
    let nature = |read_only, runs| ToolNature { read_only, runs };
    let (nature, asks) = match fit % 7 {
        0 => return CallAdmission::Unfit(Failure::new(FailureCode::ToolNotFound, "none")),
        1 => (nature(true, ToolHost::Here), false),
        2 => (nature(false, ToolHost::Here), false),
        3 => (nature(false, ToolHost::Here), true),
        4 => (nature(true, ToolHost::Here), true),
        6 => return unavailable(),
        _ => (nature(false, ToolHost::AtCaller), false),
    };
    let traits = ToolTraits::lasting(asks);
    CallAdmission::Fit { nature, traits, about: None, revision: edition(fit / 64) }
}

/// The admission of a call whose source is known but has no description yet.
pub(crate) fn unavailable() -> CallAdmission {
    let outcome = CallOutcome::Failed(Failure::new(FailureCode::SourceUnavailable, "not read"));
    CallAdmission::Unavailable(UnavailableSource { why: "it was not read yet".into(), outcome })
}

/// Returns one of a few revisions of a tool.
pub(crate) fn edition(n: u8) -> Option<ToolRevision> {
    Some(ToolRevision::from_text(&n.to_string()))
}

/// Returns an admission that the catalogue may give a held call when its answer arrives.
pub(crate) fn today(which: u8) -> Option<CallAdmission> {
    match which % 5 {
        0 => None,
        1 => Some(CallAdmission::Unfit(Failure::new(FailureCode::ToolNotFound, "gone"))),
        2 => Some(unavailable()),
        _ => Some(admission(which | 3)),
    }
}

pub(crate) fn rider(how: u8) -> AnswerExtras {
    match how {
        0..100 => AnswerExtras::Nothing,
        100..180 => AnswerExtras::Remember,
        180.. => AnswerExtras::Arguments(json(r#"{"edited":true}"#)),
    }
}

pub(crate) fn outcome(how: u8) -> CallOutcome {
    match how % 4 {
        0 => CallOutcome::Returned { value: None },
        1 => CallOutcome::Returned { value: Some(Json::null()) },
        2 => CallOutcome::Returned { value: Some(json(r#"{"v":1}"#)) },
        _ => CallOutcome::Failed(Failure::new(FailureCode::Tool, "boom")),
    }
}

pub(crate) fn answer(how: u8) -> Answer {
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

pub(crate) fn limit(which: u8) -> LimitKind {
    match which % 3 {
        0 => LimitKind::Cpu,
        1 => LimitKind::Active,
        _ => LimitKind::Total,
    }
}

pub(crate) fn answering(state: &State, which: u8, how: u8) -> Intent {
    let ids: Vec<_> = state.questions.keys().copied().collect();
    let stranger = QuestionId::from_uuid(Uuid::from_u128(1));
    let question = *ids.get(usize::from(which) % (ids.len() + 1)).unwrap_or(&stranger);
    let (rider, today) = (rider(how), today(which));
    Intent::Answer { question, answer: answer(how), by: me().into(), rider, today }
}

/// Returns the mark of the next output, or that of the last one again.
fn next_mark(state: &State, again: bool) -> OutputMark {
    match (again, state.outputs.last()) {
        (true, Some((mark, _))) => *mark,
        (_, Some((mark, _))) if mark.input == state.inputs => {
            OutputMark { input: mark.input, ordinal: mark.ordinal + 1 }
        }
        _ => OutputMark { input: state.inputs, ordinal: 1 },
    }
}

pub(crate) fn fitted(state: &State, wish: &Wish) -> Intent {
    let mark = |again: bool| next_mark(state, again);
    match *wish {
        Wish::Start { calls_max, bytes_max } => Intent::Start {
            program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
            caller: me(),
            limits: ExecutionLimits { calls_max, bytes_max, ..ExecutionLimits::default() },
            seed: RandomSeed([7; 32]),
            terms: Box::default(),
        },
        Wish::Ready(same) => Intent::Ready(PreparedProgram {
            text: Some(if same { "a" } else { "b" }.into()),
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
            alias: None,
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
        Wish::Finish(is_value) => {
            let failure = || Failure::new(FailureCode::Runtime, "threw");
            let result = is_value.then(|| Some(json("1"))).ok_or_else(failure);
            Intent::Finish { result, active_ms: 9 }
        }
        Wish::Ask { call, link } => {
            let message = "?".to_owned();
            let url = "https://a.example/{state}".to_owned();
            let wish = match link {
                true => lifecycle::ToolPrompt::Link { message, url, is_prior: false },
                false => lifecycle::ToolPrompt::Form { message, schema: json("{}") },
            };
            Intent::Ask { call: CallId(call), wish }
        }
        Wish::Progress { call, n_bytes } => {
            Intent::Progress { call: CallId(call), text: "x".repeat(n_bytes.into()) }
        }
        Wish::Defer { call } => Intent::Defer { call: CallId(call) },
        Wish::Admit { call, fit } => {
            Intent::Admit { call: CallId(call), admission: admission(fit) }
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

/// Applies `wishes` after a start, and returns all entries and the resulting state.
pub(crate) fn live(wishes: &[Wish]) -> (Vec<Entry>, State) {
    let (mut entries, mut state) = (vec![], State::default());
    let start = Wish::Start { calls_max: 30, bytes_max: 4_000 };
    for (n, wish) in std::iter::once(&start).chain(wishes).enumerate() {
        let intent = fitted(&state, wish);
        let at = Timestamp(n as i64);
        let entropy = Uuid::from_u128((n as u128 + 2) << 64);
        let Ok(events) = decide(&state, &Policy::default(), DecisionMoment { at, entropy }, intent)
        else {
            continue;
        };
        for event in events {
            state.apply(at, &event);
            entries.push(Entry { seq: Seq(entries.len() as u64 + 1), at, event });
        }
    }
    (entries, state)
}
