//! Programs of one client, back to back.

use super::Servers;
use crate::durable::client::Client;
use crate::mcp;
use anyhow::{Result, ensure};
use bench::{Plan, Report};
use std::fmt::Write as _;
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 10,
    n_rounds: 15,
    round_ops: 200,
    round_time_max: Duration::from_millis(400),
};

/// Size of a program that an agent writes for a task of some steps.
const PROGRAM_BYTES: usize = 6_000;

/// Independent calls of one program.
const N_CALLS: usize = 100;

pub(super) fn run(servers: &Servers, report: &mut Report) -> Result<()> {
    let typescript = typescript();
    servers.compare("return 1", PLAN, &|client| returns(client, "return 1"), report)?;
    servers.compare("6 KB of TypeScript", PLAN, &|client| returns(client, &typescript), report)?;
    servers.compare(
        "10 calls, one after the other",
        PLAN,
        &|client| returns(client, &calls_in_turn()),
        report,
    )?;
    servers.compare(
        "100 calls in Promise.all",
        PLAN,
        &|client| returns(client, &parallel_calls()),
        report,
    )?;
    servers.compare("2,000,000 steps of a loop", PLAN, &|client| returns(client, BUSY), report)?;
    servers.compare("pause and accept", PLAN, &accept, report)?;
    servers.compare("pause and decline", PLAN, &decline, report)?;
    servers.compare("execute over MCP", PLAN, &mcp::execute, report)?;
    servers.compare(
        "execute over MCP with a progress token",
        PLAN,
        &mcp::execute_with_progress,
        report,
    )
}

const BUSY: &str =
    "let sum = 0; for (let n = 0; n < 2e6; n++) sum = (sum + n) % 7; return sum >= 0 ? 1 : 0";

const ASKING: &str = "try { await tools.demo.append({ line: 'x' }); return 1 } catch { return 0 }";

fn accept(client: &mut Client) -> Result<()> {
    let question = client.ask(ASKING)?;
    ensure!(client.accept(&question)? == 1, "a yes did not arrive");
    Ok(())
}

fn decline(client: &mut Client) -> Result<()> {
    let question = client.ask(ASKING)?;
    ensure!(client.decline(&question)? == 0, "a no did not arrive");
    Ok(())
}

fn returns(client: &mut Client, code: &str) -> Result<()> {
    ensure!(client.execute(code)? == 1, "the program did not return 1");
    Ok(())
}

fn calls_in_turn() -> String {
    "for (let n = 0; n < 10; n++) await tools.demo.add({ a: n, b: 1 }); return 1".to_owned()
}

fn parallel_calls() -> String {
    format!(
        "const sums = await Promise.all(Array.from({{ length: {N_CALLS} }}, (_, n) => \
         tools.demo.add({{ a: n, b: 1 }}))); return sums.length === {N_CALLS} ? 1 : 0"
    )
}

/// Types, small functions and text, as agents write them.
fn typescript() -> String {
    let mut code = String::new();
    let mut n = 0;
    while code.len() < PROGRAM_BYTES {
        let _ = write!(
            code,
            "interface Item{n} {{ id: number; name: string; tags?: string[] }}\n\
             const describe{n} = (item: Item{n}): string =>\n  \
             `${{item.id}}: ${{item.name}} (${{(item.tags ?? []).join(', ')}})`;\n\
             const item{n}: Item{n} = {{ id: {n}, name: 'item {n}', tags: ['a', 'b'] }};\n\
             if (!describe{n}(item{n}).startsWith('{n}: ')) throw new Error('item {n}');\n"
        );
        n += 1;
    }
    code + "return 1"
}
