//! Regenerates the expectations of stories and fixtures.

use crate::cargo::CargoCall;
use crate::nextest;
use crate::print::print_line;
use crate::tidy;
use anyhow::Result;

/// Runs the tests of one package or of all in rewrite mode.
pub(crate) fn run(package: Option<&str>) -> Result<()> {
    if package.is_none_or(|name| name == "xtask") {
        tidy::public_api::write_listings()?;
    }
    nextest::install()?;
    rewrite(package).run()?;
    print_line("Expectations are rewritten. Read the diff before you keep it.");
    Ok(())
}

fn rewrite(package: Option<&str>) -> CargoCall {
    // One failing test must not prevent the others from rewriting.
    let cargo = CargoCall::new(&["nextest", "run", "--no-fail-fast"])
        .env("AIRLOCK_BLESS", "1")
        .env("INSTA_UPDATE", "always");
    match package {
        Some(package) => cargo.arg("--package").arg(package),
        None => cargo.arg("--workspace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_package_or_all() {
        let words = "AIRLOCK_BLESS=1 INSTA_UPDATE=always cargo nextest run --no-fail-fast";
        assert_eq!(rewrite(None).shown_command(), format!("{words} --workspace"));
        assert_eq!(rewrite(Some("engine")).shown_command(), format!("{words} --package engine"));
    }
}
