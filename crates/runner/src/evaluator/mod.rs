//! A session: one world in which texts are evaluated one after another, and whose definitions persist.
//!
//! Messages are processed one at a time, and all microtasks are drained in between, so that everything that
//! runs can be attributed to the task whose message caused it. The runner does not measure time: the
//! server, which waits for the task, decides when it must stop.

mod evaluator_state;
mod functions;
mod mailbox;
mod path;
mod verdict;

pub(crate) use evaluator_state::EvaluatorState;

use crate::clock::CLOCK_STANDS;
use crate::convert;
use crate::guest_world::GuestWorld;
use crate::link::LinkReader;
use crate::prepare;
use crate::session::{PROGRAM_FILE_NAME, millis};
use evaluator_state::send_message;
use lifecycle::CallId;
use protocols::execbox::MESSAGE_BYTES_MAX;
use protocols::execbox::session::{
    CallSettlement, CompleteOrder, CompletionNames, EvalOrder, FireTimer, FromSession, GuestTime,
    InvokeCommand, OpenSession, SettleCall, TaskEnd, TaskFailed, TaskFailureKind, TaskOutcome,
    ToSession, encode,
};
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, Promise, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Microtasks of a stopped task that are still run: microtasks that keep queueing more do not stop by
/// themselves.
const LEFTOVERS_MAX: usize = 10_000;

/// Unhandled rejections of one turn that are printed.
const WARNINGS_MAX: usize = 16;

/// The error of a task that waits although nothing is under way.
const STUCK: &str =
    "it waits for a promise that nothing can settle: no tool call and no timer is outstanding";

/// Serves one session until its link closes. Returns whether it was closed in order.
pub(crate) fn serve(world: &GuestWorld, open: &OpenSession, inbox: LinkReader) -> bool {
    world.limit_memory(open.memory_bytes);
    let desk = EvaluatorState::new(inbox, open);
    world.host.sit(Rc::clone(&desk));
    let rejections = world.rejections.as_deref();
    rejections.inspect(|rejections| rejections.watch());
    let is_closed = world.context.with(|ctx| {
        let evaluator = SessionEvaluator::furnish(world, &ctx, &desk, open);
        evaluator.is_ok_and(|mut evaluator| evaluator.run())
    });
    rejections.inspect(|rejections| rejections.clear());
    is_closed
}

struct SessionEvaluator<'s, 'js> {
    world: &'s GuestWorld,
    ctx: &'s Ctx<'js>,
    desk: &'s EvaluatorState,
    open: &'s OpenSession,
    hooks: EvaluatorHooks<'js>,
    tasks: BTreeMap<u64, EvaluatorTask<'js>>,
    n_lines: u64,
    /// Warnings for the task that prints next: no task was open when they were created.
    warnings: RefCell<Vec<String>>,
}

/// A task that has not ended yet.
struct EvaluatorTask<'js> {
    promise: Promise<'js>,
    is_command: bool,
}

/// The prelude's functions for a session.
struct EvaluatorHooks<'js> {
    present: Function<'js>,
    complete: Function<'js>,
    invoke: Function<'js>,
    knows: Function<'js>,
    describe: Function<'js>,
    remember: Function<'js>,
    turn: Function<'js>,
}

impl<'s, 'js> SessionEvaluator<'s, 'js> {
    fn furnish(
        world: &'s GuestWorld,
        ctx: &'s Ctx<'js>,
        desk: &'s EvaluatorState,
        open: &'s OpenSession,
    ) -> rquickjs::Result<Self> {
        let start = world.hooks.start.clone().restore(ctx)?;
        let (words, _) = open.seed.0.as_chunks::<4>();
        let mut args = Args::new(ctx.clone(), words.len() + 1);
        args.push_arg(millis(open.start_ms))?;
        args.push_args(words.iter().map(|word| u32::from_le_bytes(*word)))?;
        start.call_arg::<()>(args)?;
        let functions = functions::session_functions(ctx, &world.host)?;
        let evaluate = world.hooks.evaluate.clone().restore(ctx)?;
        let hooks: Object<'js> =
            evaluate.call((functions, open.elements_max, open.value_chars_max))?;
        let hooks = EvaluatorHooks {
            present: hooks.get("present")?,
            complete: hooks.get("complete")?,
            invoke: hooks.get("invoke")?,
            knows: hooks.get("knows")?,
            describe: hooks.get("describe")?,
            remember: hooks.get("remember")?,
            turn: hooks.get("turn")?,
        };
        let (tasks, warnings) = (BTreeMap::new(), RefCell::default());
        Ok(Self { world, ctx, desk, open, hooks, tasks, n_lines: 0, warnings })
    }

