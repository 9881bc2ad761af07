//! The calls of an execution: the stage of each, and how events move a call from one stage to the next. Pure.

use crate::{
    Answer, ArgumentsDigest, CallId, CallOutcome, ExecutionPhase, Json, Question, QuestionId,
    QuestionKind, State, Timestamp, ToolHost, ToolNature, ToolPath, ToolRevision,
};

/// One call by the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub tool: ToolPath,
    /// The name by which the program called it, where its door has given the tool one.
    pub alias: Option<ToolPath>,
    /// The tool's nature.
    pub nature: ToolNature,
    /// Fingerprint of the arguments.
    pub digest: ArgumentsDigest,
    /// The call's stage.
    pub stage: CallStage,
    /// How often it was dispatched.
    pub attempts: u32,
    /// The edition of the tool that a person was asked about, if one was.
    pub revision: Option<ToolRevision>,
    /// The progress that its tool has reported.
    pub progress_bytes: usize,
}

impl Call {
    /// A call that was made and not dispatched yet.
    pub(crate) fn held(
        tool: &ToolPath,
        alias: Option<&ToolPath>,
        nature: ToolNature,
        args: &Json,
    ) -> Self {
        Self {
            tool: tool.clone(),
            alias: alias.cloned(),
            nature,
            digest: args.digest(),
            stage: CallStage::Held(args.clone()),
            attempts: 0,
            revision: None,
            progress_bytes: 0,
        }
    }

    /// The tool, by the name that the program used.
    pub fn said(&self) -> &ToolPath {
        self.alias.as_ref().unwrap_or(&self.tool)
    }
}

/// The stage of a call. The arguments are dropped once they can no longer be needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStage {
    /// Waits for a person.
    Held(Json),
    /// Waits for its source.
    Deferred(Json),
    /// Dispatched to its tool.
    Dispatched(Json),
    /// Dispatched, and its tool waits for a person.
    Asking(Json),
    /// It has ended.
    Settled,
}

impl State {
    pub(crate) fn progress(&mut self, call: CallId, text: &str) {
        let cost = crate::progress::cost(text);
        self.progress_bytes += cost;
        if let Some(call) = self.calls.get_mut(&call) {
            call.progress_bytes += cost;
        }
    }

    pub(crate) fn record_question(&mut self, question: &Question) {
        if self.entries_may_be_lost && question.kind == QuestionKind::InDoubt {
            self.doubts_asked.insert(question.call);
        }
        if question.kind.is_of_the_tool() {
            self.bytes += question.bytes() as u64;
            self.wait_inside(question.call);
        } else {
            self.hold(question.call);
            if let Some(call) = self.calls.get_mut(&question.call) {
                call.revision = question.revision;
            }
        }
        self.asked.push(question.id);
        self.questions.insert(question.id, (question.clone(), None));
    }

    /// Replaces the call's arguments. Its fingerprint stays: a replay makes the program's own call again.
    pub(crate) fn edit(&mut self, call: CallId, edited: &Json) {
        self.bytes += edited.as_text().len() as u64;
        if let Some(call) = self.calls.get_mut(&call)
            && let CallStage::Held(args) = &mut call.stage
        {
            *args = edited.clone();
        }
    }

    fn hold(&mut self, call: CallId) {
        self.dispatched.remove(&call);
        if let Some(args) = self.args(call) {
            self.move_to(call, CallStage::Held(args));
        }
    }

    pub(crate) fn record_answer(
        &mut self,
        question: QuestionId,
        call: CallId,
        answer: &Answer,
        remember: bool,
    ) {
        let Some((asked, given)) = self.questions.get_mut(&question) else { return };
        *given = Some(answer.clone());
        if let (true, Some(revision), Some(call)) =
            (remember, asked.revision, self.calls.get(&call))
        {
            self.remembered.insert((call.tool.clone(), revision));
        }
    }

    /// The source of a deferred call is available, and its tool is known.
    pub(crate) fn record_admission(
        &mut self,
        call: CallId,
        nature: ToolNature,
        revision: Option<ToolRevision>,
    ) {
        self.hold(call);
        if let Some(call) = self.calls.get_mut(&call) {
            (call.nature, call.revision) = (nature, revision);
        }
    }

