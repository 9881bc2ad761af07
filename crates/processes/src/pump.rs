//! The one task of a process: moves its output and its input, and orders the events: output, then the exit,
//! then the remaining output of background children, then the end.

use crate::output::{ProcessOutput, RETAINED_BYTES_MAX};
use crate::process::{EndMode, PumpRequest, WISHES_MAX};
use crate::spawn_order::{REPORT_BYTES, SubreaperReport, SubreaperRequest};
use crate::streams::{InputSink, OutputSource, ParentEnds, StreamRead};
use crate::subreaper_pool::{SubreaperLink, SubreaperPool};
use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The exit code of a program whose end was not observed: its subreaper was killed, and the program with
/// it.
const KILLED: i32 = 137;

/// A terminal's last output passes through a queue of the kernel and may be delayed. The terminal then
/// closes by itself, unless a background child holds it open.
const LAST_WORDS_TIME: Duration = Duration::from_millis(100);

/// Ends a terminal's input.
const CTRL_D: &[u8] = &[4];

/// The same within a line: the first only submits what was typed so far.
const TWICE_CTRL_D: &[u8] = &[4, 4];

/// After these bytes the line is empty: its two ends, Ctrl-D, and the keys that discard it: Ctrl-C, Ctrl-U,
/// Ctrl-Z, Ctrl-\.
const NO_LINE: &[u8] = b"\n\r\x04\x03\x15\x1a\x1c";

pub(crate) struct ProcessPump {
    /// The connection to the subreaper, while a process of the family lives.
    link: Option<SubreaperLink>,
    subreapers: Arc<SubreaperPool>,
    report: [u8; REPORT_BYTES],
    n_report: usize,
    wishes: mpsc::Receiver<PumpRequest>,
    output: Arc<ProcessOutput>,
    sources: Vec<StreamListener>,
    input: Option<InputSink>,
    is_terminal: bool,
    unwritten: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    /// Whether a line was begun and not ended.
    has_begun_line: bool,
    closes_input: bool,
    phase: PumpPhase,
    kill_at: Option<Instant>,
}

/// A stream and its state.
struct StreamListener {
    source: OutputSource,
    is_open: bool,
    /// Whether all output from before the exit was read.
    is_drained: bool,
}

/// The phase of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PumpPhase {
    Running,
    /// It has ended; its last output is being read.
    Ending {
        code: i32,
        until: Instant,
        heard_bytes: usize,
    },
    /// Its exit was reported.
    Exited,
    /// The end of its output was reported.
    Closed,
}

impl ProcessPump {
    pub(crate) fn new(
        link: SubreaperLink,
        subreapers: Arc<SubreaperPool>,
        ends: ParentEnds,
        output: Arc<ProcessOutput>,
    ) -> (Self, mpsc::Sender<PumpRequest>) {
        let (sender, wishes) = mpsc::channel(WISHES_MAX);
        let listen = |source| StreamListener { source, is_open: true, is_drained: false };
        let pump = Self {
            link: Some(link),
            subreapers,
            report: [0; REPORT_BYTES],
            n_report: 0,
            wishes,
            output,
            sources: ends.sources.into_iter().map(listen).collect(),
            input: ends.input,
            is_terminal: ends.terminal.is_some(),
            unwritten: VecDeque::new(),
            has_begun_line: false,
            closes_input: false,
            phase: PumpPhase::Running,
            kill_at: None,
        };
        (pump, sender)
    }

    /// Runs until all events are reported and no process is left. `stopping` ends the family; dropping the
    /// last handle of the process cancels it as well.
    pub(crate) async fn run(mut self, stopping: CancellationToken) {
        let mut is_wanted = true;
        while self.has_family() || self.phase != PumpPhase::Closed {
            let has_room = self.output.has_room();
            tokio::select! {
                biased;
                // Without a family, requests are not awaited, but output is: there may be much of it.
                Some(wanted) = self.wishes.recv(), if self.has_family() => self.want(wanted),
                () = stopping.cancelled(), if is_wanted => is_wanted = self.give_up(),
                report = next_report(&mut self.link, &mut self.report, &mut self.n_report),
                    if self.has_family() => self.hear_report(report),
                idx = next_ready(&self.sources), if has_room => self.read_stream(idx),
                () = self.output.room(), if !has_room => {}
                written = write(&self.input, &self.unwritten) => self.wrote(written),
                () = last_words(self.phase), if has_room => self.finish_last_words(),
                () = sleep_until(self.kill_at) => self.kill(),
            }
            self.advance();
        }
    }

