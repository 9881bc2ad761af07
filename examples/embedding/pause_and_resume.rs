//! Pauses at a question, drops the engine, and resumes on a new engine that has only the journal.

use engine::{Config, EmbeddedProgress, Engine};
use lifecycle::{Answer, ExecutionOutcome, Json, ToolPath};
use std::error::Error;
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::function::FunctionSource;
use tools::{Catalogue, Tool};

fn main() -> Result<(), Box<dyn Error>> {
    sandbox::enter_if_asked(); // runners are forked from a child that runs this same binary
    tokio::runtime::Runtime::new()?.block_on(embed())
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
async fn embed() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::temporary()?;
    let first = engine(&store).await?;
    let started = first.execute_with_pause("return await tools.shop.order({ pieces: 6 })").await?;
    let EmbeddedProgress::Paused(pause) = started else { return Err("it does not ask".into()) };
    println!("{}", pause.question.message.lines().next().unwrap_or_default());
    first.shutdown().await;

    let second = engine(&store).await?;
    match second.resume(pause.id, Answer::Accept { content: None }).await? {
        EmbeddedProgress::Completed(ended) => match ended.outcome {
            ExecutionOutcome::Completed { value: Some(value) } => println!("{}", value.as_text()),
            ExecutionOutcome::Completed { value: None } => println!("undefined"),
            ExecutionOutcome::Failed(failure) => println!("failed: {}", failure.message),
            ExecutionOutcome::Cancelled { by, .. } => println!("cancelled by {by}"),
        },
        EmbeddedProgress::Paused(pause) => println!("asks again: {}", pause.tool),
    }
    second.shutdown().await;
    Ok(())
}

async fn engine(store: &SqliteStore) -> Result<Engine, Box<dyn Error>> {
    let order = Tool {
        asks: true,
        about: Some("Order for real?".into()),
        ..Tool::new(ToolPath::parse("shop.order")?)
    };
    let shop = FunctionSource::new("shop").add(order, async |order: Json| Ok(order));
    let catalogue = Catalogue::new(vec![Arc::new(shop)])?;
    Ok(Engine::start(Config::new(store.clone(), catalogue)).await?)
}
