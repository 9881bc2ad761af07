//! Embeds Airlock in another program: defines a tool, runs a script that calls it, and prints the script's value.

use engine::{Config, Engine};
use lifecycle::ExecutionOutcome;
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
    let shop = FunctionSource::new("shop").tool("price", json!({}), async |order: Value| {
        Ok(order["pieces"].as_u64().map(|pieces| pieces * 7))
    })?;
    let store = store::sqlite::SqliteStore::temporary()?;
    let catalogue = Catalogue::new(vec![Arc::new(shop)])?;
    let engine = Engine::start(Config::new(store, catalogue)).await?;
    let execution = engine.run("return await tools.shop.price({ pieces: 6 })").await?;
    match engine.outcome(execution).await? {
        ExecutionOutcome::Completed { value: Some(value) } => println!("{}", value.as_text()),
        ExecutionOutcome::Completed { value: None } => println!("undefined"),
        ExecutionOutcome::Failed(failure) => println!("failed: {}", failure.message),
        ExecutionOutcome::Cancelled { by, .. } => println!("cancelled by {by}"),
    }
    engine.shutdown().await;
    Ok(())
}
