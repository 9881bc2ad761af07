//! Runs a program in a runner and lets it call two tools of this process.
//!
//! ```text
//! cargo run -p client --example execbox_host -- target/debug/airlock runner
//! ```

use client::execbox::{
    ExecboxProgram, Options, PoolSize, PooledRunners, ProvidedTool, RunnerCommand, ToolProvider,
};
use client::execbox::{read, value};
use serde_json::json;
use std::error::Error;
use std::time::Duration;

const PROGRAM: &str = "
    const sums = await Promise.all([1, 2, 3].map((n) => math.add({ a: n, b: 10 })));
    console.log('sums', sums);
    try { await math.add({ a: 1 }) } catch (error) { console.log(error.code, error.message) }
    return { sums, greeting: await math.greet('Ann') };
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().unwrap_or_else(|| "airlock".into());
    let arguments: Vec<_> = words.collect();
    let command = match arguments.is_empty() {
        true => RunnerCommand::new(program).arg("runner"),
        false => arguments.into_iter().fold(RunnerCommand::new(program), RunnerCommand::arg),
    };
    show(&run(command).await?);
    Ok(())
}

/// Runs the program in a runner that `command` starts, and returns its result in execbox's format.
pub(crate) async fn run(command: RunnerCommand) -> Result<lifecycle::Json, Box<dyn Error>> {
    let number = json!({"type": "number"});
    let add = ProvidedTool::new("add", |input, _context| async move {
        #[derive(serde::Deserialize)]
        struct Summands {
            a: f64,
            b: f64,
        }
        let Summands { a, b } = read(&input)?;
        value(&(a + b))
    });
    let add = add
        .description("Adds two numbers")
        .input_schema(json!({
            "type": "object", "required": ["a", "b"], "properties": {"a": number, "b": number},
        }))
        .output_schema(number);
    let greet = ProvidedTool::new("greet", |input, _context| async move {
        let name: String = read(&input)?;
        value(&format!("Hello, {name}!"))
    });
    let math = ToolProvider::new("math").tool(add).tool(greet).resolve()?;

    // A runner that does not answer is killed, together with the processes that it started.
    let options = Options { timeout: Some(Duration::from_secs(2)), ..Options::default() };
    let executor = PooledRunners::new(command, PoolSize::default()).options(options);
    let result = executor.execute(ExecboxProgram::new(PROGRAM).provider(math)).await;
    executor.dispose().await;
    Ok(result.to_json())
}

#[expect(clippy::print_stdout, reason = "this is what the example is for")]
fn show(result: &lifecycle::Json) {
    println!("{result:?}");
}
