//! One plain execution: start it, feed it tool results one at a time, say how it ended.

use super::host::Host;
use super::order::{Failure, Order};
use super::world::{Hook, World};
use crate::convert::{self, NotJson};
use crate::link::Inbox;
use crate::prepare::{self, Prepared};
use crate::session::{End, compile};
use crate::usage;
use lifecycle::Convention;
use protocols::execbox::wire::{Done, Failed, RawJson, Started, ToolResult};
use protocols::execbox::{FromRunner, ToRunner};
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Persistent, Promise, Type, Value};

/// What a host is told whose program's value, or whose tool's argument, has no JSON.
const NO_JSON: &str = "Guest code returned a non-serializable value";

/// What a program is told that waits for nothing.
const STUCK: &str =
    "the program waits for a promise that nothing can settle: no tool call is outstanding";

/// Something the guest threw, kept until it is described.
type Thrown = Persistent<Value<'static>>;

/// What a session came to.
enum Ending {
    Value(Option<String>),
    Failed(Failure),
    Threw(Thrown),
    /// A value without JSON, with what the engine threw about it.
    NotJson(Option<Thrown>),
    Closed,
    Broken,
}

/// Runs one program to its end and says so.
pub(super) fn run(world: &World, order: &Order, inbox: &mut Inbox) -> End {
    let peak_before = usage::memory_peak_bytes();
    let verdict = Verdict { world, order, peak_before };
    let outcome = match run_to_end(world, order, inbox) {
        _ if world.host.timed_out() => Err(Failure::timeout()),
        Ending::Value(json) => Ok(json),
        Ending::Failed(failure) => Err(failure),
        Ending::Threw(thrown) => Err(verdict.threw(thrown)),
        Ending::NotJson(thrown) => Err(verdict.not_json(thrown)),
        Ending::Closed => return End::Closed,
        Ending::Broken => return End::Broken,
    };
    order.done(&outcome, &world.host.logs.borrow(), &world.host.outbox);
    End::Done
}

fn run_to_end(world: &World, order: &Order, inbox: &mut Inbox) -> Ending {
    world.limit_memory(order.options.memory_limit_bytes);
    world.context.with(|ctx| Session { world, ctx: &ctx, host: &world.host, order }.run(inbox))
}

struct Session<'s, 'js> {
    world: &'s World,
    ctx: &'s Ctx<'js>,
    host: &'s Host,
    order: &'s Order,
}