    fn want(&mut self, wanted: PumpRequest) {
        match wanted {
            PumpRequest::Write(bytes, room) => {
                if self.input.is_some() && !self.closes_input {
                    self.enqueue_input(bytes, Some(room));
                }
            }
            PumpRequest::CloseInput if self.is_terminal => {
                let end = if self.has_begun_line { TWICE_CTRL_D } else { CTRL_D };
                self.enqueue_input(Bytes::from_static(end), None);
            }
            PumpRequest::CloseInput => self.closes_input = true,
            PumpRequest::Signal(signal) => self.wish(SubreaperRequest::Signal(signal)),
            PumpRequest::End(EndMode::Kill) => self.kill(),
            PumpRequest::End(EndMode::Ask { signal, grace }) => {
                self.wish(SubreaperRequest::Signal(signal));
                let kill_at = Instant::now() + grace;
                self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
            }
        }
    }

    fn enqueue_input(&mut self, bytes: Bytes, room: Option<OwnedSemaphorePermit>) {
        // Empty input is not written: it would have no effect.
        let Some(last) = bytes.last() else { return };
        self.has_begun_line = !NO_LINE.contains(last);
        self.unwritten.push_back((bytes, room));
    }

    /// No handle of the process is left: it is killed, and output is no longer limited.
    fn give_up(&mut self) -> bool {
        self.output.release(u64::MAX);
        self.kill();
        false
    }

    fn kill(&mut self) {
        self.kill_at = None;
        self.wish(SubreaperRequest::KillAll);
    }

    fn wish(&self, wish: SubreaperRequest) {
        if let Some(link) = &self.link {
            // A few bytes always fit, and a subreaper that has ended needs no request.
            let _ = link.stream.try_write(&[wish.to_byte()]);
        }
    }

    const fn has_family(&self) -> bool {
        self.link.is_some()
    }

    fn hear_report(&mut self, report: Option<SubreaperReport>) {
        match report {
            Some(SubreaperReport::Exited { code }) => self.ended(code),
            Some(SubreaperReport::Exceeded { excess }) => self.output.exceeded(excess),
            Some(
                SubreaperReport::Started { .. }
                | SubreaperReport::Failed { .. }
                | SubreaperReport::Uncaged { .. },
            ) => {}
            Some(SubreaperReport::Empty) | None => {
                // A subreaper without processes can be reused; one that was killed cannot.
                if let (Some(link), Some(_)) = (self.link.take(), report) {
                    self.subreapers.return_subreaper(link);
                }
                self.wishes.close();
                // Their last output may not have been read yet.
                for listener in &mut self.sources {
                    listener.is_drained = !listener.is_open;
                }
                // The subreaper itself was killed.
                if self.phase == PumpPhase::Running {
                    self.ended(KILLED);
                }
            }
        }
    }

    fn ended(&mut self, code: i32) {
        let until = Instant::now() + LAST_WORDS_TIME;
        self.phase = PumpPhase::Ending { code, until, heard_bytes: 0 };
        self.unwritten.clear();
    }

    fn read_stream(&mut self, idx: usize) {
        let listener = &mut self.sources[idx];
        match listener.source.read_announced() {
            StreamRead::Bytes(bytes) => {
                if let PumpPhase::Ending { heard_bytes, .. } = &mut self.phase {
                    *heard_bytes += bytes.len();
                }
                self.output.append_bytes(listener.source.stream, bytes);
                if self.is_terminal && self.phase == PumpPhase::Running {
                    self.answer_queries();
                }
            }
            StreamRead::Nothing => {}
            StreamRead::End => (listener.is_open, listener.is_drained) = (false, true),
        }
    }

    /// Answers the program's queries to its terminal, unless a client's own terminal does.
    fn answer_queries(&mut self) {
        if let (Some(answers), Some(_)) = (self.output.answers(), &self.input) {
            self.enqueue_input(answers.into(), None);
        }
    }

