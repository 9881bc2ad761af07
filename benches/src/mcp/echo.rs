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
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The verb of this server.
pub(crate) const VERB: &str = "__mcp-echo";

/// A server that answers until it is dropped.
pub(super) struct Echo {
    pub(super) address: SocketAddr,
    child: Child,
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
    /// Starts the server in a separate process, like ours.
    #[expect(clippy::disallowed_methods, reason = "a floor is a process that no room owns")]
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the echo")?;
        let said = child.stdout.take().context("the echo says nothing")?;
        let mut address = String::new();
        BufReader::new(said).read_line(&mut address)?;
        Ok(Self { address: address.trim().parse().context("where the echo listens")?, child })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It exits when its input ends.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// Prints its address, and answers until its standard input ends.
pub(crate) fn serve() -> Result<()> {
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
    io::stdout().write_all(format!("{address}\n").as_bytes())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
