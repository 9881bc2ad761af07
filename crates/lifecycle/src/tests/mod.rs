//! Tests of the rules, one table for each group of similar guards. The tests compare whole events and rejections.

mod answers;
mod deferral;
mod effects;
mod judging;
mod moves;
mod phases;
mod queries;
mod recovery;
mod totals;
mod values;

use crate::*;
use uuid::Uuid;

/// An execution to which a test submits intents one after another.
struct ExecutionScript {
    state: State,
    policy: Policy,
    /// Time of the next intent.
    at: i64,
    entropy: u128,
}

impl ExecutionScript {
    fn started() -> Self {
        Self::within(ExecutionLimits::default())
    }

    fn within(limits: ExecutionLimits) -> Self {
        let policy = Policy::default();
        let mut script = Self { state: State::default(), policy, at: 0, entropy: 0 };
        script.submit(start(limits));
        script
    }

    /// Starts an execution under a policy with these rules in one list.
    fn under(rules: &[(&str, PolicyAction)]) -> Self {
        Self { policy: policy(rules), ..Self::started() }
    }

    fn try_submit(&mut self, intent: Intent) -> Result<Vec<Event>, Rejection> {
        // The lowest bit is set, so that ids made from it by anything but an exclusive or differ or are not unique.
        self.entropy += 1 << 64;
        let entropy = Uuid::from_u128(self.entropy | 1);
        let moment = DecisionMoment { at: Timestamp(self.at), entropy };
        let events = decide(&self.state, &self.policy, moment, intent)?;
        events.iter().for_each(|event| self.state.apply(Timestamp(self.at), event));
        Ok(events)
    }

    #[track_caller]
    fn submit(&mut self, intent: Intent) -> Vec<Event> {
        self.try_submit(intent).unwrap()
    }

    #[track_caller]
    fn refused(&mut self, intent: Intent) -> Rejection {
        let before = self.state.clone();
        let rejection = self.try_submit(intent).unwrap_err();
        assert_eq!(self.state, before, "a refused intent leaves no trace");
        rejection
    }

    /// Makes the next call, of `mail.send` with `{}`, and returns the event after `CallMade`.
    #[track_caller]
    fn call(&mut self, admission: CallAdmission) -> Event {
        let call = CallId(u32::try_from(self.state.calls.len()).unwrap()).next();
        let events = self.submit(make_call(call.0, "mail.send", "{}", admission));
        assert_eq!(events.len(), 2, "{events:?}");
        assert!(matches!(events[0], Event::CallMade { .. }), "{events:?}");
        events[1].clone()
    }

    /// Returns the newest open question.
    #[track_caller]
    fn question(&self) -> Question {
        self.state.open_questions().last().unwrap().clone()
    }

    /// Returns the intent that answers the newest open question.
    fn reply(&self, answer: Answer, rider: AnswerExtras, today: Option<CallAdmission>) -> Intent {
        Intent::Answer { question: self.question().id, answer, by: me().into(), rider, today }
    }

    /// Accepts the newest open question and returns the events after the answer.
    #[track_caller]
    fn accept(&mut self, today: Option<CallAdmission>) -> Vec<Event> {
        let events = self.submit(self.reply(yes(), AnswerExtras::Nothing, today));
        assert!(matches!(events[0], Event::CallAnswered { .. }), "{events:?}");
        events[1..].to_vec()
    }

    /// Submits a question in which the tool of `call` asks the user to visit a page.
    fn ask_for_a_visit(&mut self, call: u32, is_prior: bool) {
        let (message, url) = ("Log in".to_owned(), "https://a.example/".to_owned());
        let wish = ToolPrompt::Link { message, url, is_prior };
        self.submit(Intent::Ask { call: CallId(call), wish });
    }

    /// Submits a question in which the tool of `call` asks the user to fill in a form.
    fn ask_for_a_form(&mut self, call: u32) {
        let wish = form("Who?");
        self.submit(Intent::Ask { call: CallId(call), wish });
    }

    /// Loses entries, lets a person continue the execution, and returns the events that follow.
    fn lose_and_continue(&mut self) -> Vec<Event> {
        self.submit(Intent::LoseEntries);
        let events = self.submit(Intent::Continue { by: me() });
        assert_eq!(events[0], Event::Continued { by: me() });
        events[1..].to_vec()
    }
}

