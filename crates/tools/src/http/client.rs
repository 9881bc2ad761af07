//! Sends requests, with a limit on time, size and redirects.

use super::reach::{NameResolver, SystemResolver, is_private};
use super::redirect::{self, RedirectParts, host};
use super::{
    AddressRules, HttpError, HttpTransport, RequestReach, SendError, SendErrorKind,
    TransportConfig, TransportRequest, TransportResponse,
};
use crate::{CancelSignal, PlacementKind, ToolCredential};
use hyper::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// More redirects than this are a loop.
const REDIRECTS_MAX: usize = 5;

/// Limits on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Time until there is a connection.
    pub connect: Duration,
    /// Time until the last byte of the answer, redirects included.
    pub total: Duration,
    /// Maximum size of a request's body.
    pub request_bytes_max: usize,
    /// Maximum size of an answer's body: it is held in memory, and journalled.
    pub response_bytes_max: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(60),
            request_bytes_max: 16 << 20,
            response_bytes_max: 8 << 20,
        }
    }
}

/// Calls APIs. Clones share connections.
#[derive(Debug, Clone)]
pub struct ApiClient {
    transport: HttpTransport,
    limits: HttpLimits,
}

/// A request without a credential.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The HTTP method.
    pub method: Method,
    /// The target.
    pub url: Url,
    /// The headers, without the credential.
    pub headers: HeaderMap,
    /// The body.
    pub body: bytes::Bytes,
    /// Which networks it may enter.
    pub reach: RequestReach,
}

impl ApiRequest {
    /// A request with only a method and an address.
    pub fn new(method: Method, url: Url) -> Self {
        let (headers, body) = (HeaderMap::new(), bytes::Bytes::new());
        Self { method, url, headers, body, reach: RequestReach::Anywhere }
    }
}

/// A complete answer.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// The URL that answered, after redirects.
    pub url: Url,
}

impl ApiClient {
    /// A client with a new connection pool.
    pub fn new(limits: HttpLimits) -> Self {
        Self::in_network(limits, &(Arc::new(SystemResolver) as Arc<dyn NameResolver>))
    }

    /// The same, with another name resolver: tests use one that treats loopback as the internet.
    pub fn in_network(limits: HttpLimits, network: &Arc<dyn NameResolver>) -> Self {
        let transport = HttpTransport::new(TransportConfig {
            rules: AddressRules::default(),
            network: Arc::clone(network),
            tls: tls(),
            connect_max: limits.connect,
        });
        Self { transport, limits }
    }

    /// The rules about addresses; all clones of this client follow them.
    pub fn rules(&self) -> &AddressRules {
        self.transport.rules()
    }

    /// The connections alone, for protocols that have limits of their own.
    pub const fn transport(&self) -> &HttpTransport {
        &self.transport
    }

    /// The limits on each request.
    pub const fn limits(&self) -> HttpLimits {
        self.limits
    }

    /// The same connections under other limits.
    #[must_use]
    pub fn limited(&self, limits: HttpLimits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Sends a request and follows redirects; the credential goes to the origin of `request` and no other.
    pub async fn send(
        &self,
        request: ApiRequest,
        credential: &ToolCredential,
        cancelled: &CancelSignal,
    ) -> Result<ApiResponse, HttpError> {
        let (n_bytes, max) = (request.body.len(), self.limits.request_bytes_max);
        if n_bytes > max {
            return Err(HttpError::RequestTooLarge { n_bytes, max });
        }
        let (host, after) = (host(&request.url), self.limits.total);
        tokio::select! {
            () = cancelled.given() => Err(HttpError::Cancelled),
            answer = self.walk(request, credential) => answer,
            () = tokio::time::sleep(after) => Err(HttpError::TimedOut { host, after }),
        }
    }

    async fn walk(
        &self,
        mut request: ApiRequest,
        credential: &ToolCredential,
    ) -> Result<ApiResponse, HttpError> {
        let nothing = ToolCredential::none();
        let mut proof = credential;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.step(&request, proof).await?;
            let is_inside = self.transport.is_from_inside(&response);
            match redirect::follow_redirects(
                &request,
                is_inside,
                response.status(),
                response.headers(),
            )? {
                None => return self.whole(response, request.url).await,
                Some((next, kept)) => {
                    request = next;
                    if kept == RedirectParts::Question {
                        proof = &nothing;
                    }
                }
            }
        }
        Err(HttpError::Redirect { host: host(&request.url), why: "in circles".into() })
    }

