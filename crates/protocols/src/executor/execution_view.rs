//! The state of an execution for Executor's clients: its questions, its answers and its end.

use super::bounded_outputs::BoundedOutputs;
use super::items;
use lifecycle::{
    CallId, CallerName, Entry, Event, ExecutionOutcome, Json, LogLevel, Question, QuestionId, Seq,
    ToolPath,
};
use std::collections::BTreeMap;

/// The state of a journal so far. It is a function of the entries, so every reader sees the same.
#[derive(Debug, Clone, Default)]
pub struct ExecutionView {
    owner: Option<CallerName>,
    calls: BTreeMap<CallId, (ToolPath, Json)>,
    asked: Vec<AskedQuestion>,
    parked: Option<Seq>,
    outcome: Option<ExecutionOutcome>,
    last: Seq,
    /// `[level] line`, in order.
    pub(super) logs: BoundedOutputs<String>,
    /// The items that the program emitted.
    pub(super) items: BoundedOutputs<Json>,
}

/// A question, and the call that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// The question.
    pub question: Question,
    /// The tool of the call.
    pub tool: ToolPath,
    /// The call's arguments.
    pub args: Json,
    at: Seq,
    answered: Option<Seq>,
}

/// An event for which a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd<'a> {
    /// A person must answer a question.
    Asked(&'a AskedQuestion),
    /// The execution has ended.
    Over(&'a ExecutionOutcome),
    /// It could not be brought back after a restart.
    Parked,
}

impl ExecutionView {
    /// Applies the next entry.
    pub fn handle_entry(&mut self, entry: &Entry) {
        self.last = entry.seq;
        match &entry.event {
            Event::Started { caller, .. } => self.owner = Some(caller.clone()),
            Event::Logged { level, line, .. } => {
                let shown = || format!("[{}] {line}", level_name(*level));
                self.logs.add(entry.seq, line.len(), shown);
            }
            Event::Emitted { item, .. } => {
                self.items.add(entry.seq, item.as_text().len(), || items::item_json(item));
            }
            Event::CallMade { call, tool, args, .. } => {
                self.calls.insert(*call, (tool.clone(), args.clone()));
            }
            Event::CallAsked(question) => self.record_question(entry.seq, question),
            Event::CallAnswered { question, call, arguments, .. } => {
                self.parked = None;
                if let (Some(edited), Some((_, args))) = (arguments, self.calls.get_mut(call)) {
                    *args = edited.clone();
                }
                let asked = self.asked.iter_mut().find(|asked| asked.question.id == *question);
                if let Some(asked) = asked {
                    asked.answered = Some(entry.seq);
                }
            }
            Event::CallSettled { call, .. } => self.record_settlement(entry.seq, *call),
            Event::Parked => self.parked = Some(entry.seq),
            Event::Continued { .. } => self.parked = None,
            Event::Finished { outcome, .. } => self.outcome = Some(outcome.clone()),
            Event::Prepared(_)
            | Event::CallDeferred { .. }
            | Event::CallAdmitted { .. }
            | Event::CallDispatched { .. }
            | Event::CallProgressed { .. }
            | Event::TimerSet { .. }
            | Event::TimerCleared { .. }
            | Event::TimerFired { .. }
            | Event::Paused { .. }
            | Event::RecoveryFailed { .. }
            | Event::EntriesMayBeLost
            | Event::LimitReached { .. } => {}
        }
    }

    /// Approximately how much memory it holds.
    pub fn held_bytes(&self) -> usize {
        let calls = self.calls.values().map(|(_, args)| args.as_text().len());
        let asked = self
            .asked
            .iter()
            .map(|asked| asked.args.as_text().len() + asked.question.message.len());
        self.logs.held_bytes() + self.items.held_bytes() + calls.chain(asked).sum::<usize>()
    }

    /// The owner of the execution; `None` before the first entry.
    pub const fn owner(&self) -> Option<&CallerName> {
        self.owner.as_ref()
    }

    /// The number of the last applied entry.
    pub const fn last(&self) -> Seq {
        self.last
    }

    /// Whether it has ever asked a question.
    pub const fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Open questions, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &AskedQuestion> {
        let is_open = |asked: &&AskedQuestion| asked.answered.is_none() && self.outcome.is_none();
        self.asked.iter().filter(is_open)
    }

    /// The execution's end, that it is parked, or its oldest open question; `None` while it runs. The
    /// questions of a parked execution accept no answer.
    pub fn now(&self) -> Option<WaitEnd<'_>> {
        self.now_among(|_| true)
    }

    /// The same, considering only some of its open questions.
    pub fn now_among(&self, counts: impl Fn(&AskedQuestion) -> bool) -> Option<WaitEnd<'_>> {
        let asked = || self.open().find(|asked| counts(asked)).map(WaitEnd::Asked);
        self.wait_end().or(self.parked()).or_else(asked)
    }

    /// How it ended, if it did.
    pub fn wait_end(&self) -> Option<WaitEnd<'_>> {
        self.outcome.as_ref().map(WaitEnd::Over)
    }

    /// That it is parked, if it is.
    pub fn parked(&self) -> Option<WaitEnd<'_>> {
        self.parked.map(|_| WaitEnd::Parked)
    }

    /// The event after the last of several answers.
    pub fn after_all(&self, ids: &[QuestionId]) -> Option<WaitEnd<'_>> {
        let asked = self.asked.iter().filter(|asked| ids.contains(&asked.question.id));
        let last = asked.max_by_key(|asked| (asked.answered.is_none(), asked.answered))?;
        self.after(last.question.id)
    }

    /// The event after the answer to `id`: the oldest question that was open then, otherwise the next one,
    /// otherwise the end. `None` while that is unknown. It never changes once it is known: a client that
    /// repeats an answer gets the same result.
    pub fn after(&self, id: QuestionId) -> Option<WaitEnd<'_>> {
        let answered = self.question(id).and_then(|asked| asked.answered);
        let Some(answered) = answered else { return self.wait_end() };
        let open_then = |asked: &&AskedQuestion| {
            asked.at < answered && asked.answered.is_none_or(|seq| seq > answered)
        };
        let next = self
            .asked
            .iter()
            .find(open_then)
            .or_else(|| self.asked.iter().find(|asked| asked.at > answered));
        next.map(WaitEnd::Asked).or_else(|| self.wait_end()).or(self.parked())
    }

    /// A question, open or answered.
    pub fn question(&self, id: QuestionId) -> Option<&AskedQuestion> {
        self.asked.iter().find(|asked| asked.question.id == id)
    }

    /// A tool may end without waiting for the answers to its questions, which are closed with it.
    fn record_settlement(&mut self, at: Seq, call: CallId) {
        self.calls.remove(&call);
        let of_call = self.asked.iter_mut().filter(|asked| asked.question.call == call);
        of_call.for_each(|asked| asked.answered = asked.answered.or(Some(at)));
    }

    fn record_question(&mut self, at: Seq, question: &Question) {
        // The journal contains the call before its question.
        let Some((tool, args)) = self.calls.get(&question.call).cloned() else { return };
        self.asked.push(AskedQuestion {
            question: question.clone(),
            tool,
            args,
            at,
            answered: None,
        });
    }
}

