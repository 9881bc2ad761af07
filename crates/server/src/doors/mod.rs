//! One folder per protocol, and the administrator's door.

pub mod execbox;
pub(crate) mod executor;
pub(crate) mod journal;
pub(crate) mod policies;
pub(crate) mod tokens;
