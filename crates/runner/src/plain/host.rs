//! The host's side of a plain guest's world: what its prelude may ask for, and what is remembered about it.

use crate::host::payload;
use crate::link::Outbox;
use protocols::execbox::wire::ToolCall;
use protocols::execbox::{FromRunner, PAYLOAD_BYTES_MAX};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How many microtasks may run before the clock is looked at. Those that do much are seen by the engine.
const MICROTASKS_PER_POLL: u32 = 64;

/// What one world's guest has outstanding and has said, and until when it may run.
pub(super) struct Host {
    pub(super) outbox: Outbox,
    /// What the calls' names begin with.
    execution: RefCell<String>,
    calls: RefCell<BTreeSet<u32>>,
    pub(super) logs: RefCell<Vec<String>>,
    /// Code and message that the prelude gave the last error it was asked about.
    pub(super) described: RefCell<Option<(String, String)>>,
    started: Cell<Instant>,
    time_allowed: Cell<Duration>,
    timed_out: Cell<bool>,
    /// Run since the last look at the clock.
    microtasks: Cell<u32>,
}

impl Host {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            outbox: Outbox::unconnected(),
            execution: RefCell::default(),
            calls: RefCell::default(),
            logs: RefCell::default(),
            described: RefCell::default(),
            started: Cell::new(Instant::now()),
            time_allowed: Cell::new(Duration::MAX),
            timed_out: Cell::default(),
            microtasks: Cell::default(),
        })
    }

    pub(super) fn connect(&self, stream: &Rc<UnixStream>, execution: &str) {
        self.outbox.connect(Rc::clone(stream));
        execution.clone_into(&mut self.execution.borrow_mut());
    }

    /// From now on the guest may take this much time, waiting for tools included.
    pub(super) fn allow(&self, time: Duration) {
        self.started.set(Instant::now());
        self.time_allowed.set(time);
    }

    /// Whether the time is over. Once it is, it stays so: the guest must not run on.
    pub(super) fn timed_out(&self) -> bool {
        self.timed_out.get()
    }

    /// Called by the engine every so often while the guest is busy, and by us between inputs and microtasks. Says
    /// whether the guest must stop.
    pub(super) fn poll(&self) -> bool {
        let elapsed = self.started.get().elapsed();
        self.outbox.flush_if_old(elapsed);
        if elapsed > self.time_allowed.get() {
            self.timed_out.set(true);
        }
        self.timed_out.get()
    }

    pub(super) fn poll_now_and_then(&self) {
        let n = self.microtasks.get() + 1;
        self.microtasks.set(n % MICROTASKS_PER_POLL);
        if n == MICROTASKS_PER_POLL {
            self.poll();
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.calls.borrow().is_empty()
    }

    /// The number of an outstanding call, which is one no longer; `None` for whatever else a host may name.
    pub(super) fn take_call(&self, call_id: &str) -> Option<u32> {
        let ordinal = call_id.strip_prefix(self.execution.borrow().as_str())?.strip_prefix('.')?;
        let call = ordinal.parse().ok()?;
        self.calls.borrow_mut().remove(&call).then_some(call)
    }

    /// Sends a call off; says why not, if not.
    fn call(&self, id: u32, provider: &str, tool: &str, json: &str) -> Option<String> {
        let Some(input) = payload(json) else {
            return Some(format!("the argument is larger than {PAYLOAD_BYTES_MAX} bytes"));
        };
        self.calls.borrow_mut().insert(id);
        self.outbox.send(&FromRunner::ToolCall(ToolCall {
            call_id: format!("{}.{id}", self.execution.borrow()).into(),
            provider_name: provider.into(),
            safe_tool_name: tool.into(),
            input,
        }));
        None
    }
}

/// The functions for the prelude. The guest never gets to see the object.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let it = Rc::clone(host);
    object.set(
        "call",
        Func::new(move |id: u32, provider: String, tool: String, json: String| {
            it.call(id, &provider, &tool, &json)
        }),
    )?;
    let it = Rc::clone(host);
    object.set("log", Func::new(move |line: String| it.logs.borrow_mut().push(line)))?;
    let it = Rc::clone(host);
    object.set(
        "described",
        Func::new(move |code: String, message: String| {
            *it.described.borrow_mut() = Some((code, message));
        }),
    )?;
    Ok(object)
}
