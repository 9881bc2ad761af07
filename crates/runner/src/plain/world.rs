//! A plain guest's world: a runtime, a context and the functions of its prelude. It serves one execution.

use super::host::{self, Host};
use crate::world::{MEMORY_BYTES_MIN, MEMORY_RESERVE_BYTES, STACK_BYTES_MAX};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime};
use std::rc::Rc;

/// Nothing of this is replayed, so there is one version.
const PRELUDE: &str = include_str!("guest.js");

/// A guest's world, ready to run one program.
pub(crate) struct World {
    // Fields are dropped in this order: functions before the context they live in, the context before its runtime.
    pub(super) hooks: Hooks,
    pub(super) context: Context,
    runtime: Runtime,
    pub(super) host: Rc<Host>,
}

/// The prelude's functions, by which the session drives the guest.
pub(super) struct Hooks {
    pub(super) start: Hook,
    pub(super) provide: Hook,
    pub(super) resolve_call: Hook,
    pub(super) reject_call: Hook,
    pub(super) describe: Hook,
}

/// A function of the prelude's, kept between two turns of the guest.
pub(super) type Hook = Persistent<Function<'static>>;

impl World {
    pub(crate) fn fresh() -> Self {
        let runtime = Runtime::new().expect("memory for a runtime");
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let context = Context::full(&runtime).expect("memory for a context");
        let host = Host::new();
        let hooks = context.with(|ctx| build(&ctx, &host)).expect("the embedded prelude runs");
        let polled = Rc::clone(&host);
        // Only now: building the world is not the guest's time.
        runtime.set_interrupt_handler(Some(Box::new(move || polled.poll())));
        Self { hooks, context, runtime, host }
    }

    pub(super) fn limit_memory(&self, bytes: u64) {
        self.runtime.set_memory_limit(size(bytes.max(MEMORY_BYTES_MIN)));
    }

    /// Lets us speak about a guest that has used up its memory.
    pub(super) fn lend_memory(&self, bytes: u64) {
        self.runtime.set_memory_limit(size(
            bytes.max(MEMORY_BYTES_MIN).saturating_add(MEMORY_RESERVE_BYTES),
        ));
    }
}

fn build(ctx: &Ctx<'_>, host: &Rc<Host>) -> rquickjs::Result<Hooks> {
    let mut options = EvalOptions::default();
    options.filename = Some(crate::prelude::FILE_NAME.to_owned());
    let build: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
    let hooks: Object<'_> = build.call((host::functions(ctx, host)?,))?;
    let hook = |name: &str| -> rquickjs::Result<Hook> {
        Ok(Persistent::save(ctx, hooks.get::<_, Function<'_>>(name)?))
    };
    Ok(Hooks {
        start: hook("start")?,
        provide: hook("provide")?,
        resolve_call: hook("resolveCall")?,
        reject_call: hook("rejectCall")?,
        describe: hook("describe")?,
    })
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
