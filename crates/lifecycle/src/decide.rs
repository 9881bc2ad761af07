//! Decides what happens: an intent becomes events, or is refused. Pure.

use crate::answered::answered;
use crate::deferred::{admit_deferred, defer};
use crate::progress::progressed;
use crate::recovery::{continue_parked, fail_recovery, lose, lose_entries, recover};
use crate::{
    ArgumentsDigest, CallAdmission, CallId, CallOutcome, CallStage, Event, ExecutionOutcome,
    ExecutionPhase, Failure, FailureCode, GivenAnswer, Intent, Json, LimitKind, OutputMark, Policy,
    PolicyVerdict, PreparedProgram, Question, QuestionId, QuestionKind, Rejection, State, TimerId,
    Timestamp, ToolHost, ToolNature, ToolPath, ToolPrompt, ToolRevision, ToolTraits, TruncatedText,
    pretty,
};
use uuid::Uuid;

/// Longest part of a call's arguments that a question shows.
const SHOWN_ARGS_CHARS_MAX: usize = 4_000;

/// When a decision is made, and the randomness it may need for new ids.
#[derive(Debug, Clone, Copy)]
pub struct DecisionMoment {
    /// The time.
    pub at: Timestamp,
    /// Fresh randomness, used for this decision only.
    pub entropy: Uuid,
}

impl DecisionMoment {
    /// The `n`-th new question id of this decision.
    pub(crate) const fn question(&self, n: u32) -> QuestionId {
        QuestionId::from_uuid(Uuid::from_u128(self.entropy.as_u128() ^ n as u128))
    }
}

pub(crate) type DecideResult = Result<Vec<Event>, Rejection>;

/// The events for `state` because of `intent`. An empty list means that it is already known.
pub fn decide(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    intent: Intent,
) -> DecideResult {
    check_phase(state, &intent)?;
    match intent {
        Intent::Start { program, caller, limits, seed, terms } => {
            Ok(vec![Event::Started { program, caller, limits, seed, terms }])
        }
        Intent::Ready(prepared) => ready(state, prepared),
        Intent::Log { mark, level, line } => {
            let bytes = line.len() as u64;
            let events = output(state, mark, ArgumentsDigest::from_text(&line), || {
                (line.len(), Event::Logged { mark, level, line })
            })?;
            let over = state.log_bytes.saturating_add(bytes) > state.limits().log_bytes_max;
            let is_new = matches!(events.as_slice(), [Event::Logged { .. }]);
            Ok(if is_new && over {
                expire(state, LimitKind::Logs, state.active_ms)
            } else {
                events
            })
        }
        Intent::Emit { mark, item } => output(state, mark, item.digest(), || {
            (item.as_text().len(), Event::Emitted { mark, item })
        }),
        Intent::Call { call, tool, args, line, alias, admission } => match state.calls.get(&call) {
            Some(known) => same_call(call, known, &tool, &args),
            None => {
                let made = MadeCall { call, tool, args, line, alias };
                new_call(state, policy, moment, made, admission)
            }
        },
        Intent::SetTimer { timer, delay_ms } => set_timer(state, moment, timer, delay_ms),
        Intent::ClearTimer { timer } if state.timers.contains_key(&timer) => {
            Ok(vec![Event::TimerCleared { timer }])
        }
        Intent::ClearTimer { .. } => Ok(vec![]),
        Intent::Rest { inputs, active_ms } => {
            let news = state.rested != Some(inputs) || state.phase == ExecutionPhase::Running;
            let paused = inputs == state.inputs && state.only_others_can_help() && news;
            Ok(if paused { vec![Event::Paused { inputs, active_ms }] } else { vec![] })
        }
        Intent::Finish { result, active_ms } => {
            let outcome = match result {
                Ok(value) => ExecutionOutcome::Completed { value },
                Err(failure) => ExecutionOutcome::Failed(failure),
            };
            Ok(end_events(state, outcome, active_ms))
        }
        Intent::Ask { call, wish } => decide_tool_question(state, moment, call, wish),
        Intent::Defer { call } => defer(state, call),
        Intent::Admit { call, admission } => admit_deferred(state, policy, moment, call, admission),
        Intent::Lose { call } => lose(state, moment, call),
        Intent::Progress { call, text } => progressed(state, call, text),
        Intent::Settle { call, outcome } => decide_settlement(state, call, outcome),
        Intent::Fire { timer } if state.timers.contains_key(&timer) => {
            Ok(vec![Event::TimerFired { timer }])
        }
        Intent::Fire { .. } => Ok(vec![]),
        Intent::Answer { question, answer, by, rider, today } => {
            let given = GivenAnswer { question, answer, by, rider };
            answered(state, policy, moment, given, today)
        }
        Intent::Cancel { by, reason, active_ms } => {
            Ok(end_events(state, ExecutionOutcome::Cancelled { by, reason }, active_ms))
        }
        Intent::Expire { limit, active_ms } => Ok(expire(state, limit, active_ms)),
        Intent::Recover => Ok(recover(state, moment)),
        Intent::LoseEntries => Ok(lose_entries(state)),
        Intent::Continue { by } => continue_parked(state, moment, by),
        Intent::FailRecovery { why } => Ok(fail_recovery(state, why)),
    }
}

