//! The floor: the HTTP server that ours is built on, with constants in place of sessions.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use futures_util::StreamExt as _;
use std::convert::Infallible;
use std::net::SocketAddr;

/// An event of the usual size. Each is a separate item, as a server that has nothing to wait for sends them.
const EVENT: &[u8] = b"{\"protocolVersion\":2,\"sessionId\":\"s_00000000-0000-4000-8000-000000000001\",\"seq\":12345,\"type\":\"stdout\",\"timestamp\":1794772678875,\"payload\":{\"chunk\":\"line 12345 of a program\\n\",\"data\":\"line 12345 of a program\\n\"}}\n";

/// An event that the client answers.
const CALL: &[u8] = b"{\"protocolVersion\":2,\"sessionId\":\"s_00000000-0000-4000-8000-000000000001\",\"seq\":12345,\"type\":\"tool_call\",\"timestamp\":1794772678875,\"payload\":{\"callId\":\"c_00000000-0000-8000-8000-000000000001-1\",\"toolName\":\"t\",\"tool\":\"t\",\"args\":{\"n\":1}}}\n";

/// The last event.
const FINAL: &[u8] = b"{\"protocolVersion\":2,\"sessionId\":\"s_00000000-0000-4000-8000-000000000001\",\"seq\":12345,\"type\":\"final\",\"timestamp\":1794772678875,\"payload\":{\"ok\":true,\"result\":1,\"stats\":{\"durationMs\":1,\"toolCallCount\":0,\"stdoutBytes\":0,\"duration\":1,\"iterationCount\":0}}}\n";

/// A server that streams constants until it is dropped.
pub(super) struct Floor {
    pub(super) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Floor {
    pub(super) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let bound = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = bound.context("listen")?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/events/{n}", get(async |Path(n): Path<usize>| events(EVENT, n)))
            .route("/trivial", post(async |_: Bytes| events(EVENT, 1)))
            .route("/calls/{n}", post(async |Path(n): Path<usize>, _: Bytes| events(CALL, n)))
            .route("/result", post(async |_: Bytes| "{\"success\":true}"));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, _runtime: runtime })
    }
}

/// A stream of so many events, and the last one.
fn events(event: &'static [u8], n: usize) -> impl IntoResponse {
    let lines = std::iter::repeat_n(event, n).chain([FINAL]).map(Bytes::from_static);
    let lines = futures_util::stream::iter(lines).map(Ok::<_, Infallible>);
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines))
}
