//! The view of a journal for MCP clients: Executor's view, and the items emitted beside the result.

use crate::journal_views::JournalView;
use lifecycle::{CallerName, Entry, Event, Json, LogLevel, QuestionId, Seq, Timestamp, ToolPath};
use protocols::executor::{ExecutionView, WaitEnd};
use std::collections::BTreeMap;

/// Maximum length of a tool's line that is reported as progress.
const WORDS_CHARS_MAX: usize = 200;

/// What ends the wait.
#[derive(Debug, Clone, Copy)]
pub(super) enum NarrationEnd {
    /// A question or the end, once everything up to here has been read.
    Now(Seq),
    /// The event that follows the answer to this question.
    After(QuestionId),
}

impl NarrationEnd {
    /// The first question or end of a new execution.
    pub(super) const START: Self = Self::Now(Seq(0));
}

/// The state of an execution according to its journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpExecutionView {
    pub(super) account: ExecutionView,
    /// The items that the program emitted, in order.
    pub(super) emitted: Vec<Json>,
    /// The lines that it printed, as `[level] line`.
    pub(super) logs: Vec<String>,
    /// When it started.
    pub(super) began: Timestamp,
    /// The time of its newest entry.
    pub(super) changed: Timestamp,
    answered_by: BTreeMap<QuestionId, CallerName>,
    n_calls: u32,
    last_call: Option<ToolPath>,
    /// The last line that a running tool has reported.
    last_words: Option<String>,
}

impl JournalView for McpExecutionView {
    fn apply(&mut self, entry: &Entry) {
        self.handle_entry(entry);
    }

    fn last(&self) -> Seq {
        self.account.last()
    }

    fn held_bytes(&self) -> usize {
        let emitted = self.emitted.iter().map(|item| item.as_text().len());
        let logs = self.logs.iter().map(|line| line.len() + size_of::<String>());
        self.account.held_bytes() + emitted.chain(logs).sum::<usize>()
    }
}

impl McpExecutionView {
    pub(super) fn handle_entry(&mut self, entry: &Entry) {
        self.account.handle_entry(entry);
        self.changed = entry.at;
        match &entry.event {
            Event::Started { .. } => self.began = entry.at,
            Event::Emitted { item, .. } => self.emitted.push(item.clone()),
            Event::Logged { level, line, .. } => self.logs.push(printed(*level, line)),
            Event::CallMade { tool, .. } => {
                self.n_calls += 1;
                self.last_call = Some(tool.clone());
                self.last_words = None;
            }
            Event::CallAnswered { question, by, .. } => {
                self.answered_by.insert(*question, by.clone());
            }
            Event::CallProgressed { text, .. } => {
                let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
                self.last_words = last.map(short).or_else(|| self.last_words.take());
            }
            Event::CallSettled { .. } => self.last_words = None,
            Event::Prepared(_)
            | Event::CallAsked(_)
            | Event::CallDeferred { .. }
            | Event::CallAdmitted { .. }
            | Event::CallDispatched { .. }
            | Event::TimerSet { .. }
            | Event::TimerCleared { .. }
            | Event::TimerFired { .. }
            | Event::Paused { .. }
            | Event::RecoveryFailed { .. }
            | Event::Parked
            | Event::EntriesMayBeLost
            | Event::Continued { .. }
            | Event::LimitReached { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// The result for a client that waits for `until`; none while it is not known.
    pub(super) fn wait_result(&self, until: NarrationEnd) -> Option<WaitEnd<'_>> {
        match until {
            NarrationEnd::Now(seq) if self.account.last() < seq => None,
            NarrationEnd::Now(_) => self.account.now(),
            NarrationEnd::After(question) => self.account.after(question),
        }
    }

    /// Who answered a question, if it was answered.
    pub(super) fn answered_by(&self, question: QuestionId) -> Option<&CallerName> {
        self.answered_by.get(&question)
    }

    /// What the execution is doing, as a short progress text.
    pub(super) fn doing(&self) -> String {
        let doing = match (&self.last_call, self.n_calls) {
            (Some(tool), 1) => format!("1 call made: {tool}"),
            (Some(tool), n) => format!("{n} calls made, the newest: {tool}"),
            (None, _) => "running".into(),
        };
        match &self.last_words {
            Some(words) => format!("{doing}: {words}"),
            None => doing,
        }
    }
}

/// Truncates a line to the maximum length.
fn short(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect()
}

fn printed(level: LogLevel, line: &str) -> String {
    let level = match level {
        LogLevel::Debug => "debug",
        LogLevel::Log => "log",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    format!("[{level}] {line}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{CallId, CallOutcome, ToolHost, ToolNature};

    #[test]
    fn who_waits_hears_the_last_line_that_a_tool_at_work_has_said() {
        let mut narration = McpExecutionView::default();
        let mut doing = |event| {
            let seq = narration.account.last().next();
            narration.handle_entry(&Entry { seq, at: Timestamp(0), event });
            narration.doing()
        };
        let (call, tool) = (CallId(1), ToolPath::parse("process.run").unwrap());
        let nature = ToolNature { read_only: false, runs: ToolHost::Here };
        let made =
            Event::CallMade { call, tool, args: Json::null(), nature, line: None, alias: None };
        assert_eq!(doing(made), "1 call made: process.run");
        let said = |text: &str| Event::CallProgressed { call, text: text.to_owned() };
        let expected = "1 call made: process.run: [2mcompiling b";
        assert_eq!(doing(said("compiling a\n\u{1b}[2mcompiling b\n\n")), expected);
        assert_eq!(doing(said("\n")), expected, "an empty line is no news");
        let settled = Event::CallSettled { call, outcome: CallOutcome::Unknown };
        assert_eq!(doing(settled), "1 call made: process.run");
    }
}
