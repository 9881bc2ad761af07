//! What programs can call: a catalogue of tools and the sources they come from. Knows no guest and
//! no journal; says whether a call fits, and performs it.

mod catalogue;
mod connection;
pub mod demo;
pub mod envelope;
pub mod function;
mod integration;
mod readable;
mod schema;
mod shared_schema;
mod source;
mod suggest;

pub use catalogue::{Card, Catalogue, CatalogueError, Change, Found, Revision, Snapshot};
pub use connection::{Connection, ConnectionName, Credential, Owner, Place, Placement, Secret};
pub use integration::{AuthMethod, BadSlug, Integration, PlacementTemplate, Slug, ToolSpec};
pub use schema::misfit;
pub use shared_schema::{Definitions, SharedSchema};
pub use source::{CancelSignal, Person, Request, Source, Tool};
