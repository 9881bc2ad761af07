//! Runs tests at full size: more cases, more rounds, more of everything than a daily run can wait for.
//!
//! They are the same test binaries. A test that has a full size reads `AIRLOCK_SOAK` to choose it. A campaign is too
//! long for one call: it runs in slices, and each slice is recorded below `target/soak`.

mod accepted;
mod fuzz;
mod machine;
mod mutants;
mod records;
mod slices;

use crate::cargo::Cargo;
use crate::packages;
use crate::print::say;
use anyhow::{Result, bail};
use slices::{Bound, Campaign, Cases, TestBinary};

/// Tests that have a full size.
struct Soak {
    /// What to type.
    name: &'static str,
    /// What it shows.
    about: &'static str,
    work: Work,
}

/// What a soak consists of.
enum Work {
    /// Tests that run at full size in one call.
    Tests {
        package: &'static str,
        /// A part of their names.
        filter: &'static str,
    },
    /// A test that runs a range of its cases per call.
    Slices(Campaign),
    /// The fuzz targets, one after the other.
    Fuzz,
    /// Mutants of crates, one shard after the other.
    Mutants,
}

/// Every soak there is. One that names no test is an error, so that a renamed test is noticed.
const SOAKS: &[Soak] = &[
    Soak {
        name: "lines",
        about: "lines come out the same however the bytes arrive",
        work: Work::Tests { package: "protocols", filter: "lines_do_not_depend" },
    },
    Soak {
        name: "rules",
        about: "whatever anybody asks for, in whatever order, the rules hold",
        work: Work::Tests { package: "lifecycle", filter: "" },
    },
    Soak {
        name: "torn-log",
        about: "a log cut at every byte opens to a prefix of whole appends",
        work: Work::Tests { package: "store", filter: "a_log_cut_anywhere" },
    },
    Soak {
        name: "corrupt",
        about: "2,000 damaged data directories and power cuts: damage is reported, power cuts are not",
        work: Work::Slices(Campaign {
            package: "store",
            binary: TestBinary::Library,
            filter: "corrupt_files_are_reported",
            unit: "cases",
            cases: Cases::Number(2_000),
            slice: 100,
        }),
    },
    Soak {
        name: "corrupt-server",
        about: "damaged data directories before the real server: refused, or every execution is equal",
        work: Work::Tests {
            package: "airlock",
            filter: "a_damaged_directory_is_refused_or_unharmed",
        },
    },
    Soak {
        name: "neighbours",
        about: "a quiet caller beside 400 sleepers, loops, floods, slow readers and an attacker",
        work: Work::Slices(Campaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "a_quiet_caller_is_served",
            unit: "neighbours",
            cases: Cases::Number(7),
            slice: 1,
        }),
    },
    Soak {
        name: "openapi",
        about: "2,649 descriptions that others wrote are imported; what is not is explained",
        work: Work::Tests { package: "tools", filter: "descriptions_that_others_wrote" },
    },
    Soak {
        name: "kill",
        about: "2,000 stops at random moments lose nothing and write nothing twice",
        work: Work::Slices(Campaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "a_server_stopped_at_any_moment",
            unit: "stops",
            cases: Cases::Number(2_000),
            slice: 50,
        }),
    },
    Soak {
        name: "attacks",
        about: "every hostile program ends as expected through every door, and leaks nothing",
        work: Work::Slices(Campaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "hostile_programs_end_as_expected",
            unit: "programs",
            cases: Cases::LinesBelow("crates/airlock/tests/attacks"),
            slice: 50,
        }),
    },
    Soak {
        name: "fuzz",
        about: "no bytes make a decoder panic; each target for 10 minutes and 1,000,000 executions",
        work: Work::Fuzz,
    },
    Soak {
        name: "mutants",
        about: "what cargo-mutants changes in a crate is noticed by the crate's own tests",
        work: Work::Mutants,
    },
    Soak {
        name: "many",
        about: "10,000 paused programs survive a restart, cost nothing and are all answered",
        work: Work::Tests { package: "airlock", filter: "paused_programs_survive" },
    },
    Soak {
        name: "leaks",
        about: "5,000 executions leave no process, descriptor or file",
        work: Work::Tests { package: "airlock", filter: "no_process_descriptor_or_file" },
    },
    Soak {
        name: "processes",
        about: "10,000 short processes and 200 terminals leave nothing behind",
        work: Work::Tests { package: "processes", filter: "many" },
    },
    Soak {
        name: "exec-server",
        about: "every recorded scenario, also those that wait for a limit",
        work: Work::Tests { package: "airlock", filter: "every_scenario_ends_as_recorded" },
    },
    Soak {
        name: "exec-server-resume",
        about: "a client cut off again and again in 100 MB of output loses no byte",
        work: Work::Tests { package: "airlock", filter: "a_reconnect_in_the_middle_of_output" },
    },
    Soak {
        name: "exec-server-many",
        about: "10,000 starts and 200 terminals of one client leave nothing behind",
        work: Work::Tests { package: "airlock", filter: "a_client_of_many_processes" },
    },
];

