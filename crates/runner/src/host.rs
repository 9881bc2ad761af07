//! The host's side of the guest's world: what the prelude may ask for, and what is remembered about it.
//! Nothing here holds a JavaScript value, so that a world can always be dropped.

use crate::bytes;
use crate::failure::{self, Described};
use crate::link::Outbox;
use crate::prelude;
use crate::usage;
use lifecycle::{CallId, InputIndex, LogLevel, OutputMark, TimerId, ToolPath};
use protocols::execbox::wire::{Counted, Emit, Log, RawJson, TimerCleared, TimerSet, ToolCall};
use protocols::execbox::{FromRunner, PAYLOAD_BYTES_MAX};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Function, Object};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// What one world's guest has outstanding, has said and has used.
pub(crate) struct Host {
    pub(crate) outbox: Outbox,
    pub(crate) calls: RefCell<BTreeSet<CallId>>,
    pub(crate) timers: RefCell<BTreeSet<TimerId>>,
    /// Where the next output stands: inputs received, outputs since the last.
    mark: Cell<OutputMark>,
    /// A timer or microtask threw and nobody caught it.
    pub(crate) crashed: Cell<bool>,
    /// What the prelude said of the last error it was asked about.
    pub(crate) described: RefCell<Option<Described>>,
    /// How many columns the program's first line is shifted by what we put before it.
    pub(crate) first_line_shift: Cell<usize>,
    cpu: Cpu,
    /// How often the engine asked whether to go on.
    ticks: Cell<u64>,
    /// Run since the last poll.
    microtasks: Cell<u32>,
}

/// How many microtasks may run before the processor time is looked at. Those that do much are seen by the engine.
const MICROTASKS_PER_POLL: u32 = 64;

/// The engine asks once in ten thousand jumps and calls, and a loop jumps twice each time it goes round.
const ITERATIONS_PER_TICK: u64 = 5_000;

/// How often a busy guest's count is said: some times a second.
const TICKS_PER_COUNT: u64 = 1_000;

/// Processor time: what the present stretch may use, and since when.
#[derive(Default)]
struct Cpu {
    since: Cell<Duration>,
    allowance: Cell<Duration>,
    exhausted: Cell<bool>,
}