/// Nothing is admitted before the start and after the end.
fn check_phase(state: &State, intent: &Intent) -> Result<(), Rejection> {
    let starts = matches!(intent, Intent::Start { .. });
    match state.phase {
        ExecutionPhase::Unborn if !starts => Err(Rejection::NotStarted),
        ExecutionPhase::Running | ExecutionPhase::Paused | ExecutionPhase::Parked if starts => {
            Err(Rejection::AlreadyStarted)
        }
        ExecutionPhase::Finished if starts => Err(Rejection::AlreadyStarted),
        // The question's own rejection is more helpful than "it has ended".
        ExecutionPhase::Finished => {
            let Intent::Answer { question, .. } = intent else {
                return Err(Rejection::AlreadyFinished);
            };
            match state.questions.get(question) {
                Some((_, Some(_))) => Err(Rejection::AlreadyAnswered(*question)),
                Some((_, None)) => Err(Rejection::AlreadyFinished),
                None => Err(Rejection::UnknownQuestion(*question)),
            }
        }
        ExecutionPhase::Unborn
        | ExecutionPhase::Running
        | ExecutionPhase::Paused
        | ExecutionPhase::Parked => Ok(()),
    }
}

fn ready(state: &State, prepared: PreparedProgram) -> DecideResult {
    let Some(origin) = &state.origin else { return Err(Rejection::NotStarted) };
    let prepared = prepared.in_short(&origin.program);
    match &state.prepared {
        None => Ok(vec![Event::Prepared(prepared)]),
        Some(known)
            if known.program_text(&origin.program) == prepared.program_text(&origin.program) =>
        {
            Ok(vec![])
        }
        Some(_) => Err(Rejection::Diverged { what: "the prepared program".into() }),
    }
}

/// An output is new when its mark lies beyond the last one recorded; otherwise it must be the same.
fn output(
    state: &State,
    mark: OutputMark,
    digest: ArgumentsDigest,
    event: impl FnOnce() -> (usize, Event),
) -> DecideResult {
    let newest = state.outputs.last().map_or(OutputMark::default(), |(mark, _)| *mark);
    if mark > newest {
        let (bytes, event) = event();
        if state.outputs.len() >= state.limits().outputs_max as usize {
            return Ok(expire(state, LimitKind::Outputs, state.active_ms));
        }
        return Ok(within_bytes(state, bytes, vec![event]));
    }
    match state.outputs.binary_search_by_key(&mark, |(mark, _)| *mark) {
        Ok(at) if state.outputs[at].1 == digest => Ok(vec![]),
        Ok(_) | Err(_) => Err(Rejection::Diverged {
            what: format!("output {} after input {}", mark.ordinal, mark.input),
        }),
    }
}

fn same_call(call: CallId, known: &crate::Call, tool: &ToolPath, args: &Json) -> DecideResult {
    if known.tool == *tool && known.digest == args.digest() {
        return Ok(vec![]);
    }
    Err(Rejection::Diverged { what: format!("call {call} ({})", known.tool) })
}

struct MadeCall {
    call: CallId,
    tool: ToolPath,
    args: Json,
    line: Option<u32>,
    alias: Option<ToolPath>,
}