    fn run(&mut self) -> bool {
        loop {
            let n_lines = self.n_lines;
            let outbox = &self.world.host.outbox;
            let line = self.desk.mailbox.next(|| {
                send_message(outbox, &FromSession::Rested { lines: n_lines });
                outbox.flush();
            });
            let line = match line {
                Ok(Some(line)) => line,
                Ok(None) => return true,
                Err(_) => return false,
            };
            self.n_lines += 1;
            match serde_json::from_slice(&line) {
                Ok(message) => self.take(message),
                Err(_) => return false,
            }
        }
    }

    fn take(&mut self, message: ToSession<'_>) {
        match message {
            ToSession::Eval(eval) => self.eval(&eval),
            ToSession::Invoke(invoke) => self.invoke(&invoke),
            ToSession::Complete(complete) => self.complete(&complete),
            ToSession::Settle(settle) => self.settle_call(&settle),
            ToSession::Fire(fire) => self.fire(fire),
            ToSession::Interrupt(stop) => {
                self.desk.mailbox.drop_task(stop.task);
                if self.tasks.contains_key(&stop.task) {
                    self.end_task(stop.task, verdict::interrupted());
                }
            }
        }
    }

    fn eval(&mut self, eval: &EvalOrder<'_>) {
        self.begin_eval(eval.task, eval.now);
        let script = match prepare::interactive(&eval.code) {
            Ok(script) => script,
            Err(problems) => return self.end_task(eval.task, verdict::syntax(&problems)),
        };
        let _ = self.hooks.remember.call::<_, ()>((eval.code.as_ref(),));
        let mut options = EvalOptions::default();
        (options.strict, options.promise) = (false, true);
        options.filename = Some(PROGRAM_FILE_NAME.to_owned());
        match self.ctx.eval_with_options::<Promise<'js>, _>(script, options) {
            // A text that starts to run reports errors through its promise: this one did not compile.
            Err(_) => self.end_at_once(eval.task, verdict::uncompiled(self.threw(false))),
            begun @ Ok(_) => self.follow(eval.task, begun, false),
        }
    }

    fn invoke(&mut self, invoke: &InvokeCommand<'_>) {
        self.begin_eval(invoke.task, invoke.now);
        if !matches!(self.hooks.knows.call::<_, bool>((invoke.name.as_ref(),)), Ok(true)) {
            return self.end_task(invoke.task, verdict::unknown_error());
        }
        let begun = convert::from_json(self.ctx, invoke.args).and_then(|args| {
            self.hooks.invoke.call::<_, Promise<'js>>((
                invoke.name.as_ref(),
                args,
                invoke.task as f64,
            ))
        });
        self.follow(invoke.task, begun, true);
    }

    fn begin_eval(&self, task: u64, now: GuestTime) {
        self.desk.begin_task(task);
        for warning in self.warnings.take() {
            self.desk.print(&self.world.host.outbox, &warning);
        }
        self.turn(now);
    }

    fn turn(&self, GuestTime { at, frame }: GuestTime) {
        self.world.begin_turn();
        self.world.host.advance_clock(false);
        let told = self.hooks.turn.call::<_, ()>((millis(at), frame as f64));
        told.expect("the prelude's turn only assigns numbers");
    }

    fn follow(&mut self, task: u64, begun: rquickjs::Result<Promise<'js>>, is_command: bool) {
        match begun {
            Ok(promise) => {
                self.tasks.insert(task, EvaluatorTask { promise, is_command });
                self.finish_turn();
            }
            Err(_) => {
                let outcome = self.threw(is_command);
                self.end_at_once(task, outcome);
            }
        }
    }

    /// Ends a task that never waited for anything.
    fn end_at_once(&mut self, task: u64, outcome: TaskOutcome<'static>) {
        self.finish_turn();
        self.end_task(task, outcome);
    }

    /// Runs the remaining microtasks of the turn, then reports which tasks have ended.
    fn finish_turn(&mut self) {
        while !self.desk.stopped.get() && self.ctx.execute_pending_job() {
            self.world.host.poll_now_and_then();
        }
        if self.desk.stopped.get() {
            return self.stop();
        }
        self.warn_of_rejections();
        // Describing an error may run guest code.
        if self.desk.stopped.get() {
            return self.stop();
        }
        // Most turns end the only open task.
        let settled: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(_, task)| !matches!(task.promise.state(), PromiseState::Pending))
            .map(|(task, _)| *task)
            .collect();
        for task in settled {
            let outcome = self.outcome(task);
            // Showing a value may run guest code, which may then have to be stopped.
            let outcome = if self.desk.stopped.get() { self.interrupted() } else { outcome };
            self.end_task(task, outcome);
        }
        self.end_the_stuck();
    }

    /// Ends evals that wait while nothing is under way: they would wait for ever.
    fn end_the_stuck(&mut self) {
        let idle = self.desk.calls.borrow().is_empty() && self.desk.timers.borrow().is_empty();
        if idle && self.tasks.len() == 1 && self.tasks.values().all(|task| !task.is_command) {
            let task = *self.tasks.keys().next().expect("there is one");
            // The call that should settle it may have been lost for lack of memory.
            let outcome = match self.world.is_exhausted(self.open.memory_bytes) {
                true => verdict::out_of_memory(self.open.memory_bytes),
                false => verdict::failed(TaskFailureKind::Stuck, STUCK),
            };
            self.end_task(task, outcome);
        }
    }

    /// Stops the current task and prevents it from running any further.
    fn stop(&mut self) {
        self.desk.stopped.set(false);
        let task = self.desk.current.get();
        let outcome = self.interrupted();
        self.world.host.advance_clock(false);
        self.desk.mailbox.drop_task(task);
        self.desk.mailbox.drop_task(0);
        drop(self.ctx.catch());
        let mut n_left = LEFTOVERS_MAX;
        while n_left > 0 && !self.desk.stopped.get() && self.ctx.execute_pending_job() {
            n_left -= 1;
        }
        let fouled = n_left == 0 || self.desk.stopped.replace(false);
        self.desk.open.borrow_mut().remove(&task);
        self.tasks.remove(&task);
        self.say_ended(TaskEnd { task, outcome, fouled });
    }

    /// Why the guest was stopped.
    fn interrupted(&self) -> TaskOutcome<'static> {
        match self.world.host.has_waited_for_clock() {
            true => verdict::failed(TaskFailureKind::Threw, CLOCK_STANDS),
            false => verdict::interrupted(),
        }
    }

    /// Prints the rejections that this turn left unhandled. The session continues: a later eval may handle them.
    fn warn_of_rejections(&self) {
        let Some(rejections) = &self.world.rejections else { return };
        let is_awaited = |promise: &Value<'js>| {
            self.tasks.values().any(|task| task.promise.as_value() == promise)
        };
        let reasons = rejections.take_all(self.ctx, is_awaited);
        for reason in reasons.into_iter().take(WARNINGS_MAX) {
            let warning = verdict::warning(&self.described(reason, false));
            if self.desk.has_open_task() {
                self.desk.print(&self.world.host.outbox, &warning);
            } else if self.warnings.borrow().len() < WARNINGS_MAX {
                self.warnings.borrow_mut().push(warning);
            }
        }
    }

    fn outcome(&self, task: u64) -> TaskOutcome<'static> {
        let Some(EvaluatorTask { promise, is_command }) = self.tasks.get(&task) else {
            return verdict::interrupted();
        };
        if *is_command {
            return match promise.result::<String>() {
                Some(Ok(json)) => verdict::output(json),
                Some(Err(_)) | None => self.threw(true),
            };
        }
        // The engine wraps an eval's value, so that one that is a promise is not awaited.
        match promise.result::<Object<'js>>().map(|result| result.and_then(|it| it.get("value"))) {
            Some(Ok(value)) => self.display_value(value),
            Some(Err(_)) | None => self.threw(false),
        }
    }

    fn display_value(&self, value: Value<'js>) -> TaskOutcome<'static> {
        if value.is_undefined() {
            return TaskOutcome::Nothing;
        }
        if let Some(small) = verdict::small(&value) {
            return small;
        }
        let asked = self.hooks.present.call::<_, ()>((value,));
        match (asked, self.desk.shown.borrow_mut().take()) {
            (Ok(()), Some(shown)) => verdict::value(shown),
            _ => self.threw(false),
        }
    }

    /// The engine has an exception pending.
    fn threw(&self, is_command: bool) -> TaskOutcome<'static> {
        let thrown = self.ctx.catch();
        if self.desk.stopped.get() {
            return self.interrupted();
        }
        self.described(thrown, is_command)
    }

    fn described(&self, thrown: Value<'js>, is_command: bool) -> TaskOutcome<'static> {
        // Memory cannot be lent within a turn, and an error that cannot be described for lack of memory
        // needs no description.
        self.world.host.described.borrow_mut().take();
        self.desk.claimed.borrow_mut().take();
        // The engine throws null when not even an error object could be allocated; a guest may throw null, too.
        if thrown.is_null() && self.world.is_exhausted(self.open.memory_bytes) {
            return verdict::out_of_memory(self.open.memory_bytes);
        }
        let asked = self.hooks.describe.call::<_, ()>((thrown,));
        if asked.is_err() {
            drop(self.ctx.catch());
        }
        let said = self.world.host.described.borrow_mut().take();
        let claimed = self.desk.claimed.borrow_mut().take().filter(|_| is_command);
        match (asked, said) {
            (Ok(()), Some(said)) => verdict::described(said, claimed, self.open.memory_bytes),
            // The prelude catches everything that the guest throws; only exhaustion stops it.
            _ => verdict::out_of_memory(self.open.memory_bytes),
        }
    }

    fn end_task(&mut self, task: u64, outcome: TaskOutcome<'_>) {
        self.desk.open.borrow_mut().remove(&task);
        self.desk.mailbox.drop_task(task);
        self.desk.stopped.set(false);
        self.tasks.remove(&task);
        let is_exhausted = matches!(
            &outcome,
            TaskOutcome::Failed(TaskFailed { why: TaskFailureKind::Memory, .. })
        );
        // A definition may hold what fills the memory: then no later eval can work.
        let fouled = is_exhausted && self.world.is_full(self.ctx, self.open.memory_bytes);
        self.say_ended(TaskEnd { task, outcome, fouled });
    }

    fn say_ended(&self, ended: TaskEnd<'_>) {
        let (task, fouled) = (ended.task, ended.fouled);
        let mut line = Vec::new();
        encode(&FromSession::Ended(ended), &mut line);
        let outbox = &self.world.host.outbox;
        if line.len() <= MESSAGE_BYTES_MAX {
            return outbox.send_with(|to| to.extend_from_slice(&line));
        }
        // A longer message would break the link, and all definitions would be lost with it.
        let message = format!(
            "RangeError: the outcome has {} bytes as JSON; at most {MESSAGE_BYTES_MAX} fit a message",
            line.len()
        );
        let outcome = verdict::failed(TaskFailureKind::Threw, message);
        send_message(outbox, &FromSession::Ended(TaskEnd { task, outcome, fouled }));
    }

    fn complete(&self, complete: &CompleteOrder<'_>) {
        let names: Vec<String> = path::path(&complete.code)
            .and_then(|(names, prefix)| {
                self.hooks
                    .complete
                    .call((names, prefix))
                    .inspect_err(|_| drop(self.ctx.catch()))
                    .ok()
            })
            .unwrap_or_default();
        let names = names.into_iter().map(Into::into).collect();
        let completed = CompletionNames { task: complete.task, names };
        send_message(&self.world.host.outbox, &FromSession::Completed(completed));
    }

    fn settle_call(&mut self, settle: &SettleCall<'_>) {
        let task = self.desk.calls.borrow_mut().remove(&settle.call);
        let failed = task.is_some() && matches!(settle.outcome, CallSettlement::Failed(_));
        self.world.host.call_sites.borrow_mut().settle_call(CallId(settle.call), failed);
        let Some(task) = task else { return };
        self.desk.turn_of(task);
        self.turn(settle.now);
        let settled = match &settle.outcome {
            CallSettlement::Returned(value) => self.resolve(settle.call, *value),
            CallSettlement::Failed(why) => {
                let details =
                    why.details.map(|json| convert::from_json(self.ctx, json)).transpose();
                self.reject(settle.call, &why.code, &why.message, details.ok().flatten())
            }
        };
        if settled.is_err() {
            drop(self.ctx.catch());
        }
        self.finish_turn();
    }

    fn resolve(
        &self,
        call: u32,
        value: Option<protocols::execbox::wire::RawJson<'_>>,
    ) -> rquickjs::Result<()> {
        let value = match value {
            Some(json) => {
                convert::from_result(self.ctx, self.world.hooks.receive_files.as_ref(), json)
            }
            None => Ok(Value::new_undefined(self.ctx.clone())),
        };
        match value {
            Ok(value) => {
                let resolve = self.world.hooks.resolve_call.clone().restore(self.ctx)?;
                resolve.call((call, Option::<f64>::None, value))
            }
            Err(_) => {
                drop(self.ctx.catch());
                let message =
                    "the tool's result is nested too deeply or does not fit the memory left";
                self.reject(call, "serialization", message, None)
            }
        }
    }

    fn reject(
        &self,
        call: u32,
        code: &str,
        message: &str,
        details: Option<Value<'js>>,
    ) -> rquickjs::Result<()> {
        let reject = self.world.hooks.reject_call.clone().restore(self.ctx)?;
        let undefined = || Value::new_undefined(self.ctx.clone());
        let details = details.unwrap_or_else(undefined);
        reject.call((call, undefined(), code, message, undefined(), details))
    }

    fn fire(&mut self, fire: FireTimer) {
        let Some(task) = self.desk.timers.borrow_mut().remove(&fire.timer) else { return };
        self.desk.turn_of(task);
        self.turn(fire.now);
        let hook = self.world.hooks.fire.clone().restore(self.ctx);
        let fired = hook.and_then(|hook| hook.call::<_, ()>((fire.timer, millis(fire.now.at))));
        if fired.is_err() {
            drop(self.ctx.catch());
        }
        self.finish_turn();
    }
}

/// A failure that consists of a kind and a message only.
fn plain(why: TaskFailureKind, message: impl Into<String>) -> TaskFailed<'static> {
    let message = message.into().into();
    TaskFailed { why, message, stack: None, kind: None, code: None, details: None }
}
