//! Intents that are admitted before the start, after the end and while parked.

use super::*;

fn paused() -> ExecutionScript {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.submit(Intent::Rest { inputs: InputIndex(0), active_ms: 1 });
    assert_eq!(script.state.phase, ExecutionPhase::Paused);
    script
}

fn parked() -> ExecutionScript {
    let mut script = ExecutionScript::started();
    script.submit(Intent::LoseEntries);
    assert_eq!(script.state.phase, ExecutionPhase::Parked);
    script
}

#[test]
fn nothing_happens_before_the_start() {
    let state = State::default();
    let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::nil() };
    let decided = |intent| decide(&state, &Policy::default(), moment, intent);
    let cancel = Intent::Cancel { by: me(), reason: None, active_ms: 0 };
    for intent in [Intent::Recover, Intent::LoseEntries, settle(1, None), cancel] {
        assert_eq!(decided(intent), Err(Rejection::NotStarted));
    }
    assert!(matches!(
        decided(start(ExecutionLimits::default())).unwrap()[..],
        [Event::Started { .. }]
    ));
}

#[test]
fn nothing_starts_twice() {
    let mut finished = ExecutionScript::started();
    finished.submit(Intent::Finish { result: Ok(None), active_ms: 0 });
    for mut script in [ExecutionScript::started(), paused(), parked(), finished] {
        let refused = script.refused(start(ExecutionLimits::default()));
        assert_eq!(refused, Rejection::AlreadyStarted, "{:?}", script.state.phase);
    }
}

#[test]
fn after_the_end_a_question_has_its_own_rejection() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    let answered = script.question().id;
    script.accept(None);
    script.call(fit(WRITES, true));
    let open = script.question().id;
    script.submit(Intent::Finish { result: Ok(None), active_ms: 0 });
    let unknown = QuestionId::from_uuid(Uuid::from_u128(3));
    let cases = [
        (answered, Rejection::AlreadyAnswered(answered)),
        (open, Rejection::AlreadyFinished),
        (unknown, Rejection::UnknownQuestion(unknown)),
    ];
    for (question, expected) in cases {
        let (answer, rider) = (yes(), AnswerExtras::Nothing);
        let by = me().into();
        let intent = Intent::Answer { question, answer, by, rider, today: None };
        assert_eq!(script.refused(intent), expected);
    }
    assert_eq!(script.refused(Intent::Recover), Rejection::AlreadyFinished);
    assert_eq!(script.state.open_questions().count(), 0);
}

#[test]
fn an_answer_while_the_program_runs_is_refused_where_its_question_is_unknown_or_answered() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    let question = script.question().id;
    let answer = |question| {
        let (answer, rider, by) = (Answer::Decline, AnswerExtras::Nothing, me().into());
        Intent::Answer { question, answer, by, rider, today: None }
    };
    let unknown = QuestionId::from_uuid(Uuid::from_u128(3));
    assert_eq!(script.refused(answer(unknown)), Rejection::UnknownQuestion(unknown));
    script.submit(answer(question));
    assert_eq!(script.refused(answer(question)), Rejection::AlreadyAnswered(question));
}

#[test]
fn the_third_failed_recovery_in_a_row_parks() {
    let fails = || Intent::FailRecovery { why: "it".into() };
    let failed = || Event::RecoveryFailed { why: "it".into() };
    let mut script = paused();
    assert_eq!(script.submit(fails()), [failed()]);
    assert_eq!(script.submit(fails()), [failed()]);
    // A rest shows that the recovery succeeded, and resets the count of failures.
    script.accept(None);
    script.call(fit(WRITES, true));
    script.submit(settle(1, None));
    script.submit(Intent::Rest { inputs: InputIndex(1), active_ms: 1 });
    assert_eq!((script.state.phase, script.state.recoveries_failed), (ExecutionPhase::Paused, 0));
    assert_eq!(script.submit(fails()), [failed()]);
    assert_eq!(script.submit(fails()), [failed()]);
    assert_eq!(script.submit(fails()), [failed(), Event::Parked]);
}

#[test]
fn an_execution_ends_in_the_way_that_was_asked_for() {
    let failure = Failure::new(FailureCode::Runtime, "threw");
    let cases = [
        (
            Intent::Finish { result: Ok(Some(json("1"))), active_ms: 7 },
            ExecutionOutcome::Completed { value: Some(json("1")) },
        ),
        (
            Intent::Finish { result: Err(failure.clone()), active_ms: 7 },
            ExecutionOutcome::Failed(failure),
        ),
        (
            Intent::Cancel { by: me(), reason: Some("late".into()), active_ms: 7 },
            ExecutionOutcome::Cancelled { by: me(), reason: Some("late".into()) },
        ),
    ];
    for (intent, outcome) in cases {
        let mut script = ExecutionScript::started();
        let finished = Event::Finished { outcome: outcome.clone(), active_ms: 7, iterations: 0 };
        assert_eq!(script.submit(intent), [finished]);
        assert_eq!((script.state.outcome, script.state.active_ms), (Some(outcome), 7));
    }
}

#[test]
fn the_end_settles_calls_that_are_with_their_tools_as_unknown() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.call(fit(WRITES, false));
    script.call(fit(READS, false));
    script.ask_for_a_form(3);
    script.call(unavailable());
    script.call(fit(READS, false));
    script.submit(settle(5, None));
    let events = script.submit(Intent::Finish { result: Ok(None), active_ms: 0 });
    let unknown = |call| Event::CallSettled { call: CallId(call), outcome: CallOutcome::Unknown };
    let outcome = ExecutionOutcome::Completed { value: None };
    let finished = Event::Finished { outcome, active_ms: 0, iterations: 0 };
    assert_eq!(events, [unknown(2), unknown(3), finished]);
}

#[test]
fn a_parked_execution_is_told_of_lost_entries_unless_it_knows_of_them() {
    let lost = [Event::EntriesMayBeLost];
    let mut script = parked();
    assert_eq!(script.submit(Intent::LoseEntries), []);
    // A question about a doubt that was asked since then may be lost too.
    script.submit(Intent::Continue { by: me() });
    script.call(fit(WRITES, false));
    assert_eq!(script.state.doubts_asked.len(), 1);
    assert_eq!(script.submit(Intent::LoseEntries), [Event::EntriesMayBeLost, Event::Parked]);
    script.submit(Intent::Continue { by: me() });
    script.call(fit(WRITES, false));
    for _ in 0..3 {
        script.submit(Intent::FailRecovery { why: "it".into() });
    }
    assert_eq!(script.state.phase, ExecutionPhase::Parked);
    assert_eq!(script.submit(Intent::LoseEntries), lost);
    assert_eq!(script.state.doubts_asked.len(), 0);
}
