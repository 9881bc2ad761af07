//! A server is stopped at random moments, by SIGKILL, SIGTERM and SIGSTOP, while programs read, write, race, wait for
//! timers and ask a person. Every program ends with the right value, no write arrives twice unless a person chose to
//! retry it, every journal is contiguous, followers receive each entry once, and no tool is missing.
//!
//! `cargo xtask soak kill` runs 2,000 stops.

use crate::campaign;
use crate::kill_fixture::{CurrentServer, Dice, PATIENCE, Person, Upstream, attempt, follow};
use crate::server_fixture::{Client, Served};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of stops in an ordinary run.
const DAILY_STOPS: u64 = 30;

/// The number of programs that start before each stop.
const PROGRAMS_PER_STOP: u64 = 2;

/// The number of requests that a program sends to the upstream.
const REQUESTS: u64 = 6;

fn program(name: &str) -> String {
    format!(
        "const up = tools.up.org.main.t, ok = (call) => call.then((r) => r.ok, (e) => e.code + ': ' + e.message);
        const first = await Promise.all([
            ok(up.write({{ id: '{name}-1' }})), ok(up.read({{ id: '{name}-2' }})), ok(up.send({{ id: '{name}-3' }})),
        ]);
        const raced = await Promise.race([
            ok(up.read({{ id: '{name}-4' }})),
            new Promise((done) => setTimeout(() => done(true), 3)),
        ]);
        console.log('raced', raced, Math.random());
        await new Promise((done) => setTimeout(done, 5));
        const late = ok(up.write({{ id: '{name}-5' }}));
        return [...first, raced, await ok(up.send({{ id: '{name}-6' }})), await late]"
    )
}

/// The way in which a server is stopped.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Kill,
    Terminate,
    /// Suspended for a while, then continued; killed in the next round.
    Freeze,
    FreezeAndKill,
}

/// The findings of one slice.
#[derive(Default)]
struct Counts {
    stops: BTreeMap<&'static str, u64>,
    n_entries_followed: u64,
    n_entries: u64,
}

#[test]
fn a_server_stopped_at_any_moment_loses_nothing_and_writes_nothing_twice() {
    let range = campaign::soak_range().unwrap_or(0..DAILY_STOPS);
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start();
    let config = folder.path().join("airlock.toml");
    std::fs::write(&config, upstream.config()).unwrap();
    let words = ["--config", config.to_str().unwrap()];
    let start = || Served::start(&folder.path().join("data"), &words);

    let seed = range.start + u64::from(std::process::id());
    let mut dice = Dice::new(seed);
    let person = Person::new(&upstream, Dice::new(seed + 1));
    let (current, is_over) = (CurrentServer::default(), AtomicBool::new(false));
    let (mut started, mut counts) = (BTreeMap::new(), Counts::default());
    let heard = Mutex::new(BTreeMap::new());
    let served = std::thread::scope(|scope| {
        let _guard = SetOnDrop(&is_over);
        let first = start();
        current.set(first.client("admin"));
        let mut served = Some(first);
        scope.spawn(|| person.answer_until(&current, &is_over));
        for round in range.clone() {
            let server = served.take().unwrap_or_else(&start);
            let client = server.client("admin");
            current.set(client.clone());
            for n in 0..PROGRAMS_PER_STOP {
                let name = format!("r{round}n{n}");
                let Some(execution) = begin(&client, &name) else { continue };
                started.insert(execution.clone(), name);
                let (heard, current, is_over) = (&heard, &current, &is_over);
                scope.spawn(move || {
                    let entries = follow(current, &execution, is_over);
                    heard.lock().unwrap().insert(execution, entries);
                });
            }
            std::thread::sleep(Duration::from_millis(dice.below(250)));
            served = stop(server, &mut dice, &mut counts);
        }
        let served = served.unwrap_or_else(&start);
        current.set(served.client("admin"));
        let ended = all_ended(&current.client(), &started);
        let followed = ended.is_ok().then(|| until_followed(&heard, started.len()));
        is_over.store(true, Ordering::SeqCst);
        ended.unwrap();
        followed.unwrap().unwrap();
        served
    });
    let client = current.client();
    counts.n_entries = journals_are_contiguous(&client);
    counts.n_entries_followed =
        followers_heard_each_entry_once(&client, &heard.into_inner().unwrap());
    requests_arrived_once(&upstream, &person, &started);
    assert!(started.len() as u64 > range.end - range.start, "too few programs were started");
    assert_eq!(served.stop(), Some(0));
    campaign::report_sums(&sums(&counts, &person, started.len(), &upstream));
}

/// Ends the helper threads, also if the test fails: the scope waits for them.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Starts a program. Returns its execution, if the server lives long enough to answer.
fn begin(client: &Client, name: &str) -> Option<String> {
    let body = json!({ "code": program(name) }).to_string();
    attempt(client, "POST", "/api/executions?wait=0", &body)?.0
}

