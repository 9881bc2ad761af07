//! Applies the answers of people to held calls. Pure.

use crate::decide::{DecideResult, approval_message, blocked_call, doubted};
use crate::{
    Answer, AnswerExtras, CallAdmission, CallId, CallOutcome, CallStage, DecisionMoment, Event,
    Failure, FailureCode, GivenAnswer, Json, Policy, PolicyVerdict, Question, QuestionKind,
    Rejection, State, ToolPath, ToolRevision, ToolTraits,
};

/// The events of an answer.
pub(crate) fn answered(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    given: GivenAnswer,
    today: Option<CallAdmission>,
) -> DecideResult {
    let GivenAnswer { question: id, answer, by, rider } = given;
    let Some((question, first)) = state.questions.get(&id) else {
        return Err(Rejection::UnknownQuestion(id));
    };
    if first.is_some() {
        return Err(Rejection::AlreadyAnswered(id));
    }
    let call = question.call;
    let known = state.calls.get(&call).ok_or(Rejection::NotOutstanding(call))?;
    let approves =
        matches!((&question.kind, &answer), (QuestionKind::Approval, Answer::Accept { .. }));
    let (remember, arguments) = match rider {
        AnswerExtras::Nothing => (false, None),
        AnswerExtras::Remember if approves && needs_answer(question, today.as_ref()) => {
            return Err(bad_answer(
                "this tool asks each time, so its approval cannot be remembered; answer without remembering",
            ));
        }
        AnswerExtras::Remember if approves => (true, None),
        AnswerExtras::Remember => {
            return Err(bad_answer("only a call that is approved can be remembered"));
        }
        AnswerExtras::Arguments(_) if !approves => {
            return Err(bad_answer("only a call that is approved can get other arguments"));
        }
        AnswerExtras::Arguments(edited) => {
            editable(policy, question, known, today.as_ref())?;
            within(state, edited.as_text().len() as u64)?;
            (false, Some(edited))
        }
    };
    let answered = |answer| Event::CallAnswered {
        question: id,
        call,
        answer,
        by: by.caller,
        role: by.role,
        remember,
        arguments: arguments.clone(),
    };
    let attempt = known.attempts.saturating_add(1);
    let next = match (&question.kind, &answer) {
        (QuestionKind::Approval, Answer::Accept { .. }) => {
            dispatched(state, moment, question, known, arguments.as_ref())
        }
        (QuestionKind::InDoubt, Answer::Accept { content }) => {
            in_doubt(call, attempt, &known.tool, content.as_ref())?
        }
        (QuestionKind::Approval, Answer::Decline) => failed(call, Failure::declined(&known.tool)),
        (QuestionKind::Approval, Answer::Cancel) => {
            failed(call, Failure::question_cancelled(&known.tool))
        }
        (QuestionKind::InDoubt, Answer::Decline | Answer::Cancel) => given_up(call, &known.tool),
        // The tool receives the answer and continues.
        (QuestionKind::Form { .. } | QuestionKind::Link { .. }, _) => {
            return Ok(vec![answered(answer)]);
        }
    };
    let dispatches = matches!(next, Event::CallDispatched { .. });
    if let (true, Some(CallAdmission::Unavailable(source))) = (dispatches, &today)
        && !policy.hides(&known.tool, ToolTraits::lasting(true))
    {
        // Only a dispatch may consume an accept: nothing is recorded, and the question stays open.
        let (tool, why) = (known.tool.clone(), source.why.clone());
        return Err(Rejection::SourceUnavailable { tool, why });
    }
    let stale = match dispatches {
        true => instead(policy, moment, (question, arguments.as_ref()), known, today),
        false => None,
    };
    let next = stale.unwrap_or(next);
    Ok(vec![answered(answer), next])
}

/// The approved call is dispatched; one that may have run before entries were lost asks about that first.
fn dispatched(
    state: &State,
    moment: DecisionMoment,
    question: &Question,
    known: &crate::Call,
    edited: Option<&Json>,
) -> Event {
    let call = question.call;
    if !state.is_in_doubt(call, known.nature) {
        return Event::CallDispatched { call, attempt: known.attempts.saturating_add(1) };
    }
    let args = edited.cloned().or_else(|| state.args(call)).unwrap_or_else(Json::null);
    let asked = (question.revision, question.answer_only);
    Event::CallAsked(doubted(moment.question(0), call, &known.tool, &args, asked))
}

fn bad_answer(why: &'static str) -> Rejection {
    Rejection::BadAnswer(why.into())
}

/// Whether each call of the tool needs its own answer, according to the question or the present catalogue.
fn needs_answer(question: &Question, today: Option<&CallAdmission>) -> bool {
    let by_catalogue =
        matches!(today, Some(CallAdmission::Fit { traits, .. }) if traits.answer_only);
    question.answer_only || by_catalogue
}

/// Whether the answerer may change the arguments: the rule that asked permits it, no present rule forbids it,
/// and the tool accepts the arguments that `today` was computed with.
fn editable(
    policy: &Policy,
    question: &Question,
    known: &crate::Call,
    today: Option<&CallAdmission>,
) -> Result<(), Rejection> {
    const NOT_ALLOWED: &str =
        "the policy does not allow other arguments; approve the call as it is, or decline it";
    let traits = match today {
        Some(CallAdmission::Fit { traits, .. }) => *traits,
        Some(CallAdmission::Unfit(_) | CallAdmission::Told(_) | CallAdmission::Unavailable(_))
        | None => ToolTraits::lasting(true),
    };
    let still = match policy.verdict(&known.tool, traits) {
        PolicyVerdict::Ask { editable, .. } => editable,
        PolicyVerdict::Allow | PolicyVerdict::Refuse { .. } => true,
    };
    if !(question.editable && still) {
        return Err(bad_answer(NOT_ALLOWED));
    }
    match today {
        Some(CallAdmission::Unfit(failure)) => {
            // It becomes the end of a sentence.
            let why = failure.message.trim_end_matches('.').to_owned();
            Err(Rejection::BadAnswer(why.into()))
        }
        Some(CallAdmission::Told(told)) => {
            let why = format!("the tool would not take these arguments: {}", told.as_text());
            Err(Rejection::BadAnswer(why.into()))
        }
        Some(CallAdmission::Fit { .. } | CallAdmission::Unavailable(_)) | None => Ok(()),
    }
}

