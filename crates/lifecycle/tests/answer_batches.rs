//! Answers that arrive in one batch: one decision covers all of them.

use lifecycle::*;
use uuid::Uuid;

fn me() -> CallerName {
    CallerName("me".into())
}

/// Returns a program with two calls that wait for approval, and the ids of their questions.
fn two_held() -> (State, Policy, [QuestionId; 2]) {
    let rule = PolicyRule::lasting(ToolPattern::parse("*").unwrap(), PolicyAction::RequireApproval);
    let policy = Policy::new(vec![vec![PolicyRule { editable: true, ..rule }]]);
    let mut state = State::default();
    let program = Program { source: String::new(), convention: ValueConvention::ExplicitReturn };
    let limits = ExecutionLimits { bytes_max: 100, ..ExecutionLimits::default() };
    let (seed, terms) = (RandomSeed([7; 32]), Box::default());
    submitted(&mut state, &policy, Intent::Start { program, caller: me(), limits, seed, terms });
    for n in 1..=2 {
        let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json("{}"));
        let nature = ToolNature { read_only: false, runs: ToolHost::Here };
        let traits = ToolTraits::lasting(false);
        let admission = CallAdmission::Fit { nature, traits, about: None, revision: None };
        let call = CallId(n);
        let made = Intent::Call { call, tool, args, line: None, alias: None, admission };
        submitted(&mut state, &policy, made);
    }
    let open: Vec<_> = state.open_questions().map(|question| question.id).collect();
    (state, policy, open.try_into().unwrap())
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn submitted(state: &mut State, policy: &Policy, intent: Intent) {
    let entropy = Uuid::from_u128((state.calls.len() as u128 + 1) << 64);
    let events =
        decide(state, policy, DecisionMoment { at: Timestamp(1), entropy }, intent).unwrap();
    events.iter().for_each(|event| state.apply(Timestamp(1), event));
}

fn accept(question: QuestionId, rider: AnswerExtras) -> (GivenAnswer, HeldCallFacts) {
    let answer = Answer::Accept { content: None };
    (GivenAnswer { question, answer, by: me().into(), rider }, HeldCallFacts::default())
}

fn decline(question: QuestionId) -> (GivenAnswer, HeldCallFacts) {
    let (given, facts) = accept(question, AnswerExtras::Nothing);
    (GivenAnswer { answer: Answer::Decline, ..given }, facts)
}

fn decided(
    state: &State,
    policy: &Policy,
    answers: Vec<(GivenAnswer, HeldCallFacts)>,
    is_restored: bool,
) -> Result<AnswerDecision, Rejection> {
    let moment = DecisionMoment { at: Timestamp(2), entropy: Uuid::from_u128(5 << 64) };
    decide_answers(state, policy, moment, answers, is_restored)
}

#[test]
fn answers_count_together_once_the_program_is_restored() {
    let (state, policy, [first, second]) = two_held();
    let answers = || vec![accept(first, AnswerExtras::Nothing), decline(second)];
    assert_eq!(decided(&state, &policy, answers(), false), Ok(AnswerDecision::AfterReplay));
    let Ok(AnswerDecision::Accepted(events)) = decided(&state, &policy, answers(), true) else {
        panic!("they count")
    };
    let answered = |event: &Event| match event {
        Event::CallAnswered { question, .. } => Some(*question),
        _ => None,
    };
    let answered: Vec<_> = events.iter().filter_map(answered).collect();
    assert_eq!(answered, [first, second]);
    assert!(events.contains(&Event::CallDispatched { call: CallId(1), attempt: 1 }));
}

#[test]
fn one_answer_that_does_not_count_refuses_all_of_them() {
    let (state, policy, [first, second]) = two_held();
    let unknown = QuestionId::from_uuid(Uuid::from_u128(9));
    let answers = vec![decline(first), decline(unknown)];
    let refused = decided(&state, &policy, answers, true);
    assert_eq!(refused, Err(Rejection::UnknownQuestion(unknown)));
    let (given, _) = accept(second, AnswerExtras::Nothing);
    let facts = HeldCallFacts { misfit: Some("name is missing".into()), ..Default::default() };
    let refused = decided(&state, &policy, vec![decline(first), (given, facts)], false);
    assert_eq!(refused, Err(Rejection::BadAnswer("name is missing".into())), "before a replay");
}

#[test]
fn the_first_answer_to_a_question_stands() {
    let (mut state, policy, [first, second]) = two_held();
    let twice = vec![decline(first), accept(first, AnswerExtras::Nothing)];
    let once = decided(&state, &policy, vec![decline(first)], true);
    assert_eq!(decided(&state, &policy, twice, true), once);
    let Ok(AnswerDecision::Accepted(events)) = once else { panic!("it counts") };
    events.iter().for_each(|event| state.apply(Timestamp(2), event));
    let again = decided(&state, &policy, vec![accept(first, AnswerExtras::Nothing)], true);
    assert_eq!(again, Err(Rejection::AlreadyAnswered(first)));
    let rest = vec![accept(first, AnswerExtras::Nothing), decline(second)];
    let Ok(AnswerDecision::Accepted(events)) = decided(&state, &policy, rest, true) else {
        panic!("the other one counts")
    };
    let other = matches!(&events[0], Event::CallAnswered { question, .. } if *question == second);
    assert!(other && events.len() == 2, "{events:?}");
}

#[test]
fn changed_arguments_of_all_answers_count_together() {
    let (state, policy, [first, second]) = two_held();
    let edited = || AnswerExtras::Arguments(json(&format!("{{\"to\":\"{}\"}}", "b".repeat(40))));
    let one = vec![accept(first, edited()), accept(second, AnswerExtras::Nothing)];
    assert!(decided(&state, &policy, one, true).is_ok());
    let both = vec![accept(first, edited()), accept(second, edited())];
    let too_long = "with these arguments the program would move too many bytes";
    assert_eq!(decided(&state, &policy, both, true), Err(Rejection::BadAnswer(too_long.into())));
}

#[test]
fn a_parked_execution_takes_no_answers_and_says_why() {
    let (mut state, policy, [first, _]) = two_held();
    submitted(&mut state, &policy, Intent::LoseEntries);
    let refused = decided(&state, &policy, vec![decline(first)], true);
    let advice =
        "it is parked because entries may be lost; an administrator continues or cancels it";
    let failure = Failure::new(FailureCode::Internal, advice);
    assert_eq!(refused, Err(Rejection::NotRestored(failure)));
}
