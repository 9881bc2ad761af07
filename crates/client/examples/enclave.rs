//! Runs a program on an Airlock server, sealed end to end, with a tool that runs here.
//!
//! `cargo run -p client --example enclave -- http://127.0.0.1:4788 TOKEN`
#![expect(clippy::print_stdout, reason = "an example prints the events")]

use client::enclave::{EnclaveClient, EnclaveError, EncryptionMode, Options, SessionRequest};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), EnclaveError> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "http://127.0.0.1:4788".into());
    let token = words.next();
    let encryption = EncryptionMode::Required { pinned: None };
    let options = Options { encryption, ..Options::default() };
    let client = EnclaveClient::new(&url, token.as_deref(), options)?;
    let request = SessionRequest::new(
        "const users = await callTool('users:list', { limit: 2 });
         console.log(`${users.length} users`);
         users.map((user) => user.name)",
    )
    .tool("users:list", |_args| async { Ok(json!([{ "name": "Alice" }, { "name": "Bob" }])) });
    let mut session = client.start(request)?;
    while let Some(event) = session.next().await {
        let event = event?;
        println!("{} {}", event["type"], event["payload"]);
    }
    Ok(())
}
