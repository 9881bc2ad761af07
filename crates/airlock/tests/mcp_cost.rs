//! The number of tokens that our tools add to the prompt of a conversation.

use crate::mcp_node;
use engine::{Config, Engine};
use futures_util::future::BoxFuture;
use lifecycle::{Failure, Json, ToolPath};
use server::{AuthMode, RunningServer};
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::{Catalogue, Source, Tool, ToolRequest};

/// The limit that the issue of prompt cost sets.
const TOKENS_MAX: usize = 1_000;

const TOOLS: usize = 10_000;

/// Ten thousand tools with names that are as hard to tokenize as names can be.
struct Many;

impl Source for Many {
    fn name(&self) -> &'static str {
        "many"
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |n: usize| {
            let odd = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            let path = ToolPath::parse(&format!("x{odd:x}.org.q{n:x}z.doSomething")).unwrap();
            Tool { description: "A long description. ".repeat(50), ..Tool::new(path) }
        };
        (0..TOOLS).map(tool).collect()
    }

    fn call(&self, _: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        unreachable!("nobody calls it")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_cost_less_than_a_thousand_tokens_with_any_catalogue() {
    let Some(folder) = mcp_node::installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let mut config = Config::new(store.clone(), Catalogue::new(vec![Arc::new(Many)]).unwrap());
    config.sandbox.program = sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_airlock").into());
    let engine = Engine::start(config).await.unwrap();
    let config = server::Config {
        auth: AuthMode::Off,
        ..server::Config::new(engine.clone(), store.clone())
    };
    let server = RunningServer::start(config).await.unwrap();
    for mode in ["model", "browser", "native"] {
        // Direct tools are for small catalogues: none of this catalogue's is listed.
        let query = format!("elicitation_mode={mode}&tools=direct");
        let http = client::AirlockClient::new(&server.url(), None).unwrap();
        let client = client::McpClient::new(http, &query);
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let said = client.post(&Json::parse(hello.into()).unwrap(), &Default::default()).await;
        let session = said.unwrap().session;
        let head = client::McpHead { session, version: Some("2025-11-25".into()) };
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        client.post(&Json::parse(ready.into()).unwrap(), &head).await.unwrap();
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let mut said = client.post(&Json::parse(ask.into()).unwrap(), &head).await.unwrap();
        let listed = said.next().await.unwrap().unwrap();
        assert!(listed.contains("and 99"), "most prefixes are only counted: {listed}");
        let mut counting = mcp_node::node(&folder);
        counting.arg(folder.join("tokens.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut counting = counting.spawn().unwrap();
        counting.stdin.take().unwrap().write_all(listed.as_bytes()).unwrap();
        let counted = String::from_utf8(counting.wait_with_output().unwrap().stdout).unwrap();
        let n_tokens: usize = counted.trim().parse().unwrap();
        assert!((100..TOKENS_MAX).contains(&n_tokens), "{mode}: {n_tokens} tokens");
    }
    server.shutdown().await;
    engine.shutdown().await;
    store.close().await;
}
