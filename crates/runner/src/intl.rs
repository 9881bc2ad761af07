//! The host's side of the guest's `Intl`: requests and replies are texts.

use ::intl::IntlError;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Object};
use std::cmp::Ordering;

/// The first version of the globals that has `Intl`.
const FIRST_VERSION: u32 = 2;

/// Adds the functions that `prelude/v2/intl.js` calls.
pub(crate) fn add_to(functions: &Object<'_>, prelude_version: u32) -> rquickjs::Result<()> {
    if prelude_version < FIRST_VERSION {
        return Ok(());
    }
    functions.set(
        "intl",
        Func::new(|operation: String, first: String, second: String| {
            reply(::intl::answer_request(&operation, &first, &second))
        }),
    )?;
    functions.set(
        "intlCompare",
        Func::new(|ctx: Ctx<'_>, settings: String, left: String, right: String| {
            match ::intl::compare(&settings, &left, &right) {
                Ok(Ordering::Less) => Ok(-1),
                Ok(Ordering::Equal) => Ok(0),
                Ok(Ordering::Greater) => Ok(1),
                Err(IntlError::Range(message) | IntlError::Type(message)) => {
                    Err(Exception::throw_type(&ctx, &message))
                }
            }
        }),
    )
}

/// An answer after "=", or an error after the first letter of its name.
fn reply(answer: Result<String, IntlError>) -> String {
    match answer {
        Ok(text) => format!("={text}"),
        Err(IntlError::Range(message)) => format!("R{message}"),
        Err(IntlError::Type(message)) => format!("T{message}"),
    }
}
