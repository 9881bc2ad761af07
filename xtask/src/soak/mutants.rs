//! Mutants: cargo-mutants changes one thing in a crate, and the crate's own tests should fail.
//!
//! A slice is one shard of one crate's mutants. Shards are dealt round-robin, so that any of them is a sample of the
//! whole crate; all shards together are all mutants. `.cargo/mutants.toml` has the options.

use super::accepted::{self, AcceptedMutant};
use super::records::{SliceRecords, date_and_machines, sum};
use super::slices::SliceBound;
use crate::cargo::{CargoCall, root};
use crate::print::print_line;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// A crate whose mutants are tested.
struct MutatedCrate {
    name: &'static str,
    /// The percentage of viable mutants that should be caught.
    caught_percent_min: u64,
    /// Shards: about 60 mutants in each, which take five to fifteen minutes.
    n_shards: u64,
    /// Tests left out because they take most of the time, by repeating one case thousands of times. A mutant that only
    /// they would catch counts as missed.
    skipped_tests: &'static [&'static str],
}

const CRATES: &[MutatedCrate] = &[
    MutatedCrate { name: "lifecycle", caught_percent_min: 90, n_shards: 12, skipped_tests: &[] },
    MutatedCrate { name: "schema", caught_percent_min: 80, n_shards: 16, skipped_tests: &[] },
    MutatedCrate { name: "protocols", caught_percent_min: 80, n_shards: 20, skipped_tests: &[] },
    MutatedCrate {
        name: "store",
        caught_percent_min: 80,
        n_shards: 24,
        skipped_tests: &[
            "a_damaged_byte_is_refused",
            "a_log_cut_anywhere",
            "also_where_nothing_ever_waits",
        ],
    },
];

/// Environment of the tests: fast and deterministic.
const VARIABLES: &[(&str, &str)] = &[
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("PROPTEST_CASES", "64"),
    ("PROPTEST_RNG_SEED", "1"),
    // Only the failure counts, and a stored one would catch later mutants, too.
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true"),
    // Damaged data directories in the store's tests.
    ("AIRLOCK_SEEDS", "0..3"),
];

/// The outcomes of the mutants of one shard.
#[derive(Debug, Default, PartialEq)]
struct ShardOutcome {
    sums: BTreeMap<&'static str, u64>,
    survivors: Vec<SurvivingMutant>,
}

/// A mutant that no test detected.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SurvivingMutant {
    /// Its name in cargo-mutants, without line and column.
    mutant: String,
    line: u64,
    code: String,
}

/// Runs shards until all have run, the least tested crate first, and prints the sums.
pub(super) fn run(bound: SliceBound) -> Result<()> {
    if bound.size.is_some() {
        bail!("a slice of mutants is a shard of one crate; its size cannot be chosen");
    }
    install()?;
    let records = SliceRecords::for_campaign("mutants")?;
    for _ in 0..bound.slices_max {
        let Some((tested, shard)) = next(&records.read()?) else { break };
        print_line(&format!("-- {} shard {shard} of {}", tested.name, tested.n_shards));
        run_shard(&records, tested, shard)?;
    }
    report()
}

fn install() -> Result<()> {
    if CargoCall::new(&["mutants", "--version"]).read().is_ok() {
        return Ok(());
    }
    CargoCall::new(&["install", "--locked", "cargo-mutants"]).run()
}

/// The first shard that has not run, of the crate of which the smallest part has.
fn next(slices: &[Value]) -> Option<(&'static MutatedCrate, u64)> {
    let has_run = |tested: &MutatedCrate, shard: u64| {
        of_crate(slices, tested).iter().any(|slice| slice["shard"] == shard)
    };
    let first = |tested: &'static MutatedCrate| {
        let shard = (0..tested.n_shards).find(|shard| !has_run(tested, *shard))?;
        Some((tested, shard))
    };
    CRATES.iter().filter_map(first).min_by_key(|(tested, shard)| shard * 1_000 / tested.n_shards)
}

/// The records of a crate that are about shards of the present size.
fn of_crate<'a>(slices: &'a [Value], tested: &MutatedCrate) -> Vec<&'a Value> {
    let is_of =
        |slice: &&Value| slice["crate"] == tested.name && slice["n_shards"] == tested.n_shards;
    slices.iter().filter(is_of).collect()
}

