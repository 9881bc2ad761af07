//! Creates the Python environment of third-party checks. It is cached in `target/python` per version.

use crate::cargo::root;
use crate::print::print_line;
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::Command;

/// Packages and versions.
const PACKAGES: [&str; 2] = ["jsonschema==4.25.1", "websockets==15.0.1"];

/// Installs missing packages.
pub(crate) fn run() -> Result<()> {
    let folder = root().join("target/python");
    let stamp = folder.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    print_line(&format!("$ pip install {wanted}"));
    let place = folder.to_str().context("the path of this repository must be text")?;
    run_to_end("python3", &["-m", "venv", "--clear", place])?;
    let pip = folder.join("bin/pip");
    let pip = pip.to_str().context("the path of this repository must be text")?;
    run_to_end(pip, &[&["install", "-q", "--disable-pip-version-check"], &PACKAGES[..]].concat())?;
    fs::write(stamp, wanted).context("note what is installed")
}

#[expect(clippy::disallowed_methods, reason = "a build tool starts Python and waits for it")]
fn run_to_end(program: &str, words: &[&str]) -> Result<()> {
    let status = Command::new(program).args(words).status();
    let status =
        status.with_context(|| format!("start {program}; tests need Python 3.10 or later"))?;
    if !status.success() {
        bail!("{program} failed ({status})");
    }
    Ok(())
}
