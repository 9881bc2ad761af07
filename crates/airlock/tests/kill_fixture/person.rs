//! A person who approves everything, and who queries the upstream before deciding about a call in doubt.

use super::{CurrentServer, Dice, Upstream, attempt};
use crate::server_fixture::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Person<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) dice: Mutex<Dice>,
    /// The requests that had arrived when this person chose to retry them, and how often.
    pub(crate) retried: Mutex<BTreeMap<String, u32>>,
    pub(crate) n_approvals: AtomicU64,
    pub(crate) n_in_doubt: AtomicU64,
}

impl<'a> Person<'a> {
    pub(crate) fn new(upstream: &'a Upstream, dice: Dice) -> Self {
        Self {
            upstream,
            dice: Mutex::new(dice),
            retried: Mutex::default(),
            n_approvals: AtomicU64::new(0),
            n_in_doubt: AtomicU64::new(0),
        }
    }

    /// Answers every question of the present server until `is_over`.
    pub(crate) fn answer_until(&self, server: &CurrentServer, is_over: &AtomicBool) {
        while !is_over.load(Ordering::SeqCst) {
            let client = server.client();
            for status in ["paused", "running"] {
                let path = format!("/api/executions?status={status}&limit=100");
                let Some((_, listed)) = attempt(&client, "GET", &path, "") else { continue };
                for listed in listed["executions"].as_array().into_iter().flatten() {
                    self.answer(&client, listed["executionId"].as_str().unwrap_or_default());
                }
            }
            // A test that polls without a pause exhausts the machine's ports.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answer(&self, client: &Client, execution: &str) {
        let asked = attempt(client, "GET", &format!("/api/executions/{execution}/questions"), "");
        let Some((_, asked)) = asked else { return };
        for asked in asked["questions"].as_array().into_iter().flatten() {
            let body = json!({ "action": "accept", "content": self.content(asked) }).to_string();
            let question = asked["executionId"].as_str().unwrap_or_default();
            attempt(client, "POST", &format!("/api/executions/{question}/resume?wait=0"), &body);
        }
    }

    /// The content of an answer: empty for an approval, a choice for a call in doubt.
    fn content(&self, asked: &Value) -> Value {
        let schema = &asked["interaction"]["requestedSchema"];
        if !schema["properties"]["choice"].is_object() {
            self.n_approvals.fetch_add(1, Ordering::SeqCst);
            return json!({});
        }
        self.n_in_doubt.fetch_add(1, Ordering::SeqCst);
        let id = asked["interaction"]["args"]["id"].as_str().unwrap_or_default();
        if !self.upstream.has(id) {
            return json!({ "choice": "retry" });
        }
        // Occasionally the person retries a request that had arrived: then it may arrive twice.
        if self.dice.lock().unwrap().below(8) == 0 {
            *self.retried.lock().unwrap().entry(id.to_owned()).or_insert(0) += 1;
            return json!({ "choice": "retry" });
        }
        json!({ "choice": "supply", "result": { "ok": true, "data": { "id": id } } })
    }
}