impl Host {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            outbox: Outbox::unconnected(),
            calls: RefCell::default(),
            timers: RefCell::default(),
            mark: Cell::default(),
            crashed: Cell::default(),
            described: RefCell::default(),
            first_line_shift: Cell::default(),
            cpu: Cpu::default(),
            ticks: Cell::default(),
            microtasks: Cell::default(),
        })
    }

    /// Counts an input; outputs are numbered anew.
    pub(crate) fn begin_input(&self) -> InputIndex {
        let input = self.inputs().next();
        self.mark.set(OutputMark { input, ordinal: 0 });
        input
    }

    /// How many inputs the guest has received.
    pub(crate) fn inputs(&self) -> InputIndex {
        self.mark.get().input
    }

    /// From now on the guest may use this much processor time.
    pub(crate) fn allow_cpu(&self, ms: u64) {
        self.cpu.since.set(usage::cpu());
        self.cpu.allowance.set(Duration::from_millis(ms));
    }

    /// Whether the allowance is used up. Once it is, it stays so: the guest must not run on.
    pub(crate) fn cpu_exhausted(&self) -> bool {
        self.cpu.exhausted.get()
    }

    /// Between microtasks: asking the kernel each time would cost more than a small microtask does.
    pub(crate) fn poll_now_and_then(&self) {
        let n = self.microtasks.get() + 1;
        self.microtasks.set(n % MICROTASKS_PER_POLL);
        if n == MICROTASKS_PER_POLL {
            self.poll();
        }
    }

    /// Called by the engine while the guest is busy. It asks once in so many jumps and calls, so its questions count loops.
    pub(crate) fn tick(&self) -> bool {
        self.ticks.set(self.ticks.get() + 1);
        if self.ticks.get().is_multiple_of(TICKS_PER_COUNT) {
            self.say_count();
        }
        self.poll()
    }

    /// Says about how often the guest's loops have gone round, if they have.
    pub(crate) fn say_count(&self) {
        let iterations = self.ticks.get().saturating_mul(ITERATIONS_PER_TICK);
        if iterations > 0 {
            self.outbox.send(&FromRunner::Counted(Counted { iterations }));
        }
    }

    /// Called by the engine every so often while the guest is busy, and by us between microtasks.
    /// Says whether the guest must stop.
    pub(crate) fn poll(&self) -> bool {
        let now = usage::cpu();
        self.outbox.flush_if_old(now);
        let used = now.saturating_sub(self.cpu.since.get());
        if used > self.cpu.allowance.get() {
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

    /// Sends a call off; says why not, if not.
    fn call(&self, id: u32, path: &str, json: &str) -> Option<String> {
        let path = match ToolPath::parse(path) {
            Ok(path) => path,
            Err(why) => return Some(why.to_string()),
        };
        let Some(input) = payload(json) else {
            return Some(format!("the arguments are larger than {PAYLOAD_BYTES_MAX} bytes"));
        };
        self.calls.borrow_mut().insert(CallId(id));
        self.outbox.send(&FromRunner::ToolCall(ToolCall {
            call_id: id.to_string().into(),
            provider_name: ToolCall::TOOLS.into(),
            safe_tool_name: path.as_str().into(),
            input,
        }));
        None
    }

    fn log(&self, level: LogLevel, line: &str) {
        let mark = self.next_mark();
        self.outbox.send(&FromRunner::Log(Log { level, line: line.into(), mark }));
    }

    fn emit(&self, json: &str) -> bool {
        let Some(item) = payload(json) else {
            return false;
        };
        let mark = self.next_mark();
        self.outbox.send(&FromRunner::Emit(Emit { item, mark }));
        true
    }

    fn timer_set(&self, id: u32, delay_ms: u64) {
        let timer = TimerId(id);
        self.timers.borrow_mut().insert(timer);
        self.outbox.send(&FromRunner::TimerSet(TimerSet { timer, delay_ms }));
    }

    fn timer_cleared(&self, id: u32) {
        let timer = TimerId(id);
        self.timers.borrow_mut().remove(&timer);
        self.outbox.send(&FromRunner::TimerCleared(TimerCleared { timer }));
    }
}

/// A text that the engine's own stringify made, if it fits a message.
pub(crate) fn payload(json: &str) -> Option<RawJson<'_>> {
    (json.len() <= PAYLOAD_BYTES_MAX).then(|| RawJson::parse(json)).flatten()
}

/// The functions for the prelude. The guest never gets to see the object.
pub(crate) fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let of = |host: &Rc<Host>| Rc::clone(host);

    let it = of(host);
    object.set(
        "call",
        Func::new(move |id: u32, path: String, json: String| it.call(id, &path, &json)),
    )?;
    let it = of(host);
    object.set(
        "log",
        Func::new(move |level: String, line: String| it.log(level_of(&level), &line)),
    )?;
    let it = of(host);
    object.set(
        "emit",
        Func::new(move |ctx: Ctx<'js>, json: String| {
            let sent = it.emit(&json);
            if sent {
                Ok(())
            } else {
                Err(Exception::throw_range(&ctx, "an emitted item is too large"))
            }
        }),
    )?;
    let it = of(host);
    object.set("timerSet", Func::new(move |id: u32, ms: f64| it.timer_set(id, ms as u64)))?;
    let it = of(host);
    object.set("timerCleared", Func::new(move |id: u32| it.timer_cleared(id)))?;
    let it = of(host);
    object.set("crashed", Func::new(move || it.crashed.set(true)))?;
    let it = of(host);
    object.set(
        "frames",
        Func::new(move |stack: String| failure::frames(&stack, it.first_line_shift.get())),
    )?;
    let it = of(host);
    object.set(
        "described",
        Func::new(move |code: String, message: String, name: String, stack: String| {
            *it.described.borrow_mut() = Some(Described { code, message, name, stack });
        }),
    )?;
    object.set("defer", Func::new(|job: Function<'js>| job.defer(())))?;
    bytes::add_to(&object)?;
    prelude::add_to(&object)?;
    Ok(object)
}

fn level_of(name: &str) -> LogLevel {
    match name {
        "debug" => LogLevel::Debug,
        "info" => LogLevel::Info,
        "warn" => LogLevel::Warn,
        "error" => LogLevel::Error,
        _ => LogLevel::Log,
    }
}
