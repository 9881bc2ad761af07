//! `http/request`: requests made from this machine, for clients whose own network is another.

use super::outbox::Reply;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use protocols::exec_server::{
    ByteChunk, HttpBodyDelta, HttpHeader, HttpRequestParams, HttpRequestResponse, RedirectPolicy,
};
use protocols::json_rpc::{self, ErrorObject, INTERNAL, INVALID_PARAMS};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// As browsers do.
const REDIRECTS_MAX: usize = 10;

/// What is taken of a body that comes at once.
const BODY_BYTES_MAX: usize = 48 << 20;

/// The largest piece of a body that comes in pieces.
const DELTA_BYTES_MAX: usize = 1 << 20;

/// Streams whose body is still coming, by the client's names.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashSet<String>>>);

impl Streams {
    pub(super) fn request(&self, tasks: &TaskTracker, params: HttpRequestParams, reply: Reply) {
        let streams = self.clone();
        let id = params.request_id.clone();
        if params.stream_response && !streams.begin(&id) {
            let text = format!("http/request {id} is still streaming");
            reply.fail(&ErrorObject::new(INVALID_PARAMS, text));
            return;
        }
        tasks.spawn(async move {
            let timeout = params.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
            let is_stream = params.stream_response;
            let outbox = reply.outbox().clone();
            tokio::select! {
                () = outbox.closed() => {}
                () = perform(params, timeout, reply) => {}
            }
            if is_stream {
                streams.end(&id);
            }
        });
    }

    fn begin(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    fn end(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

async fn perform(params: HttpRequestParams, timeout: Duration, reply: Reply) {
    let late = || ErrorObject::new(INTERNAL, "http/request took longer than timeoutMs");
    let response = match tokio::time::timeout(timeout, fetch(&params)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return reply.fail(&error),
        Err(_) => return reply.fail(&late()),
    };
    let status = response.status().as_u16();
    let headers = response.headers().iter().map(|(name, value)| HttpHeader {
        name: name.as_str().to_owned(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    });
    let headers = headers.collect();
    if params.stream_response {
        let outbox = reply.outbox().clone();
        reply.send(&HttpRequestResponse { status, headers, body_base64: ByteChunk::default() });
        stream(&params.request_id, response.into_body(), timeout, &outbox).await;
        return;
    }
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(timeout, body).await {
        Ok(Ok(body)) => {
            let body_base64 = ByteChunk(body.to_bytes().to_vec());
            reply.send(&HttpRequestResponse { status, headers, body_base64 });
        }
        Ok(Err(error)) => {
            let text = format!("failed to read http/request response body: {error}");
            reply.fail(&ErrorObject::new(INTERNAL, text));
        }
        Err(_) => reply.fail(&late()),
    }
}

async fn fetch(params: &HttpRequestParams) -> Result<Response<Incoming>, ErrorObject> {
    let bad = |text: String| ErrorObject::new(INVALID_PARAMS, text);
    let mut method = Method::from_bytes(params.method.as_bytes())
        .map_err(|_| bad(format!("http/request knows no method {}", params.method)))?;
    let mut uri: Uri =
        params.url.parse().map_err(|_| bad("http/request needs an absolute URL".into()))?;
    let mut body =
        Bytes::from(params.body_base64.as_ref().map_or_else(Vec::new, |body| body.0.clone()));
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    for _ in 0..=REDIRECTS_MAX {
        check(&uri)?;
        let mut request = Request::builder().method(method.clone()).uri(uri.clone());
        for header in &params.headers {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            let value = HeaderValue::from_str(&header.value);
            match (name, value) {
                (Ok(name), Ok(value)) => request = request.header(name, value),
                (Err(_), _) | (_, Err(_)) => {
                    return Err(bad(format!("the header {} cannot be sent", header.name)));
                }
            }
        }
        let request = request
            .body(Full::new(body.clone()))
            .map_err(|error| bad(format!("http/request cannot be made: {error}")))?;
        let response = client
            .request(request)
            .await
            .map_err(|error| ErrorObject::new(INTERNAL, format!("http/request failed: {error}")))?;
        let follows = params.redirect_policy.unwrap_or(RedirectPolicy::Follow);
        let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        match (response.status().as_u16(), follows, target) {
            (301 | 302 | 303 | 307 | 308, RedirectPolicy::Follow, Some(target)) => {
                let status = response.status().as_u16();
                uri = resolved(&uri, target).ok_or_else(|| {
                    ErrorObject::new(INTERNAL, "http/request was redirected to no URL")
                })?;
                if status < 307 && method != Method::HEAD {
                    (method, body) = (Method::GET, Bytes::new());
                }
            }
            _ => return Ok(response),
        }
    }
    Err(ErrorObject::new(INTERNAL, format!("http/request was redirected {REDIRECTS_MAX} times")))
}

fn check(uri: &Uri) -> Result<(), ErrorObject> {
    match uri.scheme_str() {
        Some("http") => Ok(()),
        // Said, not guessed: nothing here speaks TLS.
        Some("https") => Err(ErrorObject::new(
            INTERNAL,
            "http/request cannot reach https: URLs from this server; use a program such as curl",
        )),
        other => {
            let got = other.unwrap_or("none");
            let text = format!("http/request only supports http and https URLs, got {got}");
            Err(ErrorObject::new(INVALID_PARAMS, text))
        }
    }
}

fn resolved(base: &Uri, target: &str) -> Option<Uri> {
    if target.contains("://") {
        return target.parse().ok();
    }
    let path = match target.starts_with('/') {
        true => target.to_owned(),
        false => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{target}")
        }
    };
    Uri::builder()
        .scheme(base.scheme()?.clone())
        .authority(base.authority()?.clone())
        .path_and_query(path)
        .build()
        .ok()
}

async fn stream(id: &str, mut body: Incoming, timeout: Duration, outbox: &super::outbox::Outbox) {
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
        match tokio::time::timeout(timeout, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                for piece in frame.data_ref().map_or(&[][..], Bytes::as_ref).chunks(DELTA_BYTES_MAX)
                {
                    tell(piece, false, None).await;
                }
            }
            Ok(None) => return tell(&[], true, None).await,
            Ok(Some(Err(error))) => return tell(&[], true, Some(error.to_string())).await,
            Err(_) => return tell(&[], true, Some("the body did not come in time".into())).await,
        }
    }
}
