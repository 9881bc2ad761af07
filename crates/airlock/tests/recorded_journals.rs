//! Journals that were recorded with each version of the guest's globals replay to the same calls, output and end.
//!
//! `tests/journals/programs` contains the programs, `tests/journals/prelude-N` their journals as version N recorded
//! them. `cargo xtask bless -p airlock` records the journals that are missing for the present version. It never
//! replaces a journal: a journal that no longer replays means that a released version has changed, and that stored
//! executions would fail after an upgrade.

use crate::engine_fixture::House;
use engine::replay;
use lifecycle::{Entry, Event, ExecutionLimits, ExecutionOutcome, ExecutionPhase};
use protocols::execbox::PRELUDE_VERSION;
use sandbox::Sandbox;
use std::fs;
use std::path::{Path, PathBuf};

/// More entries than any recorded journal has.
const ENTRIES_MAX: usize = 10_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals").join(name)
}

/// The files of a folder below `tests/journals`, in the order of their names.
fn files(name: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder(name)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn journal_of(program: &Path, version: u32) -> PathBuf {
    let name = program.file_stem().unwrap().to_str().unwrap();
    folder(&format!("prelude-{version}")).join(format!("{name}.jsonl"))
}

/// Runs a program with the present version, accepts all its questions, and returns its journal.
async fn record(program: &Path) -> Vec<Entry> {
    let data = tempfile::tempdir().unwrap();
    let house = House::open(data.path(), |_| {}).await;
    let source = fs::read_to_string(program).unwrap();
    let execution = house.submit(&source, ExecutionLimits::default()).await;
    if source.contains("demo.ask") {
        let question = house.question(execution).await;
        house.accept(&question).await;
    }
    house.engine.outcome(execution).await.unwrap();
    let entries = house.engine.entries(execution, lifecycle::Seq(0), ENTRIES_MAX).await.unwrap();
    house.close().await;
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_has_a_journal_of_the_present_version() {
    fs::create_dir_all(folder(&format!("prelude-{PRELUDE_VERSION}"))).unwrap();
    for program in files("programs") {
        let journal = journal_of(&program, PRELUDE_VERSION);
        if !journal.exists() && std::env::var_os("AIRLOCK_BLESS").is_some() {
            let entries = record(&program).await;
            let lines: String =
                entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
            fs::write(&journal, lines).unwrap();
        }
        assert!(journal.exists(), "no {}: run `cargo xtask bless -p airlock`", journal.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn journals_of_every_version_replay() {
    let program = sandbox::RunnerProgramPath::At(env!("CARGO_BIN_EXE_airlock").into());
    let config = sandbox::Config { program, warm_runners: 1, ..sandbox::Config::default() };
    let sandbox = Sandbox::start(config).await.unwrap();
    for version in 1..=PRELUDE_VERSION {
        for journal in files(&format!("prelude-{version}")) {
            let text = fs::read_to_string(&journal).unwrap();
            let entries: Vec<Entry> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let replayed = replay(&sandbox, &entries, None).await.unwrap();
            let shown = journal.display();
            assert_eq!(replayed.strayed, None, "{shown}");
            assert_eq!(replayed.state.phase, ExecutionPhase::Finished, "{shown}");
            assert_eq!(
                replayed.state.prepared.as_ref().map(|prepared| prepared.prelude),
                Some(version),
                "{shown}"
            );
            let logged = entries.iter().filter(|entry| matches!(entry.event, Event::Logged { .. }));
            assert_eq!(replayed.printed.len(), logged.count(), "{shown}");
            match (&replayed.ended, &entries.last().unwrap().event) {
                (
                    Some(Ok(value)),
                    Event::Finished { outcome: ExecutionOutcome::Completed { value: was }, .. },
                ) => {
                    assert_eq!(value, was, "{shown}");
                }
                (
                    Some(Err(failure)),
                    Event::Finished { outcome: ExecutionOutcome::Failed(was), .. },
                ) => {
                    assert_eq!(failure, was, "{shown}");
                }
                (ended, was) => panic!("{shown}: {ended:?} instead of {was:?}"),
            }
        }
    }
    sandbox.shutdown().await;
}
