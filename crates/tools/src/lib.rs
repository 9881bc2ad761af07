//! What programs can call: a catalogue of tools and the sources they come from. Checks calls and performs them. Knows
//! no guest and no journal.

pub mod builtin;
mod catalogue;
mod child;
pub mod command;
mod connection;
pub mod demo;
mod describe;
pub mod envelope;
mod files;
pub mod function;
pub mod graphql;
pub mod http;
mod integration;
pub mod mcp;
pub mod openapi;
mod proof;
mod schema;
pub mod scrub;
mod search;
mod shape;
mod shared_schema;
mod source;
mod source_config;
mod source_kind;
mod source_kinds;
mod suggest;
mod token_source;

use ::schema::readable;
pub use catalogue::{
    Catalogue, CatalogueChange, CatalogueError, CatalogueSnapshot, FoundTool, IntegrationArrival,
    SourceCard, ToolAge, ToolAges,
};
pub use child::{ChildProgram, ChildSupervision};
pub use connection::{
    Connection, ConnectionName, ConnectionOwner, CredentialPlacement, PlacementKind, SecretString,
    ToolCredential,
};
pub use describe::ToolDescriptionText;
pub use integration::{
    AuthKind, AuthMethod, BadSlug, Integration, IntegrationSlug, PlacementTemplate, ToolSpec,
};
pub use proof::{CredentialProvider, NoProof, ProofRefused};
pub use schema::{misfit, schema_defect, with_form_note};
pub use search::{ToolSearch, ToolSearchPage};
pub use shared_schema::{SchemaDefinitions, SharedSchema};
pub use source::{CancelSignal, PersonHandle, ProgressHandle, Source, Tool, ToolRequest};
pub use source_config::{CommandConfig, SourceConfig};
pub use source_kind::{
    DetectedSource, OpenedSource, SourceArguments, SourceCheck, SourceContext, SourceHealth,
    SourceKind, SourceOpenError, SourceServer, StoredDescription, slug_of_host,
};
pub use source_kinds::SourceKinds;
pub use suggest::suggest;
pub use token_source::{TokenFlow, TokenFlowKind, TokenSource};
