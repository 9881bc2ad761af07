//! JSON Schema: compiles a schema once, then checks whether a value matches it, and lists the misfits.
//! Drafts 4, 6, 7, 2019-09 and 2020-12. Fetches nothing, and its cost is bounded for any value and schema.
//!
//! ```
//! use schema::{CompiledSchema, FormatMode};
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"n": {"minimum": 1}}});
//! let schema = CompiledSchema::compile(&schema, FormatMode::Ignored)?;
//! assert!(schema.is_valid(&json!({"n": 1})));
//! let misfits = schema.misfits(&json!({"n": 0}), 5);
//! assert_eq!(misfits[0].path, "/n");
//! assert_eq!(misfits[0].kind.to_string(), "value is less than the minimum of 1");
//! # Ok::<(), schema::SchemaDefect>(())
//! ```

mod check;
mod compile;
mod compiled;
mod defect;
mod draft;
mod equal;
mod formats;
mod index;
mod keywords;
mod misfit;
mod node;
mod numbers;
mod pattern;
pub mod readable;
mod shape;
mod uri;

pub use compiled::{CompiledSchema, FormatMode};
pub use defect::SchemaDefect;
pub use misfit::{ExtraNames, MisfitKind, SchemaMisfit};
pub use node::JsonTypes;

#[cfg(test)]
mod tests;
