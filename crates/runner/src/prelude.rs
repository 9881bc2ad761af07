//! The guest's globals, by version. Old ones stay: a journal names the one its program ran with.
//!
//! A version is a base, evaluated when a world is built, and parts, which the base compiles when a program first touches
//! what they hold. A journal remembers which version a program ran with and replays it with that version: what a version
//! does is never changed once it has been released; the next one is added instead.

#[cfg(test)]
mod tests;

use rquickjs::context::EvalOptions;
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
pub(crate) const fn source(version: u32) -> Option<&'static str> {
    match version {
        1 => Some(V1),
        _ => None,
    }
}

/// Compiles a source of ours to the function that it is.
pub(crate) fn compile<'js>(ctx: &Ctx<'js>, source: &str) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(FILE_NAME.to_owned());
    ctx.eval_with_options(source, options)
}

/// Adds `part` to the host's functions: by it, the base compiles its parts.
pub(crate) fn add_to<'js>(functions: &Object<'js>) -> rquickjs::Result<()> {
    functions.set(
        "part",
        Func::new(|ctx: Ctx<'js>, name: String| {
            match PARTS.iter().find(|(part, _)| *part == name) {
                Some((_, source)) => compile(&ctx, source),
                None => Err(Exception::throw_reference(&ctx, "no such part")),
            }
        }),
    )
}
