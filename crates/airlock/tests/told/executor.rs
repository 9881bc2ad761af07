//! What Executor's HTTP door says of a plot: every request and every answer, ids numbered as they appear.

use super::Server;
use super::plot::{Person, Plot};
use engine::Clock;
use serde_json::{Value, json};
use server::Auth;
use std::collections::VecDeque;
use std::fmt::Write as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) async fn tell(plot: &Plot) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut door = Door::open(plot, folder.path()).await;
    let mut people: VecDeque<_> = plot.people.iter().cloned().collect();
    let mut transcript = Transcript::default();
    let code = json!({ "code": plot.program.source });
    let mut told = door.post("/api/executions", &code).await;
    transcript.add("POST", "/api/executions", &json!({ "code": "…" }), &told);
    while told.body["status"] == "paused" {
        let question = told.body["structured"]["executionId"].as_str().unwrap().to_owned();
        let (path, body) = match people.pop_front().expect("somebody is left to answer") {
            Person::RestartsTheServer => {
                transcript.text.push_str("! the server restarts\n");
                door.close().await;
                door = Door::open(plot, folder.path()).await;
                continue;
            }
            Person::CancelsTheProgram => (format!("/api/executions/{question}/cancel"), json!({})),
            person => (format!("/api/executions/{question}/resume"), answer(person)),
        };
        told = door.post(&path, &body).await;
        transcript.add("POST", &path, &body, &told);
    }
    door.close().await;
    transcript.text
}

fn answer(person: Person) -> Value {
    match person {
        Person::Accepts => json!({ "action": "accept" }),
        Person::Declines => json!({ "action": "decline" }),
        Person::WavesAway => json!({ "action": "cancel" }),
        Person::Says(text) => {
            let content: Value = serde_json::from_str(&text).unwrap();
            json!({ "action": "accept", "content": content })
        }
        Person::CancelsTheProgram | Person::RestartsTheServer => unreachable!("no answers"),
    }
}

struct Told {
    status: u16,
    text: String,
    body: Value,
}

struct Door {
    house: Server,
    server: server::Server,
}

impl Door {
    async fn open(plot: &Plot, folder: &std::path::Path) -> Self {
        let house = Server::start(plot, folder, Clock::system()).await;
        let config = server::Config {
            auth: Auth::Off,
            ..server::Config::new(house.engine.clone(), house.store.clone())
        };
        Self { house, server: server::Server::start(config).await.unwrap() }
    }

    async fn close(self) {
        self.server.shutdown().await;
        self.house.stop().await;
    }

    async fn post(&self, path: &str, body: &Value) -> Told {
        let (address, body) = (self.server.local_addr(), body.to_string());
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Told { status, text: text.to_owned(), body: serde_json::from_str(text).unwrap() }
    }
}

#[derive(Default)]
struct Transcript {
    text: String,
    ids: Vec<String>,
}

impl Transcript {
    fn add(&mut self, method: &str, path: &str, body: &Value, told: &Told) {
        let request = self.numbered(&format!("{method} {path} {body}"));
        let answer = self.numbered(&told.text);
        writeln!(self.text, "> {request}\n< {} {answer}", told.status).unwrap();
    }

    /// Ids as `exec_1`, `exec_2`, … in the order in which they appear.
    fn numbered(&mut self, text: &str) -> String {
        let mut shown = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("exec_") {
            let (before, id) = rest.split_at(at);
            let (id, after) = id.split_at(id.len().min("exec_".len() + 36));
            if !self.ids.iter().any(|known| known == id) {
                self.ids.push(id.to_owned());
            }
            let n = self.ids.iter().position(|known| known == id).unwrap() + 1;
            write!(shown, "{before}exec_{n}").unwrap();
            rest = after;
        }
        shown + rest
    }
}
