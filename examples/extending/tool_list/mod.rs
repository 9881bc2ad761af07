//! A list of tools in a JSON file as a kind of source.

mod integration;
mod kind;

pub use kind::ToolListKind;
