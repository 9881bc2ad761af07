//! What a browser is shown.

mod root;

pub(crate) use root::root;
