//! The functions that the prelude calls. Each delegates to the host, which holds the state.

use crate::bytes;
use crate::clock::CLOCK_READS_MAX;
use crate::domains;
use crate::failure::{self, DescribedError};
use crate::host::GuestHost;
use crate::intl;
use crate::kinds;
use crate::naming;
use crate::prelude;
use crate::unseen;
use lifecycle::LogLevel;
use rquickjs::prelude::{Func, Opt};
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Ctx, Exception, Function, IntoJs as _, Object, Value};
use std::rc::Rc;

/// The functions for one version of the prelude. The object itself is never visible to the guest.
pub(crate) fn functions<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<GuestHost>,
    prelude_version: u32,
) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let of = |host: &Rc<GuestHost>| Rc::clone(host);

    let it = of(host);
    object.set(
        "call",
        Func::new(move |ctx: Ctx<'js>, id: u32, path: String, json: String| {
            it.call(&ctx, id, &path, &json)
        }),
    )?;
    let it = of(host);
    object.set(
        "callHosted",
        Func::new(move |id: u32, provider: String, tool: String, json: String| {
            it.call_hosted(id, &provider, &tool, &json)
        }),
    )?;
    let it = of(host);
    object.set(
        "log",
        Func::new(move |level: String, line: String, exact: Opt<String>| {
            it.log(level_of(&level), &line, exact.0.as_deref());
        }),
    )?;
    object.set("promiseState", Func::new(promise_state))?;
    object.set("textOf", Func::new(text_of))?;
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
    add_timers(&object, host)?;
    let it = of(host);
    object.set("crashed", Func::new(move || it.crashed.set(true)))?;
    let it = of(host);
    object.set(
        "frames",
        Func::new(move |stack: String| match prelude_version {
            1 => failure::frames(&stack, &it.shifts.borrow()),
            // These stacks are already in the form that is shown: see the prelude's part `errors`.
            _ => failure::shown_frames(&stack),
        }),
    )?;
    let it = of(host);
    object.set(
        "described",
        Func::new(move |code: String, ours: bool, message: String, name: String, stack: String| {
            let is_shown = prelude_version > 1;
            let described = DescribedError { code, ours, message, name, stack, is_shown };
            *it.described.borrow_mut() = Some(described);
        }),
    )?;
    naming::add_to(&object, host)?;
    object.set("clockReadsMax", CLOCK_READS_MAX)?;
    let it = of(host);
    object.set("lookAtClock", Func::new(move || it.look_at_clock()))?;
    unseen::add_to(&object)?;
    object.set("defer", Func::new(|job: Function<'js>| job.defer(())))?;
    bytes::add_to(&object)?;
    domains::add_to(&object, prelude_version)?;
    intl::add_to(&object, prelude_version)?;
    kinds::add_to(&object, prelude_version)?;
    prelude::add_to(&object, prelude_version)?;
    Ok(object)
}

fn add_timers(object: &Object<'_>, host: &Rc<GuestHost>) -> rquickjs::Result<()> {
    let it = Rc::clone(host);
    object.set("timerSet", Func::new(move |id: u32, ms: f64| it.timer_set(id, ms as u64)))?;
    let it = Rc::clone(host);
    object.set("timerCleared", Func::new(move |id: u32| it.timer_cleared(id)))
}

/// Decodes a JSON string; returns the JSON itself if the string contains half of a surrogate pair.
fn text_of(json: String) -> String {
    serde_json::from_str(&json).unwrap_or(json)
}

/// The state of a promise, and its value or reason; `None` for a value that is no promise.
fn promise_state<'js>(ctx: Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<Array<'js>>> {
    let Some(promise) = value.as_promise() else { return Ok(None) };
    let (state, value) = match promise.state() {
        PromiseState::Pending => ("pending", None),
        PromiseState::Resolved => ("fulfilled", promise.result::<Value<'js>>().transpose()?),
        PromiseState::Rejected => {
            // Taking the value of a rejected promise throws its reason.
            let reason = promise.result::<Value<'js>>().and_then(Result::err).map(|_| ctx.catch());
            ("rejected", reason)
        }
    };
    let pair = Array::new(ctx.clone())?;
    pair.set(0, state.into_js(&ctx)?)?;
    if let Some(value) = value {
        pair.set(1, value)?;
    }
    Ok(Some(pair))
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
