//! Runs the `bench` crate, which is built in release mode and links what it measures.

use crate::cargo::CargoCall;
use crate::packages;
use anyhow::Result;

/// The benchmarks that start the binary, from their own directory, instead of linking it.
const START_BINARY: [&str; 9] = [
    "catalogue",
    "cli",
    "durable",
    "enclave",
    "exec-server",
    "executions",
    "mcp",
    "repl",
    "runner",
];

/// Runs one benchmark or all of them.
pub(crate) fn run(name: Option<&str>, check: bool) -> Result<()> {
    if name.is_none_or(|name| name == "catalogue") {
        // It counts tokens with an npm tokenizer.
        packages::run()?;
    }
    for cargo in calls(name, check) {
        cargo.run()?;
    }
    Ok(())
}

fn calls(name: Option<&str>, check: bool) -> Vec<CargoCall> {
    let mut calls = vec![];
    if name.is_none_or(|name| START_BINARY.contains(&name)) {
        // Built separately, with the features of a release.
        calls.push(CargoCall::new(&["build", "--release", "--package", "airlock"]));
    }
    calls.push(measure(name, check));
    calls
}

fn measure(name: Option<&str>, check: bool) -> CargoCall {
    let mut cargo = CargoCall::new(&["run", "--release", "--package", "bench", "--"]);
    if let Some(name) = name {
        cargo = cargo.arg(name);
    }
    if check { cargo.arg("--check") } else { cargo }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: Option<&str>, check: bool) -> Vec<String> {
        calls(name, check).iter().map(CargoCall::shown_command).collect()
    }

    #[test]
    fn name_and_check_are_passed_on() {
        let expected = ["cargo run --release --package bench -- kit --check"];
        assert_eq!(shown(Some("kit"), true), expected);
    }

    #[test]
    fn the_server_is_built_for_whoever_starts_it() {
        let build = "cargo build --release --package airlock";
        assert_eq!(shown(None, false), [build, "cargo run --release --package bench --"]);
        let durable = "cargo run --release --package bench -- durable";
        assert_eq!(shown(Some("durable"), false), [build, durable]);
        let mcp = "cargo run --release --package bench -- mcp";
        assert_eq!(shown(Some("mcp"), false), [build, mcp]);
    }
}
