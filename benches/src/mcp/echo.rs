//! The floor: an rmcp server with one tool, configured as ours is.

use anyhow::{Context, Result};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::SocketAddr;
use std::sync::Arc;

/// A server that answers until it is dropped.
pub(super) struct Echo {
    pub(super) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Handler;

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = request.arguments.and_then(|args| Some(args.get("code")?.as_str()?.to_owned()));
        let said = ContentBlock::text(said.unwrap_or_default());
        Ok(CallToolResult::success(vec![said]).into())
    }
}

impl Echo {
    pub(super) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let bound = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = bound.context("listen")?;
        let address = listener.local_addr()?;
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true);
        let never = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(|| Ok(Handler), never, config);
        let router = axum::Router::new().route_service("/mcp", service);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, _runtime: runtime })
    }
}
