//! The host's side of the guest's world: the functions that the prelude may call, and their state. Nothing
//! here holds a JavaScript value, so that a world can always be dropped.

use crate::call_sites::CallSites;
use crate::clock::{CLOCK_READS_MAX, ClockWatch};
use crate::evaluator::EvaluatorState;
use crate::failure::{self, DescribedError, PositionShifts};
use crate::link::LinkWriter;
use crate::loops::InsertedText;
use crate::naming::ProgramSource;
use crate::usage;
use lifecycle::{CallId, InputIndex, LogLevel, OutputMark, TimerId, ToolPath};
use protocols::execbox::wire::{Counted, Emit, Log, RawJson, TimerCleared, TimerSet, ToolCall};
use protocols::execbox::{FromRunner, HOST_PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX};
use rquickjs::{Ctx, Exception, Value};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The state of one world's guest: its outstanding calls, its output and its use of resources.
pub(crate) struct GuestHost {
    pub(crate) outbox: LinkWriter,
    pub(crate) calls: RefCell<BTreeSet<CallId>>,
    pub(crate) timers: RefCell<BTreeSet<TimerId>>,
    /// The position of the next output: inputs received, outputs since the last.
    mark: Cell<OutputMark>,
    /// A timer or microtask threw an error that was not caught.
    pub(crate) crashed: Cell<bool>,
    /// The prelude's description of the last error.
    pub(crate) described: RefCell<Option<DescribedError>>,
    /// By how much positions in the program are shifted by the code that we insert.
    pub(crate) shifts: RefCell<PositionShifts>,
    /// The program that runs, for error messages that name its expressions; `None` if they do not.
    pub(crate) program: RefCell<Option<ProgramSource>>,
    /// The frames of the last error that was described.
    pub(crate) named_frames: RefCell<String>,
    /// Where the outstanding calls were made.
    pub(crate) call_sites: RefCell<CallSites>,
    /// Whether the lines that run are the user's own.
    pub(crate) has_users_lines: Cell<bool>,
    /// Whether the engine is producing a stack, in the middle of which guest code can run.
    pub(crate) is_looking: Cell<bool>,
    /// Additional state for programs of a plain host.
    hosted: RefCell<Option<PlainHostState>>,
    /// Additional state of a session.
    pub(crate) desk: OnceCell<Rc<EvaluatorState>>,
    cpu: GuestCpuMeter,
    /// How often the engine has called the interrupt hook.
    ticks: Cell<u64>,
    /// How many iterations loops have made, if they were counted one by one.
    pub(crate) rounds: Cell<Option<u64>>,
    /// Whether a loop has exceeded the limit of iterations.
    has_looped_too_often: Cell<bool>,
    /// What was inserted into the program to count them.
    pub(crate) words: RefCell<Option<InsertedText>>,
    /// Microtasks that have run since the last poll.
    microtasks: Cell<u32>,
    /// Detects that the guest waits for its clock.
    clock: ClockWatch,
}

/// Additional state for programs of a plain host.
struct PlainHostState {
    /// The prefix of call names.
    execution: String,
    started: Instant,
    time_allowed: Duration,
    /// How many bytes may still be emitted.
    emit_room_bytes: usize,
}

/// Most bytes of items that one program of a plain host may emit: they go into one message with its result.
const EMITTED_BYTES_MAX: usize = 1 << 20;

/// How many microtasks run between two checks of the processor time. The engine itself interrupts long ones.
const MICROTASKS_PER_POLL: u32 = 64;

/// The engine calls the hook once in ten thousand jumps and calls, and each iteration of a loop jumps
/// twice.
const ITERATIONS_PER_TICK: u64 = 5_000;

/// How often a busy guest's count is sent: some dozens of times a second, so that little is missing if it is killed.
const TICKS_PER_COUNT: u64 = 100;

/// Processor time: the allowance of the current turn, and when the turn began.
#[derive(Default)]
struct GuestCpuMeter {
    /// `None` until the first check: most programs end before, which saves a call into the kernel.
    since: Cell<Option<Duration>>,
    allowance: Cell<Duration>,
    exhausted: Cell<bool>,
}

