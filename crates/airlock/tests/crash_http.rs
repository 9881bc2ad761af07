//! A server whose tools are calls of another program over HTTP is killed with -9 at random moments. The
//! other program counts: every call arrives once, unless a person said to try it again.
//!
//! The server is this same test binary, started again: `serves_until_it_is_killed` is it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod served;

use engine::{Config, Engine};
use lifecycle::{Failure, FailureCode, ToolPath};
use serde_json::{Value, json};
use served::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::sqlite::SqliteStore;
use tools::function::FunctionSource;
use tools::{Catalogue, Tool};

/// Where the child finds its folder and the program that counts.
const FOLDER: &str = "AIRLOCK_CRASH_FOLDER";
const COUNTER: &str = "AIRLOCK_CRASH_COUNTER";

/// Longest wait for anything: reached only when something is lost.
const PATIENCE: Duration = Duration::from_secs(120);

fn n_kills() -> u32 {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 500 } else { 20 }
}

fn program(name: &str) -> String {
    format!(
        "const first = await Promise.all([1, 2].map((n) => tools.counter.count({{ key: `{name}-${{n}}` }})));
        await new Promise((done) => setTimeout(done, 5));
        const late = tools.counter.count({{ key: '{name}-3' }});
        return [...first.map((one) => one.ok), (await late).ok]"
    )
}

#[test]
fn http_calls_of_a_killed_server_are_neither_lost_nor_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let counter = Counter::start();
    let mut moment = u64::from(std::process::id());
    let mut started = BTreeMap::new();
    for round in 0..n_kills() {
        let house = House::start(folder.path(), &counter.address);
        let (client, over) = (house.client.clone(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| answer_until(&client, &counter, &over));
            for n in 0..2 {
                let name = format!("r{round}n{n}");
                let body = json!({ "code": program(&name) }).to_string();
                if let Some((Some(id), _)) =
                    attempt(&client, "POST", "/api/executions?wait=0", &body)
                {
                    started.insert(id, name);
                }
            }
            moment = moment
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis((moment >> 33) % 120));
            over.store(true, Ordering::SeqCst);
            house.kill();
        });
    }
    let house = House::start(folder.path(), &counter.address);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| answer_until(&house.client, &counter, &over));
        let ended = all_ended(&house.client, &started);
        over.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    let counts = counter.counts.lock().unwrap().clone();
    let doubled: Vec<_> = counts.iter().filter(|(_, n)| **n != 1).collect();
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
    let keys = started.values().flat_map(|name| (1..=3).map(move |n| format!("{name}-{n}")));
    let lost: Vec<_> = keys.filter(|key| !counts.contains_key(key)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert!(started.len() as u32 > n_kills(), "too few programs were started to show anything");
    house.kill();
}

fn all_ended(client: &Client, started: &BTreeMap<String, String>) -> Result<(), String> {
    let begun = Instant::now();
    let mut waiting: BTreeSet<_> = started.keys().collect();
    while let Some(id) = waiting.first().copied() {
        let told = attempt(client, "GET", &format!("/api/executions/{id}/result?wait=500"), "");
        let told = told.map_or(json!({ "status": "running" }), |(_, told)| told);
        if told == json!({ "status": "completed", "result": [true, true, true] }) {
            waiting.remove(id);
        } else if told["status"] != "running" && told["status"] != "paused" {
            return Err(format!("{} ended with {told}", started[id]));
        } else if begun.elapsed() > PATIENCE {
            return Err(format!("{} does not end: {told}", started[id]));
        }
    }
    Ok(())
}

/// A person who asks the counter before saying what to do about a call that may or may not have run.
fn answer_until(client: &Client, counter: &Counter, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        for status in ["paused", "running"] {
            let path = format!("/api/executions?status={status}&limit=100");
            let Some((_, listed)) = attempt(client, "GET", &path, "") else { continue };
            for listed in listed["executions"].as_array().into_iter().flatten() {
                answer(client, counter, listed["executionId"].as_str().unwrap());
            }
        }
        // A test that asks without a pause uses up the ports of the machine.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn answer(client: &Client, counter: &Counter, execution: &str) {
    let asked = attempt(client, "GET", &format!("/api/executions/{execution}/questions"), "");
    let Some((_, asked)) = asked else { return };
    for asked in asked["questions"].as_array().into_iter().flatten() {
        let key = asked["interaction"]["args"]["key"].as_str().unwrap();
        let content = match counter.has(key) {
            true => json!({ "choice": "supply", "result": { "ok": true } }),
            false => json!({ "choice": "retry" }),
        };
        let body = json!({ "action": "accept", "content": content }).to_string();
        let question = asked["executionId"].as_str().unwrap();
        attempt(client, "POST", &format!("/api/executions/{question}/resume?wait=0"), &body);
    }
}

