//! Installs programs that tests or verbs drive and cargo does not bring, from Debian's packages.

use crate::print::print_line;
use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};

/// A program, and the packages that bring it.
struct TestProgram {
    name: &'static str,
    packages: &'static [&'static str],
}

const PROGRAMS: &[TestProgram] = &[
    // A real browser for the console, and what drives it.
    TestProgram { name: "chromedriver", packages: &["chromium", "chromium-driver"] },
    // The judge of what stands on a terminal, and programs that draw on one.
    TestProgram { name: "tmux", packages: &["tmux"] },
    TestProgram { name: "vim", packages: &["vim"] },
    TestProgram { name: "less", packages: &["less"] },
    TestProgram { name: "top", packages: &["procps"] },
    TestProgram { name: "htop", packages: &["htop"] },
    // What drives the REPL's door from outside.
    TestProgram { name: "python3", packages: &["python3", "python3-venv"] },
];

/// Installs what is not there yet.
pub(crate) fn run() -> Result<()> {
    PROGRAMS.iter().try_for_each(|program| need(program.name, program.packages))
}

/// Installs a program that only some verbs need, unless it is there.
pub(crate) fn need(name: &str, packages: &[&str]) -> Result<()> {
    if is_on_path(name) { Ok(()) } else { install(packages) }
}

/// Needs root, as on a fresh container.
fn install(packages: &[&str]) -> Result<()> {
    print_line(&format!("$ apt-get install {}", packages.join(" ")));
    apt(&["update"])?;
    let done = apt(&[&["install", "--no-install-recommends"], packages].concat())?;
    if !done {
        bail!("install these by hand, then run again: {}", packages.join(" "));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a build tool starts apt-get and waits for it")]
fn apt(words: &[&str]) -> Result<bool> {
    let mut apt = Command::new("apt-get");
    apt.args(["-q", "-y"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let status = apt.stdout(Stdio::null()).status();
    Ok(status.context("apt-get brings what tests need; elsewhere, install it by hand")?.success())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