    async fn step(
        &self,
        request: &ApiRequest,
        credential: &ToolCredential,
    ) -> Result<TransportResponse, HttpError> {
        if request.reach == RequestReach::Public && is_private(&request.url) {
            return Err(HttpError::Private { host: host(&request.url) });
        }
        if !credential.is_for(&request.url) {
            return Err(HttpError::OtherAudience { host: host(&request.url) });
        }
        let mut url = request.url.clone();
        for (name, value) in credential.value_at(PlacementKind::Query) {
            url.query_pairs_mut().append_pair(name, value);
        }
        let sent = self.transport.send(TransportRequest {
            method: request.method.clone(),
            url,
            headers: with_proof(&request.headers, credential)?,
            body: request.body.clone(),
            reach: request.reach,
        });
        sent.await.map_err(|error| self.unreachable(&request.url, &error))
    }

    async fn whole(
        &self,
        mut response: TransportResponse,
        url: Url,
    ) -> Result<ApiResponse, HttpError> {
        let max = self.limits.response_bytes_max;
        let too_large = || HttpError::TooLarge { host: host(&url), max };
        if response.content_length().is_some_and(|n_bytes| n_bytes > max as u64) {
            return Err(too_large());
        }
        let mut body = vec![];
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.unreachable(&url, &error))?
        {
            if body.len() + chunk.len() > max {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(ApiResponse { status, headers, body, url })
    }

    fn unreachable(&self, url: &Url, error: &SendError) -> HttpError {
        let host = host(url);
        match error.kind() {
            SendErrorKind::Refused => HttpError::Refused { host, why: error.to_string() },
            SendErrorKind::TimedOut(after) => HttpError::TimedOut { host, after },
            SendErrorKind::Unreachable => {
                // Programs read this: the system's error number would add nothing.
                let why = error.to_string();
                let why = why.split(" (os error").next().unwrap_or_default().to_owned();
                HttpError::Unreachable { host, why }
            }
        }
    }
}

impl Default for ApiClient {
    fn default() -> Self {
        Self::new(HttpLimits::default())
    }
}

/// The request's headers and the credential's; the credential wins where both set the same header.
fn with_proof(headers: &HeaderMap, credential: &ToolCredential) -> Result<HeaderMap, HttpError> {
    let mut headers = headers.clone();
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("airlock"));
    for (name, value) in credential.value_at(PlacementKind::Header) {
        let bad = || HttpError::BadCredential { name: name.to_owned() };
        let header: HeaderName = name.parse().map_err(|_| bad())?;
        let value = joined(headers.get(&header), &header, value);
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// Cookies of request and credential share a header; anything else is replaced.
fn joined(before: Option<&HeaderValue>, header: &HeaderName, value: &str) -> String {
    match before.and_then(|before| before.to_str().ok()) {
        Some(before) if *header == COOKIE => format!("{before}; {value}"),
        Some(_) | None => value.to_owned(),
    }
}

/// The same root certificates on every machine, with ring.
fn tls() -> ClientConfig {
    trusting(usual_roots())
}

/// The same, with additional certificates from a PEM file. An unreadable file adds none.
pub fn tls_with(file: &std::path::Path) -> ClientConfig {
    let mut roots = usual_roots();
    for certificate in CertificateDer::pem_file_iter(file).into_iter().flatten().flatten() {
        // Invalid certificates are skipped, as elsewhere.
        let _ = roots.add(certificate);
    }
    trusting(roots)
}

fn usual_roots() -> RootCertStore {
    RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned())
}

fn trusting(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
