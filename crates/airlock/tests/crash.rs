//! The server is killed with -9 at random moments, again and again, while programs with `Promise.all`,
//! races, timers and questions run. Every one of them ends with the right value, and no line is
//! appended twice or lost without somebody having been asked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod served;

use serde_json::{Value, json};
use served::{Client, Served};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the server is killed.
fn n_kills() -> u32 {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 500 } else { 20 }
}

/// Longest wait for the last programs to end: reached only when one is lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a program appends and returns, whatever happens in between.
fn program(name: &str) -> String {
    format!(
        "const first = tools.demo.append({{ line: '{name}-1' }});
        const [sum, appended] = await Promise.all([tools.demo.add({{ a: 1, b: 2 }}), first]);
        const dice = Math.random();
        const raced = await Promise.race([
            tools.demo.sleep({{ ms: 20 }}).then(() => 'slept'),
            new Promise((done) => setTimeout(() => done('timer'), 15)),
        ]);
        console.log('raced', raced, dice);
        const second = await tools.demo.append({{ line: '{name}-2' }}).catch((error) => error.message);
        const late = tools.demo.sleep({{ ms: 5 }});
        return [sum, appended.appended, ['slept', 'timer'].includes(raced), second.appended, (await late).slept]"
    )
}

fn expected() -> Value {
    json!([3, true, true, true, 5])
}

#[test]
fn a_server_killed_at_any_moment_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice::new();
    let mut started = BTreeMap::new();
    for round in 0..n_kills() {
        let served = Served::start(folder.path(), &[]);
        let (client, over) = (served.client("admin"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| answer_until(&client, folder.path(), &over));
            for n in 0..2 {
                let name = format!("r{round}n{n}");
                let body = json!({ "code": program(&name) }).to_string();
                if let Some(told) = attempt(&client, "POST", "/api/executions?wait=0", &body) {
                    started.insert(told["about"].as_str().unwrap_or_default().to_owned(), name);
                }
            }
            std::thread::sleep(Duration::from_millis(dice.below(200)));
            over.store(true, Ordering::SeqCst);
            served.kill();
        });
    }
    let served = Served::start(folder.path(), &[]);
    let (client, over) = (served.client("admin"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| answer_until(&client, folder.path(), &over));
        let ended = all_ended(&client, &started);
        over.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    every_line_once(folder.path(), &client, &started);
}

/// Waits until every program has ended, each with the right value.
fn all_ended(client: &Client, started: &BTreeMap<String, String>) -> Result<(), String> {
    let begun = Instant::now();
    for (execution, name) in started {
        loop {
            let told =
                attempt(client, "GET", &format!("/api/executions/{execution}?wait=1000"), "");
            let told = told.ok_or("the server is gone")?;
            if told["structured"]["status"] == "completed" {
                if told["structured"]["result"] != expected() {
                    return Err(format!("{name} ended with {told}"));
                }
                break;
            }
            if told["status"] == "completed" || told["status"] == "parked" {
                return Err(format!("{name} ended with {told}"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name} does not end: {told}"));
            }
        }
    }
    Ok(())
}

/// Each program's two lines are there exactly once; so are those of programs whose start nobody heard of.
fn every_line_once(folder: &Path, client: &Client, started: &BTreeMap<String, String>) {
    let mut n_seen = BTreeMap::new();
    for line in appended(folder) {
        *n_seen.entry(line).or_insert(0) += 1;
    }
    let doubled: Vec<_> = n_seen.iter().filter(|(_, n)| **n != 1).collect();
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
    let missing: Vec<_> = started
        .values()
        .flat_map(|name| [format!("{name}-1"), format!("{name}-2")])
        .filter(|line| !n_seen.contains_key(line))
        .collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
    let open = attempt(client, "GET", "/api/executions?status=paused", "").unwrap();
    let n_open = open["executions"].as_array().unwrap().len();
    assert!(n_open <= 2 * n_kills() as usize - started.len(), "somebody still waits: {open}");
}

fn appended(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("demo-append.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A person who approves everything, and who looks at the file before saying what to do about a call
/// that may or may not have run.
fn answer_until(client: &Client, folder: &Path, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let Some(paused) = attempt(client, "GET", "/api/executions?status=paused&limit=100", "")
        else {
            continue;
        };
        for listed in paused["executions"].as_array().into_iter().flatten() {
            let execution = listed["executionId"].as_str().unwrap();
            let path = format!("/api/executions/{execution}");
            let Some(told) = attempt(client, "GET", &path, "") else { continue };
            let asked = &told["structured"];
            let Some(question) = asked["executionId"].as_str() else { continue };
            let in_doubt =
                asked["interaction"]["requestedSchema"]["properties"]["choice"].is_object();
            let line = asked["interaction"]["args"]["line"].as_str().unwrap_or_default();
            let content = match (in_doubt, appended(folder).iter().any(|other| other == line)) {
                (false, _) => json!({}),
                (true, true) => json!({ "choice": "supply", "result": { "appended": true } }),
                (true, false) => json!({ "choice": "retry" }),
            };
            let body = json!({ "action": "accept", "content": content }).to_string();
            attempt(client, "POST", &format!("/api/executions/{question}/resume?wait=0"), &body);
        }
    }
}

/// Sends a request to a server that may be killed meanwhile. The execution it is about joins the body.
fn attempt(client: &Client, method: &str, path: &str, body: &str) -> Option<Value> {
    let mut stream = std::net::TcpStream::connect(&client.address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = client.head(method, path, &[("Content-Type", "application/json")], body.len());
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut told: Value = serde_json::from_str(body).ok()?;
    if let Some(id) = head.lines().find_map(|line| line.strip_prefix("airlock-execution: ")) {
        told["about"] = id.into();
    }
    Some(told)
}

/// Randomness that a failed run can be told to repeat: `AIRLOCK_SEED`.
struct Dice(u64);

impl Dice {
    #[expect(clippy::print_stderr, reason = "shown when the test fails")]
    fn new() -> Self {
        let chosen = std::env::var("AIRLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = chosen.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761 + 1);
        eprintln!("AIRLOCK_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