/// An answer never ends an execution: one that would exceed the execution's limit of bytes is refused.
pub(crate) fn within(state: &State, edited_bytes: u64) -> Result<(), Rejection> {
    let bytes = state.bytes.saturating_add(edited_bytes);
    match bytes > state.limits().bytes_max {
        true => Err(bad_answer("with these arguments the program would move too many bytes")),
        false => Ok(()),
    }
}

/// The events instead of a dispatch if the tool is not the one that the person was asked about.
fn instead(
    policy: &Policy,
    moment: DecisionMoment,
    (question, edited): (&Question, Option<&Json>),
    known: &crate::Call,
    today: Option<CallAdmission>,
) -> Option<Event> {
    let call = question.call;
    let traits = match &today {
        Some(CallAdmission::Fit { traits, .. }) => *traits,
        Some(CallAdmission::Unfit(_) | CallAdmission::Told(_) | CallAdmission::Unavailable(_))
        | None => ToolTraits::lasting(true),
    };
    if policy.hides(&known.tool, traits) {
        return Some(blocked_call(call, &known.tool));
    }
    match (question.revision, today?) {
        (_, CallAdmission::Unfit(failure)) => {
            Some(Event::CallSettled { call, outcome: CallOutcome::Failed(failure) })
        }
        (_, CallAdmission::Told(value)) => {
            let outcome = CallOutcome::Returned { value: Some(value) };
            Some(Event::CallSettled { call, outcome })
        }
        (_, CallAdmission::Unavailable(source)) => {
            Some(Event::CallSettled { call, outcome: source.outcome })
        }
        (Some(asked), CallAdmission::Fit { revision: Some(revision), about, traits, .. })
            if revision != asked =>
        {
            let again = RepeatedQuestion { revision, about, answer_only: traits.answer_only };
            Some(asked_again(moment, question, (known, edited), again))
        }
        (Some(_) | None, CallAdmission::Fit { .. }) => None,
    }
}

/// The tool as it is now, for the question that replaces an outdated one.
pub(crate) struct RepeatedQuestion {
    pub(crate) revision: ToolRevision,
    pub(crate) about: Option<String>,
    pub(crate) answer_only: bool,
}

/// The question again, about the tool as it is now.
pub(crate) fn asked_again(
    moment: DecisionMoment,
    question: &Question,
    (known, edited): (&crate::Call, Option<&Json>),
    again: RepeatedQuestion,
) -> Event {
    let mut about = format!(
        "Tool \"{}\" has changed since its approval was asked for, so the yes does not count. \
         Approve the call of the tool as it is now?",
        known.tool
    );
    if let (true, Some(composed)) = (again.answer_only, again.about) {
        about = format!("{about}\n\n{composed}");
    }
    let nothing = Json::null();
    let args = match &known.stage {
        CallStage::Held(args)
        | CallStage::Deferred(args)
        | CallStage::Dispatched(args)
        | CallStage::Asking(args) => args,
        CallStage::Settled => &nothing,
    };
    Event::CallAsked(Question {
        id: moment.question(0),
        call: question.call,
        kind: QuestionKind::Approval,
        message: approval_message(&known.tool, edited.unwrap_or(args), Some(about), None),
        revision: Some(again.revision),
        editable: question.editable,
        answer_only: question.answer_only || again.answer_only,
    })
}

/// Handles the decision about a call that may or may not have run.
fn in_doubt(
    call: CallId,
    attempt: u32,
    tool: &ToolPath,
    content: Option<&Json>,
) -> Result<Event, Rejection> {
    #[derive(serde::Deserialize)]
    #[serde(tag = "choice", rename_all = "snake_case")]
    enum AnswerChoice {
        Retry,
        Fail,
        Supply { result: serde_json::Value },
    }
    const HELP: &str = r#"content must be {"choice":"retry"}, {"choice":"fail"} or {"choice":"supply","result":…}"#;
    let bad = || Rejection::BadAnswer(HELP.into());
    let content = content.ok_or_else(bad)?;
    match serde_json::from_str(content.as_text()).map_err(|_| bad())? {
        AnswerChoice::Retry => Ok(Event::CallDispatched { call, attempt }),
        AnswerChoice::Fail => Ok(given_up(call, tool)),
        AnswerChoice::Supply { result } => {
            let result = Json::from_value(&result).map_err(|_| bad())?;
            Ok(Event::CallSettled { call, outcome: CallOutcome::Returned { value: Some(result) } })
        }
    }
}

const fn failed(call: CallId, failure: Failure) -> Event {
    Event::CallSettled { call, outcome: CallOutcome::Failed(failure) }
}

fn given_up(call: CallId, tool: &ToolPath) -> Event {
    let message = format!("Tool \"{tool}\" may or may not have run; it was given up.");
    failed(call, Failure::new(FailureCode::InDoubt, message))
}
