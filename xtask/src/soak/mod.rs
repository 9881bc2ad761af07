//! Runs tests at full size: more cases and more rounds than a daily run has time for.
//!
//! They are the same test binaries. A test that has a full size reads `AIRLOCK_SOAK` to choose it. A campaign is too
//! long for one call: it runs in slices, and each slice is recorded below `target/soak`.

mod accepted;
mod fuzz;
mod machine;
mod mutants;
mod records;
mod slices;

use crate::cargo::CargoCall;
use crate::packages;
use crate::print::print_line;
use anyhow::{Result, bail};
use slices::{CaseCount, SliceBound, SoakCampaign, TestBinary};

/// Tests that have a full size.
struct NamedSoak {
    /// The name on the command line.
    name: &'static str,
    /// What it demonstrates.
    about: &'static str,
    work: SoakWork,
}

/// The work of a soak.
enum SoakWork {
    /// Tests that run at full size in one call.
    Tests {
        package: &'static str,
        /// A substring of their names.
        filter: &'static str,
    },
    /// A test that runs a range of its cases per call.
    Slices(SoakCampaign),
    /// The fuzz targets, one after the other.
    Fuzz,
    /// Mutants of crates, one shard after the other.
    Mutants,
}

/// All soaks. One that matches no test is an error, so that a renamed test is noticed.
const SOAKS: &[NamedSoak] = &[
    NamedSoak {
        name: "lines",
        about: "lines come out the same however the bytes arrive",
        work: SoakWork::Tests { package: "protocols", filter: "lines_do_not_depend" },
    },
    NamedSoak {
        name: "rules",
        about: "the rules hold for any requests in any order",
        work: SoakWork::Tests { package: "lifecycle", filter: "" },
    },
    NamedSoak {
        name: "torn-log",
        about: "a log cut at every byte opens to a prefix of whole appends",
        work: SoakWork::Tests { package: "store", filter: "a_log_cut_anywhere" },
    },
    NamedSoak {
        name: "corrupt",
        about: "2,000 damaged data directories and power cuts: damage is reported, power cuts are not",
        work: SoakWork::Slices(SoakCampaign {
            package: "store",
            binary: TestBinary::Library,
            filter: "corrupt_files_are_reported",
            unit: "cases",
            cases: CaseCount::Number(2_000),
            slice: 100,
        }),
    },
    NamedSoak {
        name: "corrupt-server",
        about: "damaged data directories before the real server: refused, or every execution is equal",
        work: SoakWork::Tests {
            package: "airlock",
            filter: "a_damaged_directory_is_refused_or_unharmed",
        },
    },
    NamedSoak {
        name: "neighbours",
        about: "a quiet caller beside 400 sleepers, loops, floods, slow readers and an attacker",
        work: SoakWork::Slices(SoakCampaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "a_quiet_caller_is_served",
            unit: "neighbours",
            cases: CaseCount::Number(7),
            slice: 1,
        }),
    },
    NamedSoak {
        name: "openapi",
        about: "2,649 descriptions that others wrote are imported; what is not is explained",
        work: SoakWork::Tests { package: "tools", filter: "descriptions_that_others_wrote" },
    },
    NamedSoak {
        name: "kill",
        about: "2,000 stops at random moments lose nothing and write nothing twice",
        work: SoakWork::Slices(SoakCampaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "a_server_stopped_at_any_moment",
            unit: "stops",
            cases: CaseCount::Number(2_000),
            slice: 50,
        }),
    },
    NamedSoak {
        name: "attacks",
        about: "every hostile program ends as expected through every door, and leaks nothing",
        work: SoakWork::Slices(SoakCampaign {
            package: "airlock",
            binary: TestBinary::Integration,
            filter: "hostile_programs_end_as_expected",
            unit: "programs",
            cases: CaseCount::LinesBelow("crates/airlock/tests/attacks"),
            slice: 50,
        }),
    },
    NamedSoak {
        name: "fuzz",
        about: "no bytes make a decoder panic; each target for 10 minutes and 1,000,000 executions",
        work: SoakWork::Fuzz,
    },
    NamedSoak {
        name: "mutants",
        about: "what cargo-mutants changes in a crate is noticed by the crate's own tests",
        work: SoakWork::Mutants,
    },
    NamedSoak {
        name: "many",
        about: "10,000 paused programs survive a restart, cost nothing and are all answered",
        work: SoakWork::Tests { package: "airlock", filter: "paused_programs_survive" },
    },
    NamedSoak {
        name: "leaks",
        about: "5,000 executions leave no process, descriptor or file",
        work: SoakWork::Tests { package: "airlock", filter: "no_process_descriptor_or_file" },
    },
    NamedSoak {
        name: "processes",
        about: "10,000 short processes and 200 terminals leave nothing behind",
        work: SoakWork::Tests { package: "processes", filter: "many" },
    },
    NamedSoak {
        name: "exec-server",
        about: "every recorded scenario, also those that wait for a limit",
        work: SoakWork::Tests { package: "airlock", filter: "every_scenario_ends_as_recorded" },
    },
    NamedSoak {
        name: "exec-server-resume",
        about: "a client cut off again and again in 100 MB of output loses no byte",
        work: SoakWork::Tests { package: "airlock", filter: "a_reconnect_in_the_middle_of_output" },
    },
    NamedSoak {
        name: "exec-server-many",
        about: "10,000 starts and 200 terminals of one client leave nothing behind",
        work: SoakWork::Tests { package: "airlock", filter: "a_client_of_many_processes" },
    },
];

