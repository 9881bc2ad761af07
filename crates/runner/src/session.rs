//! One execution: make the program ready, start it, feed it inputs one at a time, say how it ended.

use crate::convert;
use crate::failure;
use crate::host::Host;
use crate::link::{Inbox, Outbox};
use crate::prepare::{self, Prepared};
use crate::usage;
use crate::world::World;
use lifecycle::{CallId, Convention, InputIndex, Timestamp, Unawaited};
use protocols::execbox::wire::{
    Airlock, CallFailure, Diverged, Done, Execute, Failed, Idle, RawJson, Started, StartedAirlock, Sync, TimerFired,
    ToolResult,
};
use protocols::execbox::{FromRunner, ToRunner};
use rquickjs::context::EvalOptions;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Persistent, Promise, Value};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

/// How the program's frames are named in stacks.
pub(crate) const PROGRAM_FILE_NAME: &str = "program.js";

/// What stands before a program: an arrow function, so that `this` is the global object and there is no `arguments`.
const OPENING: &str = "(async () => {";
/// What stands after it: the line break ends a trailing comment.
const CLOSING: &str = "\n})";

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// `done` was sent; another order may come.
    Done,
    /// The engine closed the link.
    Closed,
    /// The link broke or made no sense.
    Broken,
    /// `diverged` was sent.
    Diverged,
}

/// An `execute`, kept beyond the line it came in.
pub(crate) struct Order {
    id: String,
    code: String,
    memory_bytes: u64,
    airlock: Airlock,
    received: Instant,
}

impl Order {
    pub(crate) const fn prelude(&self) -> u32 {
        self.airlock.prelude
    }

    fn done(&self, outcome: Result<Option<&str>, Failed<'_>>, outbox: &Outbox) {
        let millis = u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX);
        outbox.send(&FromRunner::Done(Done {
            id: self.id.as_str().into(),
            outcome: outcome.map(|json| json.map(convert::raw)),
            duration_ms: millis,
            logs: Vec::new(),
        }));
        outbox.flush();
    }
}

/// Waits for the next `execute`. What belongs to an execution that is over is passed by.
pub(crate) fn next_order(inbox: &mut Inbox) -> io::Result<Option<Order>> {
    while let Some(line) = inbox.line(|| {})? {
        if let Ok(ToRunner::Execute(Execute { id, code, options, airlock: Some(airlock), .. })) =
            ToRunner::decode(line)
        {
            return Ok(Some(Order {
                id: id.into_owned(),
                code: code.into_owned(),
                memory_bytes: options.memory_limit_bytes,
                airlock,
                received: Instant::now(),
            }));
        }
    }
    Ok(None)
}

/// Answers an order for guest globals that this build does not have.
pub(crate) fn refuse_prelude(order: &Order, stream: &Rc<UnixStream>) {
    let outbox = Outbox::unconnected();
    outbox.connect(Rc::clone(stream));
    let message = format!("no version {} of the guest's globals", order.prelude());
    order.done(Err(failure::plain("internal", message)), &outbox);
}

/// Runs one program to its end.
pub(crate) fn run(world: &World, order: Order, inbox: &mut Inbox) -> End {
    let prepared = match ready_text(&order) {
        Ok(text) => text,
        Err(problem) => {
            order.done(Err(failure::syntax(problem.to_string())), &world.host.outbox);
            return End::Done;
        }
    };
    // Before the context is entered: the runtime is locked while one is.
    world.limit_memory(order.memory_bytes);
    world.context.with(|ctx| {
        let session = Session { world, ctx: &ctx, host: &world.host, order: &order };
        session.run(&prepared, inbox)
    })
}

/// Runs a small program that touches what programs usually touch, in a world that is thrown away.
pub(crate) fn rehearse(world: &World) {
    const PROGRAM: &str = "const rows: { id: number }[] = [{ id: 1 }, { id: 2 }];\n\
        console.log('rehearsal', rows, new Map([[1, new Date()]]), Math.random());\n\
        const text = JSON.stringify(rows.map((row) => ({ ...row, name: `n${row.id}` })));\n\
        setTimeout(() => {}, 1); tools.demo.add({ a: 1 });\n\
        try { null.x } catch (error) { console.error(error) }\n\
        await Promise.all([null, 1]); return JSON.parse(text)";
    let Ok(Prepared(text)) = prepare::prepare(PROGRAM, Convention::ExplicitReturn) else { return };
    world.host.allow_cpu(u64::MAX);
    world.context.with(|ctx| {
        let run = compile(&ctx, &text, Convention::ExplicitReturn).and_then(|f| f.call(()));
        let value = run.and_then(|promise: Promise<'_>| promise.finish::<Value<'_>>());
        let _ = value.map(|value| convert::to_json(&ctx, value).is_ok());
        let _ = convert::from_json(&ctx, convert::raw("{\"a\":[1,\"b\"]}"));
    });
}

