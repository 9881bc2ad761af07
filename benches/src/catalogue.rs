//! A catalogue of ten thousand tools: loading, search, description, and memory.

use crate::directory::directory;
use crate::durable::served::Served;
use anyhow::{Context, Result, ensure};
use bench::{Contender, Count, Plan, Report, Size, Target};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tools::openapi::{Options, import};
use tools::{
    Catalogue, Connection, ConnectionName, ConnectionOwner, IntegrationSlug, SourceCard,
    ToolCredential, ToolSearch,
};

/// A delay that an agent does not notice.
const SEARCH_NS_MAX: f64 = 5e6;

/// The whole catalogue: tools, schemas and the index.
const MEMORY_BYTES_MAX: f64 = 150e6;

/// The token cost of our tools at the beginning of a conversation.
const TOKENS_MAX: f64 = 1_000.0;

/// Longest wait until a server has read the description.
const READING_MAX: Duration = Duration::from_secs(120);

const N_TOOLS: usize = 10_000;
const VERBS: [&str; 10] = [
    "list", "get", "create", "update", "delete", "archive", "export", "share", "approve", "restore",
];
const THINGS: [&str; 20] = [
    "invoice",
    "customer",
    "order",
    "payment",
    "refund",
    "product",
    "warehouse",
    "shipment",
    "ticket",
    "comment",
    "document",
    "folder",
    "employee",
    "contract",
    "campaign",
    "message",
    "channel",
    "device",
    "alert",
    "report",
];

const PLAN: Plan = Plan {
    warm_up_ops: 5,
    n_rounds: 15,
    round_ops: 40,
    round_time_max: Duration::from_millis(400),
};

const ONCE: Plan =
    Plan { warm_up_ops: 1, n_rounds: 5, round_ops: 1, round_time_max: Duration::MAX };

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let text = description().to_string();
    let before = resident_bytes()?;
    let catalogue = filled(&text)?;
    let snapshot = catalogue.snapshot();
    let first = snapshot.search(&wanted("delete a customer"), &|_| true);
    ensure!(first.hits[0].0.spec().name.contains("deleteCustomer"), "{:?}", first.hits);
    let bytes = resident_bytes()?.saturating_sub(before) as f64;
    let name = format!("{N_TOOLS} tools, schemas and index");
    report.add_size(Size { name, bytes, bytes_max: Some(MEMORY_BYTES_MAX) });

    let importing = Contender::new("import 10,000 tools", || filled(&text).map(drop));
    let parsing = Contender::new("parse the same JSON", || {
        black_box(serde_json::from_str::<Value>(&text)?);
        Ok(())
    });
    report.add(ONCE.compare(importing, parsing)?, vec![]);

    let queries = [
        "refund a payment",
        "list all folders of region 17",
        "who approved the contract",
        "ship order",
    ];
    let mut turn = 0;
    let searching = Contender::new("search 10,000 tools", || {
        turn += 1;
        black_box(snapshot.search(&wanted(queries[turn % queries.len()]), &|_| true));
        Ok(())
    });
    let scanning = Contender::new("look for a word in each path", || {
        black_box(snapshot.tools().filter(|found| found.path().contains("refund")).count());
        Ok(())
    });
    report.add(PLAN.compare(searching, scanning)?, vec![Target::P99NsMax(SEARCH_NS_MAX)]);

    let found = first.hits[0].0.clone();
    let describing = Contender::new("describe a tool", || {
        black_box(found.describe());
        Ok(())
    });
    let reading = Contender::new("parse its schemas", || {
        for schema in [&found.spec().input, &found.spec().output].into_iter().flatten() {
            black_box(schema.whole());
        }
        Ok(())
    });
    report.add(PLAN.compare(describing, reading)?, vec![Target::MedianNsMax(SEARCH_NS_MAX)]);
    drop((catalogue, snapshot));
    count_tokens(&mut report, &text)?;
    Ok(report)
}

