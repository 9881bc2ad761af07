//! The present state of an execution: a function of its events and nothing else.

use crate::{
    ActiveClock, Answer, ArgumentsDigest, Call, CallId, CallRules, CallerName, Event,
    ExecutionLimits, Failure, InputIndex, Json, OutputMark, PreparedProgram, Program, Question,
    QuestionId, RandomSeed, TimerId, Timestamp, ToolNature, ToolPath, ToolPrompt, ToolRevision,
    WriteStrength,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The state of an execution, as far as rules need it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The phase that it is in.
    pub phase: ExecutionPhase,
    /// How it began; absent only before the first event.
    pub origin: Option<ExecutionOrigin>,
    /// The prepared program, once a runner has prepared it.
    pub prepared: Option<PreparedProgram>,
    /// Every call made, by ordinal.
    pub calls: BTreeMap<CallId, Call>,
    /// How many calls wait for a person, here or inside their tools.
    pub held: u32,
    /// How many calls are dispatched, or wait for their sources.
    pub in_flight: u32,
    /// How many calls wait for their sources.
    pub deferred: u32,
    /// The calls that are dispatched, or with the caller, and since when.
    pub dispatched: BTreeMap<CallId, Timestamp>,
    /// How many calls are with the caller.
    pub at_caller: u32,
    /// Timers that have not fired.
    pub timers: BTreeMap<TimerId, Timestamp>,
    /// How many timers were ever set.
    pub timers_set: TimerId,
    /// Every question asked; `None` while it is open.
    pub questions: BTreeMap<QuestionId, (Question, Option<Answer>)>,
    /// Their ids, in the order in which they were asked.
    pub asked: Vec<QuestionId>,
    /// Tools, each in one edition, that this execution may call again without asking.
    pub remembered: BTreeSet<(ToolPath, ToolRevision)>,
    /// How many inputs the guest was given.
    pub inputs: InputIndex,
    /// Fingerprints of what the guest printed and emitted, in order.
    pub outputs: Vec<(OutputMark, ArgumentsDigest)>,
    /// Bytes of arguments, results and output so far.
    pub bytes: u64,
    /// Bytes of log lines so far.
    pub log_bytes: u64,
    /// The progress that tools have reported.
    pub progress_bytes: usize,
    /// The number of inputs when it last paused.
    pub rested: Option<InputIndex>,
    /// Since when it is paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// Active time used, as last recorded.
    pub active_ms: u64,
    /// How many recoveries have failed since it last ran.
    pub recoveries_failed: u32,
    /// Whether entries may be lost: calls that are not read-only may have been dispatched before.
    pub entries_may_be_lost: bool,
    /// Calls that a person was asked about since then, because it is unknown whether they ran.
    pub doubts_asked: BTreeSet<CallId>,
    /// The execution's outcome.
    pub outcome: Option<ExecutionOutcome>,
}

/// How an execution began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOrigin {
    /// The time of the start.
    pub at: Timestamp,
    /// The program.
    pub program: Program,
    /// The caller that owns it.
    pub caller: CallerName,
    /// The limits of the execution.
    pub limits: ExecutionLimits,
    /// The seed of its randomness.
    pub seed: RandomSeed,
    /// The rules of its door.
    pub terms: Box<CallRules>,
}

/// The phase of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExecutionPhase {
    /// No event yet.
    #[default]
    Unborn,
    /// It makes progress, or would if a server had loaded it.
    Running,
    /// Everything waits for people or for the caller.
    Paused,
    /// It could not be recovered; a person must decide.
    Parked,
    /// It has ended.
    Finished,
}

/// The outcome of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// A value, or `undefined`.
    Completed {
        /// The value; `None` is `undefined`.
        #[serde(
            default,
            deserialize_with = "crate::json::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Json>,
    },
    /// A failure.
    Failed(Failure),
    /// A caller cancelled it.
    Cancelled {
        /// The caller that cancelled it.
        by: CallerName,
        /// The reason, if one was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// An execution's line in the list of executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionSummary {
    /// Its phase.
    pub phase: ExecutionPhase,
    /// The caller that owns it.
    pub caller: CallerName,
    /// When it must wake without an intent: for a timer, or at the end of its total time.
    pub due: Option<Timestamp>,
}

