//! The one way in which tools reach APIs: bounded in time and size, careful with redirects, and the only
//! place where a credential meets a request.

mod challenge;
mod client;
mod error;
mod exchange;
mod media;
mod reach;
mod redirect;
mod shape;

pub use challenge::{Challenge, scopes};
pub(crate) use client::tls;
pub use client::{HttpClient, HttpLimits, Incoming, Outgoing, tls_with};
pub use error::HttpError;
pub(crate) use exchange::{exchange, outgoing};
pub(crate) use media::{file, is_json, is_text, media_type};
pub use reach::{Internet, Network, Reach};
pub(crate) use shape::{answer, trouble};
