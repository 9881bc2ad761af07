//! Installs programs that tests or verbs need and cargo does not provide, from Debian's packages.

use crate::print::print_line;
use anyhow::{Context as _, Result, bail};
use std::process::{Command, Stdio};

/// A program, and the packages that contain it.
struct TestProgram {
    name: &'static str,
    packages: &'static [&'static str],
}

const PROGRAMS: &[TestProgram] = &[
    // A real browser for the console, and its driver.
    TestProgram { name: "chromedriver", packages: &["chromium", "chromium-driver"] },
    // The reference terminal, and programs that draw on one.
    TestProgram { name: "tmux", packages: &["tmux"] },
    TestProgram { name: "vim", packages: &["vim"] },
    TestProgram { name: "less", packages: &["less"] },
    TestProgram { name: "top", packages: &["procps"] },
    TestProgram { name: "htop", packages: &["htop"] },
    // An external client of the REPL.
    TestProgram { name: "python3", packages: &["python3", "python3-venv"] },
];

/// Installs missing programs.
pub(crate) fn run() -> Result<()> {
    PROGRAMS.iter().try_for_each(|program| need(program.name, program.packages))
}

/// Installs a program that only some verbs need, if it is missing.
pub(crate) fn need(name: &str, packages: &[&str]) -> Result<()> {
    if is_on_path(name) { Ok(()) } else { install(packages) }
}

/// Needs root, as on a fresh container.
fn install(packages: &[&str]) -> Result<()> {
    print_line(&format!("$ apt-get install {}", packages.join(" ")));
    apt(&["update"])?;
    let done = apt(&[&["install", "--no-install-recommends"], packages].concat())?;
    if !done {
        bail!("install these manually, then run again: {}", packages.join(" "));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a build tool starts apt-get and waits for it")]
fn apt(words: &[&str]) -> Result<bool> {
    let mut apt = Command::new("apt-get");
    apt.args(["-q", "-y"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let status = apt.stdout(Stdio::null()).status();
    Ok(status
        .context("apt-get installs what tests need; on other systems, install it manually")?
        .success())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
