//! Hostile programs end as expected through every door that runs guests. No answer contains a secret, the next program
//! works, and a neighbour that runs meanwhile is not disturbed.
//!
//! The programs are data: `attacks/*.jsonl`. `cargo xtask soak attacks` runs all of them through all doors.

use crate::attack_fixture::{Attack, DOORS, Door, Outcome, Target, TimeLimit, attacks, open_door};
use crate::campaign;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// On an ordinary run, one program in this many goes through every door; the others only through the first one.
const SAMPLE_EVERY: usize = 15;

/// The number of programs that run concurrently.
const LANES: usize = 6;

/// One program at one door.
struct Job<'a> {
    attack: &'a Attack,
    door: &'static str,
}

/// The sums of all jobs together.
#[derive(Default)]
struct Findings {
    wrong: Mutex<Vec<String>>,
    n_done: AtomicUsize,
}

#[test]
fn hostile_programs_end_as_expected_and_leak_nothing() {
    let (attacks, target) = (attacks(), Target::start());
    let jobs = jobs(&attacks);
    let (next, findings) = (AtomicUsize::new(0), Findings::default());
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (jobs, target, next, findings) = (&jobs, &target, &next, &findings);
            scope.spawn(move || run_lane(lane, jobs, target, next, findings));
        }
    });
    let wrong = findings.wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
    assert_eq!(findings.n_done.into_inner(), jobs.len(), "a lane ended early");
    assert_eq!(target.served.client("run").get("/healthz").status, 200);
    campaign::report_sums(&sums(&jobs));
    assert_eq!(target.served.stop(), Some(0));
}

fn jobs(attacks: &[Attack]) -> Vec<Job<'_>> {
    let mut jobs = vec![];
    for (n, attack) in attacks.iter().enumerate() {
        let is_chosen = campaign::soak_range().is_none_or(|range| range.contains(&(n as u64)));
        let every_door = campaign::soak_range().is_some() || n % SAMPLE_EVERY == 0;
        for door in DOORS.into_iter().filter(|door| is_chosen && attack.runs_through(door)) {
            if every_door || door == attack.first_door() {
                jobs.push(Job { attack, door });
            }
        }
    }
    jobs
}

/// Takes jobs until there are none. Each lane has its own doors, so that it can attribute each answer.
fn run_lane(
    lane: usize,
    jobs: &[Job<'_>],
    target: &Target,
    next: &AtomicUsize,
    findings: &Findings,
) {
    let mut doors: Vec<_> = DOORS.iter().map(|_| None).collect();
    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
        let at = DOORS.iter().position(|door| *door == job.door).unwrap();
        let door: &mut Box<dyn Door> =
            doors[at].get_or_insert_with(|| open_door(job.door, lane, target));
        if let Some(why) = misbehaviour(job, door.as_mut(), target) {
            let Job { attack, door } = job;
            let report = format!("{}: {} ({door}): {why}", attack.class, attack.name);
            findings.wrong.lock().unwrap().push(report);
        }
        findings.n_done.fetch_add(1, Ordering::SeqCst);
    }
}

/// What is wrong with how a program ended, or with the program after it.
fn misbehaviour(job: &Job<'_>, door: &mut dyn Door, target: &Target) -> Option<String> {
    let code = job.attack.code(job.door, target);
    let (outcome, answer) = std::thread::scope(|scope| {
        let neighbour = (job.door == "executor").then(|| scope.spawn(|| neighbour(target)));
        let ended = door.run(&code, TimeLimit::of(job.attack));
        if let Some(neighbour) = neighbour {
            assert_eq!(neighbour.join().unwrap(), 210, "the neighbour was disturbed");
        }
        ended
    });
    if let Some(secret) = target.leaked(&answer) {
        return Some(format!("the answer contains {secret}"));
    }
    // An eval of the REPL has no `return` at its top.
    let next = if job.door == "hotrepl" { "6 * 7" } else { "return 6 * 7" };
    let (after, _) = door.run(next, TimeLimit::Long);
    if after != Outcome::Value(json!(42)) {
        return Some(format!("the next program ended with {after:?}"));
    }
    (!job.attack.expect.holds(&outcome)).then(|| format!("it ended with {}", brief(&outcome)))
}

/// Runs a program of another caller, at the same time as the jobs, and returns its result.
fn neighbour(target: &Target) -> Value {
    let code = "let sum = 0;
        for (let n = 0; n < 20; n += 1) { sum += await tools.demo.add({ a: n, b: 1 }) }
        return sum";
    target.served.client("admin").execute(code).result()
}

fn brief(outcome: &Outcome) -> String {
    format!("{outcome:?}").chars().take(300).collect()
}

fn sums(jobs: &[Job<'_>]) -> Value {
    let programs: BTreeSet<_> = jobs.iter().map(|job| &job.attack.name).collect();
    let mut sums = Map::from_iter([
        ("programs".to_owned(), json!(programs.len())),
        ("leaks".to_owned(), json!(0)),
        ("unexpected ends".to_owned(), json!(0)),
    ]);
    for door in DOORS {
        let n = jobs.iter().filter(|job| job.door == door).count();
        sums.insert(format!("runs through {door}"), json!(n));
    }
    Value::Object(sums)
}

#[test]
fn attacks_have_names_of_their_own_and_are_at_least_three_hundred() {
    let attacks = attacks();
    let names: BTreeSet<_> = attacks.iter().map(|attack| &attack.name).collect();
    assert_eq!(names.len(), attacks.len(), "two attacks have the same name");
    assert!(names.len() >= 300, "{}", names.len());
}
