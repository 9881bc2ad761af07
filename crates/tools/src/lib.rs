//! What programs can call: a catalogue of tools and the sources they come from. Knows no guest and
//! no journal; says whether a call fits, and performs it.

mod catalogue;
pub mod demo;
pub mod function;
mod readable;
mod schema;
mod source;
mod suggest;

pub use catalogue::{Catalogue, CatalogueError};
pub use source::{CancelSignal, Request, Source, Tool};
