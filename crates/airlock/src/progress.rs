//! A progress line at the bottom of a terminal that shows what an execution does. In a pipe there is none.

use crate::print;
use client::EventKind;
use lifecycle::{CallId, Event};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthChar as _;

/// How often the line is redrawn.
const BETWEEN_FRAMES: Duration = Duration::from_millis(100);

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The number of running tools that are named; more would push the clock off the line.
const NAMED_MAX: usize = 2;

/// The activity of an execution, according to its events.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_shown: bool,
    is_drawn: bool,
    began: Instant,
    doing: BTreeMap<CallId, String>,
    asking: BTreeMap<CallId, String>,
    n_done: u32,
    /// The last progress message of a running tool, with its call.
    words: Option<(CallId, String)>,
}

impl ProgressLine {
    /// Creates an empty line. It is shown where stderr is a terminal that can redraw one.
    pub(crate) fn new() -> Self {
        Self::if_wanted(true)
    }

    /// Like `new`, where progress is wanted.
    pub(crate) fn if_wanted(is_wanted: bool) -> Self {
        Self {
            is_shown: is_wanted && print::can_redraw(),
            is_drawn: false,
            began: Instant::now(),
            doing: BTreeMap::new(),
            asking: BTreeMap::new(),
            n_done: 0,
            words: None,
        }
    }

    /// Applies an event.
    pub(crate) fn handle_event(&mut self, happened: &EventKind) {
        match happened {
            EventKind::Call { call, tool, .. } => self.called(*call, tool),
            EventKind::Question { call, .. } => self.asked(*call),
            EventKind::Answer { call, .. } => self.answered(*call),
            EventKind::Progress { call, text } => self.heard(*call, text),
            EventKind::Settled { call, .. } => self.settled(*call),
            EventKind::Started { .. }
            | EventKind::Prepared
            | EventKind::Log { .. }
            | EventKind::Emitted { .. }
            | EventKind::Deferred { .. }
            | EventKind::Admitted { .. }
            | EventKind::Dispatched { .. }
            | EventKind::TimerSet { .. }
            | EventKind::TimerCleared { .. }
            | EventKind::TimerFired { .. }
            | EventKind::Paused
            | EventKind::RecoveryFailed { .. }
            | EventKind::Parked
            | EventKind::LimitReached { .. }
            | EventKind::Finished { .. }
            | EventKind::Other { .. } => {}
        }
    }

    /// Applies an event of an execution in this process.
    pub(crate) fn hear_event(&mut self, event: &Event) {
        match event {
            Event::CallMade { call, tool, .. } => self.called(*call, tool.as_str()),
            Event::CallAsked(question) => self.asked(question.call),
            Event::CallAnswered { call, .. } => self.answered(*call),
            Event::CallProgressed { call, text } => self.heard(*call, text),
            Event::CallSettled { call, .. } => self.settled(*call),
            Event::Started { .. }
            | Event::Prepared(_)
            | Event::Logged { .. }
            | Event::Emitted { .. }
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

    fn called(&mut self, call: CallId, tool: &str) {
        self.doing.insert(call, tool.to_owned());
    }

    fn asked(&mut self, call: CallId) {
        let tool = self.doing.get(&call).cloned().unwrap_or_default();
        self.asking.insert(call, tool);
    }

    fn answered(&mut self, call: CallId) {
        self.asking.remove(&call);
    }

    fn heard(&mut self, call: CallId, text: &str) {
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        if let Some(last) = last {
            self.words = Some((call, last.to_owned()));
        }
    }

    fn settled(&mut self, call: CallId) {
        self.words.take_if(|(of, _)| *of == call);
        self.asking.remove(&call);
        self.n_done += u32::from(self.doing.remove(&call).is_some());
    }

    /// Resolves when the line should be redrawn; never where it is not shown.
    pub(crate) async fn due(&self) {
        match self.is_shown {
            true => tokio::time::sleep(BETWEEN_FRAMES).await,
            false => std::future::pending().await,
        }
    }

    /// Draws the line over the previous one.
    pub(crate) fn draw(&mut self) {
        if self.is_shown {
            print::redraw(&cut(&self.line(), print::width()));
            self.is_drawn = true;
        }
    }

    /// Removes the line, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            print::redraw("");
        }
    }

    fn line(&self) -> String {
        let waited = self.began.elapsed();
        let frame = waited.as_millis() / BETWEEN_FRAMES.as_millis();
        let frame = FRAMES[usize::try_from(frame).unwrap_or(0) % FRAMES.len()];
        format!("{frame} {} · {} s", self.said(), waited.as_secs())
    }

    fn said(&self) -> String {
        let (asking, is_asked) = match self.asking.is_empty() {
            true => (&self.doing, false),
            false => (&self.asking, true),
        };
        let named: Vec<_> =
            asking.values().take(NAMED_MAX).map(|tool| print::tamed(tool)).collect();
        let more = asking.len().saturating_sub(NAMED_MAX);
        let mut said = match (named.is_empty(), is_asked) {
            (true, _) => "running".to_owned(),
            (false, true) => format!("waits for an answer: {}", named.join(", ")),
            (false, false) => named.join(", "),
        };
        if more > 0 {
            said.push_str(&format!(" and {more} more"));
        }
        if let (Some((_, words)), false) = (&self.words, is_asked) {
            said.push_str(&format!(": {}", print::tamed(words)));
        }
        match self.n_done {
            0 => said,
            1 => said + " · 1 call done",
            n => said + &format!(" · {n} calls done"),
        }
    }
}

/// As much of a line as fits into so many columns without the last one, where terminals wrap.
pub(crate) fn cut(line: &str, n_columns: usize) -> String {
    let mut left = n_columns.saturating_sub(1);
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let is_in = width <= left;
        left = if is_in { left - width } else { 0 };
        is_in
    };
    line.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::EventOutcome;
    use lifecycle::Json;

    fn call(n: u32, tool: &str) -> EventKind {
        EventKind::Call { call: CallId(n), tool: tool.into(), args: Json::null() }
    }

    #[test]
    fn the_line_says_what_is_under_way_and_what_asks() {
        let mut progress = ProgressLine::new();
        assert_eq!(progress.said(), "running");
        (1..=3).for_each(|n| progress.handle_event(&call(n, &format!("a.t{n}"))));
        assert_eq!(progress.said(), "a.t1, a.t2 and 1 more");
        progress
            .handle_event(&EventKind::Progress { call: CallId(1), text: "half\nmore\n\n".into() });
        assert_eq!(progress.said(), "a.t1, a.t2 and 1 more: more");
        let ended = EventOutcome::Completed { result: None };
        progress.handle_event(&EventKind::Settled { call: CallId(1), ended });
        let id = "exec_00000000-0000-0000-0000-000000000002".parse().unwrap();
        progress.handle_event(&EventKind::Question { id, call: CallId(3), message: "?".into() });
        assert_eq!(progress.said(), "waits for an answer: a.t3 · 1 call done");
    }

    #[test]
    fn the_line_never_wraps_however_wide_its_letters_are() {
        assert_eq!(cut("abcdef", 4), "abc");
        assert_eq!(cut("漢字漢字", 6), "漢字");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("abc", 80), "abc");
    }
}