impl GuestHost {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            outbox: LinkWriter::unconnected(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            mark: Cell::default(),
            crashed: Cell::default(),
            described: RefCell::default(),
            shifts: RefCell::default(),
            program: RefCell::default(),
            named_frames: RefCell::default(),
            call_sites: RefCell::default(),
            has_users_lines: Cell::default(),
            is_looking: Cell::default(),
            hosted: RefCell::default(),
            desk: OnceCell::new(),
            cpu: GuestCpuMeter::default(),
            ticks: Cell::default(),
            rounds: Cell::default(),
            has_looped_too_often: Cell::default(),
            words: RefCell::default(),
            microtasks: Cell::default(),
            clock: ClockWatch::default(),
        })
    }

    /// Resets the state as if nothing had run. Only the link stays. A session's world is never used again.
    pub(crate) fn reset_program(&self) {
        let Self {
            outbox: _,
            calls,
            timers,
            mark,
            crashed,
            described,
            shifts,
            program,
            named_frames,
            call_sites,
            has_users_lines,
            is_looking,
            hosted,
            desk: _,
            cpu: GuestCpuMeter { since, allowance, exhausted },
            ticks,
            rounds,
            has_looped_too_often,
            words,
            microtasks,
            clock,
        } = self;
        calls.take();
        timers.take();
        mark.take();
        crashed.take();
        described.take();
        shifts.take();
        program.take();
        named_frames.take();
        call_sites.take();
        has_users_lines.take();
        is_looking.take();
        hosted.take();
        since.take();
        allowance.take();
        exhausted.take();
        ticks.take();
        rounds.take();
        has_looped_too_often.take();
        words.take();
        microtasks.take();
        clock.advance(false);
    }

    /// Makes this the world of a session.
    pub(crate) fn sit(&self, desk: Rc<EvaluatorState>) {
        // A world has one session at most.
        let _ = self.desk.set(desk);
    }

    /// Counts an input, and resets the numbers of outputs.
    pub(crate) fn begin_input(&self) -> InputIndex {
        let input = self.inputs().next();
        self.mark.set(OutputMark { input, ordinal: 0 });
        input
    }

    /// How many inputs the guest has received.
    pub(crate) fn inputs(&self) -> InputIndex {
        self.mark.get().input
    }

    /// Grants the guest this much processor time from now on.
    pub(crate) fn allow_cpu(&self, ms: u64) {
        self.cpu.since.set(None);
        self.cpu.allowance.set(Duration::from_millis(ms));
    }

    /// Grants the guest of a plain host this much time from now on, including the time that it waits for
    /// tools.
    pub(crate) fn begin_hosted(&self, execution: &str, time_allowed: Duration) {
        *self.hosted.borrow_mut() = Some(PlainHostState {
            execution: execution.to_owned(),
            started: Instant::now(),
            time_allowed,
            emit_room_bytes: EMITTED_BYTES_MAX,
        });
    }

    /// Whether the allowance is used up. This never becomes false again: the guest must not continue.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.cpu.exhausted.get()
    }

    /// A loop exceeded its limit of iterations: the guest must stop, as if its time were used up.
    pub(crate) fn stop_looping(&self) {
        self.has_looped_too_often.set(true);
        self.cpu.exhausted.set(true);
    }

    /// Advances the guest's clock.
    pub(crate) fn advance_clock(&self, is_replay: bool) {
        self.clock.advance(is_replay);
    }

    /// Called when the guest has read its clock often. Returns after how many reads to call again; a guest
    /// that must stop is treated as if its time were used up.
    pub(crate) fn look_at_clock(&self) -> u32 {
        self.clock.check_clock_reads().unwrap_or_else(|| {
            match self.desk.get() {
                Some(desk) => desk.stop(),
                None => self.cpu.exhausted.set(true),
            }
            CLOCK_READS_MAX
        })
    }

    /// Whether the guest was stopped because it waited for its clock.
    pub(crate) fn has_waited_for_clock(&self) -> bool {
        self.clock.has_waited()
    }

    /// Whether the guest was stopped because of a loop's limit.
    pub(crate) fn has_looped_too_often(&self) -> bool {
        self.has_looped_too_often.get()
    }

    /// Polls between microtasks, but not after each: a call into the kernel would cost more than a small
    /// microtask.
    pub(crate) fn poll_now_and_then(&self) {
        let n = self.microtasks.get() + 1;
        self.microtasks.set(n % MICROTASKS_PER_POLL);
        if n == MICROTASKS_PER_POLL {
            self.poll();
        }
    }

    /// Called by the engine while the guest is busy, once in a fixed number of jumps and calls: so these
    /// calls count loops.
    pub(crate) fn tick(&self) -> bool {
        self.clock.tick();
        self.ticks.set(self.ticks.get() + 1);
        if self.ticks.get().is_multiple_of(TICKS_PER_COUNT) {
            self.say_count();
        }
        self.poll()
    }

    /// Sends how many iterations the guest's loops have made, if any: an estimate, until the exact count is
    /// known. A plain host has no use for it.
    pub(crate) fn say_count(&self) {
        let about = self.ticks.get().saturating_mul(ITERATIONS_PER_TICK);
        let iterations = self.rounds.get().unwrap_or(about);
        if iterations > 0 && self.hosted.borrow().is_none() && self.desk.get().is_none() {
            self.outbox.send(&FromRunner::Counted(Counted { iterations }));
        }
    }

    /// Called by the engine periodically while the guest is busy, and by us between microtasks. Returns
    /// whether the guest must stop.
    pub(crate) fn poll(&self) -> bool {
        if let Some(desk) = self.desk.get() {
            return desk.poll();
        }
        let (now, used, allowance) = match &*self.hosted.borrow() {
            Some(hosted) => {
                let elapsed = hosted.started.elapsed();
                (elapsed, elapsed, hosted.time_allowed)
            }
            None => {
                let now = usage::cpu();
                let since = self.cpu.since.get().unwrap_or(now);
                self.cpu.since.set(Some(since));
                (now, now.saturating_sub(since), self.cpu.allowance.get())
            }
        };
        self.outbox.flush_if_old(now);
        if used > allowance {
            self.cpu.exhausted.set(true);
        }
        self.cpu.exhausted.get()
    }

    fn next_mark(&self) -> OutputMark {
        let mut mark = self.mark.get();
        mark.ordinal = mark.ordinal.saturating_add(1);
        self.mark.set(mark);
        mark
    }

    /// The line of the user's text that makes a call now, according to the engine. It is a hint for people:
    /// a guest can forge it. The frames are recorded for the error of the call.
    fn line_of_call(&self, ctx: &Ctx<'_>, id: u32) -> Option<u32> {
        if !self.has_users_lines.get() {
            return None;
        }
        let stack = self.stack(ctx)?;
        if self.program.borrow().is_some() {
            self.call_sites.borrow_mut().insert(CallId(id), &stack);
        }
        failure::first_line(&stack)
    }

    /// The engine's stack.
    fn stack(&self, ctx: &Ctx<'_>) -> Option<String> {
        self.is_looking.set(true);
        // An error has its stack from its construction on.
        let stack = Exception::from_message(ctx.clone(), "").and_then(|error| {
            let stack: Value<'_> = error.as_object().get("stack")?;
            stack.into_string().map(|stack| stack.to_string()).transpose()
        });
        // Guest code may have thrown in between; that error is ignored.
        let stack = stack.inspect_err(|_| drop(ctx.catch())).ok().flatten();
        self.is_looking.set(false);
        stack
    }

    /// Sends a call; returns an error message if it cannot be sent.
    pub(crate) fn call(&self, ctx: &Ctx<'_>, id: u32, path: &str, json: &str) -> Option<String> {
        if self.is_looking.get() {
            return Some("a tool cannot be called while a stack is made".into());
        }
        let path = match ToolPath::parse(path) {
            Ok(path) => path,
            Err(why) => return Some(why.to_string()),
        };
        let Some(input) = payload(json) else {
            return Some(format!("the arguments are larger than {PAYLOAD_BYTES_MAX} bytes"));
        };
        if let Some(desk) = self.desk.get() {
            if let Some(stack) = self.stack(ctx) {
                self.call_sites.borrow_mut().insert(CallId(id), &stack);
            }
            desk.call(&self.outbox, id, path.as_str(), input);
            return None;
        }
        let line = self.line_of_call(ctx, id);
        self.calls.borrow_mut().insert(CallId(id));
        self.outbox.send(&FromRunner::ToolCall(ToolCall {
            call_id: id.to_string().into(),
            provider_name: ToolCall::TOOLS.into(),
            safe_tool_name: path.as_str().into(),
            input,
            line,
        }));
        None
    }

    /// Sends a call to a tool of a plain host; returns an error message if it cannot be sent.
    pub(crate) fn call_hosted(
        &self,
        id: u32,
        provider: &str,
        tool: &str,
        json: &str,
    ) -> Option<String> {
        let Some(input) = payload_within(json, HOST_PAYLOAD_BYTES_MAX) else {
            return Some(format!("the argument is larger than {HOST_PAYLOAD_BYTES_MAX} bytes"));
        };
        let hosted = self.hosted.borrow();
        let execution = hosted.as_ref().map_or("", |hosted| hosted.execution.as_str());
        self.calls.borrow_mut().insert(CallId(id));
        self.outbox.send(&FromRunner::ToolCall(ToolCall {
            call_id: format!("{execution}.{id}").into(),
            provider_name: provider.into(),
            safe_tool_name: tool.into(),
            input,
            line: None,
        }));
        None
    }

    pub(crate) fn log(&self, level: LogLevel, line: &str, exact: Option<&str>) {
        if let Some(desk) = self.desk.get() {
            return desk.print(&self.outbox, line);
        }
        let mark = self.next_mark();
        let exact = exact.and_then(payload);
        self.outbox.send(&FromRunner::Log(Log { level, line: line.into(), mark, exact }));
        // A host allows few lines, and wants to see them even if the program had to be killed.
        if self.hosted.borrow().is_some() {
            self.outbox.flush();
        }
    }

    pub(crate) fn emit(&self, json: &str) -> bool {
        if let Some(desk) = self.desk.get() {
            desk.print(&self.outbox, json);
            return true;
        }
        let Some(item) = payload(json).filter(|_| self.has_room(json.len())) else {
            return false;
        };
        let mark = self.next_mark();
        self.outbox.send(&FromRunner::Emit(Emit { item, mark }));
        true
    }

    fn has_room(&self, bytes: usize) -> bool {
        match &mut *self.hosted.borrow_mut() {
            Some(hosted) => {
                let left = hosted.emit_room_bytes.checked_sub(bytes);
                left.inspect(|left| hosted.emit_room_bytes = *left).is_some()
            }
            None => true,
        }
    }

    pub(crate) fn timer_set(&self, id: u32, delay_ms: u64) {
        if let Some(desk) = self.desk.get() {
            return desk.timer_set(&self.outbox, id, delay_ms);
        }
        let timer = TimerId(id);
        self.timers.borrow_mut().insert(timer);
        self.outbox.send(&FromRunner::TimerSet(TimerSet { timer, delay_ms }));
    }

    pub(crate) fn timer_cleared(&self, id: u32) {
        if let Some(desk) = self.desk.get() {
            return desk.timer_cleared(&self.outbox, id);
        }
        let timer = TimerId(id);
        self.timers.borrow_mut().remove(&timer);
        self.outbox.send(&FromRunner::TimerCleared(TimerCleared { timer }));
    }
}

/// A text that the engine's own stringify produced, if it fits into a message.
pub(crate) fn payload(json: &str) -> Option<RawJson<'_>> {
    payload_within(json, PAYLOAD_BYTES_MAX)
}

/// As `payload`, for a link with longer messages.
pub(crate) fn payload_within(json: &str, bytes_max: usize) -> Option<RawJson<'_>> {
    (json.len() <= bytes_max).then(|| RawJson::parse(json)).flatten()
}