    /// Checks whether the next event can be reported.
    fn advance(&mut self) {
        if self.closes_input && self.unwritten.is_empty() && !self.is_terminal {
            self.input = None;
        }
        if let PumpPhase::Ending { code, until, heard_bytes } = self.phase {
            let heard_bytes = heard_bytes + self.drain();
            self.phase = PumpPhase::Ending { code, until, heard_bytes };
            // A background child that writes continuously does not delay the exit.
            let is_heard = self.sources.iter().all(|listener| listener.is_drained);
            if is_heard || heard_bytes > RETAINED_BYTES_MAX {
                self.output.exited(code);
                self.phase = PumpPhase::Exited;
            }
        }
        if self.phase == PumpPhase::Exited {
            if !self.has_family() {
                // Any other process that still holds a stream open was not started by this one.
                self.drain();
                for listener in &mut self.sources {
                    listener.is_open &= !listener.is_drained;
                }
            }
            if self.sources.iter().all(|listener| !listener.is_open) {
                self.output.closed();
                self.phase = PumpPhase::Closed;
                self.input = None;
            }
        }
    }

    /// Reads the available output without waiting, and counts it. A pipe that is empty now holds nothing
    /// from before the exit; a terminal may.
    fn drain(&mut self) -> usize {
        let (mut n_bytes, has_family) = (0, self.has_family());
        for listener in &mut self.sources {
            while !listener.is_drained && n_bytes <= RETAINED_BYTES_MAX && self.output.has_room() {
                match listener.source.hear_now() {
                    StreamRead::Bytes(bytes) => {
                        n_bytes += bytes.len();
                        self.output.append_bytes(listener.source.stream, bytes);
                    }
                    StreamRead::Nothing if self.is_terminal && has_family => break,
                    StreamRead::Nothing => listener.is_drained = true,
                    StreamRead::End => (listener.is_open, listener.is_drained) = (false, true),
                }
            }
        }
        n_bytes
    }

    fn finish_last_words(&mut self) {
        for listener in &mut self.sources {
            listener.is_drained = true;
        }
    }

    fn wrote(&mut self, written: std::io::Result<usize>) {
        match (written, self.unwritten.front_mut()) {
            (Ok(n), Some((bytes, _))) => {
                bytes.advance(n);
                if bytes.is_empty() {
                    self.unwritten.pop_front();
                }
            }
            (Err(_), _) | (_, None) => {
                // No process reads it, or ever will.
                self.unwritten.clear();
                self.closes_input = true;
            }
        }
    }
}

/// Waits until a terminal's last output must have arrived.
async fn last_words(phase: PumpPhase) {
    match phase {
        PumpPhase::Ending { until, .. } => tokio::time::sleep_until(until).await,
        PumpPhase::Running | PumpPhase::Exited | PumpPhase::Closed => std::future::pending().await,
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next report; `None` when the subreaper has ended. Dropping the future loses nothing.
async fn next_report(
    link: &mut Option<SubreaperLink>,
    report: &mut [u8; REPORT_BYTES],
    n_report: &mut usize,
) -> Option<SubreaperReport> {
    let link = &mut link.as_mut()?.stream;
    while *n_report < REPORT_BYTES {
        match link.read(&mut report[*n_report..]).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => *n_report += n,
        }
    }
    *n_report = 0;
    SubreaperReport::from_bytes(*report)
}

/// Waits until a stream is readable; for ever when all are closed.
async fn next_ready(sources: &[StreamListener]) -> usize {
    let ready = async |idx: usize| match sources.get(idx) {
        Some(listener) if listener.is_open => listener.source.ready().await,
        Some(_) | None => std::future::pending().await,
    };
    tokio::select! {
        () = ready(0) => 0,
        () = ready(1) => 1,
    }
}

async fn write(
    input: &Option<InputSink>,
    unwritten: &VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
) -> std::io::Result<usize> {
    match (input, unwritten.front()) {
        (Some(input), Some((bytes, _))) => input.write(bytes).await,
        (Some(_), None) | (None, _) => std::future::pending().await,
    }
}
