//! The functions with which the prelude describes errors.

use super::{NamedError, ProgramSource};
use crate::host::GuestHost;
use rquickjs::Object;
use rquickjs::prelude::Func;
use std::rc::Rc;

/// Adds the functions from which the prelude's errors are made.
pub(crate) fn add_to<'js>(functions: &Object<'js>, host: &Rc<GuestHost>) -> rquickjs::Result<()> {
    let it = Rc::clone(host);
    functions.set(
        "named",
        Func::new(move |name: String, message: String, stack: String| {
            let NamedError { message, frames } = named_function(&it, &name, &message, &stack);
            *it.named_frames.borrow_mut() = frames;
            message
        }),
    )?;
    let it = Rc::clone(host);
    functions.set("namedFrames", Func::new(move || it.named_frames.take()))?;
    let it = Rc::clone(host);
    functions.set("isLooking", Func::new(move || it.is_looking.get()))?;
    let it = Rc::clone(host);
    functions.set(
        "rejectedSite",
        Func::new(move || it.call_sites.borrow_mut().take_rejected().map(String::from)),
    )
}

/// A session's texts share one file name: for them, only the wording changes.
fn named_function(host: &GuestHost, name: &str, message: &str, stack: &str) -> NamedError {
    match &*host.program.borrow() {
        Some(program) => program.name_error(name, message, stack),
        None => ProgramSource::unknown_names().name_error(name, message, stack),
    }
}
