//! The screen of a process's terminal, and waiting for text on it. The screen is searched again only after new
//! output.

use super::outbox::RequestReply;
use processes::{CellColor, CellStyle, ProcessOutput, ScreenRow, ScreenSnapshot};
use protocols::exec_server::{
    ByteChunk, ScreenColor, ScreenCursor, ScreenModes, ScreenParams, ScreenResponse, ScreenRun,
    ScreenScrollback, TerminalSize, WaitForParams, WaitForReason, WaitForResponse,
};
use protocols::json_rpc::{ErrorObject, INVALID_PARAMS, INVALID_REQUEST};
use regex::{Regex, RegexBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// Size limit of a compiled pattern.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Maximum wait time; longer requested times are reduced to it.
const WAIT_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Minimum interval between searches of a screen: without it, a program that prints continuously would have its
/// screen searched after every piece of output.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);

/// `process/screen`.
pub(super) fn screen_response(output: &ProcessOutput, params: &ScreenParams, reply: RequestReply) {
    let shown = output.screen(|screen| {
        let snapshot = screen.snapshot(params.scrollback.unwrap_or(0));
        let paint = params.paint.then(|| ByteChunk(screen.paint()));
        response(snapshot, params.attributes, paint)
    });
    reply.give(shown.ok_or_else(|| no_terminal(&params.process_id)));
}

pub(super) fn no_terminal(process_id: &str) -> ErrorObject {
    ErrorObject::new(INVALID_REQUEST, format!("process {process_id} has no terminal"))
}

fn response(
    snapshot: ScreenSnapshot,
    has_attributes: bool,
    paint: Option<ByteChunk>,
) -> ScreenResponse {
    let wrapped = snapshot.rows.iter().enumerate().filter(|(_, row)| row.is_wrapped);
    let attributes = has_attributes.then(|| snapshot.rows.iter().map(runs).collect());
    ScreenResponse {
        size: TerminalSize { rows: snapshot.size.rows, cols: snapshot.size.columns },
        wrapped: wrapped.map(|(idx, _)| idx).collect(),
        attributes,
        rows: snapshot.rows.into_iter().map(|row| row.text).collect(),
        cursor: ScreenCursor {
            row: snapshot.cursor.row,
            col: snapshot.cursor.column,
            visible: snapshot.cursor.is_visible,
        },
        title: snapshot.title,
        alternate_screen: snapshot.is_alternate,
        scrollback: ScreenScrollback { rows: snapshot.scrollback_rows, offset: snapshot.rows_back },
        modes: ScreenModes {
            application_cursor: snapshot.modes.application_cursor,
            application_keypad: snapshot.modes.application_keypad,
            bracketed_paste: snapshot.modes.bracketed_paste,
            mouse: snapshot.modes.mouse,
        },
        seq: snapshot.seq,
        paint,
    }
}

fn runs(row: &ScreenRow) -> Vec<ScreenRun> {
    let told = |run: &processes::CellRun| {
        let CellStyle { foreground, background, bold, dim, italic, underline, inverse } = run.look;
        let (col, cols) = (run.column, run.columns);
        let (fg, bg) = (color(foreground), color(background));
        ScreenRun { col, cols, fg, bg, bold, dim, italic, underline, inverse }
    };
    row.runs.iter().map(told).collect()
}

const fn color(color: CellColor) -> Option<ScreenColor> {
    match color {
        CellColor::Usual => None,
        CellColor::Index(index) => Some(ScreenColor::Index(index)),
        CellColor::Rgb(red, green, blue) => Some(ScreenColor::Rgb([red, green, blue])),
    }
}

/// The condition to wait for.
struct WaitCondition {
    text: Option<String>,
    regex: Option<Regex>,
    idle: Option<Duration>,
    timeout: Duration,
}

impl WaitCondition {
    fn read(params: WaitForParams, output: &ProcessOutput) -> Result<Self, ErrorObject> {
        let bad = |why: String| ErrorObject::new(INVALID_PARAMS, why);
        let WaitForParams { process_id, text, regex, idle_ms, exit, timeout_ms } = params;
        if text.is_none() && regex.is_none() && idle_ms.is_none() && !exit {
            return Err(bad("waitFor needs text, regex, idleMs or exit".into()));
        }
        if text.as_ref().is_some_and(String::is_empty) {
            return Err(bad("text must not be empty".into()));
        }
        if (text.is_some() || regex.is_some()) && output.screen(|_| ()).is_none() {
            return Err(no_terminal(&process_id));
        }
        let regex = regex.map(|pattern| {
            let mut builder = RegexBuilder::new(&pattern);
            builder.multi_line(true).size_limit(REGEX_BYTES_MAX).build()
        });
        let regex = regex.transpose().map_err(|error| bad(format!("regex: {error}")))?;
        let timeout = timeout_ms.map_or(WAIT_TIME_MAX, Duration::from_millis).min(WAIT_TIME_MAX);
        Ok(Self { text, regex, idle: idle_ms.map(Duration::from_millis), timeout })
    }

    /// Returns the match on the current screen.
    fn is_met(&self, output: &ProcessOutput) -> Option<(WaitForReason, String)> {
        if self.text.is_none() && self.regex.is_none() {
            return None;
        }
        let shown = output.screen(processes::TerminalScreen::visible_text)?;
        if let Some(text) = self.text.as_ref().filter(|text| shown.contains(text.as_str())) {
            return Some((WaitForReason::Text, text.clone()));
        }
        let found = self.regex.as_ref()?.find(&shown)?;
        Some((WaitForReason::Regex, found.as_str().to_owned()))
    }
}

/// `process/waitFor`.
pub(super) fn wait_for(
    output: &Arc<ProcessOutput>,
    params: WaitForParams,
    tasks: &TaskTracker,
    reply: RequestReply,
) {
    let wanted = match WaitCondition::read(params, output) {
        Ok(wanted) => wanted,
        Err(error) => return reply.fail(&error),
    };
    let Some(reply) = reply.waiting() else { return };
    let output = Arc::clone(output);
    tasks.spawn(async move {
        let outbox = reply.outbox().clone();
        tokio::select! {
            (reason, matched) = until(&wanted, &output) => {
                let (exit_code, seq) = (output.exit_code(), output.last_seq());
                reply.send(&WaitForResponse { reason, matched, exit_code, seq });
            }
            () = outbox.closed() => {}
        }
    });
}

async fn until(wanted: &WaitCondition, output: &ProcessOutput) -> (WaitForReason, Option<String>) {
    let give_up_at = Instant::now() + wanted.timeout;
    let mut changes = output.changes();
    loop {
        let looked_at = Instant::now();
        // The exit is checked first: all output before it is then on the screen.
        let has_ended = output.exit_code().is_some();
        if let Some((reason, matched)) = wanted.is_met(output) {
            return (reason, Some(matched));
        }
        if has_ended {
            return (WaitForReason::Exit, None);
        }
        tokio::select! {
            () = changes.next() => {}
            () = after(wanted.idle) => return (WaitForReason::Idle, None),
            () = tokio::time::sleep_until(give_up_at) => return (WaitForReason::Timeout, None),
        }
        tokio::time::sleep_until(give_up_at.min(looked_at + LOOK_EVERY_MIN)).await;
    }
}

async fn after(idle: Option<Duration>) {
    match idle {
        Some(idle) => tokio::time::sleep(idle).await,
        None => std::future::pending().await,
    }
}