    /// The call waits for its source. A dispatch that did not reach its tool was no attempt.
    pub(crate) fn defer(&mut self, call: CallId) {
        self.dispatched.remove(&call);
        if let Some(call) = self.calls.get_mut(&call)
            && matches!(call.stage, CallStage::Dispatched(_) | CallStage::Asking(_))
        {
            call.attempts = call.attempts.saturating_sub(1);
        }
        if let Some(args) = self.args(call) {
            self.move_to(call, CallStage::Deferred(args));
        }
        self.phase = ExecutionPhase::Running;
    }

    /// The tool waits for a person.
    fn wait_inside(&mut self, call: CallId) {
        self.dispatched.remove(&call); // people take their time
        if let Some(args) = self.args(call) {
            self.move_to(call, CallStage::Asking(args));
        }
    }

    /// The tool received an answer, and waits for no other.
    pub(crate) fn go_on_inside(&mut self, call: CallId, at: Timestamp) {
        let Some(CallStage::Asking(args)) = self.calls.get(&call).map(|call| call.stage.clone())
        else {
            return;
        };
        if !self.asks_inside(call) {
            self.dispatched.insert(call, at);
            self.move_to(call, CallStage::Dispatched(args));
        }
    }

    /// Whether the call's tool waits for an answer.
    fn asks_inside(&self, call: CallId) -> bool {
        let mut open = self.questions.values().filter(|(_, answer)| answer.is_none());
        open.any(|(question, _)| question.call == call && question.kind.is_of_the_tool())
    }

    pub(crate) fn dispatch(&mut self, call: CallId, attempt: u32, at: Timestamp) {
        if let Some(args) = self.args(call) {
            // A tool that is called again repeats its unanswered questions.
            if self.asks_inside(call) {
                self.move_to(call, CallStage::Asking(args));
            } else {
                self.dispatched.insert(call, at);
                self.move_to(call, CallStage::Dispatched(args));
            }
        }
        if let Some(call) = self.calls.get_mut(&call) {
            call.attempts = attempt;
        }
        self.phase = ExecutionPhase::Running;
    }

    pub(crate) fn record_outcome(&mut self, call: CallId, outcome: &CallOutcome) {
        if let CallOutcome::Returned { value: Some(result) } = outcome {
            self.bytes += result.as_text().len() as u64;
        }
        self.dispatched.remove(&call);
        self.move_to(call, CallStage::Settled);
        // A tool may end without waiting for the answers to its questions.
        for (question, answer) in self.questions.values_mut() {
            if question.call == call && answer.is_none() {
                *answer = Some(Answer::Cancel);
            }
        }
        self.inputs = self.inputs.next();
        self.phase = ExecutionPhase::Running;
    }

    /// The arguments of a call that is not settled.
    pub fn args(&self, call: CallId) -> Option<Json> {
        match &self.calls.get(&call)?.stage {
            CallStage::Held(args)
            | CallStage::Deferred(args)
            | CallStage::Dispatched(args)
            | CallStage::Asking(args) => Some(args.clone()),
            CallStage::Settled => None,
        }
    }

    fn move_to(&mut self, call: CallId, stage: CallStage) {
        let Some(call) = self.calls.get_mut(&call) else { return };
        let at_caller = call.nature.runs == ToolHost::AtCaller;
        let mut count = |stage: &CallStage, by: i32| {
            let counter = match stage {
                CallStage::Held(_) | CallStage::Asking(_) => &mut self.held,
                CallStage::Deferred(_) | CallStage::Dispatched(_) => &mut self.in_flight,
                CallStage::Settled => return,
            };
            *counter = counter.saturating_add_signed(by);
            if matches!(stage, CallStage::Deferred(_)) {
                self.deferred = self.deferred.saturating_add_signed(by);
            }
            if at_caller && matches!(stage, CallStage::Dispatched(_)) {
                self.at_caller = self.at_caller.saturating_add_signed(by);
            }
        };
        count(&call.stage, -1);
        count(&stage, 1);
        call.stage = stage;
    }
}
