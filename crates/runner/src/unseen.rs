//! Functions that appear not to exist: their `typeof` is "undefined", as for `document.all`.
#![expect(unsafe_code, reason = "rquickjs has no safe word for it")]

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Function, Object, qjs};

/// Adds `unseen` to the host's functions: it marks the function that it receives, and returns it.
pub(crate) fn add_to<'js>(functions: &Object<'js>) -> rquickjs::Result<()> {
    functions.set(
        "unseen",
        Func::new(|ctx: Ctx<'js>, function: Function<'js>| {
            // SAFETY: context and function are alive for the whole call and belong together, being
            // arguments of one call; the engine sets a flag in the object and retains nothing.
            unsafe { qjs::JS_SetIsHTMLDDA(ctx.as_raw().as_ptr(), function.as_raw()) };
            function
        }),
    )
}
