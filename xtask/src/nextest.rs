//! Runs the tests with cargo-nextest, each in its own process, configured by `.config/nextest.toml`.

use crate::cargo::{CargoCall, root};
use crate::print::print_line;
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// The report that nextest writes.
const REPORT: &str = "target/nextest/default/junit.xml";

/// The variable with the number of tests that nextest runs concurrently.
const THREADS: &str = "NEXTEST_TEST_THREADS";

/// How many of the slowest tests are shown.
const SLOWEST_SHOWN: usize = 10;

/// The marker that a test prints when it passes because something is missing on this machine.
const SKIPPED: &str = "SKIPPED";

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
struct TestReport {
    /// The package and the binary.
    binary: String,
    name: String,
    took: Duration,
    /// The checks that it skipped, with the reasons.
    skipped: Vec<String>,
}

/// Installs nextest if it is missing.
pub(crate) fn install() -> Result<()> {
    if CargoCall::new(&["nextest", "--version"]).read().is_ok() {
        return Ok(());
    }
    CargoCall::new(&["install", "--locked", "cargo-nextest"]).run()
}

/// Runs all tests, and prints the skipped checks and the slowest tests.
pub(crate) fn run() -> Result<()> {
    install()?;
    let report = root().join(REPORT);
    // The report of an earlier run.
    let _ = fs::remove_file(&report);
    let outcome = CargoCall::new(&["nextest", "run", "--workspace", "--no-fail-fast"])
        .env(THREADS, threads())
        .run();
    // It is missing where the tests did not compile.
    if let Ok(text) = fs::read_to_string(&report) {
        let tests = read(&text).context("read nextest's report")?;
        summary(&tests).iter().for_each(|line| print_line(line));
    }
    outcome
}

/// Most tests wait for a server, a browser or a peer: two for each processor keep it busy.
fn threads() -> String {
    std::env::var(THREADS).unwrap_or_else(|_| {
        let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (2 * n_processors).to_string()
    })
}

fn summary(tests: &[TestReport]) -> Vec<String> {
    let mut lines = vec![];
    for test in tests {
        lines.extend(test.skipped.iter().map(|why| format!("{}: {why}", test.name)));
    }
    let mut slowest: Vec<_> = tests.iter().collect();
    slowest.sort_by_key(|test| std::cmp::Reverse(test.took));
    slowest.truncate(SLOWEST_SHOWN);
    lines.push(format!("\nThe {} slowest of {} tests:", slowest.len(), tests.len()));
    for TestReport { binary, name, took, .. } in slowest {
        lines.push(format!("{:>7.1} s  {binary} {name}", took.as_secs_f64()));
    }
    lines
}

/// Parses a report in the JUnit format, as far as nextest uses it.
fn read(report: &str) -> Result<Vec<TestReport>> {
    report.split("<testcase ").skip(1).map(read_test).collect()
}

/// Parses the text after the name of a test's element.
fn read_test(element: &str) -> Result<TestReport> {
    let (head, body) = element.split_once('>').context("an element does not end")?;
    let head = format!(" {head}");
    let attribute = |name: &str| {
        let (_, behind) = head.split_once(&format!(" {name}=\"")).context("a name is missing")?;
        let (value, _) = behind.split_once('"').context("an attribute does not end")?;
        anyhow::Ok(unescaped(value))
    };
    let seconds: f64 = attribute("time")?.parse().context("a time is no number")?;
    let is_skip = |line: &&str| line.contains(SKIPPED);
    Ok(TestReport {
        binary: attribute("classname")?,
        name: attribute("name")?,
        took: Duration::from_secs_f64(seconds),
        skipped: body.lines().filter(is_skip).map(skip_text).collect(),
    })
}

/// The printed text of a line, without tags before and after it.
fn skip_text(line: &str) -> String {
    let printed = &line[line.find(SKIPPED).unwrap_or(0)..];
    unescaped(printed.split('<').next().unwrap_or_default())
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" failures="0" errors="0" time="2.5">
    <testsuite name="airlock::tests" tests="2" disabled="0" errors="0" failures="0">
        <testcase name="mcp::a_client_calls" classname="airlock::tests" timestamp="2026-11-19T20:00:00.000+00:00" time="0.250">
            <system-out>SKIPPED, NOT PASSED: there is no &quot;npm&quot;
and more</system-out>
        </testcase>
        <testcase name="kill::stops" classname="airlock::tests" timestamp="2026-11-19T20:00:00.000+00:00" time="2.125">
        </testcase>
    </testsuite>
</testsuites>
"#;

    #[test]
    fn the_summary_shows_what_was_left_out_and_what_took_longest() {
        let expected = [
            "mcp::a_client_calls: SKIPPED, NOT PASSED: there is no \"npm\"",
            "\nThe 2 slowest of 2 tests:",
            "    2.1 s  airlock::tests kill::stops",
            "    0.2 s  airlock::tests mcp::a_client_calls",
        ];
        assert_eq!(summary(&read(REPORT).unwrap()), expected);
    }

    #[test]
    fn a_report_that_is_cut_off_is_noticed() {
        let cut = &REPORT[..REPORT.find("classname").unwrap()];
        assert!(read(cut).is_err());
    }
}
