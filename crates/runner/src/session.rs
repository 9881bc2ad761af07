//! One execution: prepare the program, start it, feed it inputs one at a time, report how it ended.

mod compile;

pub(crate) use compile::compile;

use crate::convert::{self, NoJsonForm};
use crate::failure;
use crate::guest_world::{GuestWorld, PreludeHook};
use crate::host::GuestHost;
use crate::link::LinkReader;
use crate::prepare;
use crate::run_order::{self, HostKind, HostedOrder, RunOrder};
use crate::verdict::{self, OutcomeJudge, SessionEnding, ThrownValue};
use compile::ready_text;
use lifecycle::{CallId, InputIndex, Timestamp};
use protocols::execbox::wire::{
    CallFailure, Diverged, Failed, Idle, RawJson, Sync, TimerFired, ToolResult,
};
use protocols::execbox::{FromRunner, HOST_PAYLOAD_BYTES_MAX, ToRunner};
use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Persistent, Promise, Value};
use std::cell::RefCell;

/// The file name of the program's frames in stacks.
pub(crate) const PROGRAM_FILE_NAME: &str = "program.js";

/// The error of a program that waits although nothing is under way.
const STUCK: &str = "the program waits for a promise that nothing can settle: no tool call and no timer is outstanding";

/// How a session left the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionExit {
    /// `done` was sent; another order may follow.
    Done,
    /// The engine closed the link.
    Closed,
    /// The link broke or an invalid message arrived.
    Broken,
    /// `diverged` was sent.
    Diverged,
}

/// Runs one program to its end and reports the outcome.
pub(crate) fn run(world: &GuestWorld, order: &RunOrder, inbox: &mut LinkReader) -> SessionExit {
    let verdict = OutcomeJudge { world, order };
    let outcome = match run_to_end(world, order, inbox) {
        SessionEnding::Closed => return SessionExit::Closed,
        SessionEnding::Broken => return SessionExit::Broken,
        SessionEnding::Diverged => return SessionExit::Diverged,
        _ if world.host.is_out_of_time() => Err(verdict::out_of_time(world, order)),
        SessionEnding::Value(json) => Ok(json),
        SessionEnding::Failed(failed) => Err(failed),
        SessionEnding::Threw(thrown) => Err(verdict.threw(thrown)),
        SessionEnding::Crashed => Err(verdict.crashed()),
        SessionEnding::NotJson(why, thrown) => Err(verdict.not_json(&why, thrown)),
    };
    let outcome = outcome.as_ref().map(Option::as_deref).map_err(Failed::clone);
    world.host.say_count();
    order.say_done(outcome, &world.host.outbox);
    SessionExit::Done
}

fn run_to_end(world: &GuestWorld, order: &RunOrder, inbox: &mut LinkReader) -> SessionEnding {
    world.limit_memory(order.memory_bytes);
    let ended = RefCell::default();
    // A host's programs behave as under execbox, which ignores rejections.
    let rejections = world.rejections.as_deref().filter(|_| order.is_journalled());
    rejections.inspect(|rejections| rejections.watch());
    let ending = world
        .context
        .with(|ctx| GuestSession { world, ctx: &ctx, host: &world.host, order, ended }.run(inbox));
    rejections.inspect(|rejections| rejections.clear());
    ending
}

/// The state of a program that runs.
struct GuestSession<'s, 'js> {
    world: &'s GuestWorld,
    ctx: &'s Ctx<'js>,
    host: &'s GuestHost,
    order: &'s RunOrder,
    /// How it ended, if calls that were made while its value was serialized are still outstanding.
    ended: RefCell<Option<SessionEnding>>,
}

