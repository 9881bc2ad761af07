//! After the store lost entries: no call is dispatched before a person continues the execution, and none twice silently.

use lifecycle::*;
use uuid::Uuid;

struct Story {
    state: State,
    n: u128,
}

impl Story {
    fn started() -> Self {
        let mut story = Self { state: State::default(), n: 0 };
        story.submit(Intent::Start {
            program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
            caller: CallerName("me".into()),
            limits: ExecutionLimits::default(),
            seed: RandomSeed([7; 32]),
            terms: Box::default(),
        });
        story
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

    /// Makes a call of a tool, which needs an approval or not, and returns the last event.
    fn call(&mut self, read_only: bool, asks: bool) -> Event {
        let call = CallId(u32::try_from(self.state.calls.len()).unwrap()).next();
        let (tool, args) = (ToolPath::parse("mail.send").unwrap(), json("{}"));
        let admission = admission(read_only, asks);
        let events =
            self.submit(Intent::Call { call, tool, args, line: None, alias: None, admission });
        events.last().unwrap().clone()
    }

    fn lose_and_continue(&mut self) -> Vec<Event> {
        assert_eq!(self.submit(Intent::LoseEntries), [Event::EntriesMayBeLost, Event::Parked]);
        assert_eq!(self.state.phase, ExecutionPhase::Parked);
        assert_eq!(self.submit(Intent::LoseEntries), [], "it is parked already");
        let events = self.submit(Intent::Continue { by: me() });
        assert_eq!(events[0], Event::Continued { by: me() });
        events[1..].to_vec()
    }

    fn answer(&mut self, content: Option<&str>) -> Vec<Event> {
        let question = self.state.open_questions().next().unwrap().id;
        let answer = Answer::Accept { content: content.map(json) };
        let (rider, today) = (AnswerExtras::Nothing, Some(admission(false, true)));
        self.submit(Intent::Answer { question, answer, by: me().into(), rider, today })
    }
}

fn me() -> CallerName {
    CallerName("me".into())
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn admission(read_only: bool, asks: bool) -> CallAdmission {
    let nature = ToolNature { read_only, runs: ToolHost::Here };
    CallAdmission::Fit { nature, traits: ToolTraits::lasting(asks), about: None, revision: None }
}

#[track_caller]
fn is_in_doubt(event: &Event, call: u32) {
    let Event::CallAsked(question) = event else { panic!("{event:?}") };
    assert_eq!((&question.kind, question.call), (&QuestionKind::InDoubt, CallId(call)));
}

#[test]
fn a_call_that_was_under_way_becomes_a_question_and_one_that_only_reads_is_made_again() {
    let mut story = Story::started();
    story.call(false, false);
    story.call(true, false);
    let events = story.lose_and_continue();
    is_in_doubt(&events[0], 1);
    assert_eq!(events[1..], [Event::CallDispatched { call: CallId(2), attempt: 2 }]);
}

#[test]
fn every_later_call_that_does_more_than_read_is_in_doubt_whatever_the_policy_says() {
    let mut story = Story::started();
    assert_eq!(story.lose_and_continue(), []);
    is_in_doubt(&story.call(false, false), 1);
    is_in_doubt(&story.call(false, true), 2);
    assert_eq!(story.call(true, false), Event::CallDispatched { call: CallId(3), attempt: 1 });
    let events = story.answer(Some(r#"{"choice":"retry"}"#));
    assert_eq!(events[1..], [Event::CallDispatched { call: CallId(1), attempt: 1 }]);
}

#[test]
fn an_approval_that_was_asked_before_does_not_dispatch() {
    let mut story = Story::started();
    story.call(false, true);
    assert_eq!(story.lose_and_continue(), []);
    let events = story.answer(None);
    assert_eq!(events.len(), 2);
    is_in_doubt(&events[1], 1);
    let events = story.answer(Some(r#"{"choice":"supply","result":7}"#));
    let outcome = CallOutcome::Returned { value: Some(json("7")) };
    assert_eq!(events[1..], [Event::CallSettled { call: CallId(1), outcome }]);
}

#[test]
fn an_approval_that_waits_for_its_source_does_not_dispatch_either() {
    let mut story = Story::started();
    story.call(false, true);
    let by_person = story.answer(None);
    assert_eq!(by_person[1..], [Event::CallDispatched { call: CallId(1), attempt: 1 }]);
    story.submit(Intent::Defer { call: CallId(1) });
    assert_eq!(story.lose_and_continue(), [Event::CallDeferred { call: CallId(1) }]);
    let admission = admission(false, true);
    let events = story.submit(Intent::Admit { call: CallId(1), admission });
    is_in_doubt(events.last().unwrap(), 1);
}

#[test]
fn only_a_parked_execution_can_be_continued() {
    let mut story = Story::started();
    let refused = story.try_submit(Intent::Continue { by: me() });
    assert_eq!(refused, Err(Rejection::NotParked));
    for _ in 0..3 {
        story.submit(Intent::FailRecovery { why: "it diverged".into() });
    }
    assert_eq!(story.state.phase, ExecutionPhase::Parked);
    assert_eq!(story.submit(Intent::LoseEntries), [Event::EntriesMayBeLost]);
    assert_eq!(story.submit(Intent::Continue { by: me() }), [Event::Continued { by: me() }]);
    assert_eq!((story.state.phase, story.state.recoveries_failed), (ExecutionPhase::Running, 0));
    story.submit(Intent::Finish { result: Ok(None), active_ms: 0 });
    let refused = story.try_submit(Intent::LoseEntries);
    assert_eq!(refused, Err(Rejection::AlreadyFinished));
}
