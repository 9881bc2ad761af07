//! One folder per protocol, and the administrator's door.

pub(crate) mod executor;
pub(crate) mod tokens;
