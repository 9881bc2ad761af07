//! The REPL: every program runs in a new session, because the evals of a session share an evaluator.

use super::Outcome;
use super::doors::{Door, TimeLimit, failed};
use crate::repl_client::{Spoken, repl_url};
use crate::server_fixture::Served;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

pub(super) struct ReplDoor {
    url: String,
    token: String,
    runtime: Runtime,
    n_runs: u64,
}

impl ReplDoor {
    pub(super) fn new(served: &Served, token: String) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { url: repl_url(served), token, runtime, n_runs: 0 }
    }
}

impl Door for ReplDoor {
    fn run(&mut self, code: &str, limit: TimeLimit) -> (Outcome, String) {
        self.n_runs += 1;
        let frame = self.runtime.block_on(async {
            let mut repl = Spoken::connect(&self.url, &self.token).await;
            let eval = json!({ "type": "eval", "code": code, "timeoutMs": limit.ms() });
            let frame = repl.ask(eval).await;
            // The next program gets a new evaluator.
            repl.ask(json!({ "type": "reset" })).await;
            frame
        });
        let value = frame["value"].as_str().and_then(|text| serde_json::from_str(text).ok());
        let outcome = match frame["type"].as_str() {
            Some("eval_result") => Outcome::Value(value.unwrap_or(Value::Null)),
            _ => failed(&frame["error"]["code"], &frame["error"]["message"]),
        };
        (outcome, frame.to_string())
    }
}
