//! Runs tests at full size: more cases, more rounds, more of everything than a daily run can wait for.
//!
//! They are the same test binaries. A test that has a full size reads `AIRLOCK_SOAK` to choose it.

use crate::cargo::Cargo;
use crate::packages;
use crate::print::say;
use anyhow::{Result, bail};

/// Tests that have a full size.
struct Soak {
    /// What to type.
    name: &'static str,
    /// What it shows.
    about: &'static str,
    /// Where the tests live.
    package: &'static str,
    /// Which of them; a part of their names.
    filter: &'static str,
}

/// Every soak there is. One that names no test is an error, so that a renamed test is noticed.
const SOAKS: &[Soak] = &[
    Soak {
        name: "lines",
        about: "lines come out the same however the bytes arrive",
        package: "protocols",
        filter: "lines_do_not_depend",
    },
    Soak {
        name: "rules",
        about: "whatever anybody asks for, in whatever order, the rules hold",
        package: "lifecycle",
        filter: "",
    },
    Soak {
        name: "torn-log",
        about: "a log cut at every byte opens to a prefix of whole appends",
        package: "store",
        filter: "a_log_cut_anywhere",
    },
    Soak {
        name: "corrupt",
        about: "2,000 damaged data directories and power cuts: damage is reported, power cuts are not",
        package: "store",
        filter: "corrupt_files_are_reported",
    },
    Soak {
        name: "corrupt-server",
        about: "damaged data directories before the real server: refused, or every execution is equal",
        package: "airlock",
        filter: "a_damaged_directory_is_refused_or_unharmed",
    },
    Soak {
        name: "openapi",
        about: "2,649 descriptions that others wrote are imported; what is not is explained",
        package: "tools",
        filter: "descriptions_that_others_wrote",
    },
    Soak {
        name: "crash",
        about: "500 kills at random moments lose and double nothing",
        package: "airlock",
        filter: "a_server_killed_at_any_moment",
    },
    Soak {
        name: "crash-http",
        about: "500 kills lose and double no HTTP call",
        package: "airlock",
        filter: "http_calls_of_a_killed_server",
    },
    Soak {
        name: "many",
        about: "10,000 paused programs survive a restart, cost nothing and are all answered",
        package: "airlock",
        filter: "paused_programs_survive",
    },
    Soak {
        name: "neighbours",
        about: "a quiet caller beside 400 sleepers, loops, floods, slow readers and an attacker",
        package: "airlock",
        filter: "a_quiet_caller_is_served",
    },
    Soak {
        name: "leaks",
        about: "5,000 executions leave no process, descriptor or file",
        package: "airlock",
        filter: "no_process_descriptor_or_file",
    },
    Soak {
        name: "processes",
        about: "10,000 short processes and 200 terminals leave nothing behind",
        package: "processes",
        filter: "many",
    },
    Soak {
        name: "exec-server",
        about: "every recorded scenario, also those that wait for a limit",
        package: "airlock",
        filter: "every_scenario_ends_as_recorded",
    },
    Soak {
        name: "exec-server-resume",
        about: "a client cut off again and again in 100 MB of output loses no byte",
        package: "airlock",
        filter: "a_reconnect_in_the_middle_of_output",
    },
    Soak {
        name: "exec-server-many",
        about: "10,000 starts and 200 terminals of one client leave nothing behind",
        package: "airlock",
        filter: "a_client_of_many_processes",
    },
];

/// Cases of a property test that does not set its own number; a daily run has 256.
const PROPERTY_CASES: &str = "50000";

/// Runs one soak or all of them.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    let chosen = chosen(SOAKS, name)?;
    packages::run()?;
    for soak in chosen {
        say(&format!("\n== {}: {}", soak.name, soak.about));
        if count_tests(&tests(soak).arg("--list").read()?) == 0 {
            bail!("no test in {} has \"{}\" in its name", soak.package, soak.filter);
        }
        tests(soak).arg("--nocapture").run()?;
    }
    Ok(())
}

fn chosen<'a>(soaks: &'a [Soak], name: Option<&str>) -> Result<Vec<&'a Soak>> {
    let known = || soaks.iter().map(|soak| soak.name).collect::<Vec<_>>().join(", ");
    let meant: Vec<_> =
        soaks.iter().filter(|soak| name.is_none_or(|name| soak.name == name)).collect();
    match (meant.is_empty(), name) {
        (true, Some(name)) => bail!("no soak {name}; there are: {}", known()),
        (_, None) | (false, _) => Ok(meant),
    }
}

fn tests(soak: &Soak) -> Cargo {
    Cargo::new(&["test", "--package", soak.package, "--tests", "--", soak.filter])
        .env("AIRLOCK_SOAK", "1")
        .env("PROPTEST_CASES", PROPERTY_CASES)
}

fn count_tests(listing: &str) -> usize {
    listing.lines().filter(|line| line.ends_with(": test")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Soak] = &[
        Soak { name: "replay", about: "", package: "runner", filter: "recordings" },
        Soak { name: "crash", about: "", package: "engine", filter: "killed" },
    ];

    fn names(name: Option<&str>) -> Result<Vec<&'static str>> {
        Ok(chosen(KNOWN, name)?.iter().map(|soak| soak.name).collect())
    }

    #[test]
    fn one_by_name_or_all() {
        assert_eq!(names(None).unwrap(), ["replay", "crash"]);
        assert_eq!(names(Some("crash")).unwrap(), ["crash"]);
        let why = names(Some("crush")).unwrap_err().to_string();
        assert_eq!(why, "no soak crush; there are: replay, crash");
    }

    #[test]
    fn the_full_size_is_asked_for() {
        let shown = tests(&KNOWN[0]).shown();
        assert_eq!(
            shown,
            "AIRLOCK_SOAK=1 PROPTEST_CASES=50000 cargo test --package runner --tests -- recordings"
        );
    }

    #[test]
    fn only_tests_are_counted_in_a_listing() {
        assert_eq!(count_tests("a::b: test\nc: test\n\n2 tests, 0 benchmarks\n"), 2);
        assert_eq!(count_tests("0 tests, 0 benchmarks\n"), 0);
    }
}
