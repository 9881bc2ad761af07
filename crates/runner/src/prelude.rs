//! The guest's globals, by version. A journal records the version that its program ran with and replays it with that one,
//! so a released version never changes: a change is a new version.
//!
//! A version is an overlay on the version before it: it replaces or adds parts. A new global is one file and one line.

mod bytecode;
mod overlays;
#[cfg(test)]
mod tests;

use crate::loops;
use overlays::{OVERLAYS, PreludeOverlay, PreludePart};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Function, Object};

pub use protocols::execbox::PRELUDE_VERSION;

/// The name of the prelude's frames in stacks; the guest's frames never have it.
pub(crate) const FILE_NAME: &str = "airlock:prelude";

/// The overlays that make up one version, oldest first; `None` if there is no such version.
fn overlays_of(version: u32) -> Option<&'static [PreludeOverlay]> {
    let n_overlays = usize::try_from(version).ok()?;
    OVERLAYS.get(..n_overlays).filter(|overlays| !overlays.is_empty())
}

/// The source of a version's base: that of the newest overlay that has one.
fn base_source(overlays: &[PreludeOverlay]) -> Option<&'static str> {
    overlays.iter().rev().find_map(|overlay| overlay.base)
}

/// The setups of a version, oldest first.
fn setups_of(overlays: &[PreludeOverlay]) -> impl Iterator<Item = &'static str> {
    overlays.iter().flat_map(|overlay| overlay.setups).copied()
}

/// A part of a version: that of the newest overlay that has it.
fn part_named(overlays: &[PreludeOverlay], name: &str) -> Option<&'static PreludePart> {
    overlays.iter().rev().find_map(|overlay| overlay.parts.iter().find(|part| part.name == name))
}

/// Every part of a version once, in the order in which overlays first name them.
fn parts_of(overlays: &[PreludeOverlay]) -> Vec<&'static PreludePart> {
    let mut parts: Vec<&'static PreludePart> = vec![];
    for part in overlays.iter().flat_map(|overlay| overlay.parts) {
        match parts.iter_mut().find(|known| known.name == part.name) {
            Some(known) => *known = part,
            None => parts.push(part),
        }
    }
    parts
}

/// Which part defines which globals, as the base reads it: `part:name name;part:name`.
fn globals_table(overlays: &[PreludeOverlay]) -> String {
    let parts = parts_of(overlays);
    let lines = parts.iter().filter(|part| !part.globals.is_empty());
    lines.map(|part| format!("{}:{}", part.name, part.globals)).collect::<Vec<_>>().join(";")
}

/// The function that builds a world of one version; `None` if there is no such version.
pub(crate) fn base<'js>(ctx: &Ctx<'js>, version: u32) -> Option<rquickjs::Result<Function<'js>>> {
    base_source(overlays_of(version)?).map(|source| bytecode::function(ctx, source))
}

/// An internal function that is no part of any version: guests cannot detect it.
pub(crate) fn own_function<'js>(
    ctx: &Ctx<'js>,
    source: &'static str,
) -> rquickjs::Result<Function<'js>> {
    bytecode::function(ctx, source)
}

/// Compiles everything that new programs may need, so that no world has to. What only older versions need
/// is compiled when a replay needs it.
pub(crate) fn compile_newest(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let overlays = overlays_of(PRELUDE_VERSION).unwrap_or_default();
    let parts = parts_of(overlays).into_iter().map(|part| part.source);
    let setups = setups_of(overlays);
    let sources = parts.chain(setups).chain(base_source(overlays)).chain([loops::HIDE]);
    sources.into_iter().try_for_each(|source| bytecode::compiled(ctx, source).map(drop))
}

/// Adds to the host's functions those from which the base of a version builds the version.
pub(crate) fn add_to<'js>(functions: &Object<'js>, version: u32) -> rquickjs::Result<()> {
    let overlays = overlays_of(version).unwrap_or_default();
    functions.set("globals", globals_table(overlays))?;
    // The base of version 1 calls once per overlay for one setup; it receives all setups of all overlays.
    functions.set("nOverlays", setups_of(overlays).count())?;
    functions.set(
        "setup",
        Func::new(move |ctx: Ctx<'js>, setup_idx: usize| {
            let setup = setups_of(overlays).nth(setup_idx);
            setup.map(|source| bytecode::function(&ctx, source)).transpose()
        }),
    )?;
    functions.set(
        "part",
        Func::new(move |ctx: Ctx<'js>, name: String| match part_named(overlays, &name) {
            Some(part) => bytecode::function(&ctx, part.source),
            None => Err(Exception::throw_reference(&ctx, "no such part")),
        }),
    )
}
