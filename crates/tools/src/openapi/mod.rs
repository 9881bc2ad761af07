//! APIs described by OpenAPI 3.0 and 3.1, as JSON or YAML: each operation becomes a tool.

mod body;
mod call;
mod document;
mod flows;
mod import;
mod integration;
mod kind;
mod naming;
mod outline;
mod plan;
mod preview;
mod raw;
mod schema;
mod security;
mod server;
mod specimen;
mod style;
mod yaml;

pub use yaml::to_json as yaml_to_json;

pub use import::{ImportError, LeftOut, Options, TEXT_BYTES_MAX, import};
pub use integration::{ApiInfo, OpenApi};
pub use kind::{OpenApiKind, SENT_BYTES_MAX, SentSpec, preview_at};
pub use outline::outline;
pub use preview::preview;
pub(crate) use schema::cut;
pub use specimen::specimen;
