//! Prints the description for a model: how to find, read and call tools, and which connections exist.

use engine::{Config, Engine};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use tools::Catalogue;
use tools::function::FunctionSource;

fn main() -> Result<(), Box<dyn Error>> {
    sandbox::enter_if_asked(); // runners are forked from a child that runs this same binary
    tokio::runtime::Runtime::new()?.block_on(embed())
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
async fn embed() -> Result<(), Box<dyn Error>> {
    let shop = FunctionSource::new("shop").tool("price", json!({}), async |_: Value| Ok(7))?;
    let store = store::sqlite::SqliteStore::temporary()?;
    let engine = Engine::start(Config::new(store, Catalogue::new(vec![Arc::new(shop)])?)).await?;
    println!("{}", engine.describe());
    engine.shutdown().await;
    Ok(())
}
