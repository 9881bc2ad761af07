//! `http/request`: requests made from this machine, for clients whose own network is another. The client chooses the address,
//! so a redirect may lead to any origin; link-local and metadata addresses are refused at every hop, as everywhere.

use super::ExecServer;
use super::outbox::{ClientOutbox, RequestReply};
use hyper::Method;
use hyper::header::{
    AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION,
};
use protocols::exec_server::{
    ByteChunk, HttpBodyDelta, HttpHeader, HttpRequestParams, HttpRequestResponse, RedirectPolicy,
    is_secret,
};
use protocols::json_rpc::{self, ErrorObject, INTERNAL, INVALID_PARAMS};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tools::http::{
    AddressRules, HttpTransport, RequestReach, SendErrorKind, SystemResolver, TransportConfig,
    TransportRequest, TransportResponse,
};
use url::Url;

/// The same limit as in browsers.
const REDIRECTS_MAX: usize = 10;

/// Maximum size of a body that is returned whole.
const BODY_BYTES_MAX: usize = 48 << 20;

/// Maximum size of one part of a streamed body.
const DELTA_BYTES_MAX: usize = 1 << 20;

/// Connect timeout if the client sets none.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// The HTTP transport that sends the requests of all clients.
#[derive(Debug, Default)]
pub(super) struct HttpSender {
    rules: AddressRules,
    /// Created for the first request: most clients send none.
    transport: OnceLock<HttpTransport>,
}

impl HttpSender {
    pub(super) fn new(rules: AddressRules) -> Self {
        Self { rules, transport: OnceLock::new() }
    }

    pub(super) const fn rules(&self) -> &AddressRules {
        &self.rules
    }

    /// Additional certificates come from the file that `SSL_CERT_FILE` names, as in other programs.
    fn transport(&self) -> &HttpTransport {
        self.transport.get_or_init(|| {
            let more = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from).unwrap_or_default();
            HttpTransport::new(TransportConfig {
                rules: self.rules.clone(),
                network: Arc::new(SystemResolver),
                tls: tools::http::tls_with(&more),
                connect_max: CONNECT_MAX,
            })
        })
    }
}

/// Streams whose body is still arriving, by the client's request ids.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyStreams(Arc<Mutex<HashSet<String>>>);

impl BodyStreams {
    pub(super) fn request(
        &self,
        server: &ExecServer,
        params: HttpRequestParams,
        reply: RequestReply,
    ) {
        // The other server may take any amount of time.
        let Some(reply) = reply.waiting() else { return };
        let streams = self.clone();
        let id = params.request_id.clone();
        if params.stream_response && !streams.begin_stream(&id) {
            let text = format!("http/request {id} is still streaming");
            reply.fail(&ErrorObject::new(INVALID_PARAMS, text));
            return;
        }
        let http = Arc::clone(&server.http);
        server.shared.tasks.spawn(async move {
            let timeout = params.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
            let is_stream = params.stream_response;
            let outbox = reply.outbox().clone();
            tokio::select! {
                () = outbox.closed() => {}
                () = perform_request(&http, params, timeout, reply) => {}
            }
            if is_stream {
                streams.end_stream(&id);
            }
        });
    }