fn run_shard(records: &SliceRecords, tested: &MutatedCrate, shard: u64) -> Result<()> {
    let output = records.file(tested.name);
    // Output of an interrupted call.
    let _ = fs::remove_dir_all(&output);
    fs::create_dir_all(&output).context("create a folder for the outcomes")?;
    let began = Instant::now();
    let mut cargo = CargoCall::new(&["mutants", "--package", tested.name, "--shard"])
        .arg(&format!("{shard}/{}", tested.n_shards))
        .arg("--output")
        .arg(&output.display().to_string())
        .env("CARGO_TARGET_DIR", records.file("target").display().to_string());
    for (name, value) in VARIABLES {
        cargo = cargo.env(name, *value);
    }
    if !tested.skipped_tests.is_empty() {
        cargo = cargo.arg("--").arg("--");
        for test in tested.skipped_tests {
            cargo = cargo.arg("--skip").arg(test);
        }
    }
    // It fails where a mutant survives; its file has the outcomes.
    let ended = cargo.run();
    let text = fs::read_to_string(output.join("mutants.out/outcomes.json"));
    let outcomes = match text {
        Ok(text) => serde_json::from_str(&text).context("read the outcomes")?,
        Err(_) => return ended.and_then(|()| bail!("cargo mutants wrote no outcomes")),
    };
    let ShardOutcome { sums, survivors } = read_outcomes(&outcomes)?;
    let survivors: Vec<_> = survivors
        .into_iter()
        .map(|SurvivingMutant { mutant, line, code }| json!({ "mutant": mutant, "line": line, "code": code }))
        .collect();
    records.append(Map::from_iter([
        ("crate".to_owned(), json!(tested.name)),
        ("shard".to_owned(), json!(shard)),
        ("n_shards".to_owned(), json!(tested.n_shards)),
        ("seconds".to_owned(), json!(began.elapsed().as_secs())),
        ("sums".to_owned(), json!(sums)),
        ("survivors".to_owned(), json!(survivors)),
    ]))
}

/// Reads the sums and survivors from the output of cargo-mutants. Fails where the shard was interrupted.
fn read_outcomes(outcomes: &Value) -> Result<ShardOutcome> {
    let mut found = ShardOutcome::default();
    let mut n_found = 0;
    for outcome in outcomes["outcomes"].as_array().context("outcomes is no list")? {
        let mutant = &outcome["scenario"]["Mutant"];
        let summary = outcome["summary"].as_str().unwrap_or_default();
        if mutant.is_null() {
            if summary != "Success" {
                bail!("the tests fail without a mutant; see target/soak/mutants");
            }
            continue;
        }
        let what = match summary {
            "CaughtMutant" => "caught",
            "MissedMutant" => "missed",
            "Timeout" => "timeout",
            "Unviable" => "unviable",
            other => bail!("cargo mutants says {other} of a mutant"),
        };
        n_found += 1;
        *found.sums.entry(what).or_default() += 1;
        if what == "missed" {
            found.survivors.push(survivor(mutant)?);
        }
    }
    if outcomes["total_mutants"] != n_found {
        bail!("{n_found} of {} mutants were tested: interrupted?", outcomes["total_mutants"]);
    }
    Ok(found)
}

fn survivor(mutant: &Value) -> Result<SurvivingMutant> {
    let (file, name) = (mutant["file"].as_str(), mutant["name"].as_str());
    let (file, name) = file.zip(name).context("a mutant has no name")?;
    let line = mutant["span"]["start"]["line"].as_u64().context("a mutant has no line")?;
    let what = name.split_once(": ").map_or(name, |(_, what)| what);
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    let idx = usize::try_from(line.saturating_sub(1))?;
    let code = text.lines().nth(idx).unwrap_or_default().trim().to_owned();
    Ok(SurvivingMutant { mutant: format!("{file}: {what}"), line, code })
}

/// Prints each crate's percentage of caught mutants, and every survivor with its accepted reason, if there is one.
pub(super) fn report() -> Result<()> {
    let slices = SliceRecords::for_campaign("mutants")?.read()?;
    let all: Vec<_> = slices.iter().collect();
    print_line(&format!("mutants: {} slices; {}", all.len(), date_and_machines(&all)));
    for tested in CRATES {
        print_line(&format!("  {}", format_share(tested, &of_crate(&slices, tested))));
    }
    let accepted = accepted::read()?;
    for tested in CRATES {
        for survivor in survivors(&of_crate(&slices, tested)) {
            print_line(&format!("  {}", with_reason(&survivor, &accepted)));
        }
    }
    Ok(())
}

fn format_share(tested: &MutatedCrate, slices: &[&Value]) -> String {
    let sums = sum(slices.iter().copied());
    let number = |what: &str| sums.get(what).and_then(Value::as_u64).unwrap_or(0);
    let [caught, timeout, missed, unviable] =
        ["caught", "timeout", "missed", "unviable"].map(number);
    let viable = caught + timeout + missed;
    let percent = ((caught + timeout) * 100).checked_div(viable);
    let share = match percent {
        None => "nothing tested".to_owned(),
        Some(percent) if percent < tested.caught_percent_min => {
            format!("{percent} % caught, BELOW the target of {} %", tested.caught_percent_min)
        }
        Some(percent) => format!("{percent} % caught"),
    };
    format!(
        "{:<10} {:>2} of {:>2} shards: {viable:>4} viable, {caught:>4} caught, {timeout:>2} timeouts, \
         {missed:>3} missed, {unviable:>3} unviable: {share}",
        tested.name,
        slices.len(),
        tested.n_shards,
    )
}

