//! `kill -9`: everything that was acknowledged is present afterwards.

use super::*;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

const DIR: &str = "AIRLOCK_STORE_KILL_TEST_DIR";
const WRITERS: u128 = 4;

/// The names of executions that end as they begin follow this one's.
const WHOLE: u128 = 1_000;

/// Not a test by itself: the child's half of the test below; does nothing when run alone.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn child_appends_and_reports_until_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = SqliteStore::open(Path::new(&dir)).unwrap();
    for seq in 1.. {
        for n in 0..WRITERS {
            let strength = if n % 2 == 0 { WriteStrength::Written } else { WriteStrength::Synced };
            let entries = vec![line(seq * 2 - 1, "a"), line(seq * 2, "b")];
            let append = JournalAppend { strength, ..append(n, entries, running()) };
            store.append(append).await.unwrap();
            println!("\nwritten {n} {}", seq * 2);
            std::io::stdout().flush().unwrap();
        }
        let entries = vec![line(1, "a"), end(2)];
        let finished = standing(ExecutionPhase::Finished, "ann", None);
        store.append(append(WHOLE + u128::from(seq), entries, finished)).await.unwrap();
        println!("\nwhole {seq}");
        std::io::stdout().flush().unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that owns its child, kills and reaps it")]
fn start(dir: &Path) -> Child {
    let name = concat!(module_path!(), "::child_appends_and_reports_until_killed");
    let name = name.split_once("::").unwrap().1;
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn what_was_reported_before_a_kill_is_there_after_it() {
    let temp = tempfile::tempdir().unwrap();
    let mut reported = [0_u64; 4];
    for n_reports in [1, 50, 400] {
        let dir = temp.path().join(n_reports.to_string());
        let mut child = start(&dir);
        let mut reports =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        reported.fill(0);
        let mut n_whole = 0_u128;
        let mut hear = |report: String| {
            if let Some(n) = report.strip_prefix("whole ") {
                n_whole = n.parse().ok()?;
                return Some(());
            }
            let mut words = report.strip_prefix("written ")?.split(' ');
            let n: usize = words.next()?.parse().ok()?;
            reported[n] = words.next()?.parse().ok()?;
            Some(())
        };
        assert_eq!(reports.by_ref().filter_map(&mut hear).take(n_reports).count(), n_reports);
        child.kill().unwrap();
        // Reports that it wrote before its death count too.
        reports.filter_map(hear).for_each(drop);
        child.wait().unwrap();

        let store = SqliteStore::open(&dir).unwrap();
        for (n, reported) in reported.iter().enumerate() {
            let entries = all(&store, n as u128).await;
            assert!(entries.len() as u64 >= *reported, "{n}: {} of {reported}", entries.len());
            assert_eq!(entries.len() % 2, 0, "half an append");
        }
        for n in 1..=n_whole {
            assert_eq!(all(&store, WHOLE + n).await.len(), 2, "{n} of {n_whole}");
        }
        store.close().await;
    }
}