fn new_call(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    made: MadeCall,
    admission: CallAdmission,
) -> DecideResult {
    let MadeCall { call, tool, args, line, alias } = made;
    let n_made = u32::try_from(state.calls.len()).unwrap_or(u32::MAX);
    if call != CallId(n_made).next() {
        return Err(Rejection::Unruly("calls must be numbered one after the other"));
    }
    if n_made >= state.limits().calls_max {
        return Ok(expire(state, LimitKind::Calls, state.active_ms));
    }
    let bytes = args.as_text().len();
    let (nature, next) = match admission {
        CallAdmission::Unfit(failure) => {
            // Never dispatched, so a repetition does no harm.
            let nature = ToolNature { read_only: true, runs: ToolHost::Here };
            (nature, Event::CallSettled { call, outcome: CallOutcome::Failed(failure) })
        }
        CallAdmission::Told(value) => {
            let nature = ToolNature { read_only: true, runs: ToolHost::Here };
            let outcome = CallOutcome::Returned { value: Some(value) };
            (nature, Event::CallSettled { call, outcome })
        }
        CallAdmission::Unavailable(_) => {
            // The tool is not known yet; nothing is dispatched before it is.
            let nature = ToolNature { read_only: true, runs: ToolHost::Here };
            let next = match policy.hides(&tool, ToolTraits::lasting(true)) {
                true => blocked_call(call, &tool),
                false => Event::CallDeferred { call },
            };
            (nature, next)
        }
        CallAdmission::Fit { nature, traits, about, revision } => {
            let judged = JudgedCall { call, tool: &tool, args: &args, attempt: 1, nature };
            (nature, judge(state, policy, moment, judged, (traits, about, revision)))
        }
    };
    let made = Event::CallMade { call, tool, args, nature, line, alias };
    Ok(within_bytes(state, bytes, vec![made, next]))
}

/// A call that the policy decides on.
pub(crate) struct JudgedCall<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a ToolPath,
    pub(crate) args: &'a Json,
    pub(crate) attempt: u32,
    pub(crate) nature: ToolNature,
}

/// Dispatches the call, asks about it, or refuses it, as the policy decides.
pub(crate) fn judge(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    judged: JudgedCall<'_>,
    (traits, about, revision): (ToolTraits, Option<String>, Option<ToolRevision>),
) -> Event {
    let JudgedCall { call, tool, args, attempt, nature } = judged;
    let verdict = policy.verdict(tool, traits);
    if state.is_in_doubt(call, nature) && !matches!(verdict, PolicyVerdict::Refuse { .. }) {
        let answer_only = traits.answer_only;
        return Event::CallAsked(doubted(
            moment.question(0),
            call,
            tool,
            args,
            (revision, answer_only),
        ));
    }
    match verdict {
        PolicyVerdict::Allow => Event::CallDispatched { call, attempt },
        PolicyVerdict::Ask { .. }
            if !traits.answer_only && is_remembered(state, tool, revision) =>
        {
            Event::CallDispatched { call, attempt }
        }
        PolicyVerdict::Ask { pattern, editable } => Event::CallAsked(Question {
            id: moment.question(0),
            call,
            kind: QuestionKind::Approval,
            message: {
                // A tool that asks by itself states what it does; its question does not depend on the policy.
                let describes = traits.asks && about.is_some();
                approval_message(tool, args, about, pattern.filter(|_| !describes))
            },
            revision,
            editable,
            answer_only: traits.answer_only,
        }),
        PolicyVerdict::Refuse { .. } => blocked_call(call, tool),
    }
}

/// The question about a call that may have run before entries were lost.
pub(crate) fn doubted(
    id: QuestionId,
    call: CallId,
    tool: &ToolPath,
    args: &Json,
    (revision, answer_only): (Option<ToolRevision>, bool),
) -> Question {
    let about = format!(
        "The server lost entries of this execution, so nobody knows whether tool \"{tool}\" was called with this before. \
         It may or may not have run. Try again, treat it as failed, or supply the result?"
    );
    Question {
        id,
        call,
        kind: QuestionKind::InDoubt,
        message: approval_message(tool, args, Some(about), None),
        revision,
        editable: false,
        answer_only,
    }
}

/// Whether a person allowed this execution to repeat the call without asking.
fn is_remembered(state: &State, tool: &ToolPath, revision: Option<ToolRevision>) -> bool {
    revision.is_some_and(|revision| state.remembered.contains(&(tool.clone(), revision)))
}

/// The outcome of a call of a blocked tool. The failure does not contain the policy: patterns are for
/// administrators.
pub(crate) fn blocked_call(call: CallId, tool: &ToolPath) -> Event {
    Event::CallSettled { call, outcome: CallOutcome::Failed(Failure::blocked(tool)) }
}

pub(crate) fn approval_message(
    tool: &ToolPath,
    args: &Json,
    about: Option<String>,
    pattern: Option<String>,
) -> String {
    let bare = tool.as_str().trim_start_matches("tools.");
    let first = match (about, pattern) {
        (Some(about), None) => about,
        (about, Some(pattern)) => {
            let asks = format!("Approve tools.{bare}? (matched policy: {pattern})");
            about.map_or_else(|| asks.clone(), |about| format!("{asks}\n\n{about}"))
        }
        (None, None) => format!("Approve {tool}?"),
    };
    let mut shown = TruncatedText::with_chars_max(SHOWN_ARGS_CHARS_MAX);
    pretty(args.as_text(), &mut shown);
    format!("{first}\n\nArguments:\n{}", shown.done())
}

