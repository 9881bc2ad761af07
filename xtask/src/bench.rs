//! Hands over to the `bench` crate, which is built in release mode and links what it measures.

use crate::cargo::Cargo;
use anyhow::Result;

/// Runs one benchmark or all of them.
pub(crate) fn run(name: Option<&str>, check: bool) -> Result<()> {
    // Some measure the real server, which they find beside themselves: built alone, as it is shipped.
    Cargo::new(&["build", "--release", "--package", "airlock"]).run()?;
    measure(name, check).run()
}

fn measure(name: Option<&str>, check: bool) -> Cargo {
    let mut cargo = Cargo::new(&["run", "--release", "--package", "bench", "--"]);
    if let Some(name) = name {
        cargo = cargo.arg(name);
    }
    if check { cargo.arg("--check") } else { cargo }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_check_are_passed_on() {
        let shown = |name, check| measure(name, check).shown();
        assert_eq!(shown(None, false), "cargo run --release --package bench --");
        assert_eq!(shown(Some("kit"), true), "cargo run --release --package bench -- kit --check");
    }
}
