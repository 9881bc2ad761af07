//! Executor's HTTP door for a plot: every request and every answer, with ids numbered in order of appearance.

use super::Server;
use super::plot::{Person, Plot};
use engine::Clock;
use futures_util::StreamExt as _;
use lifecycle::{ExecutionPhase, QuestionId, Seq, State};
use serde_json::{Value, json};
use server::AuthMode;
use std::collections::VecDeque;
use std::fmt::Write as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) async fn tell(plot: &Plot) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut edition = 1;
    let mut door = Door::open(plot, edition, folder.path()).await;
    let mut people: VecDeque<_> = plot.people.iter().cloned().collect();
    let mut transcript = Transcript::default();
    let code = json!({ "code": plot.program.source });
    let mut told = door.post("/api/executions", &code).await;
    transcript.add("POST", "/api/executions", &json!({ "code": "…" }), &told);
    let mut asks = told.body["structured"]["executionId"].as_str().map(str::to_owned);
    while let Some(person) = people.pop_front() {
        let (method, path, body) = match person {
            person @ (Person::RestartsTheServer | Person::RestartsWithOtherTools) => {
                transcript.text.push_str("! the server restarts\n");
                edition += u32::from(matches!(person, Person::RestartsWithOtherTools));
                door.close().await;
                door = Door::open(plot, edition, folder.path()).await;
                continue;
            }
            Person::Adds(rule) => {
                let (pattern, action) = (rule.pattern.to_string(), rule.action);
                let mut body = json!({ "owner": "org", "pattern": pattern, "action": action });
                if rule.editable {
                    body["editable"] = json!(true);
                }
                let added = door.send("POST", "/api/policies", &body).await;
                assert_eq!(added.body["pattern"], pattern.as_str());
                transcript
                    .text
                    .push_str(&format!("> POST /api/policies {body}\n< {} …\n", added.status));
                continue;
            }
            Person::Requests(line) => {
                if let Some(question) = &asks {
                    door.rests(question.parse().unwrap()).await;
                }
                transcript.request(&line)
            }
            person => {
                let question = asks.as_deref().expect("a person answers a question");
                answer(question, person)
            }
        };
        told = door.send(&method, &path, &body).await;
        transcript.add(&method, &path, &body, &told);
        // A repeated answer receives the same response again, which contains no new question.
        if method == "POST" && told.status == 200 && asks.is_some() {
            asks = told.body["structured"]["executionId"].as_str().map(str::to_owned);
        }
    }
    assert_eq!(asks, None, "somebody is left to answer");
    door.close().await;
    transcript.text
}

fn answer(question: &str, person: Person) -> (String, String, Value) {
    let resume = |body| ("POST".into(), format!("/api/executions/{question}/resume"), body);
    match person {
        Person::Accepts => resume(json!({ "action": "accept" })),
        Person::AcceptsFromNowOn => resume(json!({ "action": "accept", "remember": "execution" })),
        Person::AcceptsWith(text) => {
            let edited: Value = serde_json::from_str(&text).unwrap();
            resume(json!({ "action": "accept", "arguments": edited }))
        }
        Person::Declines => resume(json!({ "action": "decline" })),
        Person::WavesAway => resume(json!({ "action": "cancel" })),
        Person::Says(text) => {
            let content: Value = serde_json::from_str(&text).unwrap();
            resume(json!({ "action": "accept", "content": content }))
        }
        Person::CancelsTheProgram => {
            ("POST".into(), format!("/api/executions/{question}/cancel"), json!({}))
        }
        Person::RestartsTheServer
        | Person::RestartsWithOtherTools
        | Person::Adds(_)
        | Person::Requests(_) => unreachable!("no answers"),
    }
}

struct Told {
    status: u16,
    text: String,
    body: Value,
}

struct Door {
    house: Server,
    server: server::RunningServer,
}

impl Door {
    async fn open(plot: &Plot, edition: u32, folder: &std::path::Path) -> Self {
        let house = Server::start(plot, edition, folder, Clock::system()).await;
        let config = server::Config {
            auth: AuthMode::Off,
            ..server::Config::new(house.engine.clone(), house.store.clone())
        };
        Self { house, server: server::RunningServer::start(config).await.unwrap() }
    }