/// Cases of a property test that does not set its own number; a daily run has 256.
const PROPERTY_CASES: &str = "50000";

/// The options of `cargo xtask soak`.
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
enum CargoProfile {
    Debug,
    Release,
}

impl CargoProfile {
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
    let profile = if options.release { CargoProfile::Release } else { CargoProfile::Debug };
    if options.report {
        return chosen.into_iter().try_for_each(|soak| report(soak, profile));
    }
    let slices_max = options.slices.unwrap_or(u64::MAX);
    let bound = SliceBound { slices_max, size: options.slice, profile };
    for soak in chosen {
        print_line(&format!("\n== {}: {}", soak.name, soak.about));
        match &soak.work {
            SoakWork::Tests { package, filter } => {
                packages::run()?;
                let tests = tests(package, filter, profile);
                require_test(package, &tests)?;
                tests.arg("--nocapture").run()?;
            }
            SoakWork::Slices(campaign) => campaign.run(soak.name, bound)?,
            SoakWork::Fuzz => fuzz::run(bound)?,
            SoakWork::Mutants => mutants::run(bound)?,
        }
    }
    Ok(())
}

fn report(soak: &NamedSoak, profile: CargoProfile) -> Result<()> {
    match &soak.work {
        SoakWork::Tests { .. } => Ok(()),
        SoakWork::Slices(campaign) => campaign.report(soak.name, profile),
        SoakWork::Fuzz => fuzz::report(),
        SoakWork::Mutants => mutants::report(),
    }
}

fn chosen<'a>(soaks: &'a [NamedSoak], name: Option<&str>) -> Result<Vec<&'a NamedSoak>> {
    let known = || soaks.iter().map(|soak| soak.name).collect::<Vec<_>>().join(", ");
    let meant: Vec<_> =
        soaks.iter().filter(|soak| name.is_none_or(|name| soak.name == name)).collect();
    match (meant.is_empty(), name) {
        (true, Some(name)) => bail!("no soak {name}; there are: {}", known()),
        (_, None) | (false, _) => Ok(meant),
    }
}

fn tests(package: &str, filter: &str, profile: CargoProfile) -> CargoCall {
    let start = ["test", "--package", package];
    CargoCall::new(&[&start, profile.flags(), &["--tests", "--", filter]].concat())
        .env("AIRLOCK_SOAK", "1")
        .env("PROPTEST_CASES", PROPERTY_CASES)
}

/// Fails where the filter names no test, so that a renamed test is noticed.
fn require_test(package: &str, tests: &CargoCall) -> Result<()> {
    if count_tests(&tests.clone().arg("--list").read()?) == 0 {
        bail!("no test in {package} has that name: {}", tests.shown_command());
    }
    Ok(())
}

fn count_tests(listing: &str) -> usize {
    listing.lines().filter(|line| line.ends_with(": test")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[NamedSoak] = &[
        NamedSoak {
            name: "replay",
            about: "",
            work: SoakWork::Tests { package: "runner", filter: "recordings" },
        },
        NamedSoak { name: "fuzz", about: "", work: SoakWork::Fuzz },
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
        let shown = tests("runner", "recordings", CargoProfile::Debug).shown_command();
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
