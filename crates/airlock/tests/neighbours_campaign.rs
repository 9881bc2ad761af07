//! The campaign `neighbours`: a quiet caller beside neighbours that use all they can get, against the real binary.
//!
//! A case is a kind of neighbour. It prints the quiet caller's waiting times alone and beside the neighbour, which are
//! not asserted, and the cost of replays. It asserts that each program ends with the right value, and that each
//! released program could be replayed.
#![expect(clippy::print_stdout, reason = "the campaign reports figures")]

use crate::campaign;
use crate::server_fixture::{Client, Served, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time within which a program must end. Only a lost program reaches it.
const END_WAIT_MS: u32 = 20_000;

/// Runs a neighbour and returns its programs with their expected ends.
type Neighbour = fn(&Beside<'_>) -> Begun;

const NEIGHBOURS: &[(&str, Neighbour)] = &[
    ("sleepers", sleepers),
    ("loops", loops),
    ("memory hogs", memory_hogs),
    ("log floods", log_floods),
    ("slow readers", slow_readers),
    ("half-open sockets", half_open_sockets),
    ("replay attacker", replay_attacker),
];

/// The size of a case.
struct Size {
    sleepers: usize,
    sleep_ms: u32,
    programs: usize,
    /// Rounds of a loop.
    rounds: u32,
    /// Lines of a log.
    lines: u32,
    sockets: usize,
    requests: usize,
}

const DAILY: Size = Size {
    sleepers: 16,
    sleep_ms: 2_000,
    programs: 3,
    rounds: 5_000_000,
    lines: 2_000,
    sockets: 30,
    requests: 10,
};

const FULL: Size = Size {
    sleepers: 400,
    sleep_ms: 20_000,
    programs: 24,
    rounds: 50_000_000,
    lines: 20_000,
    sockets: 600,
    requests: 200,
};

/// The inputs of a neighbour.
struct Beside<'s> {
    served: &'s Served,
    size: &'s Size,
}

/// The programs and connections that a neighbour has started.
#[derive(Default)]
struct Begun {
    /// Executions, with their callers and expected results.
    programs: Vec<(Client, String, Expected)>,
    /// Connections that stay open and idle.
    sockets: Vec<TcpStream>,
}

enum Expected {
    Value(Value),
    /// It reaches its memory limit.
    OutOfMemory,
}

impl Beside<'_> {
    fn caller(&self, name: &str) -> Client {
        let body = json!({ "name": name, "scopes": ["run"] }).to_string();
        let minted = self.served.client("admin").post("/api/tokens", &body);
        self.served.client_with(minted.json()["secret"].as_str().unwrap())
    }

    fn start(&self, client: &Client, code: &str, expected: Expected) -> (Client, String, Expected) {
        let body = json!({ "code": code }).to_string();
        let started = client.post("/api/executions?wait=0", &body);
        (client.clone(), started.execution(), expected)
    }

    fn start_sleepers(&self, client: &Client, n: usize) -> Begun {
        let sleeper = |n| {
            let code = format!(
                "const sum = await tools.demo.add({{ a: {n}, b: 1 }});
                 await new Promise((wake) => setTimeout(wake, {})); return sum",
                self.size.sleep_ms
            );
            self.start(client, &code, Expected::Value(json!(n + 1)))
        };
        Begun { programs: (0..n).map(sleeper).collect(), ..Begun::default() }
    }

    fn start_all(&self, name: &str, code: &str, expected: impl Fn() -> Expected) -> Begun {
        let client = self.caller(name);
        let start = |_| self.start(&client, code, expected());
        Begun { programs: (0..self.size.programs).map(start).collect(), ..Begun::default() }
    }
}

fn sleepers(beside: &Beside<'_>) -> Begun {
    beside.start_sleepers(&beside.caller("sleeper"), beside.size.sleepers)
}

fn loops(beside: &Beside<'_>) -> Begun {
    let rounds = beside.size.rounds;
    let code = format!("let n = 0; while (n < {rounds}) n += 1; return n");
    beside.start_all("looper", &code, || Expected::Value(json!(rounds)))
}

fn memory_hogs(beside: &Beside<'_>) -> Begun {
    let code = "const all = []; for (;;) all.push(new Array(1e5).fill(all.length))";
    beside.start_all("hog", code, || Expected::OutOfMemory)
}

/// A program that prints this many lines.
fn flood(n_lines: u32) -> String {
    format!(
        "for (let n = 0; n < {n_lines}; n += 1) console.log(`line ${{n}} ${{'x'.repeat(80)}}`);
         return 'dry'"
    )
}

fn log_floods(beside: &Beside<'_>) -> Begun {
    beside.start_all("flood", &flood(beside.size.lines), || Expected::Value(json!("dry")))
}

fn slow_readers(beside: &Beside<'_>) -> Begun {
    let client = beside.caller("reader");
    let flood = beside.start(&client, &flood(beside.size.lines), Expected::Value(json!("dry")));
    let path = format!("/api/executions/{}/events", flood.1);
    let head = client.head("GET", &path, &[("Accept", "text/event-stream")], 0);
    let sockets = (0..beside.size.sockets).map(|_| {
        let mut stream = client.connect();
        stream.write_all(head.as_bytes()).unwrap();
        stream // and nobody reads it
    });
    Begun { sockets: sockets.collect(), programs: vec![flood] }
}