/// Cases of a property test that does not set its own number; a daily run has 256.
const PROPERTY_CASES: &str = "50000";

/// What a call of `cargo xtask soak` asks for.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Options {
    /// Run at most this many slices of each campaign now; the next call continues.
    #[arg(long)]
    slices: Option<u64>,
    /// Cases in a slice, or seconds of a fuzz target; not for mutants.
    #[arg(long, value_name = "N")]
    slice: Option<u64>,
    /// Only print the sums of the slices that have run.
    #[arg(long)]
    report: bool,
    /// Run the tests in release mode. A campaign's release slices are counted separately. Fuzz targets are always optimised.
    #[arg(long)]
    release: bool,
}

/// How the tests are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Profile {
    Debug,
    Release,
}

impl Profile {
    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &[],
            Self::Release => &["--release"],
        }
    }

    /// Where a campaign's slices are recorded: figures of the two profiles must not be mixed.
    fn records_name(self, campaign: &str) -> String {
        match self {
            Self::Debug => campaign.to_owned(),
            Self::Release => format!("{campaign}-release"),
        }
    }
}

/// Runs one soak or all of them.
pub(crate) fn run(name: Option<&str>, options: Options) -> Result<()> {
    let chosen = chosen(SOAKS, name)?;
    let profile = if options.release { Profile::Release } else { Profile::Debug };
    if options.report {
        return chosen.into_iter().try_for_each(|soak| report(soak, profile));
    }
    let slices_max = options.slices.unwrap_or(u64::MAX);
    let bound = Bound { slices_max, size: options.slice, profile };
    for soak in chosen {
        say(&format!("\n== {}: {}", soak.name, soak.about));
        match &soak.work {
            Work::Tests { package, filter } => {
                packages::run()?;
                let tests = tests(package, filter, profile);
                require_test(package, &tests)?;
                tests.arg("--nocapture").run()?;
            }
            Work::Slices(campaign) => campaign.run(soak.name, bound)?,
            Work::Fuzz => fuzz::run(bound)?,
            Work::Mutants => mutants::run(bound)?,
        }
    }
    Ok(())
}

fn report(soak: &Soak, profile: Profile) -> Result<()> {
    match &soak.work {
        Work::Tests { .. } => Ok(()),
        Work::Slices(campaign) => campaign.report(soak.name, profile),
        Work::Fuzz => fuzz::report(),
        Work::Mutants => mutants::report(),
    }
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

fn tests(package: &str, filter: &str, profile: Profile) -> Cargo {
    let start = ["test", "--package", package];
    Cargo::new(&[&start, profile.flags(), &["--tests", "--", filter]].concat())
        .env("AIRLOCK_SOAK", "1")
        .env("PROPTEST_CASES", PROPERTY_CASES)
}

/// Fails where the filter names no test, so that a renamed test is noticed.
fn require_test(package: &str, tests: &Cargo) -> Result<()> {
    if count_tests(&tests.clone().arg("--list").read()?) == 0 {
        bail!("no test in {package} has that name: {}", tests.shown());
    }
    Ok(())
}

fn count_tests(listing: &str) -> usize {
    listing.lines().filter(|line| line.ends_with(": test")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Soak] = &[
        Soak {
            name: "replay",
            about: "",
            work: Work::Tests { package: "runner", filter: "recordings" },
        },
        Soak { name: "fuzz", about: "", work: Work::Fuzz },
    ];

    fn names(name: Option<&str>) -> Result<Vec<&'static str>> {
        Ok(chosen(KNOWN, name)?.iter().map(|soak| soak.name).collect())
    }

    #[test]
    fn one_by_name_or_all() {
        assert_eq!(names(None).unwrap(), ["replay", "fuzz"]);
        assert_eq!(names(Some("fuzz")).unwrap(), ["fuzz"]);
        let why = names(Some("crush")).unwrap_err().to_string();
        assert_eq!(why, "no soak crush; there are: replay, fuzz");
    }

    #[test]
    fn the_full_size_is_asked_for() {
        let shown = tests("runner", "recordings", Profile::Debug).shown();
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