fn ready_text(order: &Order) -> Result<String, prepare::SyntaxProblem> {
    if order.airlock.prepared {
        return Ok(order.code.clone());
    }
    prepare::prepare(&order.code, order.airlock.convention).map(|Prepared(text)| text)
}

/// The program as a function. Explicit programs are strict, as modules are; the others sloppy, as execbox's are.
fn compile<'js>(ctx: &Ctx<'js>, text: &str, convention: Convention) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.strict = convention == Convention::ExplicitReturn;
    options.filename = Some(PROGRAM_FILE_NAME.to_owned());
    ctx.eval_with_options([OPENING, text, CLOSING].concat(), options)
}

struct Session<'w, 'c, 'js> {
    world: &'w World,
    ctx: &'c Ctx<'js>,
    host: &'w Host,
    order: &'w Order,
}

impl<'js> Session<'_, '_, 'js> {
    fn run(&self, text: &str, inbox: &mut Inbox) -> End {
        self.host.first_line_shift.set(OPENING.len() + prepare::first_line_shift(text));
        self.begin_clock_and_dice();
        let program = match compile(self.ctx, text, self.order.airlock.convention) {
            Ok(program) => program,
            Err(_) => {
                let thrown = self.ctx.catch();
                return self.end(Err(self.failed_by(thrown)));
            }
        };
        self.say_started(text);
        self.allow_cpu();
        match program.call::<_, Promise<'js>>(()) {
            Ok(main) => self.feed(&main, inbox),
            Err(_) => {
                let thrown = self.ctx.catch();
                self.end(Err(self.failed_by(thrown)))
            }
        }
    }

    /// The input loop: drain, look, wait.
    fn feed(&self, main: &Promise<'js>, inbox: &mut Inbox) -> End {
        let mut idle_said = None;
        loop {
            self.drain();
            if let Some(outcome) = self.outcome(main) {
                return self.end(outcome);
            }
            let line = match inbox.line(|| self.say_idle(&mut idle_said)) {
                Ok(Some(line)) => line,
                Ok(None) => return End::Closed,
                Err(_) => return End::Broken,
            };
            // A line that is no message is dropped, as execbox demands.
            let Ok(message) = ToRunner::decode(line) else { continue };
            if let Some(end) = self.take(message) {
                return end;
            }
        }
    }

    fn take(&self, message: ToRunner<'_>) -> Option<End> {
        match message {
            ToRunner::ToolResult(result) => self.settle(&result),
            ToRunner::TimerFired(fired) => self.fire(fired),
            ToRunner::Sync(Sync { n }) => {
                self.host.outbox.send(&FromRunner::Synced(Sync { n }));
                None
            }
            ToRunner::Cancel(cancel) if cancel.id == self.order.id => {
                Some(self.end(Err(failure::plain("timeout", "was cancelled"))))
            }
            ToRunner::Cancel(_) => None,
            ToRunner::Execute(execute) => {
                self.refuse_second(execute.id.as_ref());
                None
            }
        }
    }

    fn settle(&self, result: &ToolResult<'_>) -> Option<End> {
        let call = result.call_id.parse().ok().map(CallId);
        let Some(call) = call.filter(|call| self.host.calls.borrow_mut().remove(call)) else {
            return Some(self.diverged(format!("call {} is not outstanding", result.call_id)));
        };
        self.begin_input();
        let at = result.at.map(millis);
        let done = match &result.outcome {
            Ok(value) => self.resolve(call, at, *value),
            Err(why) => self.reject(call, at, why),
        };
        self.after_hook(done)
    }

    fn resolve(&self, call: CallId, at: Option<f64>, value: Option<RawJson<'_>>) -> rquickjs::Result<()> {
        let value = match self.value_of(value) {
            Ok(value) => value,
            Err(_) => return self.reject_unreadable(call, at),
        };
        self.hook(&self.world.hooks.resolve_call)?.call((call.0, at, value))
    }

    /// JSON that was checked on the way in fails here only for want of stack or memory; the guest may go on without it.
    fn reject_unreadable(&self, call: CallId, at: Option<f64>) -> rquickjs::Result<()> {
        let _ = self.ctx.catch();
        let why = CallFailure {
            code: "serialization".into(),
            message: "the tool's result is nested too deeply or does not fit the memory left".into(),
            name: None,
            details: None,
        };
        self.reject(call, at, &why)
    }

    fn reject(&self, call: CallId, at: Option<f64>, why: &CallFailure<'_>) -> rquickjs::Result<()> {
        let details = self.value_of(why.details)?;
        let reject = self.hook(&self.world.hooks.reject_call)?;
        reject.call((call.0, at, why.code.as_ref(), why.message.as_ref(), why.name.as_deref(), details))
    }

    fn fire(&self, fired: TimerFired) -> Option<End> {
        if !self.host.timers.borrow_mut().remove(&fired.timer) {
            return Some(self.diverged(format!("timer {} is not outstanding", fired.timer)));
        }
        self.begin_input();
        let hook = self.hook(&self.world.hooks.fire);
        self.after_hook(hook.and_then(|fire| fire.call::<_, ()>((fired.timer.0, millis(fired.at)))))
    }

    /// A hook fails only when memory or processor time ran out in it: no later input could mend that.
    fn after_hook(&self, done: rquickjs::Result<()>) -> Option<End> {
        let _ = done.err()?;
        let thrown = self.ctx.catch();
        Some(self.end(Err(self.failed_by(thrown))))
    }

    /// Runs microtasks until none is left. A flood of them never comes back to the interpreter's own check.
    fn drain(&self) {
        while !self.host.cpu_exhausted() && self.ctx.execute_pending_job() {
            self.host.poll_now_and_then();
        }
    }

    /// How the program ended, if it has.
    fn outcome(&self, main: &Promise<'js>) -> Option<Result<Option<String>, Failed<'static>>> {
        if self.host.cpu_exhausted() {
            return Some(Err(self.cpu_limit()));
        }
        if self.host.crashed.get() {
            return Some(Err(self.described_by(&self.world.hooks.describe_crash, None)));
        }
        let waits = self.order.airlock.unawaited == Unawaited::Wait;
        let calls_outstanding = !self.host.calls.borrow().is_empty();
        match main.state() {
            PromiseState::Pending if calls_outstanding || !self.host.timers.borrow().is_empty() => None,
            PromiseState::Pending => Some(Err(failure::plain("stuck", STUCK))),
            PromiseState::Resolved | PromiseState::Rejected if waits && calls_outstanding => None,
            PromiseState::Resolved | PromiseState::Rejected => Some(self.settled(main)),
        }
    }

    fn settled(&self, main: &Promise<'js>) -> Result<Option<String>, Failed<'static>> {
        match main.result::<Value<'js>>().expect("the promise is settled") {
            Ok(value) => convert::to_json(self.ctx, value).map_err(|why| self.not_json(&why)),
            Err(_) => {
                let thrown = self.ctx.catch();
                Err(self.failed_by(thrown))
            }
        }
    }

    fn not_json(&self, why: &convert::NotJson) -> Failed<'static> {
        let thrown = matches!(why, convert::NotJson::Threw).then(|| self.ctx.catch());
        if self.host.cpu_exhausted() {
            return self.cpu_limit();
        }
        let Some(thrown) = thrown else { return failure::serialization(why, None) };
        let failed = self.failed_by(thrown);
        if failed.code == "memory_limit" {
            return failed;
        }
        let message = failed.message.into_owned();
        let described = failure::Described { message, ..failure::Described::default() };
        failure::serialization(why, Some(described))
    }

    /// What an uncaught value means. No value at all means that not even an error object could be allocated.
    fn failed_by(&self, thrown: Value<'js>) -> Failed<'static> {
        if self.host.cpu_exhausted() {
            return self.cpu_limit();
        }
        if self.nothing_could_be_thrown(&thrown) {
            return failure::memory_limit(self.order.memory_bytes);
        }
        self.described_by(&self.world.hooks.describe, Some(thrown))
    }

    /// Tells the engine's "out of memory, even for saying so" (null) from a guest's own `throw null`: only in the first
    /// case has the process really come near its limit.
    fn nothing_could_be_thrown(&self, thrown: &Value<'js>) -> bool {
        let nothing = thrown.is_null() || thrown.type_of() == rquickjs::Type::Uninitialized;
        nothing && usage::memory_peak_bytes() > self.order.memory_bytes / 2
    }

    fn described_by(&self, hook: &Persistent<Function<'static>>, thrown: Option<Value<'js>>) -> Failed<'static> {
        self.world.lend_memory(self.order.memory_bytes);
        let asked = self.hook(hook).and_then(|describe| match thrown {
            Some(thrown) => describe.call::<_, ()>((thrown,)),
            None => describe.call::<_, ()>(()),
        });
        let described = self.host.described.borrow_mut().take();
        match (asked, described) {
            (Ok(()), Some(described)) if described.code == "memory_limit" => {
                failure::memory_limit(self.order.memory_bytes)
            }
            (Ok(()), Some(described)) => described.into_failed(self.host.first_line_shift.get()),
            // The prelude catches everything but exhaustion.
            _ if self.host.cpu_exhausted() => self.cpu_limit(),
            _ => failure::memory_limit(self.order.memory_bytes),
        }
    }

    fn end(&self, outcome: Result<Option<String>, Failed<'static>>) -> End {
        self.order.done(outcome.as_ref().map(|json| json.as_deref()).map_err(Clone::clone), &self.host.outbox);
        End::Done
    }

    fn diverged(&self, what: String) -> End {
        self.host.outbox.send(&FromRunner::Diverged(Diverged { what: what.into() }));
        self.host.outbox.flush();
        End::Diverged
    }

    fn say_started(&self, text: &str) {
        let airlock = StartedAirlock {
            prepared: text.into(),
            prelude: self.order.prelude(),
            fingerprint: crate::fingerprint().into(),
        };
        let id = self.order.id.as_str().into();
        self.host.outbox.send(&FromRunner::Started(Started { id, airlock: Some(airlock) }));
    }

    /// Said once per input: a line that changed nothing is no reason to repeat it.
    fn say_idle(&self, said: &mut Option<InputIndex>) {
        let inputs = self.host.inputs();
        if *said != Some(inputs) {
            *said = Some(inputs);
            self.host.outbox.send(&FromRunner::Idle(Idle { inputs }));
        }
        self.host.outbox.flush();
    }

    fn refuse_second(&self, id: &str) {
        let failed = failure::plain("internal", "the runner already has an active execution");
        self.host.outbox.send(&FromRunner::Done(Done {
            id: id.into(),
            outcome: Err(failed),
            duration_ms: 0,
            logs: Vec::new(),
        }));
    }

    fn begin_clock_and_dice(&self) {
        let words: Vec<u32> =
            self.order.airlock.seed.0.as_chunks::<4>().0.iter().copied().map(u32::from_le_bytes).collect();
        let started = self.hook(&self.world.hooks.start).and_then(|start| {
            let mut args = rquickjs::function::Args::new(self.ctx.clone(), words.len() + 1);
            args.push_arg(millis(self.order.airlock.start_ms))?;
            args.push_args(words)?;
            start.call_arg::<()>(args)
        });
        started.expect("the prelude's start only assigns numbers");
    }

    fn begin_input(&self) {
        let input = self.host.begin_input();
        if input == self.order.airlock.replay_inputs.next() {
            self.host.allow_cpu(self.order.airlock.cpu_ms);
        }
    }

    fn allow_cpu(&self) {
        self.host.allow_cpu(self.cpu_ms());
    }

    fn cpu_limit(&self) -> Failed<'static> {
        failure::cpu_limit(self.cpu_ms())
    }

    /// The allowance of the present stretch: a replay has its own.
    fn cpu_ms(&self) -> u64 {
        let airlock = &self.order.airlock;
        let replays = airlock.replay_inputs != InputIndex(0) && self.host.inputs() <= airlock.replay_inputs;
        if replays { airlock.replay_cpu_ms } else { airlock.cpu_ms }
    }

    fn value_of(&self, json: Option<RawJson<'_>>) -> rquickjs::Result<Value<'js>> {
        json.map_or_else(
            || Ok(Value::new_undefined(self.ctx.clone())),
            |json| convert::from_json(self.ctx, json),
        )
    }

    fn hook(&self, hook: &Persistent<Function<'static>>) -> rquickjs::Result<Function<'js>> {
        hook.clone().restore(self.ctx)
    }
}

/// What a program is told that waits for nothing.
const STUCK: &str = "the program waits for a promise that nothing can settle: no tool call and no timer is outstanding";

/// Guest time as the guest's own numbers.
fn millis(at: Timestamp) -> f64 {
    at.0 as f64
}