impl<'js> GuestSession<'_, 'js> {
    fn run(&self, inbox: &mut LinkReader) -> SessionEnding {
        self.begin_clock_and_dice();
        self.host.advance_clock(self.order.is_before_last_replayed(InputIndex(0)));
        if let HostKind::Hosted(hosted) = &self.order.manner {
            if self.furnish(hosted).is_err() {
                drop(self.ctx.catch());
                let message = "the tools' namespaces could not be built";
                return SessionEnding::Failed(failure::plain("internal", message));
            }
            self.host.begin_hosted(&self.order.id, hosted.time_allowed);
            self.order.say_started("", &self.host.outbox);
            // Sent now and not with later output: native code may never let us write again.
            self.host.outbox.flush();
        }
        match ready_text(self.order) {
            Ok(text) => self.run_text(&text, inbox),
            Err(problem) => SessionEnding::Failed(failure::syntax(problem.to_string())),
        }
    }

    fn run_text(&self, text: &str, inbox: &mut LinkReader) -> SessionEnding {
        self.host.has_users_lines.set(prepare::has_users_lines(text));
        self.allow_cpu();
        let Ok((program, rounds)) = self.compile(text) else {
            return self.threw();
        };
        if self.order.is_journalled() {
            self.order.say_started(text, &self.host.outbox);
        }
        // Compiling does not count as the program's time.
        self.allow_cpu();
        let ending = match program.call::<_, Promise<'js>>(()) {
            Ok(main) => self.feed(&main, inbox),
            Err(_) => self.threw(),
        };
        if let Some(rounds) = rounds {
            self.note_rounds(&rounds);
        }
        ending
    }

    /// Adds what a plain host provides in this world: limits of the console, and tools.
    fn furnish(&self, hosted: &HostedOrder) -> rquickjs::Result<()> {
        let furnish = self.hook(&self.world.hooks.furnish)?;
        furnish.call::<_, ()>((hosted.log_lines_max, hosted.log_chars_max))?;
        let provide = self.hook(&self.world.hooks.provide)?;
        for (name, tools) in &hosted.providers {
            provide.call::<_, ()>((name.as_str(), tools.clone()))?;
        }
        Ok(())
    }

    /// The input loop: drain, check, wait.
    fn feed(&self, main: &Promise<'js>, inbox: &mut LinkReader) -> SessionEnding {
        let mut idle_said = None;
        loop {
            self.drain();
            if let Some(ending) = self.ending(main) {
                return ending;
            }
            let line = match inbox.line(|| self.say_idle(&mut idle_said)) {
                Ok(Some(line)) => line,
                Ok(None) => return SessionEnding::Closed,
                Err(_) => return SessionEnding::Broken,
            };
            // An invalid line is dropped, as execbox requires.
            let Ok(message) = ToRunner::decode(line) else { continue };
            if let Some(ending) = self.take(&message) {
                return ending;
            }
        }
    }

    fn take(&self, message: &ToRunner<'_>) -> Option<SessionEnding> {
        match message {
            ToRunner::ToolResult(result) => self.settle_call(result),
            ToRunner::TimerFired(fired) => self.fire(*fired),
            ToRunner::Sync(Sync { n }) if self.order.is_journalled() => {
                self.host.outbox.send(&FromRunner::Synced(Sync { n: *n }));
                None
            }
            ToRunner::Cancel(cancel) if cancel.id == self.order.id => {
                Some(SessionEnding::Failed(verdict::cancelled(self.order)))
            }
            ToRunner::Cancel(_) | ToRunner::Sync(_) | ToRunner::Session(_) => None,
            // It was sent in advance, and starts elsewhere.
            ToRunner::Execute(_) if self.order.is_journalled() => None,
            ToRunner::Execute(execute) => {
                self.order.refuse_second(execute.id.as_ref(), &self.host.outbox);
                None
            }
        }
    }

    fn settle_call(&self, result: &ToolResult<'_>) -> Option<SessionEnding> {
        let call = self.order.call_named(&result.call_id);
        let Some(call) = call.filter(|call| self.host.calls.borrow_mut().remove(call)) else {
            return self.unexpected(|| format!("call {} is not outstanding", result.call_id));
        };
        self.begin_input();
        self.host.call_sites.borrow_mut().settle_call(call, result.outcome.is_err());
        let at = self.moment(result.at);
        let settled = match &result.outcome {
            Ok(value) => self.resolve(call, at, *value),
            Err(why) => self.reject(call, at, why),
        };
        settled.err().map(|_| self.threw())
    }

    fn fire(&self, fired: TimerFired) -> Option<SessionEnding> {
        if !self.host.timers.borrow_mut().remove(&fired.timer) {
            return self.unexpected(|| format!("timer {} is not outstanding", fired.timer));
        }
        self.begin_input();
        let at = self.moment(Some(fired.at));
        let hook = self.hook(&self.world.hooks.fire);
        let fired = hook.and_then(|fire| fire.call::<_, ()>((fired.timer.0, at)));
        fired.err().map(|_| self.threw())
    }

    /// Late or repeated messages do not concern a host's program; in a replay they mean that the replay has diverged.
    fn unexpected(&self, what: impl FnOnce() -> String) -> Option<SessionEnding> {
        match &self.order.manner {
            HostKind::Journalled(_) => Some(self.diverged(what())),
            HostKind::Hosted(_) => None,
        }
    }

    /// The guest's time from now on: the journal's, or for a host's programs the machine's.
    fn moment(&self, at: Option<Timestamp>) -> Option<f64> {
        match &self.order.manner {
            HostKind::Journalled(_) => at.map(millis),
            HostKind::Hosted(_) => Some(millis(run_order::now())),
        }
    }

    fn resolve(
        &self,
        call: CallId,
        at: Option<f64>,
        value: Option<RawJson<'_>>,
    ) -> rquickjs::Result<()> {
        match self.result_of(value) {
            Ok(value) => self.hook(&self.world.hooks.resolve_call)?.call((call.0, at, value)),
            Err(_) => self.reject_unreadable(call, at),
        }
    }

    /// JSON that was validated on arrival fails here only for lack of stack or memory; the guest may
    /// continue without it.
    fn reject_unreadable(&self, call: CallId, at: Option<f64>) -> rquickjs::Result<()> {
        drop(self.ctx.catch());
        let message = "the tool's result is nested too deeply or does not fit the memory left";
        let code = "serialization".into();
        let why = CallFailure { code, message: message.into(), name: None, details: None };
        self.reject(call, at, &why)
    }

    fn reject(&self, call: CallId, at: Option<f64>, why: &CallFailure<'_>) -> rquickjs::Result<()> {
        let CallFailure { code, message, name, details } = why;
        let details = self.value_of(*details)?;
        let reject = self.hook(&self.world.hooks.reject_call)?;
        reject.call((call.0, at, code.as_ref(), message.as_ref(), name.as_deref(), details))
    }

    /// Runs microtasks until none is left. A flood of them never reaches the interpreter's own check.
    fn drain(&self) {
        while !self.host.is_out_of_time() && self.ctx.execute_pending_job() {
            self.host.poll_now_and_then();
        }
    }

    /// How the program ended, if it has.
    fn ending(&self, main: &Promise<'js>) -> Option<SessionEnding> {
        if self.is_out_of_time() {
            return Some(SessionEnding::Failed(verdict::out_of_time(self.world, self.order)));
        }
        if self.host.crashed.get() {
            return Some(SessionEnding::Crashed);
        }
        if let Some(reason) = self.unhandled_rejection(main) {
            return Some(SessionEnding::Threw(reason));
        }
        let calls = self.has_calls();
        let timers = !self.host.timers.borrow().is_empty();
        let waits = self.order.waits_for_calls();
        match main.state() {
            PromiseState::Pending if calls || timers => None,
            // The call that should settle it may have been lost for lack of memory.
            PromiseState::Pending if self.has_lost_for_want_of_memory() => {
                Some(SessionEnding::Failed(failure::memory_limit(self.order.memory_bytes)))
            }
            PromiseState::Pending => Some(SessionEnding::Failed(failure::plain("stuck", STUCK))),
            PromiseState::Resolved | PromiseState::Rejected if waits && calls => None,
            PromiseState::Resolved | PromiseState::Rejected => {
                let ended = self.ended.take().unwrap_or_else(|| self.settled(main));
                // Serializing the value ran guest code, once.
                match waits && self.has_calls() {
                    true => {
                        self.ended.replace(Some(ended));
                        None
                    }
                    false => Some(ended),
                }
            }
        }
    }

    fn has_lost_for_want_of_memory(&self) -> bool {
        let world = self.world;
        !world.is_of_first_globals() && world.is_exhausted(self.order.memory_bytes)
    }

    /// The reason of the first rejection that is unhandled at the end of this turn. That of the program
    /// itself is its outcome.
    fn unhandled_rejection(&self, main: &Promise<'js>) -> Option<ThrownValue> {
        self.world.rejections.as_ref()?.first(self.ctx, main.as_value())
    }

    fn has_calls(&self) -> bool {
        !self.host.calls.borrow().is_empty()
    }

    /// A deadline also passes while nothing runs.
    fn is_out_of_time(&self) -> bool {
        match &self.order.manner {
            HostKind::Journalled(_) => self.host.is_out_of_time(),
            HostKind::Hosted(_) => self.host.poll(),
        }
    }

    fn settled(&self, main: &Promise<'js>) -> SessionEnding {
        let Ok(value) = main.result::<Value<'js>>().expect("the promise is settled") else {
            return self.threw();
        };
        let json = match &self.order.manner {
            HostKind::Journalled(_) => self.journalled_json(value),
            HostKind::Hosted(_) => convert::to_json_within(self.ctx, value, HOST_PAYLOAD_BYTES_MAX),
        };
        match json {
            Ok(json) => SessionEnding::Value(json),
            Err(NoJsonForm::Threw) => {
                let thrown = Persistent::save(self.ctx, self.ctx.catch());
                SessionEnding::NotJson(NoJsonForm::Threw, Some(thrown))
            }
            Err(why) => SessionEnding::NotJson(why, None),
        }
    }

    fn journalled_json(&self, value: Value<'js>) -> Result<Option<String>, NoJsonForm> {
        match &self.world.hooks.write_value {
            Some(write) => convert::to_json_by(self.ctx, write, value),
            None => convert::to_named_json(self.ctx, value),
        }
    }

    /// The engine has an exception pending.
    fn threw(&self) -> SessionEnding {
        SessionEnding::Threw(Persistent::save(self.ctx, self.ctx.catch()))
    }

    fn diverged(&self, what: String) -> SessionEnding {
        self.host.outbox.send(&FromRunner::Diverged(Diverged { what: what.into() }));
        self.host.outbox.flush();
        SessionEnding::Diverged
    }

    /// Sent once per input: a line that changed nothing is no reason to repeat it.
    fn say_idle(&self, said: &mut Option<InputIndex>) {
        let inputs = self.host.inputs();
        if self.order.is_journalled() && *said != Some(inputs) {
            *said = Some(inputs);
            self.host.outbox.send(&FromRunner::Idle(Idle { inputs }));
        }
        self.host.outbox.flush();
    }

    fn begin_clock_and_dice(&self) {
        let (at, seed) = self.order.start();
        let (words, _) = seed.0.as_chunks::<4>();
        let started = self.hook(&self.world.hooks.start).and_then(|start| {
            let mut args = Args::new(self.ctx.clone(), words.len() + 1);
            args.push_arg(millis(at))?;
            args.push_args(words.iter().map(|word| u32::from_le_bytes(*word)))?;
            start.call_arg::<()>(args)
        });
        started.expect("the prelude's start only assigns numbers");
    }

    fn begin_input(&self) {
        let input = self.host.begin_input();
        self.host.advance_clock(self.order.is_before_last_replayed(input));
        if let HostKind::Journalled(airlock) = &self.order.manner
            && input == airlock.replay_inputs.next()
        {
            self.allow_cpu();
        }
    }

    fn allow_cpu(&self) {
        self.host.allow_cpu(self.order.cpu_ms(self.host.inputs()));
    }

    fn value_of(&self, json: Option<RawJson<'_>>) -> rquickjs::Result<Value<'js>> {
        match json {
            Some(json) => convert::from_json(self.ctx, json),
            None => Ok(Value::new_undefined(self.ctx.clone())),
        }
    }

    /// A tool's result. A plain host's is plain JSON.
    fn result_of(&self, json: Option<RawJson<'_>>) -> rquickjs::Result<Value<'js>> {
        match (json, &self.order.manner) {
            (Some(json), HostKind::Journalled(_)) => {
                convert::from_result(self.ctx, self.world.hooks.receive_files.as_ref(), json)
            }
            (json, HostKind::Journalled(_) | HostKind::Hosted(_)) => self.value_of(json),
        }
    }

    fn hook(&self, hook: &PreludeHook) -> rquickjs::Result<Function<'js>> {
        hook.clone().restore(self.ctx)
    }
}

/// Guest time as a JavaScript number.
pub(crate) fn millis(at: Timestamp) -> f64 {
    at.0 as f64
}