fn set_timer(state: &State, moment: DecisionMoment, timer: TimerId, delay_ms: u64) -> DecideResult {
    if timer <= state.timers_set {
        return Ok(vec![]); // replay sets its timers again
    }
    if timer != state.timers_set.next() {
        return Err(Rejection::Unruly("timers must be numbered one after the other"));
    }
    if state.timers_set.0 >= state.limits().timers_max {
        return Ok(expire(state, LimitKind::Timers, state.active_ms));
    }
    Ok(vec![Event::TimerSet { timer, due: moment.at.after_ms(delay_ms) }])
}

/// A running tool asks a person. The call stays dispatched.
fn decide_tool_question(
    state: &State,
    moment: DecisionMoment,
    call: CallId,
    wish: ToolPrompt,
) -> DecideResult {
    let stage = state.calls.get(&call).map(|call| &call.stage);
    let (Some(CallStage::Dispatched(_) | CallStage::Asking(_)), Some(origin)) =
        (stage, &state.origin)
    else {
        return Err(Rejection::NotOutstanding(call));
    };
    let question = wish.question(moment.question(0), call, &origin.seed);
    let bytes = question.bytes();
    Ok(within_bytes(state, bytes, vec![Event::CallAsked(question)]))
}

fn decide_settlement(state: &State, call: CallId, outcome: CallOutcome) -> DecideResult {
    match state.calls.get(&call).map(|call| &call.stage) {
        Some(CallStage::Dispatched(_) | CallStage::Asking(_)) => {
            let bytes = match &outcome {
                CallOutcome::Returned { value: Some(result) } => result.as_text().len(),
                CallOutcome::Returned { value: None }
                | CallOutcome::Failed(_)
                | CallOutcome::Unknown => 0,
            };
            let bytes_max = state.limits().result_bytes_max;
            if bytes as u64 > bytes_max {
                let message =
                    format!("The tool returned {bytes} bytes; at most {bytes_max} are taken.");
                let failure = Failure::new(FailureCode::LimitExceeded, message);
                let outcome = CallOutcome::Failed(failure);
                return Ok(vec![Event::CallSettled { call, outcome }]);
            }
            Ok(within_bytes(state, bytes, vec![Event::CallSettled { call, outcome }]))
        }
        Some(CallStage::Held(_) | CallStage::Deferred(_) | CallStage::Settled) | None => {
            Err(Rejection::NotOutstanding(call))
        }
    }
}

/// The events, or the end if they would exceed the execution's limit of bytes.
fn within_bytes(state: &State, bytes: usize, events: Vec<Event>) -> Vec<Event> {
    if state.bytes.saturating_add(bytes as u64) > state.limits().bytes_max {
        return expire(state, LimitKind::Bytes, state.active_ms);
    }
    events
}

fn expire(state: &State, limit: LimitKind, active_ms: u64) -> Vec<Event> {
    let code = match limit {
        LimitKind::Cpu
        | LimitKind::Active
        | LimitKind::Total
        | LimitKind::Idle
        | LimitKind::Grace => FailureCode::Timeout,
        LimitKind::Memory => FailureCode::MemoryLimit,
        LimitKind::Calls
        | LimitKind::Timers
        | LimitKind::Outputs
        | LimitKind::Bytes
        | LimitKind::Logs
        | LimitKind::Rounds => FailureCode::LimitExceeded,
    };
    let message = format!("The program {}.", limit.sentence(&state.limits()));
    let mut events = vec![Event::LimitReached { limit }];
    events.extend(end_events(
        state,
        ExecutionOutcome::Failed(Failure::new(code, message)),
        active_ms,
    ));
    events
}

/// The end, preceded by an event for every dispatched call.
fn end_events(state: &State, outcome: ExecutionOutcome, active_ms: u64) -> Vec<Event> {
    let unknown = |(call, known): (&CallId, &crate::Call)| match known.stage {
        CallStage::Dispatched(_) | CallStage::Asking(_) => {
            Some(Event::CallSettled { call: *call, outcome: CallOutcome::Unknown })
        }
        CallStage::Held(_) | CallStage::Deferred(_) | CallStage::Settled => None,
    };
    let mut events: Vec<_> = state.calls.iter().filter_map(unknown).collect();
    // The caller that records this knows how many iterations the program made.
    events.push(Event::Finished { outcome, active_ms, iterations: 0 });
    events
}