/// The program that the tools call. It takes one connection after the other, so whoever asks it has
/// every earlier call counted.
struct Counter {
    address: String,
    counts: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Counter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let counts = Arc::new(Mutex::new(BTreeMap::new()));
        let counted = Arc::clone(&counts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = count(stream.unwrap(), &counted);
            }
        });
        Self { address, counts }
    }

    /// Whether a call for `key` has arrived, once all that were sent before are counted.
    fn has(&self, key: &str) -> bool {
        let told = post(&self.address, "GET", key).unwrap();
        told.contains("\"counted\":true")
    }
}

fn count(mut stream: TcpStream, counts: &Mutex<BTreeMap<String, u32>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    request.read_line(&mut line)?;
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, key) = (word(), word());
    let key = key.trim_start_matches('/').to_owned();
    if key.is_empty() {
        return Ok(()); // a server that was killed before it said what it wanted
    }
    while !line.trim().is_empty() {
        line.clear();
        request.read_line(&mut line)?;
    }
    let mut counts = counts.lock().unwrap();
    let body = match method.as_str() {
        "POST" => {
            *counts.entry(key).or_insert(0) += 1;
            "{\"ok\":true}".to_owned()
        }
        _ => format!("{{\"counted\":{}}}", counts.contains_key(&key)),
    };
    drop(counts);
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// One request to the counter, and the body of its answer.
fn post(address: &str, method: &str, key: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "{method} /{key} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut told = String::new();
    stream.read_to_string(&mut told)?;
    Ok(told.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// Sends a request to a server that may be killed meanwhile: the execution it is about, and the body.
fn attempt(
    client: &Client,
    method: &str,
    path: &str,
    body: &str,
) -> Option<(Option<String>, Value)> {
    let mut stream = TcpStream::connect(&client.address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = client.head(method, path, &[("Content-Type", "application/json")], body.len());
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let id = head.lines().find_map(|line| line.strip_prefix("airlock-execution: "));
    Some((id.map(str::to_owned), serde_json::from_str(body).ok()?))
}

/// This test binary as a server.
struct House {
    child: Child,
    client: Client,
}

impl House {
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
    fn start(folder: &Path, counter: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serves_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder)
            .env(COUNTER, counter)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .map(|line| line.unwrap())
            .find_map(|line| line.split_once("listens at ").map(|(_, address)| address.to_owned()));
        let address = address.expect("a server that starts says where it listens");
        Self { child, client: Client { address, secret: "none".into() } }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does nothing unless it is started as the server of the test above.
#[test]
#[expect(clippy::print_stdout, reason = "the test above reads where it listens")]
fn serves_until_it_is_killed() {
    let (Ok(folder), Ok(counter)) = (std::env::var(FOLDER), std::env::var(COUNTER)) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let source = FunctionSource::new("counter");
        let tool = Tool::new(ToolPath::parse("counter.count").unwrap());
        let source = source.add(tool, move |args: Value| {
            let (counter, key) = (counter.clone(), args["key"].as_str().unwrap().to_owned());
            async move {
                let calling = tokio::task::spawn_blocking(move || post(&counter, "POST", &key));
                let told = calling.await.unwrap();
                let told =
                    told.map_err(|error| Failure::new(FailureCode::Tool, error.to_string()))?;
                Ok(serde_json::from_str::<Value>(&told).unwrap())
            }
        });
        let store = SqliteStore::open(Path::new(&folder)).unwrap();
        let mut config =
            Config::new(store.clone(), Catalogue::new(vec![Arc::new(source)]).unwrap());
        config.sandbox.program = sandbox::Program::At(env!("CARGO_BIN_EXE_airlock").into());
        let engine = Engine::start(config).await.unwrap();
        let config =
            server::Config { auth: server::Auth::Off, ..server::Config::new(engine, store) };
        let server = server::Server::start(config).await.unwrap();
        println!("listens at {}", server.local_addr());
        std::future::pending::<()>().await;
    });
}
