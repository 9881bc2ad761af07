//! Sends one request and receives one answer. All outgoing HTTP of Airlock goes through this module, so that no request
//! bypasses the address rules. Follows no redirect.

use super::connector::{ApiConnectError, CheckedConnector, ServerAddress};
use super::{AddressRules, NameResolver, RequestReach};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long an idle connection is retained: APIs close theirs after about a minute.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// Maximum number of idle connections per host: a burst of calls leaves no more open.
const IDLE_PER_HOST_MAX: usize = 8;

/// Connections to others. Clones share them.
#[derive(Clone)]
pub struct HttpTransport(Arc<ConnectionPools>);

struct ConnectionPools {
    anywhere: Client<CheckedConnector, Full<Bytes>>,
    public: Client<CheckedConnector, Full<Bytes>>,
    rules: AddressRules,
    network: Arc<dyn NameResolver>,
}

/// The configuration of a transport.
#[derive(Debug)]
pub struct TransportConfig {
    /// Which addresses may be reached.
    pub rules: AddressRules,
    /// Resolves names.
    pub network: Arc<dyn NameResolver>,
    /// The accepted certificates.
    pub tls: ClientConfig,
    /// Time until there is a connection.
    pub connect_max: Duration,
}

/// A complete request.
#[derive(Debug, Clone)]
pub struct TransportRequest {
    /// The HTTP method.
    pub method: Method,
    /// The target.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Which networks it may enter.
    pub reach: RequestReach,
}

/// The head of an answer; its body is not read yet.
#[derive(Debug)]
pub struct TransportResponse {
    head: hyper::http::response::Parts,
    body: Incoming,
}

/// Why a request got no answer, or an answer did not end.
#[derive(Debug)]
pub struct SendError {
    kind: SendErrorKind,
    why: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendErrorKind {
    /// An address that no request may reach.
    Refused,
    /// There was no connection in time.
    TimedOut(Duration),
    /// Anything else.
    Unreachable,
}

impl HttpTransport {
    /// A transport with a new connection pool.
    pub fn new(config: TransportConfig) -> Self {
        let TransportConfig { rules, network, tls, connect_max } = config;
        let tls = tokio_rustls::TlsConnector::from(Arc::new(tls));
        let client = |reach| {
            let (network, rules, tls) = (Arc::clone(&network), rules.clone(), tls.clone());
            let connector = CheckedConnector { network, rules, reach, tls, time_max: connect_max };
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
                .build(connector)
        };
        let (anywhere, public) = (client(RequestReach::Anywhere), client(RequestReach::Public));
        Self(Arc::new(ConnectionPools { anywhere, public, rules, network }))
    }

    /// The rules about addresses. They can be changed while requests are made.
    pub fn rules(&self) -> &AddressRules {
        &self.0.rules
    }

    /// Sends a request to exactly this address.
    pub async fn send(&self, request: TransportRequest) -> Result<TransportResponse, SendError> {
        let TransportRequest { method, mut url, mut headers, body, reach } = request;
        if let Some(value) = take_user(&mut url) {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let unreachable =
            |why: &str| SendError { kind: SendErrorKind::Unreachable, why: why.into() };
        let uri: Uri = url.as_str().parse().map_err(|_| unreachable("its address is no URL"))?;
        let request = hyper::Request::builder().method(method).uri(uri).body(Full::new(body));
        let mut request = request.map_err(|_| unreachable("that is no request"))?;
        *request.headers_mut() = headers;
        let client = match reach {
            RequestReach::Anywhere => &self.0.anywhere,
            RequestReach::Public => &self.0.public,
        };
        let response =
            client.request(request).await.map_err(|error| SendError::from_error(&error))?;
        let (head, body) = response.into_parts();
        Ok(TransportResponse { head, body })
    }

    /// Whether an answer came from a private network.
    pub(super) fn is_from_inside(&self, response: &TransportResponse) -> bool {
        response.server_address().is_none_or(|address| !self.0.network.is_public(address.ip()))
    }
}

/// Removes user and password from a URL, which become a header.
fn take_user(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decode(url.username());
    pair.push(b':');
    pair.extend(decode(url.password().unwrap_or_default()));
    // Neither can fail: the URL has a host.
    let _ = (url.set_username(""), url.set_password(None));
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl TransportResponse {
    /// The HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Bytes of the body that are still to come, if known.
    pub fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| SendError::from_error(&error))?;
            // Trailers are ignored.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    fn server_address(&self) -> Option<SocketAddr> {
        self.head.extensions.get::<ServerAddress>().map(|address| address.0)
    }
}

impl SendError {
    /// The innermost cause describes the error; the outer ones only wrap it.
    fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut inner = error;
        loop {
            match inner.downcast_ref::<ApiConnectError>() {
                Some(error @ ApiConnectError::Refused(_)) => {
                    return Self { kind: SendErrorKind::Refused, why: error.to_string() };
                }
                Some(error @ ApiConnectError::TimedOut(after)) => {
                    return Self { kind: SendErrorKind::TimedOut(*after), why: error.to_string() };
                }
                Some(
                    ApiConnectError::Private
                    | ApiConnectError::BadAddress
                    | ApiConnectError::Proxy { .. }
                    | ApiConnectError::Io(_),
                )
                | None => {}
            }
            match inner.source() {
                Some(source) => inner = source,
                None => break,
            }
        }
        Self { kind: SendErrorKind::Unreachable, why: inner.to_string() }
    }

    /// What kind of failure it is.
    pub const fn kind(&self) -> SendErrorKind {
        self.kind
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for SendError {}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}