impl State {
    /// Applies `event`, which happened at `at`.
    pub fn apply(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::Started { program, caller, limits, seed, terms } => {
                let (program, caller, terms) = (program.clone(), caller.clone(), terms.clone());
                let (limits, seed) = (*limits, *seed);
                self.origin = Some(ExecutionOrigin { at, program, caller, limits, seed, terms });
                self.phase = ExecutionPhase::Running;
            }
            Event::Prepared(prepared) => self.prepared = Some(prepared.clone()),
            Event::Logged { mark, line, .. } => {
                self.log_bytes += line.len() as u64;
                self.remember_output(*mark, line);
            }
            Event::Emitted { mark, item } => self.remember_output(*mark, item.as_text()),
            Event::CallMade { call, tool, args, nature, alias, line: _ } => {
                self.bytes += args.as_text().len() as u64;
                self.held += 1;
                self.calls.insert(*call, Call::held(tool, alias.as_ref(), *nature, args));
            }
            Event::CallAsked(question) => self.record_question(question),
            Event::CallAnswered { question, call, answer, remember, arguments, .. } => {
                if let Some(edited) = arguments {
                    self.edit(*call, edited);
                }
                self.record_answer(*question, *call, answer, *remember);
                self.go_on_inside(*call, at);
                self.phase = ExecutionPhase::Running;
            }
            Event::CallDeferred { call } => self.defer(*call),
            Event::CallAdmitted { call, nature, revision } => {
                self.record_admission(*call, *nature, *revision);
            }
            Event::CallDispatched { call, attempt } => self.dispatch(*call, *attempt, at),
            Event::CallProgressed { call, text } => self.progress(*call, text),
            Event::CallSettled { call, outcome } => self.record_outcome(*call, outcome),
            Event::TimerSet { timer, due } => {
                self.timers_set = *timer;
                self.timers.insert(*timer, *due);
            }
            Event::TimerCleared { timer } => drop(self.timers.remove(timer)),
            Event::TimerFired { timer } => {
                self.timers.remove(timer);
                self.inputs = self.inputs.next();
                self.phase = ExecutionPhase::Running;
            }
            Event::Paused { inputs, active_ms } => {
                self.paused_at = Some(at);
                self.rested = Some(*inputs);
                self.active_ms = *active_ms;
                self.recoveries_failed = 0;
                self.phase = ExecutionPhase::Paused;
            }
            Event::RecoveryFailed { .. } => self.recoveries_failed += 1,
            Event::Parked => self.phase = ExecutionPhase::Parked,
            Event::EntriesMayBeLost => self.lose_entries(),
            Event::Continued { .. } => self.continue_parked(),
            Event::LimitReached { .. } => {}
            Event::Finished { outcome, active_ms, .. } => {
                self.timers.clear();
                self.dispatched.clear();
                self.active_ms = *active_ms;
                self.outcome = Some(outcome.clone());
                self.phase = ExecutionPhase::Finished;
            }
        }
    }

    /// The limits; before the start, the defaults.
    pub fn limits(&self) -> ExecutionLimits {
        self.origin.as_ref().map(|origin| origin.limits).unwrap_or_default()
    }

    /// Open questions, oldest first.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        let asked = self.asked.iter().filter_map(|id| self.questions.get(id));
        asked
            .filter(|(_, answer)| answer.is_none() && self.phase != ExecutionPhase::Finished)
            .map(|(question, _)| question)
    }

    /// The question by which `call` asked for the same in an earlier attempt, and its answer. Those in
    /// `heard` were asked in this attempt.
    pub fn asked_before(
        &self,
        call: CallId,
        wish: &ToolPrompt,
        heard: &[QuestionId],
    ) -> Option<(QuestionId, Option<Answer>)> {
        let seed = &self.origin.as_ref()?.seed;
        let same = |(question, _): &&(Question, _)| {
            question.call == call
                && !heard.contains(&question.id)
                && *question == wish.clone().question(question.id, call, seed)
        };
        let (question, answer) =
            self.asked.iter().filter_map(|id| self.questions.get(id)).find(same)?;
        Some((question.id, answer.clone()))
    }

    /// Whether every call that is not settled waits for a person.
    pub const fn only_people_can_help(&self) -> bool {
        self.held > 0 && self.in_flight == 0
    }

    /// Whether every call that is not settled waits for a person or for its source.
    pub const fn waits_for_people_or_sources(&self) -> bool {
        self.held + self.deferred > 0 && self.in_flight == self.deferred
    }

    /// The question about `call` that a person accepted last, if the call is dispatched because of that.
    pub fn accepted(&self, call: CallId) -> Option<&Question> {
        let asked = self.asked.iter().rev().filter_map(|id| self.questions.get(id));
        let mut of_call =
            asked.filter(|(question, _)| question.call == call && !question.kind.is_of_the_tool());
        match of_call.next() {
            Some((question, Some(Answer::Accept { .. }))) => Some(question),
            Some((_, Some(Answer::Decline | Answer::Cancel) | None)) | None => None,
        }
    }

    /// Whether every call that is not settled waits for a person or for the caller.
    pub const fn only_others_can_help(&self) -> bool {
        self.held + self.at_caller > 0 && self.in_flight == self.at_caller
    }

    /// Since when the active clock runs although no guest does: a pause in which the caller works.
    pub fn active_at_rest(&self) -> Option<Timestamp> {
        let counts = match self.limits().active_clock {
            ActiveClock::StopsForCallsAndQuestions => false,
            ActiveClock::StopsForQuestions => self.at_caller > 0,
        };
        self.paused_at.filter(|_| counts && self.phase == ExecutionPhase::Paused)
    }

    /// Calls whose time limit has passed at `now`, oldest first.
    pub fn calls_overdue(&self, now: Timestamp) -> Vec<CallId> {
        let ms = self.limits().call_ms_max;
        let overdue = |since: &Timestamp| since.after_ms(ms) <= now;
        self.dispatched.iter().filter(|(_, since)| overdue(since)).map(|(call, _)| *call).collect()
    }

    /// When a pause has lasted too long.
    pub fn idle_until(&self) -> Option<Timestamp> {
        let since = self.paused_at.filter(|_| self.phase == ExecutionPhase::Paused)?;
        Some(since.after_ms(self.limits().idle_ms_max))
    }

    /// The line for the list of executions.
    pub fn standing(&self) -> Option<ExecutionSummary> {
        let caller = self.origin.as_ref()?.caller.clone();
        Some(ExecutionSummary { phase: self.phase, caller, due: self.due() })
    }

    /// When it must wake without an intent: for the next timer, or at the next deadline.
    pub fn due(&self) -> Option<Timestamp> {
        let origin = self.origin.as_ref()?;
        if matches!(self.phase, ExecutionPhase::Parked | ExecutionPhase::Finished) {
            return None;
        }
        let limits = &origin.limits;
        let active = self
            .active_at_rest()
            .map(|since| since.after_ms(limits.active_ms_max.saturating_sub(self.active_ms)));
        let call = self.dispatched.values().min().map(|since| since.after_ms(limits.call_ms_max));
        let timer = self.timers.values().min().copied();
        let total = Some(origin.at.after_ms(limits.total_ms_max));
        [total, timer, call, active, self.idle_until()].into_iter().flatten().min()
    }

    /// How durable `event` must be before the engine acts on it.
    pub fn strength(&self, event: &Event) -> WriteStrength {
        match event {
            Event::CallAsked(_) | Event::CallAnswered { .. } => WriteStrength::Synced,
            Event::CallDispatched { call, .. } | Event::CallSettled { call, .. } => {
                match self.calls.get(call) {
                    Some(call) if call.nature.read_only => WriteStrength::Written,
                    Some(_) | None => WriteStrength::Synced,
                }
            }
            Event::Started { .. }
            | Event::Prepared(_)
            | Event::Logged { .. }
            | Event::Emitted { .. }
            | Event::CallMade { .. }
            | Event::CallDeferred { .. }
            | Event::CallAdmitted { .. }
            | Event::CallProgressed { .. }
            | Event::TimerSet { .. }
            | Event::TimerCleared { .. }
            | Event::TimerFired { .. }
            | Event::Paused { .. }
            | Event::RecoveryFailed { .. }
            | Event::LimitReached { .. }
            | Event::Finished { .. } => WriteStrength::Written,
            // Parked executions stay parked after a power failure: a person decides how to continue.
            Event::Parked | Event::EntriesMayBeLost | Event::Continued { .. } => {
                WriteStrength::Synced
            }
        }
    }

    fn remember_output(&mut self, mark: OutputMark, text: &str) {
        self.bytes += text.len() as u64;
        self.outputs.push((mark, ArgumentsDigest::from_text(text)));
    }

    fn lose_entries(&mut self) {
        self.entries_may_be_lost = true;
        self.doubts_asked.clear();
    }

    fn continue_parked(&mut self) {
        self.recoveries_failed = 0;
        self.phase = ExecutionPhase::Running;
    }

    /// Whether a call may have run without an entry in this journal, and no person was asked about it.
    pub fn is_in_doubt(&self, call: CallId, nature: ToolNature) -> bool {
        self.entries_may_be_lost && !nature.read_only && !self.doubts_asked.contains(&call)
    }
}
