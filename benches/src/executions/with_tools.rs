//! Our server with tools that are HTTP requests, in this process on a runtime of its own. The tools keep their
//! connections, as the rival's do.

use super::tool_server::ToolServer;
use crate::directory::directory;
use crate::durable::client::Client;
use anyhow::{Context, Result};
use engine::{Config, Engine};
use lifecycle::{Failure, FailureCode, Json, Nature, Runs, ToolPath};
use server::{Auth, Server};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use store::sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tools::function::FunctionSource;
use tools::{Catalogue, Tool};

/// Longest answer of a tool that is read.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Our server, in this process.
pub(super) struct House {
    runtime: Runtime,
    engine: Engine,
    server: Server,
    store: SqliteStore,
    _directory: TempDir,
}

impl House {
    pub(super) fn open(tools: &ToolServer) -> Result<Self> {
        let runtime = Runtime::new()?;
        let directory = directory()?;
        let store = SqliteStore::open(&directory.path().join("data"))?;
        let catalogue = Catalogue::new(vec![Arc::new(source(tools.address)?)])?;
        let (engine, server) = runtime.block_on(async {
            let engine = Engine::start(Config::new(store.clone(), catalogue)).await?;
            let config = server::Config::new(engine.clone(), store.clone());
            let server = Server::start(server::Config { auth: Auth::Off, ..config }).await?;
            anyhow::Ok((engine, server))
        })?;
        Ok(Self { runtime, engine, server, store, _directory: directory })
    }

    pub(super) fn client(&self) -> Result<Client> {
        Client::connect(&self.server.local_addr().to_string(), "none")
    }

    pub(super) fn close(self) {
        self.runtime.block_on(async {
            self.server.shutdown().await;
            self.engine.shutdown().await;
            self.store.close().await;
        });
    }
}

type Idle = Arc<Mutex<Vec<BufReader<TcpStream>>>>;

/// `bench.items.getItem` reads; `bench.items.addItem` must be approved.
fn source(address: SocketAddr) -> Result<FunctionSource> {
    let idle = Idle::default();
    let tool = |name: &str, read_only: bool| -> Result<Tool> {
        let nature = Nature { read_only, runs: Runs::Here };
        let path = ToolPath::parse(&format!("bench.items.{name}"))?;
        Ok(Tool { nature, asks: !read_only, ..Tool::new(path) })
    };
    let reads = Arc::clone(&idle);
    let source = FunctionSource::new("bench")
        .add(tool("getItem", true)?, move |_: Json| request(address, "GET", Arc::clone(&reads)))
        .add(tool("addItem", false)?, move |_: Json| request(address, "POST", Arc::clone(&idle)));
    Ok(source)
}

async fn request(
    address: SocketAddr,
    method: &'static str,
    idle: Idle,
) -> Result<serde_json::Value, Failure> {
    let failed = |error: anyhow::Error| Failure::new(FailureCode::Tool, error.to_string());
    asked(address, method, &idle).await.map_err(failed)
}

async fn asked(
    address: SocketAddr,
    method: &'static str,
    idle: &Idle,
) -> Result<serde_json::Value> {
    let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut stream = match kept {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            BufReader::new(stream)
        }
    };
    let request = format!(
        "{method} /items HTTP/1.1\r\nHost: {address}\r\nx-key: none\r\nContent-Length: 0\r\n\r\n"
    );
    stream.get_mut().write_all(request.as_bytes()).await?;
    let (mut line, mut length) = (String::new(), None);
    while stream.read_line(&mut line).await? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>()?);
        }
        line.clear();
    }
    let mut body = vec![0; length.context("an answer without a length")?.min(BODY_BYTES_MAX)];
    stream.read_exact(&mut body).await?;
    idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    Ok(serde_json::from_slice(&body)?)
}
