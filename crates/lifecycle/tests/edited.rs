//! Arguments that the approver of a call changes: when this is allowed, and how the change is recorded.

use lifecycle::*;
use uuid::Uuid;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn me() -> CallerName {
    CallerName("me".into())
}

fn start() -> Intent {
    let program = Program { source: String::new(), convention: ValueConvention::ExplicitReturn };
    let limits = ExecutionLimits { bytes_max: 100, ..ExecutionLimits::default() };
    let (seed, terms) = (RandomSeed([7; 32]), Box::default());
    Intent::Start { program, caller: me(), limits, seed, terms }
}

/// The admission of a call whose tool exists and accepts the arguments.
fn fit() -> CallAdmission {
    let nature = ToolNature { read_only: false, runs: ToolHost::Here };
    let revision = Some(ToolRevision::from_text("1"));
    CallAdmission::Fit { nature, traits: ToolTraits::lasting(false), about: None, revision }
}

/// Returns a held call of a tool whose policy allows or forbids editing the arguments.
fn held(editable: bool) -> (State, Policy, QuestionId) {
    let rule = PolicyRule::lasting(ToolPattern::parse("*").unwrap(), PolicyAction::RequireApproval);
    let policy = Policy::new(vec![vec![PolicyRule { editable, ..rule }]]);
    let mut state = State::default();
    submitted(&mut state, &policy, start()).unwrap();
    let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json(r#"{"to":"ann"}"#));
    let (call, line, admission) = (CallId(1), None, fit());
    submitted(&mut state, &policy, Intent::Call { call, tool, args, line, admission, alias: None })
        .unwrap();
    let question = state.open_questions().next().unwrap().id;
    (state, policy, question)
}

fn submitted(state: &mut State, policy: &Policy, intent: Intent) -> Result<Vec<Event>, Rejection> {
    let entropy = Uuid::from_u128(u128::from(state.bytes) << 64);
    let events = decide(state, policy, DecisionMoment { at: Timestamp(1), entropy }, intent)?;
    events.iter().for_each(|event| state.apply(Timestamp(1), event));
    Ok(events)
}

fn with_arguments(question: QuestionId, edited: &str, today: Option<CallAdmission>) -> Intent {
    let (answer, rider) = (Answer::Accept { content: None }, AnswerExtras::Arguments(json(edited)));
    Intent::Answer { question, answer, by: me().into(), rider, today }
}

#[test]
fn changed_arguments_go_to_the_tool_and_the_programs_own_call_stays_what_it_was() {
    let (mut state, policy, question) = held(true);
    let before = state.calls[&CallId(1)].digest;
    let edited = r#"{"to":"bob"}"#;
    let answer = with_arguments(question, edited, Some(fit()));
    let events = submitted(&mut state, &policy, answer).unwrap();
    let (call, answer) = (CallId(1), Answer::Accept { content: None });
    let (arguments, by) = (Some(json(edited)), me());
    let expected = [
        Event::CallAnswered {
            question,
            call,
            answer,
            by,
            role: AnswerRole::Person,
            remember: false,
            arguments,
        },
        Event::CallDispatched { call, attempt: 1 },
    ];
    assert_eq!(events, expected);
    assert_eq!(state.args(call), Some(json(edited)));
    assert_eq!(state.calls[&call].digest, before);
    let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json(r#"{"to":"ann"}"#));
    let again = Intent::Call { call, tool, args, line: None, alias: None, admission: fit() };
    assert_eq!(submitted(&mut state, &policy, again), Ok(vec![]), "replay finds its own call");
    // After a crash, the question about a retry shows the changed arguments.
    submitted(&mut state, &policy, Intent::Recover).unwrap();
    let asked = state.open_questions().next().unwrap();
    assert!(asked.message.contains("bob") && !asked.editable, "{}", asked.message);
}

#[test]
fn changed_arguments_are_refused_where_they_may_not_be_or_do_not_fit() {
    let bad = |why: &str| Err(Rejection::BadAnswer(why.to_owned().into()));
    let not_allowed =
        "the policy does not allow other arguments; approve the call as it is, or decline it";
    let edited = r#"{"to":"bob"}"#;
    let (mut state, policy, question) = held(false);
    let answer = |today| with_arguments(question, edited, today);
    assert_eq!(submitted(&mut state, &policy, answer(Some(fit()))), bad(not_allowed));

    let (mut state, policy, question) = held(true);
    let (_, stricter, _) = held(false);
    let answer = |edited, today| with_arguments(question, edited, today);
    assert_eq!(submitted(&mut state, &stricter, answer(edited, None)), bad(not_allowed));
    let unfit = CallAdmission::Unfit(Failure::new(FailureCode::Validation, "to is missing"));
    assert_eq!(submitted(&mut state, &policy, answer("{}", Some(unfit))), bad("to is missing"));
    let long = format!(r#"{{"to":"{}"}}"#, "b".repeat(100));
    let too_long = "with these arguments the program would move too many bytes";
    assert_eq!(submitted(&mut state, &policy, answer(&long, Some(fit()))), bad(too_long));
    let Intent::Answer { question, by, rider, today, .. } = answer(edited, None) else { panic!() };
    let declined = Intent::Answer { question, answer: Answer::Decline, by, rider, today };
    let only_approved = "only a call that is approved can get other arguments";
    assert_eq!(submitted(&mut state, &policy, declined), bad(only_approved));
    assert_eq!(state.open_questions().count(), 1, "the question stays open");
    assert!(submitted(&mut state, &policy, answer(edited, Some(fit()))).is_ok());
}