impl<'js> Session<'_, 'js> {
    fn run(&self, inbox: &mut Inbox) -> Ending {
        if self.furnish().is_err() {
            drop(self.ctx.catch());
            let message = "the tools' namespaces could not be built";
            return Ending::Failed(Failure::new("internal_error", message));
        }
        self.host.allow(self.order.time_allowed());
        let id = self.order.id.as_str().into();
        self.host.outbox.send(&FromRunner::Started(Started { id, airlock: None }));
        // Said now and not with what follows: native code may never let us write again.
        self.host.outbox.flush();
        let text = match prepare::prepare(&self.order.code, Convention::LastExpression) {
            Ok(Prepared(text)) => text,
            Err(problem) => {
                return Ending::Failed(Failure::new("runtime_error", problem.to_string()));
            }
        };
        let program = compile(self.ctx, &text, Convention::LastExpression);
        match program.and_then(|program| program.call::<_, Promise<'js>>(())) {
            Ok(main) => self.feed(&main, inbox),
            Err(_) => self.threw(),
        }
    }

    /// What is the host's in this world: limits of the console, and tools.
    fn furnish(&self) -> rquickjs::Result<()> {
        let (lines, chars) = (self.order.log_lines_max(), self.order.log_chars_max());
        self.hook(&self.world.hooks.start)?.call::<_, ()>((lines, chars))?;
        let provide = self.hook(&self.world.hooks.provide)?;
        for (name, tools) in &self.order.providers {
            provide.call::<_, ()>((name.as_str(), tools.clone()))?;
        }
        Ok(())
    }

    /// The input loop: drain, look, wait.
    fn feed(&self, main: &Promise<'js>, inbox: &mut Inbox) -> Ending {
        loop {
            self.drain();
            if let Some(ending) = self.ending(main) {
                return ending;
            }
            let line = match inbox.line(|| self.host.outbox.flush()) {
                Ok(Some(line)) => line,
                Ok(None) => return Ending::Closed,
                Err(_) => return Ending::Broken,
            };
            // A line that is no message is dropped, as execbox demands.
            let Ok(message) = ToRunner::decode(line) else { continue };
            if let Some(ending) = self.take(&message) {
                return ending;
            }
        }
    }

    fn take(&self, message: &ToRunner<'_>) -> Option<Ending> {
        match message {
            ToRunner::ToolResult(result) => self.settle(result),
            ToRunner::Cancel(cancel) if cancel.id == self.order.id => {
                Some(Ending::Failed(Failure::timeout()))
            }
            ToRunner::Execute(execute) => {
                self.refuse_second(execute.id.as_ref());
                None
            }
            // What only our engine says means nothing here.
            ToRunner::Cancel(_) | ToRunner::TimerFired(_) | ToRunner::Sync(_) => None,
        }
    }

    /// Unknown, late and repeated results are none of the guest's business.
    fn settle(&self, result: &ToolResult<'_>) -> Option<Ending> {
        let call = self.host.take_call(&result.call_id)?;
        let settled = match &result.outcome {
            Ok(value) => self.resolve(call, *value),
            Err(why) => self.reject(call, &why.code, &why.message),
        };
        settled.err().map(|_| self.threw())
    }

    fn resolve(&self, call: u32, json: Option<RawJson<'_>>) -> rquickjs::Result<()> {
        let value = match json {
            Some(json) => convert::from_json(self.ctx, json),
            None => Ok(Value::new_undefined(self.ctx.clone())),
        };
        match value {
            Ok(value) => self.hook(&self.world.hooks.resolve_call)?.call((call, value)),
            // JSON that was checked on the way in fails here only for want of stack or memory.
            Err(_) => {
                drop(self.ctx.catch());
                let message = "the tool's result is nested too deeply or does not fit the memory";
                self.reject(call, "serialization_error", message)
            }
        }
    }

    fn reject(&self, call: u32, code: &str, message: &str) -> rquickjs::Result<()> {
        self.hook(&self.world.hooks.reject_call)?.call((call, code, message))
    }

    /// Runs microtasks until none is left. A flood of them never comes back to the interpreter's own check.
    fn drain(&self) {
        while !self.host.timed_out() && self.ctx.execute_pending_job() {
            self.host.poll_now_and_then();
        }
    }

    /// How the program ended, if it has.
    fn ending(&self, main: &Promise<'js>) -> Option<Ending> {
        if self.host.poll() {
            return Some(Ending::Failed(Failure::timeout()));
        }
        match main.state() {
            PromiseState::Pending if self.host.is_waiting() => None,
            PromiseState::Pending => Some(Ending::Failed(Failure::new("runtime_error", STUCK))),
            // Calls that nobody awaits are forgotten.
            PromiseState::Resolved | PromiseState::Rejected => Some(self.settled(main)),
        }
    }

    fn settled(&self, main: &Promise<'js>) -> Ending {
        let Ok(value) = main.result::<Value<'js>>().expect("the promise is settled") else {
            return self.threw();
        };
        match convert::to_json(self.ctx, value) {
            Ok(json) => Ending::Value(json),
            Err(NotJson::Threw) => {
                Ending::NotJson(Some(Persistent::save(self.ctx, self.ctx.catch())))
            }
            Err(NotJson::Type(_) | NotJson::TooLarge(_)) => Ending::NotJson(None),
        }
    }

    /// The engine has an exception pending.
    fn threw(&self) -> Ending {
        Ending::Threw(Persistent::save(self.ctx, self.ctx.catch()))
    }

    fn refuse_second(&self, id: &str) {
        let message = "the runner already has an active execution";
        let (code, message) = ("internal_error".into(), message.into());
        self.host.outbox.send(&FromRunner::Done(Done {
            id: id.into(),
            outcome: Err(Failed { code, message, name: None, stack: None, limit: None }),
            duration_ms: 0,
            logs: Vec::new(),
        }));
    }

    fn hook(&self, hook: &Hook) -> rquickjs::Result<Function<'js>> {
        hook.clone().restore(self.ctx)
    }
}

/// Puts into words what the guest left behind, after its turn is over.
struct Verdict<'s> {
    world: &'s World,
    order: &'s Order,
    peak_before: u64,
}

impl Verdict<'_> {
    fn threw(&self, thrown: Thrown) -> Failure {
        let limit = self.order.options.memory_limit_bytes;
        self.world.lend_memory(limit);
        let asked = self.world.context.with(|ctx| {
            let thrown: Value<'_> = thrown.restore(&ctx).expect("thrown in this world");
            if matches!(thrown.type_of(), Type::Null | Type::Uninitialized) && self.came_near() {
                return Ok(false);
            }
            let describe = self.world.hooks.describe.clone().restore(&ctx)?;
            let asked = describe.call::<_, ()>((thrown,));
            asked.map(|()| true).inspect_err(|_| drop(ctx.catch()))
        });
        let described = self.world.host.described.borrow_mut().take();
        match (asked, described) {
            (Ok(true), Some((code, message)))
                if code != "memory_limit" || message != OUT_OF_MEMORY =>
            {
                Failure { code, message }
            }
            // The prelude catches whatever the guest does; only exhaustion stops it.
            _ if self.world.host.timed_out() => Failure::timeout(),
            _ => self.memory_limit(),
        }
    }

    /// A value without JSON: what stopped the engine from writing it comes first.
    fn not_json(&self, thrown: Option<Thrown>) -> Failure {
        let failure = thrown.map(|thrown| self.threw(thrown));
        match failure {
            Some(failure) if matches!(failure.code.as_str(), "timeout" | "memory_limit") => failure,
            Some(_) | None => Failure::new("serialization_error", NO_JSON),
        }
    }

    fn memory_limit(&self) -> Failure {
        let bytes = self.order.options.memory_limit_bytes;
        Failure::new("memory_limit", format!("needed more than {bytes} bytes of memory"))
    }

    /// Null is what the engine throws when not even an error object could be allocated. A guest's own `throw null` is
    /// told from it by the kernel: only in the first case has this program brought the process near its limit.
    fn came_near(&self) -> bool {
        let grown = usage::memory_peak_bytes().saturating_sub(self.peak_before);
        grown > self.order.options.memory_limit_bytes / 4
    }
}

/// How the engine says that the guest's memory is used up.
const OUT_OF_MEMORY: &str = "out of memory";
