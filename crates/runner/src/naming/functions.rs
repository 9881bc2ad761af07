//! What the prelude asks about errors.

use super::{NamedError, ProgramSource};
use crate::host::Host;
use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Object};
use std::rc::Rc;

/// Adds to the host's functions what the prelude's errors are made with.
pub(crate) fn add_to<'js>(functions: &Object<'js>, host: &Rc<Host>) -> rquickjs::Result<()> {
    let it = Rc::clone(host);
    functions.set(
        "named",
        Func::new(move |ctx: Ctx<'js>, name: String, message: String, stack: String| {
            let NamedError { message, frames } = named(&it, &name, &message, &stack);
            let pair = Array::new(ctx)?;
            pair.set(0, message)?;
            pair.set(1, frames)?;
            rquickjs::Result::Ok(pair)
        }),
    )?;
    let it = Rc::clone(host);
    functions.set("isLooking", Func::new(move || it.is_looking.get()))?;
    let it = Rc::clone(host);
    functions.set(
        "rejectedSite",
        Func::new(move || it.call_sites.borrow_mut().take_rejected().map(String::from)),
    )
}

/// A session's texts share one file name: there, only words are changed.
fn named(host: &Host, name: &str, message: &str, stack: &str) -> NamedError {
    match &*host.program.borrow() {
        Some(program) => program.name_error(name, message, stack),
        None => ProgramSource::unknown().name_error(name, message, stack),
    }
}
