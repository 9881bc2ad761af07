//! The guest's globals, by version. Old ones stay: a journal names the one its program ran with.
//!
//! A version is a base, evaluated when a world is built, and parts, which the base compiles when a program first touches
//! what they hold. A journal remembers which version a program ran with and replays it with that version: what a version
//! does is never changed once it has been released; the next one is added instead.

mod bytecode;
#[cfg(test)]
mod tests;

use crate::loops;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Function, Object};

/// The version new programs run with.
pub const PRELUDE_VERSION: u32 = 1;

/// How a prelude's frames are named in stacks; the guest's frames never are.
pub(crate) const FILE_NAME: &str = "airlock:prelude";

macro_rules! v1 {
    ($name:literal) => {
        include_str!(concat!("../prelude/v1/", $name, ".js"))
    };
}

/// One function that takes the host's functions and returns the hooks.
const V1: &str = concat!(
    "(function (host) {\n\"use strict\";\n",
    v1!("capture"),
    v1!("parts"),
    v1!("clock"),
    v1!("globals"),
    "})"
);

/// Each a function that takes what the base captured.
const PARTS: &[(&str, &str)] = &[
    ("v1/bytes", v1!("bytes")),
    ("v1/clone", v1!("clone")),
    ("v1/console", v1!("console")),
    ("v1/console_more", v1!("console_more")),
    ("v1/crypto", v1!("crypto")),
    ("v1/errors", v1!("errors")),
    ("v1/evaluate", v1!("evaluate")),
    ("v1/events", v1!("events")),
    ("v1/hosted", v1!("hosted")),
    ("v1/idna", v1!("idna")),
    ("v1/ipv6", v1!("ipv6")),
    ("v1/percent", v1!("percent")),
    ("v1/random", v1!("random")),
    ("v1/search_params", v1!("search_params")),
    ("v1/show", v1!("show")),
    ("v1/show_kinds", v1!("show_kinds")),
    ("v1/text", v1!("text")),
    ("v1/timers", v1!("timers")),
    ("v1/tools", v1!("tools")),
    ("v1/url", v1!("url")),
    ("v1/url_host", v1!("url_host")),
    ("v1/url_parse", v1!("url_parse")),
];

/// The source of one version's base.
const fn source(version: u32) -> Option<&'static str> {
    match version {
        1 => Some(V1),
        _ => None,
    }
}

/// The function that builds a world of one version; `None` if there is no such version.
pub(crate) fn base<'js>(ctx: &Ctx<'js>, version: u32) -> Option<rquickjs::Result<Function<'js>>> {
    source(version).map(|source| bytecode::function(ctx, source))
}

/// A function of ours that is no part of any version: guests cannot tell that it is there.
pub(crate) fn own_function<'js>(
    ctx: &Ctx<'js>,
    source: &'static str,
) -> rquickjs::Result<Function<'js>> {
    bytecode::function(ctx, source)
}

/// Compiles everything, so that no world has to.
pub(crate) fn compile_all(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let parts = PARTS.iter().map(|(_, source)| *source);
    parts.chain([V1, loops::HIDE]).try_for_each(|source| bytecode::compiled(ctx, source).map(drop))
}

/// Adds `part` to the host's functions: by it, the base compiles its parts.
pub(crate) fn add_to<'js>(functions: &Object<'js>) -> rquickjs::Result<()> {
    functions.set(
        "part",
        Func::new(|ctx: Ctx<'js>, name: String| {
            match PARTS.iter().find(|(part, _)| *part == name) {
                Some((_, source)) => bytecode::function(&ctx, source),
                None => Err(Exception::throw_reference(&ctx, "no such part")),
            }
        }),
    )
}
