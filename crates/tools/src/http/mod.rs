//! All requests of tools to APIs go through this module: bounded in time and size, careful with redirects, and the only
//! place where a credential is added to a request.

mod address;
mod challenge;
mod client;
mod connector;
mod error;
mod exchange;
mod media;
mod reach;
mod redirect;
mod rules;
mod shape;
mod transport;

pub use address::is_refused;
pub use challenge::{AuthChallenge, scopes};
pub use client::{ApiClient, ApiRequest, ApiResponse, HttpLimits, tls_with};
pub use error::HttpError;
pub(crate) use exchange::{exchange, outgoing};
pub(crate) use media::{file, is_json, is_text, media_type};
pub use reach::{NameResolver, RequestReach, SystemResolver};
pub use rules::{
    ALLOWED_MAX, AddressRules, AllowedAddress, IpNetwork, ProxyAddress, RefusedAddress,
};
pub(crate) use shape::{shape_response, trouble};
pub use transport::{
    HttpTransport, SendError, SendErrorKind, TransportConfig, TransportRequest, TransportResponse,
};