    async fn close(self) {
        self.server.shutdown().await;
        self.house.stop().await;
    }

    /// Waits until every question that can be open is open.
    async fn rests(&self, question: QuestionId) {
        let execution = self.house.engine.asked_by(question).await.unwrap();
        let mut entries = self.house.engine.follow(execution, Seq(0));
        let mut state = State::default();
        while !matches!(state.phase, ExecutionPhase::Paused | ExecutionPhase::Finished) {
            let entry = entries.next().await.unwrap().unwrap();
            state.apply(entry.at, &entry.event);
            if state.phase == ExecutionPhase::Paused
                && self.house.engine.look_up(execution).await.unwrap().last > entry.seq
            {
                state.phase = ExecutionPhase::Running; // an older pause
            }
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Told {
        self.send("POST", path, body).await
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Told {
        let (address, body) = (self.server.local_addr(), body.to_string());
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Told {
            status,
            text: text.to_owned(),
            body: serde_json::from_str(text).unwrap_or(Value::Null),
        }
    }
}

#[derive(Default)]
struct Transcript {
    text: String,
    ids: Vec<String>,
    states: Vec<String>,
}

impl Transcript {
    fn add(&mut self, method: &str, path: &str, body: &Value, told: &Told) {
        let request = self.numbered(&format!("{method} {path} {body}"));
        let answer = self.numbered(&told.text);
        writeln!(self.text, "> {request}\n< {} {answer}", told.status).unwrap();
    }

    /// Parses a request of the story, and replaces its numbered ids by the real ones.
    fn request(&self, line: &str) -> (String, String, Value) {
        let mut filled = String::new();
        let mut rest = line;
        while let Some((at, kind)) = first_id(rest) {
            let (before, id) = rest.split_at(at);
            let id = &id[kind.len()..];
            let end = id.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(id.len());
            let known = id[..end].parse().ok().and_then(|n: usize| self.ids.get(n.checked_sub(1)?));
            filled.push_str(before);
            filled.push_str(&known.cloned().unwrap_or_else(|| format!("{kind}{}", &id[..end])));
            rest = &id[end..];
        }
        let line = filled + rest;
        let state = self.states.last().map_or("none", String::as_str);
        let line = line.replace("STATE", state);
        let mut words = line.splitn(3, ' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let body = words.next().map_or(json!({}), |body| serde_json::from_str(body).unwrap());
        (method.to_owned(), path.to_owned(), body)
    }

    /// Replaces ids by `exec_1`, `run_2`, … in order of appearance; omits times and secrets.
    fn numbered(&mut self, text: &str) -> String {
        let mut shown = String::new();
        let mut rest = text;
        while let Some((at, kind)) = first_id(rest) {
            let (before, id) = rest.split_at(at);
            let (id, mut after) = id.split_at(id.len().min(kind.len() + 36));
            if !self.ids.iter().any(|known| known == id) {
                self.ids.push(id.to_owned());
            }
            let n = self.ids.iter().position(|known| known == id).unwrap() + 1;
            write!(shown, "{before}{kind}{n}").unwrap();
            let secret = after.strip_prefix('.').and_then(|rest| rest.get(..32));
            if let Some(secret) = secret.filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit()))
            {
                self.states.push(format!("{id}.{secret}"));
                shown.push_str(".SECRET");
                after = &after[33..];
            }
            rest = after;
        }
        timeless(&(shown + rest))
    }
}

fn first_id(text: &str) -> Option<(usize, &'static str)> {
    let ids = ["exec_", "run_"].into_iter();
    ids.filter_map(|kind| Some((text.find(kind)?, kind))).min()
}

/// Replaces milliseconds since 1970 by `T`, and durations by `MS`.
fn timeless(text: &str) -> String {
    let mut shown = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let is_duration = ["\"durationMs\":", "\"activeMs\":"].iter().any(|it| shown.ends_with(it));
        shown.push_str(match digits.len() {
            13 => "T",
            1.. if is_duration => "MS",
            _ => &digits,
        });
        digits.clear();
        shown.push(c);
    }
    shown.trim_end_matches('\0').to_owned()
}
