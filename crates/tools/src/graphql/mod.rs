//! APIs that describe themselves by GraphQL introspection: each field of the query and mutation types
//! becomes a tool.

mod import;
mod integration;
mod kind;
mod select;
mod types;

pub use import::{GraphqlError, INTROSPECTION, Options, TEXT_BYTES_MAX, import, introspect};
pub use integration::GraphqlIntegration;
pub use kind::GraphqlKind;
