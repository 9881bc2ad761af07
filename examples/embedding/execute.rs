//! Runs a program to its end; a closure answers its questions.

use engine::{Config, Engine};
use lifecycle::{Answer, ExecutionOutcome, ToolPath};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use tools::function::FunctionSource;
use tools::{Catalogue, Tool};

fn main() -> Result<(), Box<dyn Error>> {
    sandbox::enter_if_asked(); // runners are forked from a child that runs this same binary
    tokio::runtime::Runtime::new()?.block_on(embed())
}

#[expect(clippy::print_stdout, reason = "an example shows its result")]
async fn embed() -> Result<(), Box<dyn Error>> {
    let send = Tool { asks: true, ..Tool::new(ToolPath::parse("mail.send")?) };
    let mail = FunctionSource::new("mail")
        .add(send, async |mail: Value| Ok(json!({ "sentTo": mail["to"] })));
    let store = store::sqlite::SqliteStore::temporary()?;
    let engine = Engine::start(Config::new(store, Catalogue::new(vec![Arc::new(mail)])?)).await?;

    let code = "console.log('two mails'); \
                const ann = await tools.mail.send({ to: 'ann' }); \
                try { await tools.mail.send({ to: 'eve' }) } catch (error) { console.warn(error.message) } \
                return ann.sentTo";
    let ended = engine
        .execute(code, async |pause| {
            println!("{}? {}", pause.tool, pause.args.as_text());
            match pause.args.as_text().contains("eve") {
                true => Answer::Decline,
                false => Answer::Accept { content: None },
            }
        })
        .await?;
    for (_, line) in &ended.logs {
        println!("{line}");
    }
    if let ExecutionOutcome::Completed { value: Some(value) } = &ended.outcome {
        println!("{}", value.as_text());
    }
    engine.shutdown().await;
    Ok(())
}
