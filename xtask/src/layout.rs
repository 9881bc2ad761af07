//! Where functions lie in the binary: has the list written, or looks whether it is up to date.

use crate::cargo::Cargo;
use crate::programs;
use anyhow::Result;

/// What the linker is given.
const LIST: &str = "crates/airlock/layout.txt";

/// Looks at a busy server, or with `check` at the list alone.
pub(crate) fn run(check: bool) -> Result<()> {
    if !check {
        programs::need("perf", &["linux-perf"])?;
    }
    for cargo in calls(check) {
        cargo.run()?;
    }
    Ok(())
}

fn calls(check: bool) -> [Cargo; 3] {
    let build = Cargo::new(&["build", "--release", "--package", "airlock"]);
    // The names of functions are what we look for.
    let named =
        ["rustc", "--release", "--package", "airlock", "--bin", "airlock", "--", "-Cstrip=none"];
    let bench = Cargo::new(&["run", "--release", "--package", "bench", "--", "--layout", LIST]);
    let bench = if check { bench.arg("--check") } else { bench };
    [Cargo::new(&named), bench, build]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_with_names_is_looked_at_and_one_without_is_left_behind() {
        let shown = calls(true).map(|cargo| cargo.shown());
        let expected = [
            "cargo rustc --release --package airlock --bin airlock -- -Cstrip=none",
            "cargo run --release --package bench -- --layout crates/airlock/layout.txt --check",
            "cargo build --release --package airlock",
        ];
        assert_eq!(shown, expected);
    }
}