fn half_open_sockets(beside: &Beside<'_>) -> Begun {
    let client = beside.caller("half-open");
    let sockets = (0..beside.size.sockets).map(|_| {
        let mut stream = client.connect();
        stream.write_all(b"POST /api/executions HTTP/1.1\r\nHost: ").unwrap();
        stream
    });
    Begun { sockets: sockets.collect(), ..Begun::default() }
}

/// Takes every runner that it can get, so that programs of others are replayed as often as the rules allow.
fn replay_attacker(beside: &Beside<'_>) -> Begun {
    let victim = beside.start_sleepers(&beside.caller("victim"), 12);
    let attacker = beside.caller("attacker");
    let code =
        "for (let n = 0; n < 3; n += 1) await new Promise((wake) => setTimeout(wake, 1_100));
        return 'done'";
    let start = |_| beside.start(&attacker, code, Expected::Value(json!("done")));
    let attack = (0..beside.size.sleepers).map(start);
    Begun { programs: victim.programs.into_iter().chain(attack).collect(), ..Begun::default() }
}

/// The durations of the quiet caller's requests, sorted.
fn quiet_requests(client: &Client, n: usize) -> Vec<Duration> {
    let mut times: Vec<_> = (0..n)
        .map(|n| {
            let began = Instant::now();
            assert_eq!(client.execute(&format!("return {n}")).result(), json!(n));
            began.elapsed()
        })
        .collect();
    times.sort();
    times
}

/// The time within which this percentage of the requests was answered.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn percentiles(sorted: &[Duration]) -> String {
    let at = |percent| percentile(sorted, percent).as_secs_f64() * 1e3;
    format!("p50 {:.1} ms, p99 {:.1} ms", at(50), at(99))
}

/// The same as separate numbers, in microseconds. Each neighbour has one case, so the soak's sums equal them.
fn figures(name: &str, alone: &[Duration], near: &[Duration]) -> BTreeMap<String, u64> {
    let us = |times, percent| u64::try_from(percentile(times, percent).as_micros()).unwrap();
    [("alone", alone), ("beside", near)]
        .into_iter()
        .flat_map(|(when, times)| {
            [50, 99].map(|p| (format!("{name}, {when}, p{p}, us"), us(times, p)))
        })
        .collect()
}

/// The metrics of a server by name and labels.
fn metrics(served: &Served) -> BTreeMap<String, u64> {
    let text = served.client("admin").get("/metrics").body;
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.filter_map(|(name, n)| Some((name.to_owned(), n.parse().ok()?))).collect()
}

/// Waits for the end of a program and checks that it is the expected one.
fn check_end((client, execution, expected): &(Client, String, Expected)) {
    let path = format!("/api/executions/{execution}/result?wait={END_WAIT_MS}");
    let end = wait_for(|| {
        let end = client.get(&path).json();
        (end["status"] != "running").then_some(end)
    });
    match expected {
        Expected::Value(value) => {
            assert_eq!(end, json!({ "status": "completed", "result": value }), "{execution}");
        }
        Expected::OutOfMemory => {
            assert!(end.to_string().contains("needed more than"), "{execution}: {end}");
        }
    }
}

/// Runs one case and returns its sums.
fn run_case(case: u64, size: &Size) -> BTreeMap<String, u64> {
    let (name, neighbour) = NEIGHBOURS[usize::try_from(case).unwrap() % NEIGHBOURS.len()];
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&folder.path().join("data"), &["--memory-budget", "512MiB"]);
    let beside = Beside { served: &served, size };
    let quiet = beside.caller("quiet");
    let alone = quiet_requests(&quiet, size.requests);
    let mut begun = neighbour(&beside);
    let near = quiet_requests(&quiet, size.requests);
    begun.sockets.clear();
    begun.programs.iter().for_each(check_end);

    let metrics = metrics(&served);
    let number = |name: &str| metrics.get(name).copied().unwrap_or(0);
    let cpu = metrics.iter().filter(|(name, _)| name.starts_with("airlock_capacity_replay_cpu"));
    let cpu: Vec<_> = cpu.map(|(name, ms)| (name.split('"').nth(1).unwrap_or(""), *ms)).collect();
    let failed = number("airlock_capacity_replays_total{outcome=\"failed\"}");
    let mut sums = BTreeMap::from(
        [
            ("programs", begun.programs.len() as u64),
            ("released", number("airlock_runners_released_total")),
            ("replays", number("airlock_capacity_replays_total{outcome=\"restored\"}")),
            ("replays_failed", failed),
            ("replay_cpu_ms", cpu.iter().map(|(_, ms)| ms).sum()),
        ]
        .map(|(name, n): (_, u64)| (name.to_owned(), n)),
    );
    println!("{name}: quiet caller alone {}; beside {}", percentiles(&alone), percentiles(&near));
    println!("{name}: {sums:?}, replays in ms by caller {cpu:?}");
    sums.extend(figures(name, &alone, &near));
    assert_eq!(failed, 0, "programs could not be replayed");
    assert_eq!(served.stop(), Some(0));
    sums
}

#[test]
fn a_quiet_caller_is_served_beside_any_neighbour_and_every_program_ends_as_it_should() {
    let size = if std::env::var_os("AIRLOCK_SOAK").is_some() { FULL } else { DAILY };
    let mut sums = BTreeMap::new();
    for case in campaign::soak_range().unwrap_or(0..NEIGHBOURS.len() as u64) {
        for (name, n) in run_case(case, &size) {
            *sums.entry(name).or_insert(0) += n;
        }
    }
    println!("sums: {sums:?}");
    campaign::report_sums(&json!(sums));
}
