//! `codex` from npm, installed below the target directory, where tests look for it, too.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The version that is measured.
const VERSION: &str = "0.166.0";

/// The program itself, without the script that starts it.
const BINARY: &str =
    "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// For tables.
pub(super) fn name() -> String {
    format!("codex {VERSION}")
}

/// Where it is, installed unless that was done before.
#[expect(clippy::disallowed_methods, reason = "npm is awaited here")]
pub(super) fn installed() -> Result<PathBuf> {
    let beside = std::env::current_exe()?;
    let release = beside.parent().context("a binary lies in a directory")?;
    let folder = release.parent().context("below the target directory")?.join("codex-cli");
    let binary = folder.join(BINARY);
    if binary.is_file() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&folder)?;
    let installing = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(format!("@openai/codex@{VERSION}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("run npm")?;
    if !installing.success() || !binary.is_file() {
        bail!("npm could not install it ({installing})");
    }
    Ok(binary)
}