/// Stops the server in one of several ways. A server that was only suspended continues.
fn stop(server: Served, dice: &mut Dice, counts: &mut Counts) -> Option<Served> {
    let (name, how) = match dice.below(6) {
        0..3 => ("SIGKILL", Stop::Kill),
        3 => ("SIGTERM", Stop::Terminate),
        4 => ("SIGSTOP", Stop::Freeze),
        _ => ("SIGSTOP and SIGKILL", Stop::FreezeAndKill),
    };
    *counts.stops.entry(name).or_insert(0) += 1;
    match how {
        Stop::Kill => server.kill(),
        Stop::Terminate => assert_eq!(server.stop(), Some(0)),
        Stop::Freeze | Stop::FreezeAndKill => {
            server.signal("-STOP");
            std::thread::sleep(Duration::from_millis(dice.below(200)));
            if matches!(how, Stop::Freeze) {
                server.signal("-CONT");
                return Some(server);
            }
            server.kill();
        }
    }
    None
}

/// Waits until every program has ended, and asserts that each has the right value.
fn all_ended(client: &Client, started: &BTreeMap<String, String>) -> Result<(), String> {
    let began = Instant::now();
    let expected = json!({ "status": "completed", "result": [true, true, true, true, true, true] });
    for (execution, name) in started {
        loop {
            let path = format!("/api/executions/{execution}/result?wait=500");
            let (_, told) = attempt(client, "GET", &path, "").ok_or("the server is gone")?;
            if told == expected {
                break;
            }
            if told["status"] != "running" && told["status"] != "paused" {
                return Err(format!("{name} ended with {told}"));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{name} does not end: {told}"));
            }
        }
    }
    Ok(())
}

fn until_followed(
    heard: &Mutex<BTreeMap<String, Vec<Value>>>,
    n_started: usize,
) -> Result<(), String> {
    let began = Instant::now();
    while heard.lock().unwrap().len() < n_started {
        if began.elapsed() > PATIENCE {
            return Err("a follower does not hear the end".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Every entry of an execution, page by page.
fn journal(client: &Client, execution: &str) -> Vec<Value> {
    let mut entries = vec![];
    loop {
        let path = format!("/api/executions/{execution}/events?after={}", entries.len());
        let page = client.get(&path).json();
        entries.extend(page["events"].as_array().unwrap().iter().cloned());
        if page["more"] != true {
            return entries;
        }
    }
}

/// Asserts that every journal contains each number from 1 once, and that no tool was missing. Returns the number of
/// entries.
fn journals_are_contiguous(client: &Client) -> u64 {
    let (mut n_entries, mut after) = (0, String::new());
    loop {
        let page = client.get(&format!("/api/executions?limit=500{after}")).json();
        for listed in page["executions"].as_array().unwrap() {
            let execution = listed["executionId"].as_str().unwrap();
            let entries = journal(client, execution);
            let seqs: Vec<_> = entries.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
            assert_eq!(seqs, (1..=entries.len() as u64).collect::<Vec<_>>(), "{execution}");
            let missing = entries.iter().find(|entry| entry["error"]["code"] == "tool_not_found");
            assert_eq!(missing, None, "a tool that exists was not found");
            n_entries += seqs.len() as u64;
        }
        let Some(next) = page["next"].as_str() else { return n_entries };
        after = format!("&after={next}");
    }
}

/// Asserts that what each follower received over several servers is the journal. Returns the number of entries.
fn followers_heard_each_entry_once(client: &Client, heard: &BTreeMap<String, Vec<Value>>) -> u64 {
    for (execution, entries) in heard {
        assert_eq!(*entries, journal(client, execution), "{execution}");
    }
    heard.values().map(|entries| entries.len() as u64).sum()
}

/// Asserts that every request of a program arrived, and none more often than a person allowed. A read may be repeated.
fn requests_arrived_once(
    upstream: &Upstream,
    person: &Person<'_>,
    started: &BTreeMap<String, String>,
) {
    let arrived = upstream.requests();
    let ids = started.values().flat_map(|name| (1..=REQUESTS).map(move |n| format!("{name}-{n}")));
    let lost: Vec<_> = ids.filter(|id| !arrived.contains_key(id)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let retried = person.retried.lock().unwrap();
    let is_read = |id: &str| id.ends_with("-2") || id.ends_with("-4");
    let doubled: Vec<_> = arrived
        .iter()
        .filter(|(id, n)| !is_read(id) && **n > 1 + retried.get(*id).copied().unwrap_or(0))
        .collect();
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
}

fn sums(counts: &Counts, person: &Person<'_>, n_programs: usize, upstream: &Upstream) -> Value {
    let requests = upstream.requests();
    let mut sums = json!({
        "stops": counts.stops.values().sum::<u64>(),
        "programs": n_programs,
        "requests": requests.values().sum::<u32>(),
        "approvals": person.n_approvals.load(Ordering::SeqCst),
        "calls in doubt": person.n_in_doubt.load(Ordering::SeqCst),
        "retries of arrived writes": person.retried.lock().unwrap().values().sum::<u32>(),
        "entries": counts.n_entries,
        "entries followed": counts.n_entries_followed,
        "lost": 0,
        "doubled writes": 0,
        "gaps in journals": 0,
        "false tool_not_found": 0,
    });
    for (name, n) in &counts.stops {
        sums[format!("stops by {name}")] = json!(n);
    }
    sums
}
