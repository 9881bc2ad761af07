//! The guest's globals, by version. Old ones stay: a journal names the one its program ran with.

/// The version new programs run with.
pub const PRELUDE_VERSION: u32 = 1;

/// How a prelude's frames are named in stacks; the guest's frames never are.
pub(crate) const FILE_NAME: &str = "airlock:prelude";

/// The source of one version.
pub(crate) const fn source(version: u32) -> Option<&'static str> {
    match version {
        1 => Some(include_str!("../prelude/v1.js")),
        _ => None,
    }
}