    fn begin_stream(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    fn end_stream(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

async fn perform_request(
    http: &HttpSender,
    params: HttpRequestParams,
    timeout: Duration,
    reply: RequestReply,
) {
    let late = || ErrorObject::new(INTERNAL, "http/request took longer than timeoutMs");
    let response = match tokio::time::timeout(timeout, fetch(http, &params)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return reply.fail(&error),
        Err(_) => return reply.fail(&late()),
    };
    let status = response.status().as_u16();
    let headers = response.headers().iter().map(|(name, value)| HttpHeader {
        name: name.as_str().to_owned(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        value_env_var: None,
    });
    let headers = headers.collect();
    if params.stream_response {
        let outbox = reply.outbox().clone();
        reply.send(&HttpRequestResponse { status, headers, body_base64: ByteChunk::default() });
        stream(&params.request_id, response, timeout, &outbox).await;
        return;
    }
    match tokio::time::timeout(timeout, whole(response)).await {
        Ok(Ok(body)) => {
            let body_base64 = ByteChunk(body);
            reply.send(&HttpRequestResponse { status, headers, body_base64 });
        }
        Ok(Err(why)) => {
            let text = format!("http/request could not read the body: {why}");
            reply.fail(&ErrorObject::new(INTERNAL, text));
        }
        Err(_) => reply.fail(&late()),
    }
}

async fn whole(mut response: TransportResponse) -> Result<Vec<u8>, String> {
    let mut body = vec![];
    while let Some(piece) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + piece.len() > BODY_BYTES_MAX {
            return Err(format!("it has more than {BODY_BYTES_MAX} bytes; ask for a stream"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn bad(text: String) -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, text)
}

async fn fetch(
    http: &HttpSender,
    params: &HttpRequestParams,
) -> Result<TransportResponse, ErrorObject> {
    let mut method = Method::from_bytes(params.method.as_bytes())
        .map_err(|_| bad(format!("http/request knows no method {}", params.method)))?;
    let mut url =
        Url::parse(&params.url).map_err(|_| bad("http/request needs an absolute URL".into()))?;
    let mut headers = headers(&params.headers)?;
    let mut body = params.body_base64.as_ref().map(|body| bytes::Bytes::from(body.0.clone()));
    for _ in 0..=REDIRECTS_MAX {
        check_url(&url)?;
        let response = http.transport().send(TransportRequest {
            method: method.clone(),
            url: url.clone(),
            headers: headers.all(),
            body: body.clone().unwrap_or_default(),
            reach: RequestReach::Anywhere,
        });
        let response = response.await.map_err(|error| {
            let code = match error.kind() {
                SendErrorKind::Refused => INVALID_PARAMS,
                SendErrorKind::TimedOut(_) | SendErrorKind::Unreachable => INTERNAL,
            };
            ErrorObject::new(code, format!("http/request failed: {error}"))
        })?;
        let follows = params.redirect_policy.unwrap_or(RedirectPolicy::Follow);
        let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        match (response.status().as_u16(), follows, target) {
            (status @ (301 | 302 | 303 | 307 | 308), RedirectPolicy::Follow, Some(target)) => {
                let next = url.join(target).map_err(|_| {
                    ErrorObject::new(INTERNAL, "http/request was redirected to no URL")
                })?;
                if next.origin() != url.origin() {
                    headers.forget_secrets();
                }
                url = next;
                if status < 307 && method != Method::HEAD {
                    (method, body) = (Method::GET, None);
                }
            }
            _ => return Ok(response),
        }
    }
    Err(ErrorObject::new(INTERNAL, format!("http/request was redirected {REDIRECTS_MAX} times")))
}

fn check_url(url: &Url) -> Result<(), ErrorObject> {
    match url.scheme() {
        "http" | "https" => Ok(()),
        other => Err(bad(format!("http/request only supports http and https URLs, got {other}"))),
    }
}

/// Headers that are sent, and those that only the first origin may receive.
struct RequestHeaders {
    open: HeaderMap,
    secret: HeaderMap,
}

impl RequestHeaders {
    fn all(&self) -> HeaderMap {
        let mut all = self.open.clone();
        for (name, value) in &self.secret {
            all.append(name, value.clone());
        }
        all
    }

    fn forget_secrets(&mut self) {
        self.secret.clear();
    }
}

fn headers(given: &[HttpHeader]) -> Result<RequestHeaders, ErrorObject> {
    let mut headers = RequestHeaders { open: HeaderMap::new(), secret: HeaderMap::new() };
    for header in given {
        let unfit = || bad(format!("http/request cannot send the header {}", header.name));
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| unfit())?;
        let mut value = header.value.clone();
        if let Some(variable) = &header.value_env_var {
            value += &variable_of_ours(&header.name, variable)?;
        }
        let value = HeaderValue::from_str(&value).map_err(|_| unfit())?;
        let is_secret = header.value_env_var.is_some()
            || [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(&name);
        let place = if is_secret { &mut headers.secret } else { &mut headers.open };
        place.append(name, value);
    }
    Ok(headers)
}

/// Returns the value of an environment variable that the client wants sent without seeing it.
fn variable_of_ours(header: &str, variable: &str) -> Result<String, ErrorObject> {
    if is_secret(variable) {
        return Err(bad(format!("http/request header {header} may not hold {variable}")));
    }
    std::env::var(variable).map_err(|_| {
        bad(format!(
            "http/request header {header} needs the variable {variable}, and there is none"
        ))
    })
}

async fn stream(
    id: &str,
    mut response: TransportResponse,
    timeout: Duration,
    outbox: &ClientOutbox,
) {
    let mut seq = 0;
    let mut tell = async |bytes: &[u8], done: bool, error: Option<String>| {
        seq += 1;
        let delta = HttpBodyDelta {
            request_id: id.to_owned(),
            seq,
            delta_base64: ByteChunk(bytes.to_vec()),
            done,
            error,
        };
        let room = outbox.room(bytes.len() / 3 * 4).await;
        outbox.notify(json_rpc::notification("http/request/bodyDelta", &delta), room);
    };
    loop {
        match tokio::time::timeout(timeout, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                for piece in bytes.chunks(DELTA_BYTES_MAX) {
                    tell(piece, false, None).await;
                }
            }
            Ok(Ok(None)) => return tell(&[], true, None).await,
            Ok(Err(error)) => return tell(&[], true, Some(error.to_string())).await,
            Err(_) => return tell(&[], true, Some("the body did not come in time".into())).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_reaches_no_metadata_service_and_not_this_server() {
        let http = HttpSender::default();
        http.rules().add_listener("127.0.0.1:4788".parse().unwrap());
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://127.0.0.1:4788/api/tokens",
            "http://localhost:4788/api/tokens",
        ] {
            let params =
                serde_json::json!({ "method": "GET", "url": url, "headers": [], "requestId": "1" });
            let error = fetch(&http, &serde_json::from_value(params).unwrap()).await.unwrap_err();
            assert_eq!(error.code, INVALID_PARAMS, "{url}: {error:?}");
        }
    }
}