fn policy(rules: &[(&str, PolicyAction)]) -> Policy {
    let rule = |(pattern, action): &(&str, PolicyAction)| {
        PolicyRule::lasting(ToolPattern::parse(pattern).unwrap(), *action)
    };
    Policy::new(vec![rules.iter().map(rule).collect()])
}

fn start(limits: ExecutionLimits) -> Intent {
    let program = Program { source: "1".into(), convention: ValueConvention::LastExpression };
    let (seed, terms) = (RandomSeed([7; 32]), Box::default());
    Intent::Start { program, caller: me(), limits, seed, terms }
}

fn me() -> CallerName {
    CallerName("me".into())
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn tool(path: &str) -> ToolPath {
    ToolPath::parse(path).unwrap()
}

fn yes() -> Answer {
    Answer::Accept { content: None }
}

fn with_content(text: &str) -> Answer {
    Answer::Accept { content: Some(json(text)) }
}

fn form(message: &str) -> ToolPrompt {
    ToolPrompt::Form { message: message.to_owned(), schema: json("{}") }
}

fn make_call(call: u32, path: &str, args: &str, admission: CallAdmission) -> Intent {
    let (call, tool, args) = (CallId(call), tool(path), json(args));
    Intent::Call { call, tool, args, line: None, alias: None, admission }
}

fn settle(call: u32, result: Option<&str>) -> Intent {
    let outcome = CallOutcome::Returned { value: result.map(json) };
    Intent::Settle { call: CallId(call), outcome }
}

const READS: ToolNature = ToolNature { read_only: true, runs: ToolHost::Here };
const WRITES: ToolNature = ToolNature { read_only: false, runs: ToolHost::Here };
const AT_CALLER: ToolNature = ToolNature { read_only: false, runs: ToolHost::AtCaller };

/// The admission of a tool of this nature, which needs an approval or not, in revision `1`.
fn fit(nature: ToolNature, asks: bool) -> CallAdmission {
    edition(nature, asks, Some("1"))
}

fn edition(nature: ToolNature, asks: bool, edition: Option<&str>) -> CallAdmission {
    let (traits, revision) = (ToolTraits::lasting(asks), edition.map(ToolRevision::from_text));
    CallAdmission::Fit { nature, traits, about: None, revision }
}

/// The admission of a tool of which each call needs a separate answer.
fn answer_only(edition: &str) -> CallAdmission {
    let traits = ToolTraits { answer_only: true, ..ToolTraits::lasting(true) };
    let revision = Some(ToolRevision::from_text(edition));
    CallAdmission::Fit { nature: WRITES, traits, about: Some("About.".into()), revision }
}

fn unavailable() -> CallAdmission {
    let outcome = CallOutcome::Failed(Failure::new(FailureCode::SourceUnavailable, "No."));
    CallAdmission::Unavailable(UnavailableSource { why: "it is down".into(), outcome })
}

fn dispatched(call: u32, attempt: u32) -> Event {
    Event::CallDispatched { call: CallId(call), attempt }
}

fn failed(call: u32, code: FailureCode, message: &str) -> Event {
    let outcome = CallOutcome::Failed(Failure::new(code, message));
    Event::CallSettled { call: CallId(call), outcome }
}

fn blocked(call: u32) -> Event {
    failed(call, FailureCode::Refused, "Tool blocked by policy: mail.send")
}

fn returned(call: u32, value: &str) -> Event {
    let outcome = CallOutcome::Returned { value: Some(json(value)) };
    Event::CallSettled { call: CallId(call), outcome }
}

/// Returns the question of an event, which must ask one.
#[track_caller]
fn asked(event: &Event) -> &Question {
    let Event::CallAsked(question) = event else { panic!("{event:?}") };
    question
}

/// Returns the limit that the events report, and the failure that ends the execution.
#[track_caller]
fn expired(events: &[Event]) -> (LimitKind, FailureCode, &str) {
    let [
        Event::LimitReached { limit },
        ..,
        Event::Finished { outcome: ExecutionOutcome::Failed(failure), .. },
    ] = events
    else {
        panic!("{events:?}")
    };
    (*limit, failure.code, &failure.message)
}