fn survivors(slices: &[&Value]) -> Vec<SurvivingMutant> {
    let listed = slices.iter().filter_map(|slice| slice["survivors"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |value: &Value| SurvivingMutant {
        mutant: text(&value["mutant"]),
        line: value["line"].as_u64().unwrap_or(0),
        code: text(&value["code"]),
    };
    listed.map(read).collect()
}

fn with_reason(survivor: &SurvivingMutant, accepted: &[AcceptedMutant]) -> String {
    let SurvivingMutant { mutant, line, code } = survivor;
    let same = |known: &&AcceptedMutant| known.mutant == *mutant && known.code == *code;
    match accepted.iter().find(same) {
        Some(known) => format!("accepted {mutant} (line {line}): {}", known.reason),
        None => format!("SURVIVED {mutant} (line {line}): {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(summary: &str, line: u64) -> Value {
        let file = "xtask/src/soak/mutants.rs";
        let name = format!("{file}:{line}:5: replace a -> b with c");
        let span = json!({ "start": { "line": line, "column": 5 } });
        json!({ "summary": summary, "scenario": { "Mutant": { "name": name, "file": file, "span": span } } })
    }

    fn baseline(summary: &str) -> Value {
        json!({ "scenario": "Baseline", "summary": summary })
    }

    fn written(outcomes: &[Value], total: u64) -> Value {
        json!({ "outcomes": outcomes, "total_mutants": total })
    }

    #[test]
    fn outcomes_become_sums_and_survivors() {
        let outcomes = [
            baseline("Success"),
            outcome("CaughtMutant", 1),
            outcome("MissedMutant", 1),
            outcome("Timeout", 1),
            outcome("Unviable", 1),
            outcome("CaughtMutant", 2),
        ];
        let found = read_outcomes(&written(&outcomes, 5)).unwrap();
        let survivor = SurvivingMutant {
            mutant: "xtask/src/soak/mutants.rs: replace a -> b with c".into(),
            line: 1,
            code: "//! Mutants: cargo-mutants changes one thing in a crate, and the crate's own tests should fail.".into(),
        };
        let sums = [("caught", 2), ("missed", 1), ("timeout", 1), ("unviable", 1)].into();
        assert_eq!(found, ShardOutcome { sums, survivors: vec![survivor] });
        let why = read_outcomes(&written(&outcomes, 6)).unwrap_err().to_string();
        assert_eq!(why, "5 of 6 mutants were tested: interrupted?");
        let why = read_outcomes(&written(&[baseline("Failure")], 0)).unwrap_err().to_string();
        assert_eq!(why, "the tests fail without a mutant; see target/soak/mutants");
    }

    fn slice(tested: &MutatedCrate, shard: u64, caught: u64, missed: u64) -> Value {
        let sums = json!({ "caught": caught, "missed": missed, "unviable": 1 });
        json!({ "crate": tested.name, "shard": shard, "n_shards": tested.n_shards, "sums": sums })
    }

    #[test]
    fn the_least_tested_crate_comes_first_and_ends_with_its_last_shard() {
        let chosen = |slices: &[Value]| next(slices).map(|(tested, shard)| (tested.name, shard));
        assert_eq!(chosen(&[]), Some(("lifecycle", 0)));
        let mut slices = vec![slice(&CRATES[0], 0, 1, 0)];
        assert_eq!(chosen(&slices), Some(("schema", 0)));
        slices.extend(CRATES.iter().map(|tested| slice(tested, 0, 1, 0)));
        assert_eq!(chosen(&slices), Some(("store", 1)), "a 24th is less than a 12th");
        let other_size = json!({ "crate": "store", "shard": 1, "n_shards": 3 });
        slices.push(other_size);
        assert_eq!(chosen(&slices), Some(("store", 1)));
        for tested in CRATES {
            slices.extend((0..tested.n_shards).map(|shard| slice(tested, shard, 1, 0)));
        }
        assert_eq!(chosen(&slices), None);
    }

    #[test]
    fn the_share_is_of_viable_mutants_and_a_missed_target_is_shown() {
        let tested = &CRATES[0];
        let line = |caught, missed| format_share(tested, &[&slice(tested, 0, caught, missed)]);
        let expected = "lifecycle   1 of 12 shards:   10 viable,    9 caught,  0 timeouts,   1 missed,   1 unviable: 90 % caught";
        assert_eq!(line(9, 1), expected);
        assert!(line(8, 2).ends_with("80 % caught, BELOW the target of 90 %"), "{}", line(8, 2));
        assert!(format_share(tested, &[]).ends_with("nothing tested"));
    }

    #[test]
    fn a_survivor_is_accepted_on_its_line_of_code_only() {
        let survivor =
            |code: &str| SurvivingMutant { mutant: "a.rs: x".into(), line: 7, code: code.into() };
        let accepted = AcceptedMutant {
            mutant: "a.rs: x".into(),
            code: "a + b".into(),
            reason: "It is the same.".into(),
        };
        let told = |code| with_reason(&survivor(code), std::slice::from_ref(&accepted));
        assert_eq!(told("a + b"), "accepted a.rs: x (line 7): It is the same.");
        assert_eq!(told("a + c"), "SURVIVED a.rs: x (line 7): a + c");
    }
}
