//! Calls whose sources are not available: the recorded events, and the fate of an accept.

use lifecycle::*;
use uuid::Uuid;

const CALL: CallId = CallId(1);

struct Story {
    state: State,
    n: u128,
}

impl Story {
    /// Starts a program that has called `mail.send`, for which the catalogue returned `admission`.
    fn calling(admission: CallAdmission) -> (Self, Vec<Event>) {
        let mut story = Self { state: State::default(), n: 0 };
        story.submit(Intent::Start {
            program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
            caller: CallerName("me".into()),
            limits: ExecutionLimits::default(),
            seed: RandomSeed([7; 32]),
            terms: Box::default(),
        });
        let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json("{}"));
        let events = story.submit(Intent::Call {
            call: CALL,
            tool,
            args,
            line: None,
            alias: None,
            admission,
        });
        (story, events)
    }

    #[track_caller]
    fn submit(&mut self, intent: Intent) -> Vec<Event> {
        self.try_submit(intent).unwrap()
    }

    fn try_submit(&mut self, intent: Intent) -> Result<Vec<Event>, Rejection> {
        self.n += 1;
        let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::from_u128(self.n << 64) };
        let events = decide(&self.state, &Policy::default(), moment, intent)?;
        events.iter().for_each(|event| self.state.apply(Timestamp(0), event));
        Ok(events)
    }

    fn accept(
        &mut self,
        content: Option<&str>,
        today: CallAdmission,
    ) -> Result<Vec<Event>, Rejection> {
        let question = self.state.open_questions().next().unwrap().id;
        let answer = Answer::Accept { content: content.map(json) };
        let by = CallerName("me".into()).into();
        let (rider, today) = (AnswerExtras::Nothing, Some(today));
        self.try_submit(Intent::Answer { question, answer, by, rider, today })
    }

    fn admit(&mut self, admission: CallAdmission) -> Vec<Event> {
        self.submit(Intent::Admit { call: CALL, admission })
    }

    fn asked(&self) -> (QuestionKind, String) {
        let question = self.state.open_questions().next().unwrap();
        (question.kind.clone(), question.message.lines().next().unwrap().to_owned())
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn nature(read_only: bool) -> ToolNature {
    ToolNature { read_only, runs: ToolHost::Here }
}

fn fit(read_only: bool, asks: bool, edition: &str) -> CallAdmission {
    let (traits, revision) = (ToolTraits::lasting(asks), Some(ToolRevision::from_text(edition)));
    CallAdmission::Fit { nature: nature(read_only), traits, about: None, revision }
}

fn unavailable() -> CallAdmission {
    let outcome = CallOutcome::Failed(Failure::new(FailureCode::SourceUnavailable, "No."));
    CallAdmission::Unavailable(UnavailableSource { why: "it is down".into(), outcome })
}

const DEFERRED: Event = Event::CallDeferred { call: CALL };
const DISPATCHED: Event = Event::CallDispatched { call: CALL, attempt: 1 };

#[test]
fn a_call_waits_for_its_source_and_is_then_decided_on_as_any_other() {
    let (mut story, events) = Story::calling(unavailable());
    assert_eq!(events[1..], [DEFERRED]);
    let rest = Intent::Rest { inputs: InputIndex(0), active_ms: 1 };
    assert_eq!(story.submit(rest), [], "it waits for no person who would need to see a pause");
    assert!(story.state.waits_for_people_or_sources(), "the active clock does not advance");
    assert_eq!(story.submit(Intent::Recover), [DEFERRED], "it waits again after a restart");
    let events = story.admit(fit(false, false, "1"));
    let revision = Some(ToolRevision::from_text("1"));
    let admitted = Event::CallAdmitted { call: CALL, nature: nature(false), revision };
    assert_eq!(events, [admitted, DISPATCHED]);
    assert_eq!(story.state.calls[&CALL].nature, nature(false));

    let (mut story, _) = Story::calling(unavailable());
    let events = story.admit(fit(false, true, "1"));
    assert!(matches!(events[1], Event::CallAsked(_)), "{events:?}");
    assert_eq!(story.asked().0, QuestionKind::Approval);
}

#[test]
fn a_call_that_waited_long_enough_fails() {
    let (mut story, _) = Story::calling(unavailable());
    let outcome = CallOutcome::Failed(Failure::new(FailureCode::SourceUnavailable, "No."));
    assert_eq!(story.admit(unavailable()), [Event::CallSettled { call: CALL, outcome }]);
}

#[test]
fn an_accept_is_refused_while_the_source_is_unavailable() {
    let (mut story, _) = Story::calling(fit(false, true, "1"));
    let tool = ToolPath::parse("mail.send").unwrap();
    let refused = Rejection::SourceUnavailable { tool, why: "it is down".into() };
    assert_eq!(story.accept(None, unavailable()), Err(refused));
    assert_eq!(story.state.open_questions().count(), 1);
    assert!(story.accept(None, fit(false, true, "1")).unwrap().contains(&DISPATCHED));
}

#[test]
fn an_accepted_call_that_reached_no_tool_asks_again_or_goes_out_with_the_same_accept() {
    let accepted = |read_only| {
        let (mut story, _) = Story::calling(fit(read_only, true, "1"));
        story.accept(None, fit(read_only, true, "1")).unwrap();
        assert_eq!(story.submit(Intent::Defer { call: CALL }), [DEFERRED]);
        story
    };
    for read_only in [true, false] {
        // The tool is available again and unchanged.
        let mut story = accepted(read_only);
        assert_eq!(story.admit(fit(read_only, true, "1"))[1], DISPATCHED, "the same attempt");
        // The tool is available again with another revision.
        let mut story = accepted(read_only);
        story.admit(fit(read_only, true, "2"));
        assert!(story.asked().1.contains("has changed since"), "{:?}", story.asked());
        // Its source is unavailable after a restart.
        let mut story = accepted(read_only);
        story.submit(Intent::Recover);
        story.admit(unavailable());
        let (kind, message) = story.asked();
        assert_eq!(kind, QuestionKind::Approval);
        let expected = "The approved call of tool \"mail.send\" was not dispatched, because its source is not \
                        available: it is down. It has not run. Approve it again when the source is available?";
        assert_eq!(message, expected);
        assert!(story.accept(None, fit(read_only, true, "1")).unwrap().contains(&DISPATCHED));
    }
}

#[test]
fn a_retry_that_reached_no_tool_stays_in_doubt() {
    let (mut story, _) = Story::calling(fit(false, false, "1"));
    story.submit(Intent::Recover);
    assert_eq!(story.asked().0, QuestionKind::InDoubt);
    let retry = Some(r#"{"choice":"retry"}"#);
    assert!(matches!(story.accept(retry, unavailable()), Err(Rejection::SourceUnavailable { .. })));
    let events = story.accept(retry, fit(false, false, "1")).unwrap();
    assert!(events.contains(&Event::CallDispatched { call: CALL, attempt: 2 }));
    story.submit(Intent::Defer { call: CALL });
    story.admit(unavailable());
    let (kind, message) = story.asked();
    assert_eq!(kind, QuestionKind::InDoubt);
    assert!(message.contains("An earlier attempt may or may not have run"), "{message}");
}

#[test]
fn a_blocked_tool_of_an_unavailable_source_is_refused() {
    let pattern = ToolPattern::parse("mail.*").unwrap();
    let rule = PolicyRule { pattern, action: PolicyAction::Block, said: None, editable: false };
    let policy = Policy::new(vec![vec![rule]]);
    let (story, _) = Story::calling(fit(true, false, "1"));
    let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::nil() };
    let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json("{}"));
    let call = CallId(2);
    let intent =
        Intent::Call { call, tool, args, line: None, alias: None, admission: unavailable() };
    let events = decide(&story.state, &policy, moment, intent).unwrap();
    let Event::CallSettled { outcome: CallOutcome::Failed(failure), .. } = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(failure.code, FailureCode::Refused);
}

#[test]
fn a_journal_of_an_earlier_version_is_read_as_before() {
    let text = r#"{"call_dispatched":{"call":1,"attempt":1}}"#;
    assert_eq!(serde_json::from_str::<Event>(text).unwrap(), DISPATCHED);
    let text = r#"{"call_deferred":{"call":1}}"#;
    assert_eq!(serde_json::from_str::<Event>(text).unwrap(), DEFERRED);
}