impl AskedQuestion {
    /// Whether it is unanswered.
    pub const fn is_open(&self) -> bool {
        self.answered.is_none()
    }
}

pub(super) const fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Log => "log",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{QuestionKind, Timestamp, ToolHost, ToolNature, ToolRevision};
    use uuid::Uuid;

    #[test]
    fn a_parked_execution_is_parked_whichever_of_its_questions_count() {
        let call = CallId(1);
        let tool = ToolPath::parse("mail.send").expect("it is a path");
        let args = Json::parse("{}".into()).expect("it is JSON");
        let question = Question {
            id: QuestionId::from_uuid(Uuid::from_u128(1)),
            call,
            kind: QuestionKind::Approval,
            message: "May it?".into(),
            revision: Some(ToolRevision::from_text("")),
            editable: false,
            answer_only: false,
        };
        let nature = ToolNature { read_only: true, runs: ToolHost::Here };
        let mut account = ExecutionView::default();
        let made = Event::CallMade { call, tool, args, nature, line: None, alias: None };
        for (n, event) in [made, Event::CallAsked(question), Event::Parked].into_iter().enumerate()
        {
            if event == Event::Parked {
                assert!(matches!(account.now(), Some(WaitEnd::Asked(_))));
                assert_eq!(account.now_among(|_| false), None);
            }
            account.handle_entry(&Entry { seq: Seq(n as u64 + 1), at: Timestamp(0), event });
        }
        assert_eq!([account.now(), account.now_among(|_| false)], [Some(WaitEnd::Parked); 2]);
    }
}