/// The tokens of what a model reads about ten thousand tools at the beginning: from a real server, by a real tokenizer.
fn count_tokens(report: &mut Report, text: &str) -> Result<()> {
    let directory = directory()?;
    let spec = directory.path().join("erp.json");
    std::fs::write(&spec, text)?;
    let config = format!("[sources.erp]\nfile = {spec:?}\n");
    std::fs::write(directory.path().join("airlock.toml"), config)?;
    let served = Served::start(directory.path())?;
    let mut client = served.client()?;
    let began = Instant::now();
    let code = "return (await tools.executor.sources.list({ query: 'erp' })).items[0].toolCount";
    while client.execute(code)? != json!(N_TOOLS) {
        ensure!(began.elapsed() < READING_MAX, "the server does not read its source");
        std::thread::sleep(Duration::from_millis(100));
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let head =
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n";
    let tools = client.post_with("/mcp", head, &message)?["result"]["tools"].take();
    let execute = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == "execute");
    let described = execute.context("a tool execute")?["description"].as_str().unwrap_or_default();
    let counts = [("description of execute", described), ("all tools of MCP", &tools.to_string())];
    for (name, text) in counts {
        let name = format!("tokens: {name}, {N_TOOLS} tools");
        report.add_count(Count { name, n: tokens(text)?, n_max: Some(TOKENS_MAX) });
    }
    let name = format!("a server with {N_TOOLS} tools and all its processes");
    let bytes = served.memory_bytes()? as f64;
    report.add_size(Size { name, bytes, bytes_max: Some(MEMORY_BYTES_MAX) });
    served.stop()
}

#[expect(clippy::disallowed_methods, reason = "it is awaited here")]
fn tokens(text: &str) -> Result<f64> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/npm");
    let code = "const { encode } = require('gpt-tokenizer/encoding/o200k_base'); \
                console.log(encode(require('fs').readFileSync(0, 'utf8')).length)";
    let mut node = Command::new("node");
    node.args(["-e", code]).current_dir(&modules).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut counting = node.spawn().context("start node; `cargo xtask packages` needs it too")?;
    counting.stdin.take().context("its input is a pipe")?.write_all(text.as_bytes())?;
    let counted = counting.wait_with_output()?;
    ensure!(counted.status.success(), "node could not count tokens");
    Ok(std::str::from_utf8(&counted.stdout)?.trim().parse()?)
}

fn wanted(query: &str) -> ToolSearch {
    ToolSearch { query: query.to_owned(), limit: 12, ..ToolSearch::default() }
}

fn filled(text: &str) -> Result<Catalogue> {
    let api = import(text, Options::default())?;
    let catalogue = Catalogue::default();
    let connection = Connection {
        owner: ConnectionOwner::Org,
        name: ConnectionName::normalised("main").context("main is a name")?,
        proof: Arc::new(ToolCredential::none()),
    };
    let change = catalogue.put(
        &IntegrationSlug::parse("erp")?,
        SourceCard::default(),
        Arc::new(api),
        vec![Arc::new(connection)],
    );
    ensure!(
        change.added.len() == N_TOOLS,
        "{} tools, {:?}",
        change.added.len(),
        change.left_out.first()
    );
    Ok(catalogue)
}

/// An API of fifty regions, each with all verbs for all resources.
fn description() -> Value {
    let mut paths = serde_json::Map::new();
    for region in 0..N_TOOLS / VERBS.len() / THINGS.len() {
        for thing in THINGS {
            for verb in VERBS {
                let method = if matches!(verb, "list" | "get" | "export") { "get" } else { "post" };
                let operation = json!({
                    "operationId": format!("{verb}{}{}InRegion{region}", thing[..1].to_uppercase(), &thing[1..]),
                    "tags": [format!("region{region}")],
                    "summary": format!("{verb} one {thing} of region {region}."),
                    "description": format!("Works on the {thing}s of a region. Needs the right to {verb} them."),
                    "parameters": [{"name": "id", "in": "query", "required": true, "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "ok", "content": {"application/json": {
                        "schema": {"$ref": format!("#/components/schemas/{thing}")}
                    }}}},
                });
                paths.insert(format!("/r{region}/{thing}/{verb}"), json!({ method: operation }));
            }
        }
    }
    let schema = |thing: &&str| {
        let next = json!({"$ref": "#/components/schemas/customer"});
        let members = json!({"id": {"type": "string"}, "amount": {"type": "number"}, "owner": next,
            "state": {"enum": ["open", "closed", "lost"]}, "tags": {"type": "array", "items": {"type": "string"}}});
        ((*thing).to_owned(), json!({"type": "object", "properties": members, "required": ["id"]}))
    };
    let schemas: serde_json::Map<_, _> = THINGS.iter().map(schema).collect();
    json!({
        "openapi": "3.1.0", "info": {"title": "ERP", "version": "1"},
        "servers": [{"url": "https://erp.example"}],
        "paths": paths, "components": {"schemas": schemas},
    })
}

pub(crate) fn resident_bytes() -> Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").context("read our own size")?;
    let pages: u64 = statm.split(' ').nth(1).context("a second number")?.parse()?;
    Ok(pages * 4_096)
}
